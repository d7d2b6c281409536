"""What the cluster holds, kept up to date by watches."""
