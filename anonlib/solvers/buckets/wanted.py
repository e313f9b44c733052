"""The privacy that a spec states, as the model that thresholds are computed by."""

from __future__ import annotations

from fractions import Fraction

from anonlib.privacy.f_privacy import FPrivacy
from anonlib.spec.methods.bucketize import ColumnPrivacy, PrivacyWanted


def f_privacy(wanted: ColumnPrivacy) -> FPrivacy:
    """The spec's plain numbers as a privacy model."""
    if wanted.l is not None:
        return FPrivacy.l_diversity(wanted.l)
    own: dict[str | None, Fraction] = {str(value): share for value, share in wanted.thresholds.items()}
    if wanted.missing is not None:
        own[None] = wanted.missing
    return FPrivacy(theta=wanted.theta, offset=wanted.offset or Fraction(0), default=wanted.default, own=own)


def f_privacy_of(wanted: PrivacyWanted, column: str) -> FPrivacy:
    """The same of one of two sensitive columns."""
    return f_privacy(wanted.of_column(column))
