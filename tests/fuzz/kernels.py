"""The builds of the kernels give the same results for any bytes."""

import struct
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from fuzz import builds
from fuzz.logs import with_sound_crcs

Target = Callable[[bytes], None]
LAST_TIME = 253402300799999


def _walked(kernels: ModuleType, data: bytes, start: int, most: int) -> object:
    rows = np.zeros((kernels.BATCH_COLUMNS, most), np.int64)
    facts = np.zeros(kernels.FACTS, np.int64)
    found = kernels.walk_batches(memoryview(data), start, len(data), 7, rows, 0)
    plain = kernels.plain_facts(rows, 0, found[0], facts)
    walked = tuple(found), rows.tolist(), bool(plain), facts.tolist() if plain else None
    return walked, _walked_at_edges(kernels, data, start, most)


def _walked_at_edges(kernels: ModuleType, data: bytes, start: int, most: int) -> object:
    """Walk over plain batches from their first offset, with entries at every position."""
    rows = np.zeros((kernels.BATCH_COLUMNS, most), np.int64)
    entries = np.arange(max(len(data), 1)) + np.zeros((5, 1), np.int64)
    first = int.from_bytes(data[start : start + 8], "big", signed=True)
    state = np.zeros(kernels.PLAIN_STATE, np.int64)
    state[9:] = max(first - 1, -1), -1, -1, 2**63 - 2, -2, 2**63 - 1, 2**63 - 1
    times = entries.copy()
    found = kernels.walk_plain(
        memoryview(data), start, len(data), 0, rows, 0, state, entries, times
    )
    return tuple(found), rows.tolist(), state.tolist(), entries.tolist(), times.tolist()


def _decoded(kernels: ModuleType, data: bytes, counts: list[int]) -> object:
    bounds = np.linspace(0, len(data), len(counts) + 1).astype(np.int64)
    room = (bounds[1:] - bounds[:-1]) // kernels.SMALLEST_RECORD + 1
    counted = np.minimum(np.array(counts, np.int64), room)
    rows = np.zeros((int(counted.sum()), kernels.RECORD_COLUMNS), np.int64)
    results = np.zeros((len(counts), 3), np.int64)
    total = kernels.decode_batches(
        memoryview(data), bounds[:-1].copy(), bounds[1:].copy(), counted, rows, results
    )
    return total, rows[:total].tolist(), results.tolist()


def _rendered(kernels: ModuleType, data: bytes) -> object:
    """Render rows; the first bytes define their cells, which show the other bytes."""
    op, encoding, delimiter, first, size, number = struct.unpack_from(">BBBhhq", data)
    # The kind of a cell; the compiled module does not export these numbers.
    op, step, delimiter = 1 + op % 5, op // 5 % 13, b"\0,\t"[delimiter % 3]
    numbers = {1: [number], 2: [number], 3: [number % (LAST_TIME + 2) - 1]}.get(op, [first, size])
    if op == 5:
        numbers, delimiter = [first, size & 15], 0
    cells = np.array([[[op, 0, 0, 0], [0, 0, 0, 1]]], np.int64)
    most = LAST_TIME if op == 3 else 2**63 - 1
    rows = [numbers, [min(numbers[0] + step, most), *numbers[1:]]]
    out = bytearray(4096)
    try:
        batch, line, done = kernels.render(
            memoryview(data), np.empty((1, 0), np.int64), np.array(rows, np.int64),
            np.array([2]), np.array([[-1, 0]]), 0, 0, b"\n", cells, encoding % 5, delimiter,
            memoryview(out), np.empty((2, 3), np.int64),
        )  # fmt: skip
    except IndexError:
        return "out of bounds"
    return batch, line, bytes(out[:done])


def _same(builds_: dict[str, ModuleType], run: Callable[[ModuleType], Any]) -> None:
    results = {name: run(module) for name, module in builds_.items()}
    expected = results["plain"]
    for name, result in results.items():
        assert result == expected, f"{name} differs: {result} instead of {expected}"


def targets(instrument: Callable[[CodeType], CodeType] | None = None) -> dict[str, Target]:
    """Return the targets; their plain text is instrumented for coverage if asked."""
    kernels = builds.builds_of("_kernels", instrument)
    rendering = builds.builds_of("_rendering", instrument)

    def walk(data: bytes) -> None:
        if len(data) < 3:
            return
        start, most = data[1] % 32, data[2] % 8 + 1
        log = data[3:] if data[0] & 1 else with_sound_crcs(data[3:])
        _same(kernels, lambda build: _walked(build, log, min(start, len(log)), most))

    def decode(data: bytes) -> None:
        if data:
            counts = list(data[1 : 1 + data[0] % 4]) or [300]
            _same(kernels, lambda build: _decoded(build, data[1 + len(counts) :], counts))

    def render(data: bytes) -> None:
        if len(data) >= 15:
            _same(rendering, lambda build: _rendered(build, data))

    return {"kernel-walk": walk, "kernel-decode": decode, "kernel-render": render}
