"""The command line as a module and as a program: python -m anonlib explain release.yaml."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from anonlib.errors import SpecError
from anonlib.shipped import path_of, root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; where there is no Spark, say what to install, but still tell paths."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from anonlib.cli import main as with_spark
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "pyspark":
            raise
        return _without_spark(given)
    return with_spark(given)


def _without_spark(given: list[str]) -> int:
    try:
        if given[:1] == ["path"] and len(given) <= 2 and not given[-1].startswith("-"):
            sys.stdout.write(f"{path_of(given[1]) if len(given) == 2 else root()}\n")
            return 0
        raise SpecError(
            "there is no Spark in this environment: pip install 'anonlib[spark,java]' on one machine; on a cluster start a job with its "
            'own spark-submit, e.g. spark-submit "$(anonlib path anonymize.py)" --conf release.yaml'
        )
    except SpecError as error:
        sys.stderr.write(f"anonlib: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
