"""What is done how often: counted, as time is no test."""
