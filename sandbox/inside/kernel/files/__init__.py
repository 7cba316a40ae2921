"""What a file holds: `profile` (one file) and `intake` (a file that arrives). Stands on nothing else of the kernel."""
