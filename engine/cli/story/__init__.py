"""What `engine demo` tells: a stage with an embedded cluster, and the chapters played on it."""
