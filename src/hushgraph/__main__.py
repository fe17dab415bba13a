"""The command `hushgraph`, which is also `python -m hushgraph`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command. Ctrl-C while its code is still being imported ends it with one line, as Ctrl-C does later."""
    try:
        from hushgraph.cli import app

        app()
    except KeyboardInterrupt:
        print("hushgraph: stopped; nothing was written", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
