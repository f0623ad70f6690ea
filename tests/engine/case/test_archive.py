"""The archive of a case file: what is read back, and what is refused."""

import io
import tarfile

import pytest

from logtool.case.archive import ArchiveReader, ArchiveWriter, CaseMember, is_safe
from logtool.case.frames import FRAME_SIZE, FrameReader, FrameWriter
from logtool.errors import FormatError


def written(*members):
    file = io.BytesIO()
    writer = ArchiveWriter(file)
    for member, content in members:
        writer.add(member, [content])
    writer.close()
    return file.getvalue()


def read(data):
    reader = ArchiveReader(io.BytesIO(data))
    return [(member, b"".join(map(bytes, reader.blocks()))) for member in reader.members()]


def framed(data):
    file = io.BytesIO()
    frames = FrameWriter(file)
    frames.write(data)
    frames.flush()
    return file.getvalue()


MEMBERS = [
    (CaseMember("1", is_dir=True), b""),
    (CaseMember("1/a", 3, 1_700_000_000_123_456_789), b"abc"),
    (CaseMember("1/" + "n" * 250, 512, -5), bytes(range(256)) * 2),
    (CaseMember("1/é", 0, 0, 77_000_000_001), b""),
    (CaseMember("1/large", FRAME_SIZE + 9, 1), b"x" * (FRAME_SIZE + 9)),
]


def test_members_come_back_to_the_nanosecond():
    assert read(written(*MEMBERS)) == MEMBERS


def test_another_tool_reads_it():
    frames = FrameReader(io.BytesIO(written(*MEMBERS)))
    data = b""
    while len(part := frames.read(FRAME_SIZE)):
        data += bytes(part)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == [member.place for member, _ in MEMBERS]


def test_every_cut_is_refused():
    data = written(*MEMBERS[:4])
    for size in range(0, len(data), 7):
        with pytest.raises(FormatError):
            read(data[:size])


def test_flipped_bytes_are_refused_or_read():
    data = written(*MEMBERS[:4])
    for position in range(0, len(data), 5):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        try:
            read(bytes(damaged))
        except FormatError:
            continue


@pytest.mark.parametrize("place", ["", "/etc/passwd", "../a", "1/../../a", "1//a", "./a", "a\0b"])
def test_a_path_that_leads_elsewhere_is_refused(place):
    assert not is_safe(place)
    info = tarfile.TarInfo("a")
    info.pax_headers = {"path": place or "/"}
    with pytest.raises(FormatError):
        read(framed(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024)))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, b"L", b"S"])
def test_anything_but_files_and_directories_is_refused(kind):
    info = tarfile.TarInfo("a")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(FormatError):
        read(framed(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)))


def test_a_pax_header_without_end_is_refused():
    info = tarfile.TarInfo("a")
    info.type, info.size = tarfile.XHDTYPE, 1 << 40
    with pytest.raises(FormatError):
        read(framed(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)))


@pytest.mark.parametrize("record", [b"", b"x", b"9 a=b\n", b"999999 a=b\n", b"-1 a=b\n"])
def test_a_pax_record_of_an_impossible_length_is_refused(record):
    info = tarfile.TarInfo("a")
    info.type, info.size = tarfile.XHDTYPE, len(record) or 1
    body = (record or b"\0").ljust(512, b"\0")
    with pytest.raises(FormatError):
        read(framed(info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(1536)))


def test_a_file_that_ends_too_early_is_filled_with_zeros():
    file = io.BytesIO()
    writer = ArchiveWriter(file)

    def content():
        yield b"abc"
        raise OSError

    with pytest.raises(OSError):
        writer.add(CaseMember("a", 10), content())
    writer.close()
    assert read(file.getvalue()) == [(CaseMember("a", 10), b"abc" + bytes(7))]
