"""The command `engine`, which is `python -m engine`, too.

Ctrl-C has to end it as any other program, by the signal, from the start until a command begins that
acts on it (`cli/options.py`). Python would print a traceback out of what it imports, so nothing
heavy is imported before that is said.
"""

import signal


def main() -> None:
    """Run the command line. A SIGINT that the parent ignores, as nohup has it, stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    from engine.cli.main import main as run  # noqa: PLC0415 - as said above

    run()


if __name__ == "__main__":
    main()
