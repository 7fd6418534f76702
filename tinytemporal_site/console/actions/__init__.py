"""What an operator may do to executions and queues."""
