"""What fields a kind has: one table of types, its reader, and the decoder of request bodies."""
