"""The bucketized layout: which columns stand in `qit/` and `st/`.

qit/  quasi-identifiers and `other` columns unchanged, `bucket_id` long
st/   `bucket_id` long, the sensitive column, `count` long: one row per distinct sensitive value of a bucket
"""

from __future__ import annotations

QIT = "qit"
ST = "st"
