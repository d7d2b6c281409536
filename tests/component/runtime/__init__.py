"""An engine of whose parts each is made to raise."""
