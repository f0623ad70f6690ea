"""`trim` on real log dirs: the segments that go, the refusals, and the way back."""

import json
from pathlib import Path

import metadata_records
import pytest
from processes import locked_by_a_process
from verification import fingerprint, set_offsets, small_log_dir

from logtool import apply
from logtool.errors import UnwritableError
from logtool.formats import leader_epoch_checkpoint, offset_checkpoint
from logtool.metadata import image as metadata_image
from logtool.space import trimming

NAME = "small-segments-0"
BASE = 869
"""Base offset of the active segment of small-segments-0."""
POINTS, STARTS, MARKS = (
    f"{name}-offset-checkpoint" for name in ("recovery-point", "log-start", "replication")
)
ACCEPT = ("--accept-loss", NAME)


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir with a topic of each policy."""
    names = (NAME, "tx.mixed-0", "compacted.keys-0", "__consumer_offsets-0")
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *names, "__cluster_metadata-0")


@pytest.fixture
def other_disk(monkeypatch):
    """Let every undo directory be on another disk."""
    monkeypatch.setattr(trimming, "is_same_disk", lambda place, log_dir: False)


@pytest.fixture
def offsets(tmp_path):
    """Return a function: a file with rows (topic, partition, offset)."""

    def write(*rows):
        names = ("topic", "partition", "offset")
        path = tmp_path / "offsets.json"
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        path.write_text(json.dumps({"partitions": listed, "version": 1}))
        return path

    return write


def bases(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def rows(path: Path) -> dict[tuple[str, int], int]:
    return offset_checkpoint.parse(path.read_bytes()).offsets


def codes(run, home):
    found = run("verify", "-f", "ndjson", home).of_type("finding")
    return {(one["code"], one["path"]) for one in found if "-delete" not in one["path"]}


def test_it_proposes_what_space_proposes(run, clean):
    steps = run("space", "-f", "ndjson", "--free", "1T", clean).of_type("step")
    found = run("trim", "-f", "ndjson", "--free", "1T", clean)
    assert found.status == 1
    wanted = [(one["kind"], one["path"], one["segments"], one["before_offset"]) for one in steps]
    keys = ("kind", "path", "segments", "new_log_start_offset")
    assert [tuple(one[key] for key in keys) for one in found.of_type("trimmed")] == wanted
    (total,) = found.of_type("total")
    assert (total["removed"], total["wanted_bytes"]) == (False, 1 << 40)


@pytest.mark.usefixtures("other_disk")
def test_the_files_are_those_that_a_broker_removes_and_undo_restores_every_byte(run, copy_of):
    home = copy_of("4.3.1/clean")
    names = [
        f"{one['topic']}-{one['partition']}"
        for one in run("trim", "-f", "ndjson", "--free", "1T", home).of_type("trimmed")
        if one["lost_offsets"]
    ]
    untouched, found = fingerprint(home), codes(run, home)
    accept = [word for name in names for word in ("--accept-loss", name)]
    made = run("trim", "-f", "ndjson", "--free", "1T", "--apply", *accept, home)
    assert made.status == 1  # less than a terabyte
    assert made.of_type("total")[0]["removed"]
    for one in made.of_type("trimmed"):
        folder, start = Path(one["path"]), one["new_log_start_offset"]
        if one["kind"] == "leftovers":
            assert not any(path.suffix == ".deleted" for path in folder.iterdir())
            continue
        numbered = [int(path.name[:20]) for path in folder.iterdir() if path.name[:20].isdigit()]
        assert min(numbered) == start == rows(home / STARTS)[one["topic"], one["partition"]]
        epochs = leader_epoch_checkpoint.parse((folder / "leader-epoch-checkpoint").read_bytes())
        assert epochs.epochs[0][1] == start
    assert codes(run, home) <= found
    (undo,) = made.of_type("undo")
    assert run("undo", "--apply", undo["path"]).status == 0
    assert fingerprint(home) == untouched


@pytest.mark.usefixtures("other_disk")
@pytest.mark.parametrize("beyond", [0, 1])
def test_an_offset_inside_a_segment_keeps_that_segment(run, home, offsets, beyond):
    first, second, third = bases(home / NAME)[:3]
    set_offsets(home / POINTS, {("small-segments", 0): first + 1})
    file = offsets(("small-segments", 0, third - 1 + beyond))
    words = ("trim", "-f", "ndjson", "--offsets-file", file, home)
    (plan,) = run(*words).of_type("trimmed")
    start = third if beyond else second
    assert (plan["first_offset"], plan["last_offset"]) == (first, start - 1)
    assert plan["lost_offsets"] == start - first
    assert run(*words, "--apply", *ACCEPT).status == 0
    assert bases(home / NAME)[0] == start == rows(home / POINTS)["small-segments", 0]
    assert run(*words).status == 0  # nothing is left to do


def test_minus_one_is_the_high_watermark_and_the_active_segment_stays(run, home, offsets):
    found = run("trim", "-f", "ndjson", "--offsets-file", offsets(("small-segments", 0, -1)), home)
    assert found.of_type("trimmed")[0]["new_log_start_offset"] == BASE == bases(home / NAME)[-1]
    set_offsets(home / MARKS, {("small-segments", 0): BASE - 1})
    found = run("trim", "-f", "ndjson", "--offsets-file", offsets(("small-segments", 0, -1)), home)
    assert found.of_type("trimmed")[0]["new_log_start_offset"] == bases(home / NAME)[-2]


def above(home):
    set_offsets(home / MARKS, {("small-segments", 0): BASE - 1})


def unreadable_rows(home):
    (home / STARTS).write_bytes(b"0\n1\nnonsense\n")


def swap(home):
    (home / NAME / f"{0:020d}.log.swap").touch()


def no_epochs(home):
    (home / NAME / "leader-epoch-checkpoint").write_bytes(b"0\n1\nnonsense\n")


def no_metadata(home):
    (home / "__cluster_metadata-0").rename(home.with_name("elsewhere"))


REFUSED = {
    "an internal topic": ("__consumer_offsets", None),
    "a compacted topic": ("compacted.keys", None),
    "above the high watermark": ("small-segments", above),
    "log starts that cannot be read": ("small-segments", unreadable_rows),
    "a swap that the start makes a segment": ("small-segments", swap),
    "leader epochs that cannot be read": ("small-segments", no_epochs),
    "settings that are not known": ("small-segments", no_metadata),
}


@pytest.mark.usefixtures("other_disk")
@pytest.mark.parametrize("name", REFUSED)
def test_what_must_stay_is_refused_and_nothing_is_removed(run, home, offsets, name):
    topic, change = REFUSED[name]
    if change:
        change(home)
    untouched = fingerprint(home)
    file = offsets((topic, 0, BASE), ("tx.mixed", 0, 300))
    accept = [word for name in (topic, "tx.mixed") for word in ("--accept-loss", f"{name}-0")]
    found = run("trim", "-f", "ndjson", "--offsets-file", file, "--apply", *accept, home)
    assert (found.status, found.of_type("error")[0]["reason"]) == (5, "refused")
    assert fingerprint(home) == untouched


@pytest.mark.usefixtures("other_disk")
def test_a_topic_with_remote_storage_stays(run, home, offsets):
    inner = home / "__cluster_metadata-0"
    image = metadata_image.read(inner)
    setting = metadata_records.config(2, "small-segments", "remote.storage.enable", "true")
    batch = bytearray(metadata_records.batch(image.offset, setting))
    batch[12:16] = image.epoch.to_bytes(4, "big")  # The CRC does not cover the leader epoch.
    with max(inner.glob("*.log")).open("ab") as log:
        log.write(batch)
    file = offsets(("small-segments", 0, BASE))
    found = run("trim", "-f", "ndjson", "--offsets-file", file, home)
    assert (found.status, found.of_type("trimmed")) == (5, [])
    steps = run("space", "-f", "ndjson", "--free", "1T", home).of_type("step")
    assert "small-segments" not in {one["topic"] for one in steps}


def test_without_consent_or_another_disk_nothing_is_removed(run, home, offsets, tmp_path):
    file, untouched = offsets(("small-segments", 0, BASE)), fingerprint(home)
    words = ("trim", "--offsets-file", file, "--apply", home)
    assert run(*words, "--undo-dir", tmp_path / "undo").status == 5
    assert run(*words, *ACCEPT).status == 5
    assert run(*words, *ACCEPT, "--undo-dir", tmp_path / "undo").status == 5
    assert fingerprint(home) == untouched
    assert not trimming.is_same_disk(Path("/proc/undo"), home)


@pytest.mark.usefixtures("other_disk")
def test_the_metadata_log_may_be_in_another_log_dir(run, home, offsets):
    no_metadata(home)
    elsewhere = home.with_name("first")
    elsewhere.mkdir()
    (elsewhere / "meta.properties").write_bytes((home / "meta.properties").read_bytes())
    inner = elsewhere / "__cluster_metadata-0"
    home.with_name("elsewhere").rename(inner)
    file = offsets(("small-segments", 0, BASE))
    assert run("trim", "--offsets-file", file, "--apply", *ACCEPT, home, inner).status == 0
    assert bases(home / NAME) == [BASE]


@pytest.mark.usefixtures("other_disk")
def test_a_locked_log_dir_is_refused(run, home, offsets):
    (home / ".lock").touch()
    file = offsets(("small-segments", 0, BASE))
    with locked_by_a_process(home / ".lock"):
        assert run("trim", "--offsets-file", file, "--apply", *ACCEPT, home).status == 5
    assert len(bases(home / NAME)) > 1


@pytest.mark.usefixtures("other_disk")
def test_an_interrupted_run_is_finished_and_removes_no_more(run, home, tmp_path, monkeypatch):
    def fail(self, on_action=None):
        raise UnwritableError(self.undo_dir, "no space")

    chosen = ("--topic", "small-segments", "--free", "1")
    words = ("trim", *chosen, "--apply", *ACCEPT, "--undo-dir", tmp_path / "undo", home)
    before = bases(home / NAME)
    with monkeypatch.context() as patch:
        patch.setattr(apply.Journal, "carry_out", fail)
        assert run(*words).status == 4
    assert bases(home / NAME) == before
    assert run(*(word for word in words if word != "--apply")).status == 1
    assert run(*words).status == 0
    assert bases(home / NAME) == before[1:]


BAD = {
    "no JSON": "{",
    "no object": "[]",
    "no partitions": '{"partitions": []}',
    "a version": '{"version": 2, "partitions": [{"topic": "t", "partition": 0, "offset": 1}]}',
    "a text": '{"partitions": [{"topic": "t", "partition": 0, "offset": "1"}]}',
    "a negative offset": '{"partitions": [{"topic": "t", "partition": 0, "offset": -2}]}',
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_another_file_of_offsets_is_a_usage_error(run, tmp_path, name):
    (tmp_path / "file").write_text(BAD[name])
    assert run("trim", "--offsets-file", tmp_path / "file", tmp_path).status == 2


def test_a_partition_given_twice_or_not_there_is_named(run, home, offsets):
    row = ("small-segments", 0, 9)
    assert run("trim", "--offsets-file", offsets(row, row), home).status == 2
    found = run("trim", "-f", "ndjson", "--offsets-file", offsets(("absent", 0, 9)), home)
    assert (found.status, found.of_type("error")[0]["reason"]) == (4, "nothing-matched")


@pytest.mark.parametrize("words", [[], ["--free", "1", "--offsets-file", "x"], ["--free", "-1"]])
def test_what_to_remove_is_given_once(run, tmp_path, words):
    assert run("trim", *words, tmp_path).status == 2
