"""Why there is no release, as one line that says what to do."""


class ReleaseRefusedError(Exception):
    """Something of the tree or of this machine is not as a release needs it."""
