"""The ground floor: what every app needs and none owns. Imports no other folder of the project."""
