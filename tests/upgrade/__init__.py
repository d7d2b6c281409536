"""From version to version: what a release left in a cluster, and what it could read of the next."""
