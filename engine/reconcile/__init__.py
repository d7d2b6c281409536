"""One job at a time, from what is seen to what is written."""
