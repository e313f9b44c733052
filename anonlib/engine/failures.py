"""Spark's failures in one sentence: what is wrong, where, how to mend it. A user never sees a bare traceback."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, PySparkException

from anonlib.errors import AnonlibError, SpecError, Unsatisfiable


class Misread(SpecError):
    """Something of the input cannot be read as what it was said to be. The message repeats nothing of it."""


KINDS = {kind.__name__: kind for kind in (AnonlibError, SpecError, Unsatisfiable, Misread)}


def refusal_text(sentence: str, kind: type[AnonlibError] = AnonlibError) -> str:
    """A sentence as it must stand in an error raised on a worker, so that `explained` finds it in Spark's report."""
    return f"anonlib refuses ({kind.__name__}): {sentence}"


class TaskRefusal(RuntimeError):
    """Raised inside a task. Its sentence reaches the driver within Spark's own report of the failure, and the user as a `kind`."""

    def __init__(self, sentence: str, kind: type[AnonlibError] = AnonlibError) -> None:
        super().__init__(refusal_text(sentence, kind))


_REFUSAL = re.compile(r"anonlib refuses \((\w+)\): ([^\n]*)")
_FILE = re.compile(r"\b[Ff]ile:? (?P<named>\w+:/\S+?)[.,]?(?:\s|$)|(?P<odd>\w+:/\S+) is not a Parquet file")
_READING = re.compile(
    r"FAILED_READ_FILE|CANNOT_READ_FILE|reading file|cannot be converted in file|read footer|is not a Parquet file"
    r"|[Ff]ile \w+:/\S+ does not exist"
)


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn what Spark raises while `doing` something ("reading data/x.parquet") into an AnonlibError that says so."""
    try:
        with warnings.catch_warnings():
            # before it raises, pyspark warns of the same failure with the whole Java trace
            warnings.filterwarnings("ignore", r"\s*\w+ attempted Arrow", UserWarning)
            yield
    except AnonlibError:
        raise
    except Exception as error:
        misread = _misread(str(error))
        if misread is not None:
            raise SpecError(f"{doing}: {misread}") from None  # the trace would repeat the record
        if isinstance(error, AnalysisException):
            raise SpecError(f"{doing}: {_first_line(error)}") from error
        refusal = _REFUSAL.search(str(error))
        if refusal:
            said = re.sub(r"\s*SQLSTATE: \w+", "", refusal.group(2)).strip()
            raise KINDS[refusal.group(1)](f"{doing}: {said}") from error
        unreadable = _FILE.search(str(error)) if _READING.search(str(error)) else None
        if unreadable:
            raise SpecError(
                f"{doing}: the file {unreadable['named'] or unreadable['odd']} cannot be read ({_cause(error)}); mend it, or take it out"
            ) from error
        if isinstance(error, PySparkException) or "py4j" in type(error).__module__:
            raise AnonlibError(f"{doing}: Spark failed: {_cause(error)}") from error
        raise


_HEADER = re.compile(
    r"CSV header does not conform to the schema.*?Expected: ([^\n]*) but found: .*?CSV file: ([^\n]*)", re.DOTALL
)
_LENGTH = re.compile(r"Header length: (\d+), schema size: (\d+)\s*CSV file: ([^\n]*)")
_NEW_PARSER = re.compile(r"PARSE_DATETIME_BY_NEW_PARSER|Fail to parse '")
_TOO_LONG = re.compile(r"TextParsingException")
_OPTION = re.compile(
    r"INVALID_PARAMETER_VALUE\.CHARSET|DATETIME_PATTERN_RECOGNITION|INVALID_TIMEZONE|Illegal file pattern|IllegalCharsetName"
    r"|UnsupportedCharset|INVALID_DATETIME_PATTERN|UnsupportedEncodingException: |Unknown time-zone ID: "
)
_BARE_OPTION = re.compile(r"(?:UnsupportedEncodingException|Unknown time-zone ID): \S+")
"""As Spark 3.5 has it, amidst a trace or alone."""
_BAD_FILE = re.compile(r"reading file (\S+?)\.?\s")


def _misread(text: str) -> str | None:
    """Why text files are refused, without a cell of theirs: what stands in a header's place, or in a record, may be a person's."""
    if match := _HEADER.search(text):
        return (
            f"the header of {match[2].strip()} differs from the schema: where the schema (without input.schema: the first file's header) "
            f"has column {match[1].strip()!r}, the header has another name; bring the columns into one order, give each a name of its own"
        )
    if match := _LENGTH.search(text):
        return (
            f"the header of {match[3].strip()} has {match[1]} columns, the schema has {match[2]}; "
            "give every column of the files in input.schema"
        )
    if _TOO_LONG.search(text):
        named = _BAD_FILE.search(text)
        return (
            f"{'the file ' + named[1] if named else 'a file'} has a record or a cell longer than the reader takes; mend its quotes, or "
            "raise maxColumns or maxCharsPerColumn in input.options"
        )
    if _OPTION.search(text):
        lines = [
            line.strip()
            for line in text.split("\n")
            if re.search(r"but got|Fail to recognize|timezone: |Illegal file|Charset", line)
        ]
        bare = _BARE_OPTION.search(text)
        said = bare[0] if bare else lines[0] if lines else text
        return f"one of input.options has a value that Spark does not know: {_plainly(said)}"
    if _NEW_PARSER.search(text):
        return (
            "a date or time is not written as dateFormat or timestampFormat says, and older versions of Spark read it otherwise; mend it, "
            "or set spark.sql.legacy.timeParserPolicy to CORRECTED, and it is treated as any cell that cannot be read"
        )
    return None


def _first_line(error: Exception) -> str:
    return _plainly(str(error))


def _plainly(text: str) -> str:
    """Its first line, without a code and without the name of a Java class."""
    line = re.sub(r"\s*SQLSTATE: \w+", "", text.strip().split("\n")[0])
    return re.sub(r"^[:\s]*(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ", "", line)


def _cause(error: Exception) -> str:
    """The innermost "Caused by", without the name of its Java class; of a Python task the name of its error, whose words may repeat a
    record; else the first line."""
    causes = re.findall(r"Caused by: (?:[\w$]+\.)*[\w$]+: ([^\n]+)", str(error))
    if causes:
        return str(causes[-1]).strip().rstrip(".")
    raised = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception))\b", str(error), re.MULTILINE)
    in_task = "Traceback (most recent call last)" in str(error) and raised
    return f"a Python task ended with {raised[-1]}" if in_task else _first_line(error)
