"""Say what the solver would choose: spark-submit jobs/explain.py --conf release.yaml

Exit codes: 0 done, 2 bad spec, arguments or input, 3 requirement cannot be met, 4 audit refused, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["explain", *sys.argv[1:]]))
