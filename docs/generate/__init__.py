"""Makes docs/reference: what the schemas, the command line, the registry and the enums say."""
