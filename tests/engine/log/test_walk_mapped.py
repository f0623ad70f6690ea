"""Scans over mapped files give what scans by copies give, also of files that change meanwhile."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import redpanda_files as rp
from damage import cut, flip, zero
from verification import numbers_in

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.disk.mapped import MappedRange
from logtool.formats import _kernels, _mapped, record, record_batch
from logtool.formats.record_batch import BatchTable
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage
from logtool.log.walk import forms
from logtool.log.walk.redpanda_form import form_of

PAGE = 4096
BASE = 1000
MANY = [
    record_batch.encode(
        record.encode([record.Record(0, 0, b"key", bytes([i]) * (370 * i % 1500))]),
        base_offset=BASE + i, last_offset_delta=0, record_count=1, max_timestamp=1,
    )
    for i in range(40)
]  # fmt: skip
DATA = b"".join(MANY)

needs_guard = pytest.mark.skipif(
    not _kernels.COMPILED, reason="the kernels run as plain Python, which maps nothing"
)


class Copied:
    """A file of which nothing is mapped."""

    def __init__(self, path: Path, term: int | None = None) -> None:
        self.file = LogFile(path)
        self.size = self.file.size
        self.form = forms.KAFKA_FORM if term is None else form_of(term)

    def read_into(self, buffer: memoryview, position: int) -> int:
        return self.file.read_into(buffer, position)


class Counting(Copied):
    """A file that counts its mappings, and lets something happen behind each."""

    def __init__(
        self,
        path: Path,
        then: Callable[[int], object] = lambda maps: None,
        term: int | None = None,
    ) -> None:
        super().__init__(path, term)
        self.maps, self.then = 0, then

    def map_range(self, position: int, size: int) -> MappedRange | None:
        found = self.file.map_range(position, size)
        self.maps += found is not None
        self.then(self.maps)
        return found


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Map files of any size, a page or two at once."""
    monkeypatch.setattr(files, "_LEAST_MAPPED", 1)
    monkeypatch.setattr(files, "MOST_MAPPED", 2 * PAGE)


@needs_guard
def test_threads_share_what_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_MAPPED", 6 * PAGE)
    monkeypatch.setattr(files, "_LEAST_SHARE", 2 * PAGE)
    path = tmp_path / "0.log"
    path.write_bytes(bytes(10 * PAGE))
    with LogFile(path) as file:
        maps = [file.map_range(0, file.size) for _ in range(4)]
        pages = [found.end // PAGE if found else 0 for found in maps]
        assert pages == [6, 3, 2, 2]
        for found in maps:
            assert found
            found.close()
            found.close()  # once more, as an interrupt may have it
        again = file.map_range(PAGE, file.size - PAGE)
        assert again
        assert again.end == 7 * PAGE
        again.close()


Said = tuple[list[list[int]], list[Damage], list[tuple[int, str]]]
Seen = list[tuple[int, bytes]]


def bytes_of(chunk: Chunk) -> Seen:
    """Return where each batch stands, and its bytes."""
    return [(int(at), bytes(chunk.batch(row))) for row, at in enumerate(chunk.table.position)]


def said(file: Copied, seen: Seen | None = None) -> Said:
    """Return the columns of all batches, the damage and what no control record is, of a scan.

    With `seen` the scan inspects the bytes of all batches, which go there.
    """
    tables, damages, errors = [], [], []
    inspect = None if seen is None else bytes_of
    with file.file:
        for chunk in read_batches(
            file, base_offset=BASE, form=file.form, payload=False, inspect=inspect
        ):
            assert not len(chunk.data) or len(chunk.table) == 1
            tables.append(chunk.table)
            if seen is not None:
                assert [at for at, _ in chunk.inspected] == chunk.table.position.tolist()
                seen += chunk.inspected
            damages += [chunk.damage] if chunk.damage else []
            errors += [(row, str(error)) for row, error in chunk.control_errors]
    columns = [
        [int(value) for table in tables for value in getattr(table, field.name)]
        for field in fields(BatchTable)
    ]
    return columns, damages, errors


def both(path: Path) -> Said:
    """Return the result of all ways, which must be the same, and be said of a mapping."""
    copied = said(Copied(path))
    file = Counting(path)
    assert said(file) == copied
    assert file.maps or not path.stat().st_size
    seen: Seen = []
    assert said(Counting(path), seen) == copied
    data = path.read_bytes()
    assert seen == [(at, data[at : at + size]) for at, size in zip(*copied[0][:2], strict=True)]
    return copied


@needs_guard
@pytest.mark.parametrize("name", ["4.3.1/clean", "2.8.2/magic-0", "2.8.2/magic-1"])
def test_logs_of_real_brokers(name: str, scenario: Callable[[str], Path]) -> None:
    """Among them transactions, compressed batches and wrappers of magic 0 and 1."""
    logs = [path for path in scenario(name).rglob("*.log") if path.stem.isdigit()]
    assert sum(len(both(path)[0][0]) for path in logs) > 0


@needs_guard
@pytest.mark.parametrize("most", [PAGE, 2 * PAGE, 16 * PAGE])
def test_damage_anywhere(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_MAPPED", most)
    path = tmp_path / "0.log"
    for at in range(0, len(DATA) - 300, 997):
        for damaged in (flip(DATA, at), cut(DATA, at), zero(DATA, at, 300)):
            path.write_bytes(damaged)
            both(path)


@needs_guard
def test_segments_of_redpanda(tmp_path: Path) -> None:
    """A mapping keeps the headers of Redpanda; markers are read there, too."""
    marker = rp.a_record(0, struct.pack(">hi", 0, 4), key=struct.pack(">hh", 0, 1))
    whole = b"".join([
        rp.log(BASE, 20, 150),
        rp.batch(BASE + 61, b"f", kind=rp.TX_FENCE, attributes=0x20, producer=(9, 0, -1)),
        rp.batch(BASE + 62, attributes=0x30, producer=(9, 0, -1), body=marker, count=1),
        rp.batch(BASE + 63, attributes=0x30, producer=(9, 0, -1), body=marker[:-3], count=1),
        rp.log(BASE + 64, 20, 70),
    ])  # fmt: skip
    path = tmp_path / "0.log"
    for at in range(0, len(whole) - 300, 611):
        for damaged in (flip(whole, at), cut(whole, at), zero(whole, at, 300)):
            path.write_bytes(damaged + bytes(PAGE))
            file = Counting(path, term=7)
            assert said(file) == said(Copied(path, term=7))
            assert file.maps
            seen: Seen = []
            assert said(Counting(path, term=7), seen) == said(Copied(path, term=7))
    path.write_bytes(whole)
    columns, damages, errors = said(Counting(path, term=7))
    assert (len(columns[0]), damages, len(errors)) == (45, [], 1)


@needs_guard
@pytest.mark.parametrize("form", ["kafka", "redpanda"])
@pytest.mark.parametrize("sound", [0, 7, 20])
def test_a_batch_that_is_written_over_reserved_zeros_meanwhile(
    form: str, sound: int, tmp_path: Path
) -> None:
    """A broker writes meanwhile: one look at the mapping sees zeros, the next look a batch."""
    batches, term = (MANY, None) if form == "kafka" else (
        [rp.batch(BASE + i, bytes(150)) for i in range(40)], 7
    )  # fmt: skip
    path = tmp_path / "0.log"
    before = sum(map(len, batches[:sound]))
    path.write_bytes(b"".join(batches[:sound]) + bytes(20 * PAGE))

    class Written(Counting):
        """A file to which a broker adds a batch before the first bytes are copied."""

        copies = 0

        def read_into(self, buffer: memoryview, position: int) -> int:
            if not self.copies:
                with path.open("r+b") as file:
                    file.seek(before)
                    file.write(batches[sound])
            self.copies += 1
            return super().read_into(buffer, position)

    file = Written(path, term=term)
    columns, damages, _ = said(file)
    assert file.maps
    assert file.copies
    assert [damage for damage in damages if damage.reason.name != "ZEROS"] == []
    assert len(columns[0]) == sound + 1


@needs_guard
def test_damage_everywhere_is_copied_a_bounded_number_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_MAPPED", 64 * 1024 * 1024)
    body = record.encode([record.Record(0, 0, b"key", bytes(1200))])
    size = len(record_batch.encode(body, base_offset=0, last_offset_delta=0, record_count=1))
    data = bytearray().join(
        record_batch.encode(body, base_offset=BASE + i, last_offset_delta=0, record_count=1)
        for i in range(4000)
    )
    for at in range(5 * size - 9, len(data), 10 * size):
        data[at] ^= 1
    path = tmp_path / "0.log"
    path.write_bytes(data)
    copied = 0

    class Measured(Counting):
        def read_into(self, buffer: memoryview, position: int) -> int:
            nonlocal copied
            copied += len(buffer)
            return super().read_into(buffer, position)

    _, damages, _ = said(Measured(path))
    assert len(damages) == 400
    assert copied < 2 * len(data)


@needs_guard
@pytest.mark.parametrize("left", [0, 1, 100, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 50])
@pytest.mark.parametrize("when", [1, 2, 3])
@pytest.mark.parametrize("inspecting", [False, True])
def test_a_file_that_is_cut_under_its_mapping(
    left: int, when: int, inspecting: bool, tmp_path: Path
) -> None:
    """The pages that are gone raise SIGBUS; those behind its end within a page are zeros."""
    path = tmp_path / "0.log"
    path.write_bytes(DATA)

    def cut_it(maps: int) -> None:
        if maps == when:
            os.truncate(path, left)

    seen: Seen | None = [] if inspecting else None
    columns, damages, errors = said(Counting(path, cut_it), seen)
    position, size = columns[:2]
    if seen is not None:
        assert [batch for _, batch in seen] == MANY[: len(seen)]
    # Batches found before are reported, and no batch that was never there.
    known = [sum(map(len, MANY[:i])) for i in range(len(MANY))]
    assert position == known[: len(position)]
    assert not errors
    assert all(damage.reason.name == "INCOMPLETE" for damage in damages), damages
    ends = [*(a + b for a, b in zip(position, size, strict=True)), 0]
    assert max(ends) >= (when - 1) * (2 * PAGE - max(map(len, MANY)))
    if when == 1:
        assert max(ends) <= left
        assert (columns, damages) == said(Copied(path))[:2]


@needs_guard
def test_a_file_that_grows_is_read_as_far_as_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA)
    expected = said(Copied(path))
    assert said(Counting(path, lambda _: path.write_bytes(DATA + DATA))) == expected


@needs_guard
def test_what_was_mapped_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA * 3)
    for stop_early in (True, False):
        with LogFile(path) as file:
            for _ in read_batches(file, base_offset=BASE, payload=False):
                if stop_early:
                    break
        assert str(path) not in Path("/proc/self/maps").read_text()


@needs_guard
def test_a_control_record_that_is_none_keeps_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    marker = record_batch.encode(
        record.encode([record.Record(0, 0, struct.pack(">hh", 0, 1), bytes(3))]),
        base_offset=BASE + 40, last_offset_delta=0, record_count=1, attributes=0x30,
        max_timestamp=1, producer_id=7, producer_epoch=0,
    )  # fmt: skip
    path.write_bytes(DATA + marker + DATA)
    _, _, errors = both(path)
    ((_, text),) = errors
    assert numbers_in(text) == [0, 3, 6]


@needs_guard
@pytest.mark.parametrize("hold", [bytes, memoryview, lambda part: np.frombuffer(part, np.uint8)])
def test_an_interrupt_in_what_looks_at_batches_stays_one(
    tmp_path: Path, hold: Callable[[memoryview], object]
) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA)

    def inspect(chunk: Chunk) -> list[object]:
        kept = [hold(chunk.data), hold(chunk.batch(0))]
        assert kept
        raise KeyboardInterrupt

    interrupted = False
    with LogFile(path) as file:
        try:
            list(read_batches(file, base_offset=BASE, payload=False, inspect=inspect))
        except KeyboardInterrupt:
            interrupted = True
    assert interrupted
    assert str(path) not in Path("/proc/self/maps").read_text()


def test_ranges_that_cannot_be_watched_are_not_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA)
    expected = said(Copied(path))
    monkeypatch.setattr(_mapped, "watch", lambda data: -1)
    file = Counting(path)
    assert said(file) == expected
    assert not file.maps


@needs_guard
def test_more_ranges_than_can_be_watched(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA)
    with LogFile(path) as file:
        kept = [file.map_range(0, PAGE) for _ in range(300)]
        assert None in kept
        got = [one for one in kept if one]
        assert len(got) > 200
        assert all(one.whole() for one in got)
        for one in got:
            one.close()
        again = file.map_range(0, PAGE)
        assert again
        again.close()


SIGNALLED = """
import os, signal, sys, mmap
from pathlib import Path
from logtool.disk import files
files._LEAST_MAPPED = 1
path = Path(sys.argv[1])
with files.LogFile(path) as file:
    mapped = file.map_range(0, 4096)
    assert mapped
    if sys.argv[2] == "sent":
        os.kill(os.getpid(), signal.SIGBUS)
    else:
        with path.open("r+b") as other:
            mine = mmap.mmap(other.fileno(), 8192)
            other.truncate(0)
            mine[5000]
print("still here")
"""


@needs_guard
@pytest.mark.parametrize("way", ["sent", "raised"])
def test_a_signal_that_is_not_for_a_watched_range_goes_on(way: str, tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA)
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(path), way], stdout=subprocess.PIPE, check=False
    )
    assert done.returncode == -signal.SIGBUS
    assert not done.stdout
