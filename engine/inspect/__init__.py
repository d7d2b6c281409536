"""What only looks at jobs: status, describe, logs, diff, doctor. Nothing here writes."""
