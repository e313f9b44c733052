"""Show and check a ledger of persons: spark-submit jobs/ledger.py LEDGER --key env:NAME [--new]

Exit codes: 0 done, 2 bad spec, arguments or input, 3 requirement cannot be met, 4 audit refused, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["ledger", *sys.argv[1:]]))
