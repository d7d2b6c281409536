"""What the server does to an object between its decoding and its storing."""
