"""Task queues: rows and live owner side by side."""
