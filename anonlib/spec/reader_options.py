"""The options that Spark's readers know, by format: one that does not exist, or by which two scans of a table differ, is refused by name.

Spark takes any option and ignores those it does not know. The lists are those of Spark 3.5 to 4.x (`CSVOptions`, `JSONOptions`,
`ParquetOptions`, `OrcOptions`, `AvroOptions`, and the options of every file source); names are compared without regard to case,
as Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from anonlib.spec.part import Fault, did_you_mean, listed, shown

_ANY_FILE = (
    "basePath", "pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter", "ignoreCorruptFiles", "ignoreMissingFiles",
)  # fmt: skip
_TEXT = (
    "encoding", "charset", "columnNameOfCorruptRecord", "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat", "timeZone",
    "enableDateTimeParsingFallback", "lineSep", "locale", "mode", "multiLine", "samplingRatio", "singleVariantColumn",
)  # fmt: skip
READER_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "csv": (
        "header", "sep", "delimiter", "quote", "escape", "charToEscapeQuoteEscaping", "comment", "inferSchema", "enforceSchema",
        "preferDate", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "emptyValue", "nanValue", "positiveInf",
        "negativeInf", "maxColumns", "maxCharsPerColumn", "inputBufferSize", "unescapedQuoteHandling", "columnPruning", "extension",
        *_TEXT, *_ANY_FILE,
    ),
    "json": (
        "primitivesAsString", "prefersDecimal", "inferTimestamp", "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes",
        "allowNumericLeadingZeros", "allowNonNumericNumbers", "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
        "dropFieldIfAllNull", "explodeEmbeddedArray", *_TEXT, *_ANY_FILE,
    ),
    "parquet": ("mergeSchema", "datetimeRebaseMode", "int96RebaseMode", *_ANY_FILE),
    "orc": ("mergeSchema", *_ANY_FILE),
    "avro": (
        "avroSchema", "avroSchemaUrl", "mode", "datetimeRebaseMode", "positionalFieldMatching", "ignoreExtension", "recursiveFieldMaxDepth",
        "enableStableIdentifiersForUnionType", "stableIdentifierPrefixForUnionType", *_ANY_FILE,
    ),
}  # fmt: skip
"""{format: the names of its reader's options}; a format that is not here is another package's, and its options are not checked."""

_SWITCHES = {
    name.lower()
    for name in (
        "header", "inferSchema", "enforceSchema", "preferDate", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "multiLine",
        "columnPruning", "enableDateTimeParsingFallback", "recursiveFileLookup", "ignoreCorruptFiles", "ignoreMissingFiles", "mergeSchema",
        "primitivesAsString", "prefersDecimal", "inferTimestamp", "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes",
        "allowNumericLeadingZeros", "allowNonNumericNumbers", "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
        "dropFieldIfAllNull", "positionalFieldMatching", "ignoreExtension", "enableStableIdentifiersForUnionType",
    )
}  # fmt: skip
_CHARACTERS = {"quote", "escape", "comment", "chartoescapequoteescaping"}
_NUMBERS = {"maxcolumns", "maxcharspercolumn", "inputbuffersize"}
_NOT_EMPTY = {"sep", "delimiter", "linesep"}
_QUOTE_HANDLING = ("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR")

_LEAVES_OUT = "it leaves records out in silence, and two scans need not leave out the same"
_ONE_SCHEMA = "another scan of the table may find other types; leave it out, or give input.schema"
_REFUSED: Mapping[str, str] = {
    "ignorecorruptfiles": f"{_LEAVES_OUT}; mend the files, or take them out",
    "ignoremissingfiles": f"{_LEAVES_OUT}; publish from a table that nobody writes to",
    "samplingratio": _ONE_SCHEMA,
    "columnnameofcorruptrecord": "its column would hold whole records; leave it out: unreadable records are refused as it is",
    "singlevariantcolumn": "it makes the whole record one column; leave it out, and columns have names",
    "columnpruning": "records of a wrong length are found in whole records alone; leave it out",
    "positionalfieldmatching": "it takes columns by their position; leave it out, and they are taken by name",
}


def option_faults(format: str, options: Mapping[str, str]) -> list[Fault]:
    """Every option of `options` (name to text) that is unknown to the reader of `format`, or refused: (name, the fault and its mend)."""
    known = READER_OPTIONS.get(format)
    if known is None:
        return []
    spelled = {name.lower(): name for name in known}
    faults: list[Fault] = []
    for name, value in options.items():
        if name.lower() not in spelled:
            close = did_you_mean(name, spelled)
            for lower, proper in spelled.items():
                close = close.replace(f"mean {lower}?", f"mean {proper}?")
            faults.append(
                (name, f"Spark's {format} reader has no such option{close}; it would be ignored: mend or leave it out")
            )
        elif (why := _refusal(name.lower(), value.lower()) or _wrong_value(name.lower(), value)) is not None:
            faults.append((name, why))
    doubled = [name for name in options if [other.lower() for other in options].count(name.lower()) > 1]
    faults += [(name, "given more than once (Spark does not regard case); keep one") for name in doubled[:1]]
    return faults


def _wrong_value(name: str, value: str) -> str | None:
    """What Spark would say only once it reads, and not always: a value that the option cannot have. None when it can."""
    if name in _SWITCHES and value.lower() not in ("true", "false"):
        return f"{shown(value)} is neither true nor false"
    if name in _CHARACTERS and len(value) > 1 and value not in ("\\u0000", "u0000"):
        return f"{shown(value)} is more than one character"
    if name in _NUMBERS and re.fullmatch(r"-1|[0-9]{1,9}", value) is None:
        return f"{shown(value)} is not a whole number; write e.g. 1000"
    if name in _NOT_EMPTY and not value:
        return "it is empty; write what separates, or leave it out"
    if name == "unescapedquotehandling" and value.upper() not in _QUOTE_HANDLING:
        return f"{shown(value)} is no choice here; write one of {listed(_QUOTE_HANDLING)}"
    return None


CORRUPT_RECORD = "_anonlib_record"
"""The column that Spark puts a record's text into when something of it cannot be read; see `anonlib.engine.reading`."""


def strict_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """`options` with what keeps Spark's reader of `format` from guessing: a CSV header that is not the schema is refused; CSV and JSON
    records with cells that are not of their type, or with too few or too many cells, are told apart, as whole records. Where no format
    of dates is given it is ISO's: Spark's own takes `2020-05` for a day, and anything behind one."""
    told_apart = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT_RECORD}
    if option(options, "dateFormat") is None:
        told_apart["dateFormat"] = "yyyy-MM-dd"
    own = {"csv": {"enforceSchema": "false", "columnPruning": "false", **told_apart}, "json": told_apart}
    stricter = own.get(format, {})
    out = {name.lower() for name in stricter}
    return {name: value for name, value in options.items() if name.lower() not in out} | stricter


_OF_FILES = {
    name.lower()
    for name in (
        "header", "mode", "multiLine", "encoding", "charset", "lineSep", "inferSchema", "samplingRatio", "enforceSchema", "preferDate",
        "columnPruning", "columnNameOfCorruptRecord", "comment", "extension", "singleVariantColumn", "inferTimestamp", *_ANY_FILE,
    )
}  # fmt: skip
"""Options that are about files, not about one record."""


def record_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of `options` that say how the text of one record is to be understood."""
    return {name: value for name, value in options.items() if name.lower() not in _OF_FILES}


def option(options: Mapping[str, str], name: str) -> str | None:
    """An option's text, its name compared without regard to case, or None."""
    return next((value for spelling, value in options.items() if spelling.lower() == name.lower()), None)


def is_on(options: Mapping[str, str], name: str) -> bool:
    """Whether the switch `name` is among the options and on."""
    return (option(options, name) or "false").lower() == "true"


def _refusal(name: str, value: str) -> str | None:
    """Why an option is refused, with the mend; None when it is not. name, value : in lower case."""
    if name == "mode":
        if value == "failfast":
            return None
        if value == "dropmalformed":
            return f"DROPMALFORMED: {_LEAVES_OUT}; input.unreadable: drop leaves them out in every scan alike, and counts them"
        return (
            "unreadable cells would become missing values in silence; leave it out: the first one is refused, or allowed and counted by "
            "input.unreadable (missing or drop)"
        )
    if name == "enforceschema":
        return (
            None
            if value == "false"
            else "it would take columns by their position; leave it out, and the header is compared with the schema"
        )
    switch = name in ("ignorecorruptfiles", "ignoremissingfiles", "singlevariantcolumn", "positionalfieldmatching")
    return None if switch and value == "false" else _REFUSED.get(name)
