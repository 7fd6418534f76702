"""The console in a terminal: `manage.py inspect`.

reach.py    the running processes, for as long as the command lasts
facts.py    what the admin's pages show, by the same functions, as plain JSON values
tables.py   these values as rich tables
"""
