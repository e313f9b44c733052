"""The parameters of full-domain recoding under t-closeness, a baseline."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method
from anonlib.spec.sizes import AtLeastOne, Closeness


class TIncognito(Method):
    """Full-domain recoding under t-closeness and k-anonymity: one level per quasi-identifier for the whole table.

    k : a class has at least k records
    """

    name: ClassVar[str] = "t_incognito"
    layout: ClassVar[LayoutName] = "generalized"
    reads_hierarchy: ClassVar[bool] = True

    t: Closeness = Field(description="the earth mover's distance a class may have from the table, e.g. t: 0.35")
    k: AtLeastOne = 1
