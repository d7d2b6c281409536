"""Which signals end a command in order."""

import signal


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, and SIGINT unless the parent ignores it, as a script does for what it starts with &:
    its Ctrl-C isn't meant for that.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return (signal.SIGTERM,) if ignored else (signal.SIGTERM, signal.SIGINT)
