"""The options that Spark's readers know, by format: one that does not exist, or by which two scans of a table differ, is refused by name.

Spark takes any option and ignores those it does not know. The lists are those of Spark 3.5 to 4.x (`CSVOptions`, `JSONOptions`,
`ParquetOptions`, `OrcOptions`, `AvroOptions`, and the options of every file source); names are compared without regard to case,
as Spark does.
"""

from __future__ import annotations

from collections.abc import Mapping

from anonlib.spec.part import Fault, did_you_mean

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
        elif (why := _refusal(name.lower(), value.lower())) is not None:
            faults.append((name, why))
    doubled = [name for name in options if [other.lower() for other in options].count(name.lower()) > 1]
    faults += [(name, "given more than once (Spark does not regard case); keep one") for name in doubled[:1]]
    return faults


def strict_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """`options` with what makes Spark's reader of `format` refuse where it would guess: a CSV header that is not the schema, and CSV and
    JSON records with cells that are not of their type, or with too few or too many cells, found in whole records, not in pruned ones."""
    own = {
        "csv": {"mode": "FAILFAST", "enforceSchema": "false", "columnPruning": "false"},
        "json": {"mode": "FAILFAST"},
    }
    stricter = own.get(format, {})
    out = {name.lower() for name in stricter}
    return {name: value for name, value in options.items() if name.lower() not in out} | stricter


def _refusal(name: str, value: str) -> str | None:
    if name == "mode":
        if value == "failfast":
            return None
        if value == "dropmalformed":
            return f"DROPMALFORMED: {_LEAVES_OUT}; leave it out, and mend the records that cannot be read"
        return "only FAILFAST is read: under another mode unreadable cells would become missing values in silence; leave it out"
    if name == "enforceschema":
        return (
            None
            if value == "false"
            else "it would take columns by their position; leave it out, and the header is compared with the schema"
        )
    switch = name in ("ignorecorruptfiles", "ignoremissingfiles", "singlevariantcolumn", "positionalfieldmatching")
    return None if switch and value == "false" else _REFUSED.get(name)
