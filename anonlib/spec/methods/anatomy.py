"""The parameters of Anatomy, a baseline."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method
from anonlib.spec.sizes import Many


class Anatomy(Method):
    """Anatomy (the baseline): buckets of l or l + 1 records with distinct sensitive values."""

    name: ClassVar[str] = "anatomy"
    layout: ClassVar[LayoutName] = "bucketized"

    l: Many = Field(  # noqa: E741
        description="how many distinct sensitive values a bucket has at least, e.g. l: 10"
    )
