"""The command, and `python -m eventlog`."""

import sys

# Until the command handles signals itself, a Ctrl-C ends it without a word: Python would print a traceback.
try:
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
except KeyboardInterrupt:
    sys.exit(130)

if sys.platform == "win32":
    print("eventlog: the command runs on Unix; on Windows use WSL 2 (docs/run/windows.md)", file=sys.stderr)
    sys.exit(2)

from eventlog.cli import main

if __name__ == "__main__":
    main()
