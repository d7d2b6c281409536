"""The command line: one file per verb, printers for what they tell, exit codes in one place."""
