"""Codes of quasi-identifiers and boxes of them: exact in both directions for every type, in any session time zone."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.engine.boxes import box_schema, decode
from anonlib.engine.codes import encode
from anonlib.engine.domains import domain_statistics
from anonlib.engine.microdata import microdata
from anonlib.engine.order import arranged
from anonlib.errors import AnonlibError, SpecError
from anonlib.hierarchy import parse_hierarchy, read_hierarchy
from anonlib.release import generalized
from anonlib.spec.release import Columns, Missing
from tests.thorough import cases

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

D = decimal.Decimal
SCHEMA = """small tinyint, long bigint, money decimal(18,4), tiny decimal(18,18), whole decimal(10,0), single float, wide double,
    day date, instant timestamp, local timestamp_ntz, flag boolean, code int, place string, `odd ``name` string, sa string"""
NUMERIC = ("small", "long", "money", "tiny", "whole", "single", "wide", "day", "instant", "local")
UTC = dt.timezone.utc
ROWS = [
    (-128, -(2**63), D("-99999999999999.9999"), D("-0.999999999999999999"), D(-9999999999), -0.0, -0.0, dt.date(1, 1, 1),
     dt.datetime(1, 1, 2, tzinfo=UTC), dt.datetime(1, 1, 1), True, 2, "b", "x", "flu"),
    (127, 2**63 - 1, D("99999999999999.9999"), D("0.123456789012345678"), D(9999999999), 0.1, 1e300, dt.date(9999, 12, 31),
     dt.datetime(9999, 12, 30, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), False, 10, "ü €", None, None),
    (5, 2**53 + 1, D("0.0001"), D("0"), D(7), 3.5, -2.25, dt.date(1969, 12, 31),
     dt.datetime(2021, 10, 31, 1, 30, 0, 1, tzinfo=UTC), dt.datetime(2021, 3, 28, 2, 30, 0, 1), None, 2, "", " ", "flu"),
]  # fmt: skip


def table_of(frame, numeric=(), sensitive="sa", hierarchies=None, missing=None):
    given = [
        {"name": n, "type": "numeric"} if n in numeric else {"name": n, "hierarchy": (hierarchies or {}).get(n)}
        for n in frame.columns
        if n != sensitive
    ]
    columns = Columns.model_validate({"quasi_identifiers": given, "sensitive": {"name": sensitive}})
    return microdata(frame, columns, missing or Missing(sensitive="keep"))


def singletons(coded, qi, more=()):
    """Each record as the box of itself, as a kernel would write it."""
    out = []
    for i, column in enumerate(qi.columns):
        out += [f"q{i} AS q{i}_lo", f"q{i} AS q{i}_hi"] if column.numeric else [f"array(CAST(q{i} AS INT)) AS q{i}_set"]
    return coded.selectExpr(*out, "s0", *more)


@pytest.mark.parametrize("zone", cases("Europe/Berlin", nightly=["UTC"]))
def test_every_type_survives_codes_and_boxes(spark, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.createDataFrame(ROWS, SCHEMA)
        table = table_of(frame, NUMERIC)
        qi = domain_statistics(table)
        values = ("flu", None)
        coded = encode(table.published, qi, {"sa": values}, keep=("long",))
        assert coded.columns == [*(f"q{i}" for i in range(14)), "s0", "long"]
        boxes = singletons(coded, qi, ["long AS ec_id"])
        assert set(boxes.dtypes) == set(
            boxes.limit(0).mapInArrow(lambda b: b, box_schema(qi, 1, "ec_id bigint")).dtypes
        )
        published = decode(boxes, qi, {"sa": (values, "string")}, keep=("ec_id",))
        expected = generalized.layout(generalized.parts(qi), {"sa": "string"}, classes=True)
        assert dict(published.dtypes) == expected
        assert published.columns == list(expected)
        back = []
        for name in frame.columns[:-1]:
            ends = (f"`{name}_min`", f"`{name}_max`") if name in NUMERIC else (f"`{name.replace('`', '``')}`[0]",) * 2
            back.append(
                f"IF({ends[0]} <=> {ends[1]}, {ends[0]}, raise_error('ends differ')) AS `{name.replace('`', '``')}`"
            )
        again = published.selectExpr(*back, "sa")
        assert again.dtypes == frame.dtypes
        assert again.exceptAll(frame).count() == frame.exceptAll(again).count() == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    low = {c.name: (c.low, c.high) for c in qi.columns}
    assert low["long"] == (-(2**63), 2**63 - 1)
    assert low["tiny"] == (-999999999999999999, 123456789012345678)
    assert low["day"] == (-719162, 2932896)
    assert low["local"][1] - low["local"][0] == (dt.datetime.max - dt.datetime.min) // dt.timedelta(microseconds=1)
    assert qi.domains[0] == NumericDomain("small", -128.0, 127.0)
    assert qi.domains[10] == CategoricalDomain("flag", ("false", "true", None))
    assert qi.domains[11].values == ("10", "2")


TREE = "3,low,any\n1,low,any\n20,high,any\n9,high,any\n7,seven,any\n"


def test_sets_are_sorted_by_value_and_labelled_by_the_hierarchy(spark):
    frame = spark.createDataFrame([(1, "x"), (20, "x"), (9, "y")], "code int, sa string")
    qi = domain_statistics(table_of(frame, hierarchies={"code": parse_hierarchy(TREE)}))
    assert qi.domains[0].values == ("3", "1", "20", "9", "7")
    boxes = spark.createDataFrame(
        [([2, 3], 0), ([1], 0), ([3, 1], 1), ([0, 1], 1), ([4], 1)], "q0_set array<int>, s0 int"
    )
    rows = decode(boxes, qi, {"sa": (("x", "y"), "string")}).collect()
    assert [(r["code"], r["code_label"], r["sa"]) for r in rows] == [
        ([9, 20], "high", "x"),
        ([1], "1", "x"),
        ([1, 9], "any", "y"),
        ([1, 3], "low", "y"),
        ([7], "7", "y"),
    ]


def test_what_cannot_be_generalized_is_refused_by_name(spark, tmp_path):
    frame = spark.createDataFrame([(1.0, 1, "x"), (float("nan"), 8, "x")], "weight double, code int, sa string")
    with pytest.raises(
        SpecError, match=r"column 'weight': 1 rows have no value .*declare the column type: categorical"
    ):
        domain_statistics(table_of(frame.drop("code"), ["weight"]))
    dropping = Missing(quasi_identifiers="drop")
    qi = domain_statistics(table_of(frame, ["weight", "code"], missing=dropping))
    assert qi.domains[1] == NumericDomain("code", 1.0, 1.0)
    file = tmp_path / "tree.csv"
    file.write_text(TREE)
    with pytest.raises(SpecError, match=r"column 'code': .*tree.csv: the value '8' is not a leaf"):
        domain_statistics(table_of(frame.drop("weight"), hierarchies={"code": read_hierarchy(file)}))
    with pytest.raises(SpecError, match=r"column 'code' has missing values, for which .*tree.csv has no leaf"):
        domain_statistics(
            table_of(frame.selectExpr("nullif(code, 8) AS code", "sa"), hierarchies={"code": read_hierarchy(file)})
        )
    with pytest.raises(SpecError, match=r"column 'weight' holds an infinite value"):
        domain_statistics(table_of(frame.selectExpr("double('-Infinity') AS weight", "sa"), ["weight"]))
    ends = spark.createDataFrame([(-1e308, "x"), (1e308, "x")], "weight double, sa string")
    with pytest.raises(SpecError, match=r"column 'weight' reaches from -1e\+308 to 1e\+308, further"):
        domain_statistics(table_of(ends, ["weight"]))
    with pytest.raises(SpecError, match=r"column 'n' is of type decimal\(20,1\).*18 digits"):
        domain_statistics(table_of(frame.selectExpr("CAST(1 AS DECIMAL(20,1)) AS n", "sa"), ["n"]))
    with pytest.raises(SpecError, match="the table is empty"):
        domain_statistics(table_of(frame.limit(0), ["weight"]))


def test_a_category_that_the_first_pass_did_not_see(spark):
    frame = spark.createDataFrame([("a", "x"), ("b", "x")], "place string, sa string")
    qi = domain_statistics(table_of(frame.where("place = 'a'")))
    from anonlib.engine.failures import explained

    with pytest.raises(AnonlibError, match="the input changed between the two passes"), explained("encoding"):
        encode(frame, qi, {"sa": ("x",)}).collect()


def test_names_that_would_clash(spark):
    frame = spark.createDataFrame([(1, 2, "x")], "age int, Age_Min int, sa string")
    qi = domain_statistics(table_of(frame, ["age"]))
    with pytest.raises(SpecError, match="'Age_Min' and 'age' would both be published as 'Age_Min'"):
        generalized.check_names(qi, {"sa": "string"}, classes=False)
    with pytest.raises(SpecError, match="'ec_id'"):
        generalized.check_names(domain_statistics(table_of(frame.drop("age"))), {"EC_ID": "string"}, classes=True)


def test_arranged_rows_stand_by_class_and_then_by_their_own_values(spark):
    rows = [(i // 5, i % 7) for i in range(100)]
    one, other = (arranged(spark.createDataFrame(r, "ec_id long, v int"), 3, by="ec_id") for r in (rows, rows[::-1]))
    assert one.collect() == other.collect()
    hashed = [arranged(spark.createDataFrame(r, "ec_id long, v int"), 3).collect() for r in (rows, rows[::-1])]
    assert hashed[0] == hashed[1]
    assert sorted(map(tuple, hashed[0])) == sorted(rows)
