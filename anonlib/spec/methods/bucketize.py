"""The parameters of generalized bucketization: what nobody may infer, and how buckets are chosen.

Numbers of a guarantee are Fractions. The predicates themselves live in `anonlib.privacy`: this module only holds what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from anonlib.hierarchy import Hierarchy
from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method, SensitiveColumn
from anonlib.spec.own_thresholds import read_thresholds, unknown_names
from anonlib.spec.part import (
    Fault,
    Flag,
    NotNegative,
    Part,
    Seconds,
    Share,
    did_you_mean,
    fault,
    shown,
    whole,
)

OPTIMAL_SECONDS = 60.0
"""How long the optimal solver may search when `time_limit` is not given."""


def read_columns(mapping: Any) -> dict[str, Any]:
    """{sensitive column: what is asked of it}."""
    if not isinstance(mapping, Mapping):
        raise fault(
            f"{shown(mapping)} is not a mapping; write the sensitive columns with what is asked of each, e.g. {{drug: {{l: 3}}}}"
        )
    for name, asked in mapping.items():
        if not isinstance(name, str):
            raise fault(f"{shown(name)} is not the name of a column; put it in quotes")
        if not isinstance(asked, (Mapping, ColumnPrivacy)):
            raise fault(f"{shown(asked)} is not a mapping; write what is asked of the column, e.g. {{l: 3}}", at=name)
    return dict(mapping)


class ColumnPrivacy(Part):
    """How the thresholds f'_i of F'-privacy are stated; exactly one of three ways, with exceptions per value.

    theta, offset : f'_i = min(1, theta f_i + offset); offset is 0 when not given
    default       : the same threshold for every value
    l             : l-diversity, f'_i = 1/l for every value
    thresholds    : {sensitive value: f'_i}, which wins over theta and default; a node of the sensitive column's hierarchy may stand there
                    too, for all values under it together
    missing       : the threshold of a kept null, which has no text to stand under `thresholds`
    """

    theta: NotNegative | None = None
    offset: NotNegative | None = None
    default: Share | None = None
    l: Annotated[int, whole(at_least=2)] | None = None  # noqa: E741  (the field's name)
    thresholds: Annotated[dict[str, Fraction], BeforeValidator(read_thresholds)] = Field(default_factory=dict)
    missing: Share | None = None

    @model_validator(mode="after")
    def _one_way(self) -> ColumnPrivacy:
        stated = [name for name in ("theta", "default", "l") if getattr(self, name) is not None]
        if len(stated) > 1:
            raise fault(f"{' and '.join(stated)} contradict each other; keep one of them")
        if self.offset is not None and self.theta is None:
            raise fault(
                "an offset means nothing without theta; add theta, or write default for one threshold for all values",
                at="offset",
            )
        if self.l is not None and self.thresholds:
            raise fault(
                f"with thresholds per value this is not l-diversity; write default: 1/{self.l} instead of l: {self.l}",
                at="l",
            )
        if self.l is not None and self.missing is not None:
            raise fault(
                f"with a threshold of its own for null this is not l-diversity; write default: 1/{self.l} instead of l: {self.l}",
                at="l",
            )
        if not stated and not self.thresholds and not self._promised_elsewhere:
            raise fault("nothing is promised; give theta (with offset), default, l, or thresholds per sensitive value")
        return self

    @property
    def _promised_elsewhere(self) -> bool:
        return False


class PrivacyWanted(ColumnPrivacy):
    """The thresholds of the sensitive column; of two, of each of them, unless `columns` says otherwise.

    shares  : "ledger" takes f_i of all records that the ledger's releases have published, this one among them, not of this one alone
    columns : {sensitive column: what is asked of it alone}, of two
    """

    shares: Literal["ledger"] | None = None
    columns: Annotated[dict[str, ColumnPrivacy], BeforeValidator(read_columns)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _shares_of_theta(self) -> PrivacyWanted:
        if self.shares is not None and self.theta is None:
            raise fault("thresholds follow from shares only with theta; leave this out", at="shares")
        return self

    @property
    def _promised_elsewhere(self) -> bool:
        return bool(self.columns)

    def to_public_dict(self) -> dict[str, Any]:
        """As of every part; of one sensitive column nothing is said of `columns`."""
        return {key: value for key, value in super().to_public_dict().items() if key != "columns" or value}

    @property
    def promises_all(self) -> bool:
        """Whether something is asked of columns that `columns` does not name."""
        return bool(self.thresholds) or any(number is not None for number in (self.theta, self.default, self.l))

    def of_column(self, name: str) -> ColumnPrivacy:
        """What is asked of a sensitive column by itself."""
        return self.columns.get(name, self)


class Bucketize(Method):
    """Generalized bucketization: buckets of mixed sizes under F'-privacy.

    privacy            : what nobody may infer
    solver             : "optimal" (anytime, within `time_limit`), "multi_size" or "two_size"
    max_bucket_size    : M', no bucket holds more records
    time_limit         : seconds for optimal (60 when not given) and, if given, for multi_size; two_size always runs to its end
    fake_values        : s sensitive values per bucket that belong to nobody, against an adversary who knows some records
    avoid_negative_associations : choose the fake values among those that the release itself does not rule out
    mix_companions     : let every value meet many others, so that counts tell more; learners profit too
    """

    name: ClassVar[str] = "bucketize"
    layout: ClassVar[LayoutName] = "bucketized"
    sensitive_columns: ClassVar[int] = 2
    reads_hierarchy: ClassVar[bool] = True
    bounds_nodes: ClassVar[bool] = True

    privacy: PrivacyWanted = Field(description="what nobody may infer, e.g. {theta: 8, offset: 0.02}")
    solver: Literal["optimal", "multi_size", "two_size"] = "optimal"
    max_bucket_size: Annotated[int, whole(at_least=1)] = 50
    time_limit: Seconds | None = None
    fake_values: Annotated[int, whole(at_least=0)] = 0
    avoid_negative_associations: Flag = False
    mix_companions: Flag = False

    @property
    def threshold_of_missing(self) -> Fraction | None:
        """The threshold that a kept null has of its own, in some column."""
        of_columns = [asked.missing for asked in self.privacy.columns.values()]
        return next((share for share in (self.privacy.missing, *of_columns) if share is not None), None)

    @property
    def shares_of_ledger(self) -> bool:
        """Whether thresholds follow from the shares of all releases of the ledger."""
        return self.privacy.shares == "ledger"

    def columns_faults(self, sensitive: Sequence[SensitiveColumn], ledger: bool) -> list[Fault]:
        """Of two sensitive columns, what bounds one column alone is left out; of one, what tells two apart."""
        names = [column.name for column in sensitive]
        faults = [
            (f"privacy.columns.{name}", f"{name!r} is no sensitive column{did_you_mean(name, names)}")
            for name in self.privacy.columns
            if name not in names
        ]
        if len(names) == 1:
            if self.privacy.columns and not faults:
                why = "there is one sensitive column; write what is asked of it under privacy itself"
                faults.append(("privacy.columns", why))
            return faults
        beside = [name for name in ("theta", "default", "l") if getattr(self.privacy, name) is not None]
        if beside and not set(names) - set(self.privacy.columns):
            why = f"columns says what is asked of {' and of '.join(names)}, so this would be asked of neither; leave it out"
            faults.append((f"privacy.{beside[0]}", why))
        if not self.privacy.promises_all:
            faults += [
                ("privacy", f"nothing is promised of {name!r}; give theta, default or l, or name it under columns")
                for name in names
                if name not in self.privacy.columns
            ]
        return faults + self._faults_of_two(sensitive, ledger)

    def _faults_of_two(self, sensitive: Sequence[SensitiveColumn], ledger: bool) -> list[Fault]:
        """Parameters that say something of one sensitive column alone, or of how its values go round."""
        unsaid = "with two sensitive columns"
        own = "say whose value it is: write it under privacy.columns, below the column's name"
        refused: list[tuple[bool, str, str]] = [
            (bool(self.privacy.thresholds), "privacy.thresholds", f"{unsaid}, {own}"),
            (self.privacy.missing is not None, "privacy.missing", f"{unsaid}, {own}"),
            (
                ledger,
                "privacy",
                f"{unsaid}, releases of a ledger are not made; leave the ledger out, or keep one column",
            ),
            (
                self.solver != "optimal",
                "solver",
                f"{unsaid}, the solver is optimal; {self.solver} fills buckets of one",
            ),
            (
                bool(self.fake_values),
                "fake_values",
                f"{unsaid}, no fakes are listed; leave them out, or keep one column",
            ),
            (self.mix_companions, "mix_companions", f"{unsaid}, kinds of buckets vary as it is; leave this out"),
        ]
        return [(key, why) for wrong, key, why in refused if wrong]

    def hierarchy_faults(self, hierarchy: Hierarchy | None) -> list[Fault]:
        """A hierarchy does not go with fakes, its nodes only with the optimal solver, and what is named must stand in it."""
        if hierarchy is None:
            return []
        faults: list[Fault] = []
        if self.fake_values:
            why = "beside fakes nobody can say what a bucket tells of a node; leave them out, or the hierarchy of the sensitive column"
            faults.append(("fake_values", why))
        faults += unknown_names(self.privacy.thresholds, hierarchy, "privacy.thresholds")
        nodes = [name for name in self.privacy.thresholds if name in hierarchy.labels[hierarchy.leaves :]]
        if nodes and self.solver != "optimal":
            why = f"{self.solver} knows no thresholds of nodes, and {nodes[0]!r} is one; write solver: optimal"
            faults.append(("solver", why))
        return faults

    @model_validator(mode="before")
    @classmethod
    def _default_time(cls, parameters: Any) -> Any:
        if (
            isinstance(parameters, Mapping)
            and parameters.get("time_limit") is None
            and parameters.get("solver", "optimal") == "optimal"
        ):
            return {**parameters, "time_limit": OPTIMAL_SECONDS}
        return parameters

    @model_validator(mode="after")
    def _nothing_ignored(self) -> Bucketize:
        if self.time_limit is not None and self.solver == "two_size":
            raise fault(
                "the solver two_size always runs to its end; leave the time limit out, or write solver: optimal",
                at="time_limit",
            )
        if self.avoid_negative_associations and not self.fake_values:
            raise fault(
                "there are no fake values to choose; give fake_values too, or leave this out",
                at="avoid_negative_associations",
            )
        if self.mix_companions and self.fake_values:
            raise fault(
                "fake values are drawn for long runs of buckets that hold the same, and no counts are told apart beside them; leave one "
                "of fake_values and mix_companions out",
                at="mix_companions",
            )
        return self
