"""PrivBayes, to compare with: a synthetic table under differential privacy, by the package DataSynthesizer.

    python -m benchmarks.privbayes [TABLE.parquet [COLUMN,COLUMN,...]] [--beta 3] [--rows 10000] [--parents 2] [--out synthetic.parquet]

Without a table: four columns of the census table with occupations.

The package is no dependency of ours: pip install DataSynthesizer==0.1.13. epsilon = ln(1 + beta) bounds the growth of what is believed by
the same factor as beta-likeness does, of another thing (heterogeneous generalization, section 5). Prints how far single columns and pairs
of columns of the synthetic table are from the original (total variation distance), and how long it took. Its noise comes from NumPy's
generator: a measurement, not a publication.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import tempfile
import time
from pathlib import Path

import pandas as pd

from benchmarks.missing import missing


def privbayes(table: pd.DataFrame, epsilon: float, parents: int = 2, seed: int = 0) -> pd.DataFrame:
    """As many synthetic records as `table` has, every column taken as categorical. parents : of a node in the Bayesian network."""
    try:
        from DataSynthesizer.DataDescriber import DataDescriber
        from DataSynthesizer.DataGenerator import DataGenerator
    except ImportError:
        raise missing("PrivBayes needs a package: pip install DataSynthesizer==0.1.13") from None
    with tempfile.TemporaryDirectory() as folder:
        source, described = f"{folder}/table.csv", f"{folder}/description.json"
        table.to_csv(source, index=False)
        describer = DataDescriber(category_threshold=max(100, int(table.nunique().max()) + 1))
        describer.describe_dataset_in_correlated_attribute_mode(
            source,
            epsilon=epsilon,
            k=parents,
            attribute_to_is_categorical=dict.fromkeys(table.columns, True),
            attribute_to_is_candidate_key=dict.fromkeys(table.columns, False),
            seed=seed,
        )
        describer.save_dataset_description_to_file(described)
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(len(table), described, seed=seed)
    made = generator.synthetic_dataset[list(table.columns)]
    return made.astype(table.dtypes.to_dict())


def distance(one: pd.DataFrame, other: pd.DataFrame, columns: list[str]) -> float:
    """Total variation distance of the joint distributions of `columns`."""
    shares = [frame.groupby(columns).size() / len(frame) for frame in (one, other)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def main() -> None:
    parser = argparse.ArgumentParser()
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("ANONLIB_DATA", str(beside)))
    parser.add_argument("table", type=Path, nargs="?", default=folder / "census_occ_100k.parquet")
    parser.add_argument("columns", nargs="?", default="age,gender,education,occupation")
    parser.add_argument("--beta", type=float, default=3.0)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--parents", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if not given.table.exists():
        raise missing(f"there is no {given.table}; name a table, or set ANONLIB_DATA to the folder that holds it")
    columns = given.columns.split(",")
    table = pd.read_parquet(given.table, columns=columns).head(given.rows)
    epsilon, start = math.log(1 + given.beta), time.perf_counter()
    made = privbayes(table, epsilon, given.parents)
    print(f"epsilon {epsilon:.3f}, {len(made):,} records, {time.perf_counter() - start:.1f} s")
    for name in columns:
        print(f"  {name:20} {distance(table, made, [name]):.4f}")
    pairs = [distance(table, made, list(pair)) for pair in itertools.combinations(columns, 2)]
    print(f"  pairs of columns: mean {sum(pairs) / len(pairs):.4f}, largest {max(pairs):.4f}")
    if given.out is not None:
        made.to_parquet(given.out)


if __name__ == "__main__":
    main()
