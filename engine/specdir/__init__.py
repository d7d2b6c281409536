"""The directory of spec files: watch, scan, parse cache, active specs; one loader for all."""
