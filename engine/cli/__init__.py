"""The command line: one file per verb, printers for their output, exit codes in one place."""
