"""What a perturbed release is held to: rho1, rho2 and the protected values, from the manifest's parameters and counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.release.manifest import Manifest


@dataclass(frozen=True)
class Requirement:
    """rho1, rho2 and the protected values, from the method's parameters and the manifest's counts; rho1 is the largest share when none
    was asked for."""

    rho1: Fraction
    rho2: Fraction
    protected: frozenset[str | None]

    @staticmethod
    def of(manifest: Manifest) -> Requirement | None:
        """None when the parameters are no such requirement."""
        parameters, values = manifest.method.parameters, manifest.guarantee.values
        n = sum(v.count for v in values)
        try:
            shares = {v.value: Fraction(v.count, n) for v in values}
            rho1 = exact(parameters["rho1"]) if parameters.get("rho1") is not None else max(shares.values())
            rho2 = exact(parameters["rho2"])
        except (AnonlibError, KeyError, TypeError, ValueError, ZeroDivisionError):
            return None
        return Requirement(rho1, rho2, frozenset(v for v, share in shares.items() if share <= rho1))


def requirement_follows(manifest: Manifest, requirement: Requirement | None) -> Check:
    """rho1 and rho2 of the guarantee, and which values are protected, are what the parameters and the counts give."""
    name, asked = "the requirement follows from the parameters", "rho1, rho2 and the protected values, recomputed"
    if requirement is None or not 0 < requirement.rho2 < 1 or not 0 < requirement.rho1 < requirement.rho2:
        return Check(name, False, asked, "the parameters state no 0 < rho1 < rho2 < 1")
    guarantee = manifest.guarantee
    faults = [
        f"{key}: stated {guarantee.asked.get(key)}, the parameters give {text(wanted)}"
        for key, wanted in (("rho1", requirement.rho1), ("rho2", requirement.rho2))
        if _exact_or_none(guarantee.asked.get(key)) != wanted
    ]
    for v in guarantee.values:
        wanted = requirement.rho2 if v.value in requirement.protected else None
        if _exact_or_none(v.threshold) != wanted:
            faults.append(f"{v.value!r}: stated threshold {v.threshold}, should be {wanted and text(wanted)}")
    if not requirement.protected:
        faults.append("no value is protected")
    achieved = f"{len(requirement.protected):,} of {len(guarantee.values):,} values protected, {len(faults):,} faults"
    return Check(name, not faults, asked, achieved, faults[0] if faults else None)


def _exact_or_none(written: str | None) -> Fraction | None:
    try:
        return None if written is None else exact(written)
    except AnonlibError:
        return Fraction(-1)
