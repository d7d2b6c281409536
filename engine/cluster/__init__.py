"""The only part that knows the `kubernetes` package: HTTP in and out, as dicts and our errors."""
