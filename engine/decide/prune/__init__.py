"""What outlived its TTL goes, and nothing else: metadata and the time in, a verdict out."""
