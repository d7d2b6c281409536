"""What to do next for a job, and everything it is decided from: pure."""
