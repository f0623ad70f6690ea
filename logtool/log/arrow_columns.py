"""Arrow arrays straight out of memory.

`pyarrow.array` and `pyarrow.scalar` import pandas where it is installed, which takes 35 MB and a
third of a second from a process that never asks for it. What is made here does without.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from logtool.formats import _kernels
from logtool.formats.record_batch import Column


def numbers(column: Column, kind: DTypeLike, missing: Column | None = None) -> Any:
    """Return a column as an array of another type, null where it is `missing`.

    It is a copy, which keeps no more alive than itself.
    """
    return _of_buffer(pa.from_numpy_dtype(kind), len(column), column.astype(kind), missing)


def bits(column: Column) -> Any:
    """Return a column of bools as an array."""
    return _of_buffer(pa.bool_(), len(column), np.packbits(column, bitorder="little"))


def pieces(data: memoryview, at: Column, size: Column) -> Any:
    """Return the bytes of `data` at positions `at` as a binary array, null below size 0.

    All together are less than 2 GiB.
    """
    missing = size < 0
    if missing.all():
        return pa.nulls(len(at), pa.binary())
    edges = np.empty(len(at) + 1, np.int32)
    content = np.empty(int(np.maximum(size, 0).sum()), np.uint8)
    _kernels.gather(data, at, size, content.data, edges)
    return _of_bytes(pa.binary(), edges, content, missing)


def lists(kind: Any, counts: Column, children: Sequence[Any]) -> Any:
    """Return an array of lists with `counts` structs each, whose fields are `children`."""
    pairs = pa.Array.from_buffers(
        kind.value_type, len(children[0]), [None], children=list(children)
    )
    edges = _edges(counts)
    return pa.Array.from_buffers(kind, len(counts), [None, pa.py_buffer(edges)], children=[pairs])


def objects(values: Sequence[Any], kind: Any) -> Any:
    """Return the array that `pyarrow.array` makes of numbers, bools, text, bytes or lists of dicts.

    Any value but a list may be None. A timestamp is given as a number.
    """
    if pa.types.is_dictionary(kind):
        return numbered(*codes(values))
    if pa.types.is_list(kind):
        flat = [row for one in values for row in one]
        children = [objects([row[one.name] for row in flat], one.type) for one in kind.value_type]
        return lists(kind, np.array([len(one) for one in values], np.int64), children)
    missing = np.array([one is None for one in values], np.bool_)
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        parts = [_encoded(one) for one in values]
        edges = _edges(np.array([len(part) for part in parts], np.int64))
        return _of_bytes(kind, edges, np.frombuffer(b"".join(parts), np.uint8), missing)
    known = [0 if one is None else one for one in values]
    if pa.types.is_boolean(kind):
        packed = np.packbits(np.array(known, np.bool_), bitorder="little")
        return _of_buffer(kind, len(values), packed, missing)
    stored = np.int64 if pa.types.is_timestamp(kind) else str(kind)
    return _of_buffer(kind, len(values), np.array(known, stored), missing)


def codes(values: Sequence[str | None]) -> tuple[Column, list[str]]:
    """Return the number of each text, -1 for None, and the distinct texts by number."""
    texts = list(dict.fromkeys(value for value in values if value is not None))
    number: dict[str | None, int] = {None: -1, **{text: at for at, text in enumerate(texts)}}
    return np.array([number[value] for value in values], np.int64), texts


def numbered(column: Column, texts: Sequence[str]) -> Any:
    """Return `texts` by their numbers, null where a number is -1: each text once, and int32."""
    return pa.DictionaryArray.from_arrays(
        numbers(column, np.int32, column < 0), objects(texts, pa.string()), safe=False
    )


def repeated(value: Any, kind: Any, count: int) -> Any:
    """Return an array of `count` times the same value, None included; of lists, of empty ones."""
    if value is None:
        return pa.nulls(count, kind)
    if pa.types.is_list(kind):
        nothing = [objects([], field.type) for field in kind.value_type]
        return lists(kind, np.zeros(count, np.int64), nothing)
    return pa.repeat(objects([value], kind)[0], count)


def _encoded(text: str | bytes | None) -> bytes:
    if text is None:
        return b""
    # The name of a file may hold what is no character.
    return text.encode(errors="replace") if isinstance(text, str) else text


def _edges(sizes: Column) -> Column:
    edges = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=edges[1:])
    return edges


def _of_bytes(kind: Any, edges: Column, content: Column, missing: Column) -> Any:
    buffers = [_valid(missing), pa.py_buffer(edges), pa.py_buffer(content)]
    return pa.Array.from_buffers(kind, len(edges) - 1, buffers)


def _of_buffer(kind: Any, count: int, content: Column, missing: Column | None = None) -> Any:
    return pa.Array.from_buffers(kind, count, [_valid(missing), pa.py_buffer(content)])


def _valid(missing: Column | None) -> Any:
    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little"))
