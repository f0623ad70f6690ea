"""Files that a tool changed: one finding for a log dir, in place of its consequences."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from log_dir_damage import new_batch
from verification import verify

from logtool.actions import Action
from logtool.checks import schedule, segment_ranges
from logtool.findings import Finding, Remedy, Severity, rule
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast

LOG, INDEX = f"{0:020d}.log", f"{0:020d}.index"
BATCHES = b"".join(new_batch(at, b"one\ntwo\n") for at in range(20))
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12\n" % 7
CODES = ("data-dir/line-ends", "data-dir/pointers", "data-dir/without-logs")


def made(tmp_path: Path, count: int = 2) -> Path:
    """Write a log dir of sound partitions, stopped in order."""
    home = tmp_path / "home"
    for number in range(count):
        folder = home / f"t-{number}"
        folder.mkdir(parents=True)
        (folder / LOG).write_bytes(BATCHES)
        (folder / INDEX).touch()
        (folder / LOG).with_suffix(".timeindex").touch()
        (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n2 0\n")
    rows = "".join(f"t {number} 20\n" for number in range(count))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (home / name).write_text(f"0\n{count}\n{rows}")
    (home / ".kafka_cleanshutdown").touch()
    return home


def each(home: Path, pattern: str, change: Callable[[Path], object]) -> None:
    for path in sorted(home.rglob(pattern)):
        change(path)


def with_crlf(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def pointer(path: Path) -> None:
    path.write_bytes(POINTER)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "data-dir/line-ends": lambda home: each(home, "*[a-z]", with_crlf),
    "data-dir/pointers": lambda home: each(home, "*.log", pointer),
    "data-dir/without-logs": lambda home: each(home, "*.log", Path.unlink),
}


def alarms(path: Path) -> list[Finding]:
    return [one for one in verify(path).findings if one.severity is not Severity.INFO]


def codes(path: Path) -> Counter[str]:
    return Counter(one.code for one in alarms(path))


@pytest.fixture
def sound(tmp_path: Path) -> set[str]:
    """Return the codes of a log dir that no tool changed."""
    return set(codes(made(tmp_path / "sound")))


@pytest.mark.parametrize("code", CODES)
def test_a_change_by_a_tool_is_one_finding(tmp_path, sound, monkeypatch, code):
    home = made(tmp_path)
    DAMAGE[code](home)
    found = alarms(home)
    assert [(one.code, one.path) for one in found if one.code not in sound] == [(code, home)]
    assert rule(code).severity is Severity.ERROR
    assert rule(code).remedy in (Remedy.NONE, Remedy.REPLICA)
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)
    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", 400)
    assert codes(home) == Counter(one.code for one in found)


def test_a_pointer_in_place_of_an_index_is_found(tmp_path, sound):
    home = made(tmp_path)
    each(home, "*.index", pointer)
    assert set(codes(home)) - sound == {"data-dir/pointers"}


def test_a_partition_dir_alone_is_named(tmp_path):
    home = made(tmp_path)
    DAMAGE["data-dir/line-ends"](home)
    found = alarms(home / "t-1")
    assert ("data-dir/line-ends", home / "t-1") in [(one.code, one.path) for one in found]
    assert "batch/crc" not in [one.code for one in found]


def test_damage_of_one_partition_is_no_change_by_a_tool(tmp_path):
    home = made(tmp_path)
    each(home / "t-1", "*.log", Path.unlink)
    found = codes(home)
    assert not found.keys() & set(CODES)
    assert "partition/orphan-index" in found
    shutil.rmtree(home / "t-0")
    assert not codes(home).keys() & set(CODES)


def test_damage_in_a_log_with_crlf_in_its_records_stays_damage(tmp_path):
    home = made(tmp_path)
    data = bytearray(b"".join(new_batch(at, b"one\r\ntwo\r\n") for at in range(20)))
    data[70] ^= 1
    (home / "t-0" / LOG).write_bytes(data)
    assert codes(home)["batch/crc"] == 1


@pytest.mark.parametrize("clean", [True, False])
def test_plan_notes_the_change_once(tmp_path, clean):
    home = made(tmp_path)
    if not clean:
        (home / ".kafka_cleanshutdown").unlink()

    def notes() -> list[Path]:
        actions = [one for one in Forecast([home], StartOptions()) if isinstance(one, Action)]
        return [one.path for one in actions if one.action == "damaged"]

    assert notes() == []
    DAMAGE["data-dir/line-ends"](home)
    assert notes() == [home]
