"""The decoder of request bodies, by the table of Kubernetes' types."""
