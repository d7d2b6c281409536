"""From the text of a file to a job that passed every check; pure, apart from shipped schemas."""
