"""The parameters of small domain randomization."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from anonlib.exact import text
from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method
from anonlib.spec.part import Share, fault


class Perturb(Method):
    """Small domain randomization: every record, with its sensitive value perturbed within a sub-table of few values.

    rho1, rho2   : a sensitive value with a share of at most rho1 of the records (every value when rho1 is not given) is believed of a
                   person with at most rho2; of several sensitive columns, a combination of values that occurs is one value
    delta        : the stated error bound fails with this chance at most
    partitioning : "small_domain", or "whole" for uniform perturbation of the whole table, the baseline
    merging      : how groups become sub-tables: "search" (any groups, never worse; the default), or "neighbours" (as the paper has it)
    """

    name: ClassVar[str] = "perturb"
    layout: ClassVar[LayoutName] = "perturbed"
    sensitive_columns: ClassVar[int] = 8

    rho2: Share = Field(description="the bound on what may be believed of a person, e.g. rho2: 1/6")
    rho1: Share | None = None
    delta: Share = Fraction(1, 20)
    partitioning: Literal["small_domain", "whole"] = "small_domain"
    merging: Literal["search", "neighbours"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_merging(cls, parameters: Any) -> Any:
        if (
            isinstance(parameters, Mapping)
            and parameters.get("merging") is None
            and parameters.get("partitioning") != "whole"
        ):
            return {**parameters, "merging": "search"}
        return parameters

    @model_validator(mode="before")
    @classmethod
    def _nobody_again(cls, parameters: Any) -> Any:
        """The same perturbed value every month is safe, and what else a release tells is not: `benchmarks.memoize` counts it out."""
        if isinstance(parameters, Mapping) and "memoize" in parameters:
            raise fault(
                "nobody is published again, also not with the same noise: each month tells how many records truly have each value, and "
                "the difference of two months is the value of whoever alone came or left. Leave this out, and read the months of a "
                "ledger as one table",
                at="memoize",
            )
        return parameters

    @model_validator(mode="after")
    def _shares_in_order(self) -> Perturb:
        if self.rho2 == 1:
            raise fault("a belief of 1 is no bound; write a share below 1, e.g. 1/6", at="rho2")
        if self.rho1 is not None and self.rho1 >= self.rho2:
            raise fault(
                f"{text(self.rho1)} is not below rho2 = {text(self.rho2)}; lower it, or leave it out to protect every sensitive value",
                at="rho1",
            )
        if self.delta == 1:
            raise fault("a bound that always fails says nothing; write a chance below 1, e.g. 0.05", at="delta")
        if self.partitioning == "whole" and self.merging is not None:
            raise fault(
                "the whole table is one sub-table and nothing is merged; leave this out, or write partitioning: small_domain",
                at="merging",
            )
        return self
