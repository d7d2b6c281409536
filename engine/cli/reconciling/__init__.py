"""The two ways of `engine reconcile`: once, and from now on."""
