"""``python -m perfgate``: the same as the command ``perfgate``."""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit code.

    A request to end has the exit code of Ctrl-C wherever it comes; while something is measured it is
    taken as a wish, and what was measured is kept.
    """
    from perfgate.cli.main import run

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
