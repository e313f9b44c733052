"""Publish a stream: spark-submit jobs/stream.py --conf stream.yaml [--once [--flush]]

Exit codes: 0 done, 2 bad spec, arguments or input, 3 requirement cannot be met, 4 audit refused, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["stream", *sys.argv[1:]]))
