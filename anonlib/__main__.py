"""The command line as a module: python -m anonlib explain release.yaml."""

from __future__ import annotations

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main())
