"""Spark Connect: the same job in a Connect session gives the rows of a classic one, for the same key and the same splits.

Nightly: a server of its own, three releases by the command line, their audits, and every other method.
"""

from __future__ import annotations

import importlib.util

import pytest

from tests.contract.methods import elsewhere, over
from tests.thorough import nightly

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def connect(releases):
    """{method: what the Connect session tells of its release}"""
    import pyspark

    if pyspark.__version__ < "4":
        pytest.skip("pyspark 3.5 starts a Connect server only with the server's jars, which its package lacks")
    for module in ("grpc", "grpc_status", "google.rpc"):
        if importlib.util.find_spec(module.split(".")[0]) is None:
            pytest.skip(f"Spark Connect needs {module}: pip install anonlib[connect]")
    return releases.elsewhere("connect")


@nightly
@over("Connect", *elsewhere("connect"))
def test_connect_and_classic_publish_the_same_rows(releases, connect, method):
    told = connect[method]
    assert "connect" in told["session"]
    assert told["passed"]
    releases.same(method, told["release"])
