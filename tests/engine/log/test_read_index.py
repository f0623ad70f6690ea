"""An index is read without the zeros that a broker preallocates behind its entries."""

from pathlib import Path

import pytest

from logtool.disk import files
from logtool.formats import offset_index, time_index
from logtool.formats.names import parse_partition_file
from logtool.log.file import File

SIZE = 10 * 1024 * 1024
BLOCK = 256 * 1024
ENTRIES = bytes(range(1, 25)) * 3


def index(path: Path) -> File:
    status = path.stat()
    name = parse_partition_file(path.name)
    return File(path, name, status.st_size, status.st_mtime_ns)


def written(path: Path, content: bytes, size: int, *, sparse: bool) -> File:
    with path.open("wb") as file:
        file.write(content)
        if sparse:
            file.truncate(size)
        else:
            file.write(bytes(size - len(content)))
    return index(path)


CONTENTS = {
    "entries": ENTRIES,
    "no entry": b"",
    "one byte": b"\x01",
    "an entry that ends with zeros": ENTRIES + b"\x01",
    "an entry across two blocks": bytes(BLOCK - 1) + b"\x01\x02",
    "a byte behind zeros": ENTRIES + bytes(3 * BLOCK) + b"\x01",
    "a byte in the last block": bytes(SIZE - 5) + b"\x01",
}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("size", [SIZE, SIZE - SIZE % 12, SIZE - 3])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_an_index_read_without_its_padding_is_equal_to_the_whole(tmp_path, content, size, sparse):
    whole = content + bytes(max(0, size - len(content)))
    for suffix, form in ((".index", offset_index), (".timeindex", time_index)):
        file = written(tmp_path / f"{0:020d}{suffix}", content, len(whole), sparse=sparse)
        found = form.parse(*file.read_index())
        expected = form.parse(whole)
        assert form.encode(found) == whole
        assert (len(found), found.padding, found.trailing) == (
            len(expected), expected.padding, expected.trailing
        )  # fmt: skip


def test_a_hole_is_not_read(tmp_path, monkeypatch):
    file = written(tmp_path / f"{0:020d}.index", ENTRIES, SIZE, sparse=True)
    read: list[int] = []
    real = files.LogFile.read_into

    def counted(self: files.LogFile, buffer: memoryview, position: int) -> int:
        read.append(len(buffer))
        return real(self, buffer, position)

    monkeypatch.setattr(files.LogFile, "read_into", counted)
    data, size = file.read_index()
    assert (data[: len(ENTRIES)], size) == (ENTRIES, SIZE)
    assert sum(read) < 64 * 1024
