"""Add the tables of a release to the catalog: spark-submit jobs/register.py RELEASE [CATALOG.SCHEMA.NAME]

Exit codes: 0 done, 2 bad spec, arguments or input, 3 requirement cannot be met, 4 audit refused, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["register", *sys.argv[1:]]))
