"""Formats: what a command has to say, as lines, tables, YAML or JSON."""
