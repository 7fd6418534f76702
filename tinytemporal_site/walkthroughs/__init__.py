"""What the walkthrough commands run: each shows one thing that survives, and what to look at."""
