"""A release every month, as an Airflow DAG of one task: spark-submit on a cluster, with the ledger's key from Airflow's connections.

A run that dies may be retried: it has either published everybody of the increment and entered them, or nobody (docs/schedules.md). One at a
time, since of two at once the second is refused.
"""

from __future__ import annotations

import datetime as dt

from airflow import DAG
from airflow.operators.bash import BashOperator

with DAG(
    "anonlib_monthly",
    schedule="0 3 1 * *",
    start_date=dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
    catchup=False,  # a run of today publishes whoever is new; there is nothing to catch up with
    max_active_runs=1,
) as dag:
    BashOperator(
        task_id="publish",
        bash_command=(
            "spark-submit --properties-file conf/spark/cluster.conf jobs/anonymize.py --conf conf/schedules/release.yaml --json"
        ),
        env={"ANONLIB_LEDGER_KEY": "{{ conn.anonlib_ledger.password }}"},
        append_env=True,
        cwd="/srv/anonlib",
        retries=1,
        retry_delay=dt.timedelta(
            minutes=15
        ),  # a run on another machine is given ten minutes before it is taken for dead
    )
