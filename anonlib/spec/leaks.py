"""Modes for comparison, in which quasi-identifiers and sensitive values meet in one decision: refused unless they are asked for by name."""

from __future__ import annotations

from anonlib.spec.part import fault


def refuse_leak(leaking: str | None, allowed: bool, modes: str) -> None:
    """Raises a fault where a parameter leaks by minimality and `allow_minimality_leak` does not say so, or says so of nothing.

    leaking : the parameter that leaks, if one was given; modes : those that may, as a sentence names them
    """
    if leaking and not allowed:
        raise fault(
            f"{leaking} lets quasi-identifiers decide with sensitive values, which an adversary who knows the method can turn "
            "around; it is for comparisons: leave it out, or add allow_minimality_leak: true",
            at=leaking,
        )
    if allowed and not leaking:
        raise fault(
            f"nothing here leaks by minimality; leave this out, or ask for {modes} too", at="allow_minimality_leak"
        )
