"""Write a report of a release for people: spark-submit jobs/report.py RELEASE [--original TABLE] [-o FILE]

Exit codes: 0 done, 2 bad spec, arguments or input, 3 requirement cannot be met, 4 audit refused, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
