# Databricks notebook source
# MAGIC %md
# MAGIC # A release every month, and nobody twice
# MAGIC
# MAGIC The table has 101,766 stays of 71,518 patients with diabetes in 130 US hospitals (Strack and others, 2014; CC BY 4.0). It
# MAGIC grows: each month it holds all stays so far. Patients come back, in the same month and in later ones. What is published of
# MAGIC a patient is one stay, once.
# MAGIC
# MAGIC On Databricks install the library first, in a cell of its own: `%pip install anonlib`. Elsewhere run the file as it is, with
# MAGIC the folder of `diabetes_130us.parquet` in ANONLIB_DATA.

# COMMAND ----------

import os
import secrets
import tempfile

import anonlib
from anonlib.engine.session import session
from anonlib.privacy.f_privacy import FPrivacy

spark = session()  # the notebook's own session, else a local one
HOME = tempfile.mkdtemp(
    prefix="anonlib-"
)  # on a cluster a path that driver and workers reach, e.g. "/Volumes/main/clinic"
TABLE = os.path.join(os.environ.get("ANONLIB_DATA", "../shared/data"), "diabetes_130us.parquet")
# from a secret scope in earnest: without this key nobody is known again
os.environ.setdefault("ANONLIB_LEDGER_KEY", secrets.token_hex(32))

names = ["patient_nbr", "encounter_id", "race", "gender", "age", "diag_1"]
stays = spark.read.parquet(os.path.abspath(TABLE)).select(*names).where("diag_1 IS NOT NULL")
edges = stays.approxQuantile("encounter_id", [0.25, 0.5, 0.75], 0.001)
months = [stays.where(f"encounter_id <= {edge:.0f}") for edge in edges] + [stays]
for number, table in enumerate(months, 1):
    print(f"month {number}: {table.count():,} stays of {table.select('patient_nbr').distinct().count():,} patients")

# COMMAND ----------

# MAGIC %md
# MAGIC ## One record a person
# MAGIC A promise is about one record. Without a policy a table with several is refused, and the refusal counts them.

# COMMAND ----------

asked = {
    "quasi_identifiers": ["race", "gender", "age"],
    "sensitive": "diag_1",
    "identifiers": ["encounter_id"],
    "person": "patient_nbr",
    "privacy": FPrivacy.l_diversity(8),
    "solver": "two_size",
}
try:
    anonlib.bucketize(months[0], **asked)
except anonlib.SpecError as error:
    print(error)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Four months
# MAGIC The ledger is started once. Then every month is the same call: the first stay of each patient who is not in the ledger.

# COMMAND ----------

ledger = {"path": f"{HOME}/ledger", "key": "env:ANONLIB_LEDGER_KEY"}
anonlib.new_ledger(**ledger)
releases = []
for number, table in enumerate(months, 1):
    release = anonlib.bucketize(
        table,
        **asked,
        persons={"repeated": "first", "order": "encounter_id"},
        ledger=ledger,
        output=f"{HOME}/releases/month-{number}",
    )
    releases.append(release)
    told = release.manifest.persons
    print(
        f"month {number}: {told.rows:,} stays of {told.persons:,} patients, {told.left_out:,} further stays left out, "
        f"{told.known:,} patients published before; published {release.manifest.rows.published:,}"
    )

# COMMAND ----------

# MAGIC %md
# MAGIC Nobody is out twice, and nobody is missing: as many records as patients. The ledger agrees with its files and with the manifests.

# COMMAND ----------

published = sum(release.manifest.rows.published for release in releases)
print(f"{published:,} records published, {stays.select('patient_nbr').distinct().count():,} patients in all")
report = anonlib.ledger(**ledger)
for line in report.lines:
    print(f"release {line.number}: {line.persons:,} persons, {line.outcome}, its manifest {line.manifest}")
print(report.fault or "all agrees")

# COMMAND ----------

# MAGIC %md
# MAGIC ## The same table once more
# MAGIC Nobody is new. `wait` says that this is no failure.

# COMMAND ----------

try:
    anonlib.bucketize(
        stays,
        **asked,
        persons={"repeated": "first", "order": "encounter_id"},
        ledger={**ledger, "wait": True},
        output=f"{HOME}/releases/month-5",
    )
except anonlib.Postponed as reason:
    print(reason)
