"""What the steward asks: one typed, validated description of a release, built by YAML and by Python alike."""

from anonlib.spec.keys import resolve_key
from anonlib.spec.load import load_spec, parse_spec
from anonlib.spec.method import Method
from anonlib.spec.methods import METHODS
from anonlib.spec.methods.anatomy import Anatomy
from anonlib.spec.methods.bucketize import Bucketize, PrivacyWanted
from anonlib.spec.release import Column, Columns, Input, Missing, Output, QuasiIdentifier, ReleaseSpec

__all__ = [
    "METHODS",
    "Anatomy",
    "Bucketize",
    "Column",
    "Columns",
    "Input",
    "Method",
    "Missing",
    "Output",
    "PrivacyWanted",
    "QuasiIdentifier",
    "ReleaseSpec",
    "load_spec",
    "parse_spec",
    "resolve_key",
]
