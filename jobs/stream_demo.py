"""The stream's demo: a public-domain health survey arrives in files; after each few, `anonlib stream` shows what may be shown.

As jobs/demo.py, for conf/releases/stream.yaml.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
CONF = Path("conf/releases/stream.yaml")
ARRIVING, RELEASE, PRIVATE = Path("demo/arriving"), Path("demo/stream"), Path("demo/private")
FILES, AT_ONCE = 12, 4
INCOME = "AnnualFamilyIncome"


def files(table: pa.Table) -> list[pa.Table]:
    """The survey's adults in the order of their numbers, in `FILES` files; incomes as numbers, so that close ones are close."""
    at = table.column_names.index(INCOME)
    in_order = table.set_column(at, INCOME, table.column(at).cast(pa.int32())).sort_by("SEQN")
    edges = [len(in_order) * i // FILES for i in range(FILES + 1)]
    return [in_order.slice(start, stop - start) for start, stop in pairwise(edges)]


def main() -> int:
    """Replace the demo's last stream, let files arrive, and publish after each few; at the end, what waits."""
    sys.path.insert(0, str(ROOT))
    from jobs.demo import survey

    for folder in (ARRIVING, RELEASE, PRIVATE, RELEASE.with_name(f".{RELEASE.name}.staging-stream")):
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    (ROOT / ARRIVING).mkdir(parents=True)
    arriving = files(survey())
    for start in range(0, FILES, AT_ONCE):
        for number, part in enumerate(arriving[start : start + AT_ONCE], start):
            pq.write_table(part, ROOT / ARRIVING / f"part-{number:03d}.parquet")
        last = start + AT_ONCE >= FILES
        print(
            f"\n{start + AT_ONCE} of {FILES} files have arrived in {ARRIVING}/{', and the stream ends' if last else ''}:\n",
            flush=True,
        )
        code = anonlib("stream", str(CONF), "--once", *(["--flush"] if last else []))
        if code:
            return code
    print(f"\nHolding every class against the windows that {PRIVATE}/ kept:\n", flush=True)
    code = anonlib("audit", str(RELEASE), "--evidence", str(PRIVATE))
    if code == 0:
        print(f"\n{next_steps()}")
    return code


def anonlib(*arguments: str) -> int:
    """The command line, in a process of its own."""
    return subprocess.run([sys.executable, "-m", "anonlib.cli", *arguments], cwd=ROOT, check=False).returncode


def next_steps() -> str:
    """What to look at and to try, as commands that can be pasted."""
    script = Path(sys.executable).parent / "anonlib"
    command = script.relative_to(ROOT) if script.is_relative_to(ROOT) else script
    return f"""Where to look next:
  {CONF!s:30} what was asked for, with comments
  {f"{RELEASE}/microdata":30} the table of all batches (Parquet)
  {f"{RELEASE}/batches":30} a manifest for each: what came when, and what its audit found
and to try:
  {command} query {RELEASE} "AgeInYearsAtScreening BETWEEN 30 AND 40 AND AnnualFamilyIncome = '100000'\""""


if __name__ == "__main__":
    sys.exit(main())
