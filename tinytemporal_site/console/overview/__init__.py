"""What needs attention, first."""
