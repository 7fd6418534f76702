"""Task queues: ownership, spooled deliveries and the hand-off to waiting pollers."""
