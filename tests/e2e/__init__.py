"""The server as its users meet it: a real process, the stock SDK, the stock `temporal` command, on both databases."""
