"""Just enough HTTP/1.1 for Kubernetes clients: keep-alive, bodies, chunked streams."""
