"""What is published of a version: `make release`."""
