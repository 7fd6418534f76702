"""A cluster of processes under load while processes are killed, frozen and misled and their database goes away.

`python -m tests.chaos` (`make chaos`) does it for ten minutes and prints what came of each fault; `test_chaos` does it for half
a minute. What must hold afterwards is in `audit`.
"""
