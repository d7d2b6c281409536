"""From an HTTP request to a verb over storage, and back."""
