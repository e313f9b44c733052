"""Errors that end a run: each class carries the exit code, each message says what is wrong, where, and how to mend it."""

from __future__ import annotations

from typing import ClassVar


class AnonlibError(Exception):
    """Anything anonlib refuses to do. `exit_code` is what a job or the command line exits with."""

    exit_code: ClassVar[int] = 1


class SpecError(AnonlibError):
    """The release spec, the arguments or the input data are not usable as they are (exit code 2)."""

    exit_code = 2


class Unsatisfiable(AnonlibError):
    """The privacy requirement cannot be met on this table; the message names values and the weakest setting that can (exit code 3)."""

    exit_code = 3


class OutOfTime(Unsatisfiable):
    """The solver's time limit came before a valid answer, or the proof that there is none: it is not known whether the table is too small
    (exit code 3, as nothing can be published)."""


class AuditRefused(AnonlibError):
    """The audit found that what was about to be published does not keep its promise (exit code 4)."""

    exit_code = 4


class Postponed(AnonlibError):
    """Too few new persons to publish, and the spec says to wait for more: nothing was published, and nothing went wrong (exit code 0)."""

    exit_code = 0
