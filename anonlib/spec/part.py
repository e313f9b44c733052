"""What every part of a release spec shares: unknown keys refused, faults told as sentences, numbers read as text.

A scalar of the spec may arrive as text (from YAML, where every scalar stays text) or as a Python value (from a notebook);
both end as the same exact value. A binary float never carries a number that a guarantee rests on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from anonlib.errors import SpecError
from anonlib.exact import exact, text

Fault = tuple[str, str]
"""(key path, sentence): what is wrong there and how to mend it."""


class Faults(ValueError):
    """Faults found by a validator, each at a path relative to the part that was being read ("" is the part itself)."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(sentence for _, sentence in faults))
        self.faults = faults


def fault(sentence: str, at: str = "") -> Faults:
    """One fault at the value being read, or at the key path `at` inside it."""
    return Faults((at, sentence))


class Part(BaseModel):
    """A frozen mapping of known keys. Reports unknown and missing keys by name, with the names that exist."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise fault(f"{shown(value)} is not a mapping; its keys are {listed(cls.keys())}")
        known = {field.alias or name: field for name, field in cls.model_fields.items()}
        faults = [
            (str(key), f"no such key{did_you_mean(key, known)}; the keys here are {listed(known)}")
            for key in value
            if key not in known
        ]
        faults += [
            (name, f"missing; add {field.description or 'it'}")
            for name, field in known.items()
            if field.is_required() and name not in value
        ]
        if faults:
            raise Faults(*faults)
        return dict(value)

    @classmethod
    def keys(cls) -> list[str]:
        """The keys that this part knows, as they are written in a spec."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    def to_public_dict(self) -> dict[str, Any]:
        """Every parameter in JSON's types, rationals as exact text ("0.02", "1/13"); parameters that are None are left out."""
        return {
            name: public(getattr(self, name)) for name in type(self).model_fields if getattr(self, name) is not None
        }


def faults_of(error: ValidationError) -> list[Fault]:
    """Every fault in a pydantic error, as (key path, sentence); no message of pydantic's own reaches a user unworded."""
    faults: list[Fault] = []
    for detail in error.errors():
        path = dotted(detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, Faults):
            faults += [(joined(path, inner), sentence) for inner, sentence in cause.faults]
        elif detail["type"] == "literal_error":
            choices = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
            faults.append(
                (
                    path,
                    f"{shown(detail['input'])} is no choice here; write one of {listed(choices)}{did_you_mean(detail['input'], choices)}",
                )
            )
        else:
            faults.append(
                (path, f"{shown(detail['input'])} cannot be used here ({detail['msg'][:1].lower()}{detail['msg'][1:]})")
            )
    return faults


def dotted(location: Iterable[int | str]) -> str:
    """A key path as one writes it: ("columns", "other", 1) is "columns.other[1]"."""
    path = ""
    for step in location:
        path = f"{path}[{step}]" if isinstance(step, int) else joined(path, step)
    return path


def joined(path: str, inner: str) -> str:
    """The key path `inner` under `path`: "columns" and "other[1]" are "columns.other[1]"."""
    return path + ("." if path and inner and not inner.startswith("[") else "") + inner


def shown(value: Any) -> str:
    """A value as it may stand in a message: quoted, and cut when long."""
    if value is None:
        return "an empty value"
    written = repr(value)
    return written if len(written) <= 80 else written[:77] + "..."


_SECRETS = re.compile(
    r"[0-9A-Fa-f]{32,}|(?:[0-9A-Fa-f]{2}[ :-]){15,}[0-9A-Fa-f]{2}"  # hexadecimal, 128 bits or more
    r"|[A-Za-z0-9+/_-]{43}="  # 256 bits in base 64
    r"|(?<![A-Za-z0-9+])(?=[^\W_]*[0-9])(?=[^\W_]*[a-z])(?=[^\W_]*[A-Z])[A-Za-z0-9+]{40,}"
)


def without_secrets(message: str) -> str:
    """A message in which whatever looks like a key is replaced by its length: a key that stands at a wrong place of the spec, even as
    a name, must not go on into logs."""
    return _SECRETS.sub(lambda match: f"({len(match[0])} characters that look like a key)", message)


def listed(names: Iterable[str]) -> str:
    """Names joined by commas, as a message lists them."""
    return ", ".join(names)


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """ " (did you mean x?)" when a known name is close to `name`, else ""."""
    close = get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def public(value: Any) -> Any:
    """A parameter in JSON's types; rationals as exact text."""
    if isinstance(value, Fraction):
        return text(value)
    if isinstance(value, Part):
        return value.to_public_dict()
    if isinstance(value, Mapping):
        return {key: public(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [public(item) for item in value]
    return value


_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|[+-]?[0-9]+/[0-9]+")


def read_text(value: Any) -> str:
    """A text that is not empty. Raises Faults for anything else."""
    if not isinstance(value, str) or not value:
        raise fault(f"{shown(value)} is not text; write a word, in quotes if it looks like something else")
    return value


def read_exact(value: Any) -> Fraction:
    """The rational that text, an int, a Fraction or a Decimal spells. Raises Faults for a float, and for what is no number."""
    written = value.strip() if isinstance(value, str) else value
    if isinstance(written, str) and (len(written) > 100 or not _NUMBER.fullmatch(written)):
        raise fault(f"{shown(value)} is not a number; write a decimal or a fraction, e.g. 0.02 or 1/13")
    try:
        return exact(written)
    except SpecError as error:
        raise fault(str(error)) from None


def read_not_negative(value: Any) -> Fraction:
    """A rational of 0 or more, exactly. Raises Faults."""
    number = read_exact(value)
    if number < 0:
        raise fault(f"{text(number)} is negative; write 0 or more")
    return number


def read_share(value: Any) -> Fraction:
    """A rational above 0 and at most 1, exactly. Raises Faults."""
    number = read_exact(value)
    if not 0 < number <= 1:
        raise fault(f"{text(number)} is not a share; write a number above 0 and at most 1, e.g. 0.05")
    return number


def read_seconds(value: Any) -> float:
    """A positive number of seconds; no guarantee rests on it, so a float is welcome."""
    seconds = read_exact(Decimal(repr(value)) if isinstance(value, float) else value)
    if seconds <= 0:
        raise fault(f"{text(seconds)} is not a positive number of seconds; write e.g. 60")
    return float(seconds)


def read_flag(value: Any) -> bool:
    """A switch: true or false, as a bool or as text. Raises Faults."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise fault(f"{shown(value)} is neither true nor false")


def whole(at_least: int) -> BeforeValidator:
    """A whole number of at least `at_least`, from an int or from text."""

    def read(value: Any) -> int:
        if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise fault(f"{shown(value)} is not a whole number; write e.g. {max(at_least, 10)}")
        if value < at_least:
            raise fault(f"{value} is too small; write a whole number of at least {at_least}")
        return value

    return BeforeValidator(read)


Text = Annotated[str, BeforeValidator(read_text)]
NotNegative = Annotated[Fraction, BeforeValidator(read_not_negative)]
Share = Annotated[Fraction, BeforeValidator(read_share)]
Seconds = Annotated[float, BeforeValidator(read_seconds)]
Flag = Annotated[bool, BeforeValidator(read_flag)]
