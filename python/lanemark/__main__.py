"""The command `lanemark`."""

from __future__ import annotations

import signal
import sys

from lanemark import _lanemark


def main() -> int:
    """Runs the command with the arguments of this process; returns the exit code."""
    # The command handles Ctrl-C itself, or ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _lanemark.main([sys.executable, "-m", "lanemark"], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
