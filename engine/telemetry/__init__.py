"""What the engine tells while it works: typed events, and keeping secrets out of all of it."""
