"""Rows of numbers as lines of JSON, CSV, TSV or Kafka's dump.

`_rendering` is the loop, which is compiled where that can be; this is what others take from it.
`COMPILED` says whether it is of use.
"""

from logtool.formats._rendering import (
    BASE64,
    COMPILED,
    END,
    HEADERS,
    HEX,
    KAFKA,
    NUMBER,
    OPTIONAL,
    SIZE,
    TEXT,
    TIME,
    UTF8,
    VALUE,
    render,
)

__all__ = [
    "BASE64",
    "COMPILED",
    "END",
    "HEADERS",
    "HEX",
    "KAFKA",
    "NUMBER",
    "OPTIONAL",
    "SIZE",
    "TEXT",
    "TIME",
    "UTF8",
    "VALUE",
    "render",
]
