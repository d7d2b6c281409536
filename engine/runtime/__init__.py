"""What runs reconciles: queue, workers, rate limits, retries, leader election."""
