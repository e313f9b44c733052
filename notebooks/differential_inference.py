# Databricks notebook source
# MAGIC %md
# MAGIC # What noisy counts tell of one person
# MAGIC
# MAGIC Two count queries are answered with Laplace noise, as differential privacy has it. Their ratio tells what a person's
# MAGIC sensitive value probably is, the more surely the more persons look like that person: *Inferential or differential: privacy
# MAGIC laws dictate*, Theorem 2. Then the same persons are published by bucketization, and what it bounds, and what it does not, is
# MAGIC measured. The table is generated.
# MAGIC
# MAGIC On Databricks install the library first, in a cell of its own: `%pip install anonlib`. Elsewhere run the file as it is.

# COMMAND ----------

import numpy as np

import anonlib
from anonlib import workflow
from anonlib.engine.session import session
from anonlib.evaluation.attacks import differential_inference
from anonlib.privacy.f_privacy import FPrivacy

OUTPUT = None  # on a cluster a path that driver and workers reach, e.g. "/Volumes/main/clinic/releases/inference"
EPSILON = 0.1
SHARE = 0.9  # of those who look like Bob have the flu

# COMMAND ----------

# MAGIC %md
# MAGIC ## The theorem
# MAGIC x persons look like Bob, y of them have the flu. X and Y are the answers with noise of scale b = 1/epsilon. Up to higher powers
# MAGIC of b/x, the mean of Y/X is (y/x)(1 + 2b²/x²) and its variance (2b²/x²)(1 + (y/x)²). The noise does not grow with x, so the
# MAGIC ratio closes in on y/x = 0.9, at the same epsilon. The chance that it lies within 0.05 of y/x is counted over the draws.

# COMMAND ----------

rng = np.random.default_rng(20)
DRAWS = 100_000
print(f"epsilon {EPSILON}: ratio of two noisy counts, true ratio {SHARE}")
for x in (100, 300, 1_000, 10_000):
    y = round(SHARE * x)
    found = differential_inference(x, y, EPSILON, overall=0.1, draws=DRAWS)
    told = found.detail
    ratio = (y + rng.laplace(0, 1 / EPSILON, DRAWS)) / (x + rng.laplace(0, 1 / EPSILON, DRAWS))
    print(
        f"x = {x:6,}: mean {told['mean']:.4f} (theorem {told['expected mean']:.4f}), variance {told['variance']:.6f} "
        f"(theorem {told['expected variance']:.6f}), within 0.05 in {np.mean(abs(ratio - SHARE) <= 0.05):.1%}; "
        f"guess of Bob's value right in {found.accuracy:.3f}, before in {1 - SHARE:.3f}"
    )

# COMMAND ----------

# MAGIC %md
# MAGIC Who knows only that one person in ten has the flu says that Bob has not, and is right about those who look like Bob in 0.1.
# MAGIC With the answers he says that Bob has it, and is right in 0.9. Epsilon promises nothing about that.
# MAGIC
# MAGIC ## The same persons in buckets
# MAGIC A thousand of 10,000 persons look like Bob, and 900 of these have the flu. Nobody shall believe any value of a person with more
# MAGIC than 1/5, from the person's bucket.

# COMMAND ----------

spark = session()  # the notebook's own session, else a local one
ILLNESSES = ["asthma", "gout", "angina", "anaemia", "eczema", "migraine", "ulcer", "hernia", "flu"]
LIKE_BOB, WITH_FLU, ALL = 1_000, 900, 10_000
illness = ["flu"] * WITH_FLU + [ILLNESSES[i % 8] for i in range(ALL - WITH_FLU)]
town = ["Bob's"] * LIKE_BOB + [f"town {i % 9}" for i in range(ALL - LIKE_BOB)]
order = rng.permutation(ALL)
people = spark.createDataFrame([(town[i], illness[i]) for i in order], "town string, illness string")
release = anonlib.bucketize(
    people,
    quasi_identifiers=["town"],
    sensitive="illness",
    privacy=FPrivacy.l_diversity(5),
    output=OUTPUT,
)
verdict = workflow.audit(release, people)
assert verdict.passed
print(release)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The bound, on every person
# MAGIC A person's bucket lists values with their counts; each is the person's with count / size. Below is the largest of these over the
# MAGIC whole release. Spread evenly over each bucket, the answers to the two queries are averages of such shares, so their ratio obeys
# MAGIC the bound too, however many persons look like Bob.

# COMMAND ----------

st = release.tables["st"]
size = st.groupBy("bucket_id").agg({"count": "sum"}).withColumnRenamed("sum(count)", "size")
belief = st.join(size, "bucket_id").selectExpr("max(count / size) AS largest", "sum(size) / sum(1) AS mean").first()
answer_x = release.count('town = "Bob\'s"').estimate
answer_y = release.count("town = \"Bob's\" AND illness = 'flu'").flattened
print(f"bucketized: largest belief from a bucket {belief['largest']:.4f}, promised 0.2000")
print(f"bucketized: answers {answer_y:.1f} / {answer_x:.1f} = {answer_y / answer_x:.4f}, true ratio {SHARE}")
assert belief["largest"] <= 0.2
assert answer_y / answer_x <= 0.2

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the bound does not say
# MAGIC Who knows how buckets are dealt can calculate back. Of a person with the flu the bucket's share of flu is 1/s, s its size. Of one
# MAGIC without, it is f(s - 1) / (s(1 - f)) on average, f the share of flu in the table, for a bucket lists it once at most. The answers'
# MAGIC ratio is a mixture of the two, and says what the mixture is.
# MAGIC
# MAGIC `release.count` does the same by solving for what each kind of bucket flattens; its `estimate` and `unbiased` are no averages of
# MAGIC shares.
# MAGIC
# MAGIC That is a learner's estimate about a *group*. Its error shrinks as the group grows, and no promise of this kind bounds it.
# MAGIC Whoever applies the group's ratio to Bob is right as often as the ratio says, here as above. A promise about one person's bucket
# MAGIC is a promise about what the bucket tells by itself, not that nothing is learnt of those who look alike (`docs/attacks.md`).

# COMMAND ----------

f, s = WITH_FLU / ALL, belief["mean"]
without = f * (s - 1) / (s * (1 - f))
undone = (answer_y / answer_x - without) / (1 / s - without)
print(
    f"bucketized, calculated back: ratio about {undone:.3f}, true ratio {SHARE}; no bound is promised against a learner"
)
