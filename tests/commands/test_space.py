"""The output of `space`, compared with what `du` counts, and for changed copies of real dirs."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from verification import set_offsets

DAY = 86_400_000


def ndjson(run, *arguments, status=0):
    result = run("space", "-f", "ndjson", *arguments)
    assert result.status == status, result.stderr
    return result


def du(path: Path, *options: str) -> int:
    """Return the bytes of the files below a path, as `du` counts them."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    names = "\0".join(map(str, files)) + "\0"
    done = subprocess.run(
        ["du", "--files0-from=-", "--total", "--block-size=1", *options],
        input=names, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout.splitlines()[-1].split()[0])


def test_the_sums_are_those_of_du(run, clean):
    found = ndjson(run, clean)
    (total,) = found.of_type("total")
    assert total["disk_bytes"] == du(clean)
    assert total["bytes"] == du(clean, "--apparent-size")
    topics = found.of_type("topic")
    assert sum(one["disk_bytes"] for one in topics) == total["disk_bytes"]
    assert all(sum(one["by_kind"].values()) == one["disk_bytes"] for one in topics)
    (system,) = found.of_type("file-system")
    assert system["disk_bytes"] == total["disk_bytes"]
    assert system["paths"] == [str(clean)]


def test_a_selection_counts_its_partitions_alone(run, clean):
    (topic,) = ndjson(run, "--topic", "codec-none", clean).of_type("topic")
    homes = sorted(clean.glob("codec-none-*"))
    assert topic["partitions"] == len(homes) == 3
    assert topic["disk_bytes"] == sum(map(du, homes))


def test_the_metadata_log_is_selected_and_its_indexes_are_no_log(run, copy_of):
    home = copy_of("4.3.1/clean")
    folder = home / "__cluster_metadata-0"
    for one in folder.glob("*index"):  # a broker that was killed left them preallocated
        one.write_bytes(bytes(65536))
    whole = {one["topic"]: one for one in ndjson(run, home).of_type("topic")}
    for words in (["--topic", "__cluster_metadata", home], [folder]):
        (topic,) = ndjson(run, *words).of_type("topic")
        assert {**topic, "schema": None} == {**whole["__cluster_metadata"], "schema": None}
        assert topic["by_kind"]["index"] == sum(map(du, folder.glob("*index"))) >= 131072
        assert topic["by_kind"]["metadata-log"] == du(folder) - topic["by_kind"]["index"]


def test_trim_removes_the_bytes_that_the_steps_free(run, clean):
    steps = ndjson(run, "--free", "1T", clean, status=1).of_type("step")
    trimmed = run("trim", "-f", "ndjson", "--free", "1T", clean).of_type("trimmed")
    names = ("kind", "path", "bytes", "segments")
    freed, removed = ([tuple(one[n] for n in names) for one in found] for found in (steps, trimmed))
    assert freed == removed
    assert {one["kind"] for one in trimmed} == {"leftovers", "segments"}


@pytest.mark.parametrize(
    ("more", "delay", "source"),
    [("", "60000", "default"), ("log.segment.delete.delay.ms=3600000", "3600000", "file")],
)
def test_what_waits_and_what_is_never_deleted_has_its_settings(
    run, copy_of, tmp_path, more, delay, source
):
    home = copy_of("4.3.1/clean")
    config = tmp_path / "server.properties"
    config.write_text(f"log.retention.ms=-1\n{more}\n")
    words = ("--broker-config", config, home)
    before = {one["topic"]: one for one in ndjson(run, *words).of_type("topic")}
    assert before["codec-none"]["delete_delay"] is None
    first = home / "codec-none-0" / f"{0:020d}.log"
    first.with_name(f"{5:020d}.log.deleted").write_bytes(b"x")
    now = {one["topic"]: one for one in ndjson(run, *words).of_type("topic")}
    setting = now["codec-none"]["delete_delay"]
    assert (setting["value"], setting["source"]) == (delay, source)
    logs = sum(one.stat().st_size for one in home.glob("codec-none-*/*.log"))
    assert now["codec-none"]["unlimited_bytes"] == logs > 0
    assert ndjson(run, home).of_type("topic")[0]["unlimited_bytes"] == 0
    assert now["__cluster_metadata"]["unlimited_bytes"] == 0


def test_each_kind_has_its_files(run, copy_of):
    home = copy_of("4.3.1/clean")
    before = {one["topic"]: one for one in ndjson(run, home).of_type("topic")}
    small = home / "small-segments-0"
    log = sorted(small.glob("*.log"))[3]
    index = log.with_suffix(".index")
    size, index_size = log.stat().st_blocks * 512, index.stat().st_blocks * 512
    log.rename(log.with_name(log.name + ".deleted"))
    index.rename(index.with_name(index.name + ".cleaned"))
    (home / "big-batches-0").rename(home / f"big-batches-0.{'a' * 32}-stray")
    (home / "odd.timestamps-0").rename(home / f"odd.timestamps-0.{'b' * 32}-future")
    found = ndjson(run, home)
    after = {one["topic"]: one for one in found.of_type("topic")}
    was, now = before["small-segments"]["by_kind"], after["small-segments"]["by_kind"]
    assert now["deleted"] == size
    assert now["temporary"] == index_size
    assert (now["log"], now["index"]) == (was["log"] - size, was["index"] - index_size)
    assert set(after["big-batches"]["by_kind"]) == {"stray"}
    assert set(after["odd.timestamps"]["by_kind"]) == {"future"}
    (total,) = found.of_type("total")
    assert total["stray_bytes"] == after["big-batches"]["disk_bytes"]


def test_a_start_needs_room_for_what_it_recovers_and_the_cleaner_for_the_largest_log(
    run, copy_of, tmp_path
):
    clean = copy_of("4.3.1/clean")
    settings = tmp_path / "server.properties"
    topics = ("--topic", "compacted-tx", "--topic", "small-segments", "--topic", "codec-none")
    closed = sorted(
        sum(log.stat().st_size for log in sorted(home.glob("*.log"))[:-1])
        for topic in topics[1::2]
        for home in clean.glob(f"{topic}-*")
    )
    assert len(list(filter(None, closed))) == 2
    for threads in (1, 2):
        settings.write_text(
            "log.cleanup.policy=compact\nlog.cleaner.dedupe.buffer.size=8388608\n"
            f"log.cleaner.threads={threads}\n"
        )
        found = ndjson(run, *topics, "--broker-config", settings, clean)
        (system,) = found.of_type("file-system")
        assert system["cleaner_bytes"] == sum(closed[-threads:]) > 0
        assert system["recovery_bytes"] == 0 < system["start_bytes"]
    assert found.of_type("total")[0]["cleaner_heap_bytes"] == 8388608 + 524288
    (clean / ".kafka_cleanshutdown").unlink()
    (killed,) = ndjson(run, *topics, clean).of_type("file-system")
    assert killed["recovery_bytes"] > 0
    assert killed["start_bytes"] == system["start_bytes"] + killed["recovery_bytes"]


def test_steps_begin_with_what_costs_no_record(run, clean):
    leftovers = ndjson(run, clean).of_type("total")[0]["leftover_bytes"]
    assert leftovers > 0
    found = ndjson(run, "--free", leftovers, clean)
    assert {one["kind"] for one in found.of_type("step")} == {"leftovers"}
    (total,) = found.of_type("total")
    assert (total["step_bytes"], total["offsets_file"]) == (leftovers, None)


def test_segments_come_in_the_order_of_retention_and_never_the_active_one(run, clean):
    at = "2030-01-01"
    rows = run("retention", "-f", "ndjson", "--segments", "--at", at, clean).of_type("segment")
    found = ndjson(run, "--free", "1T", "--at", at, clean, status=1)
    steps = {one["path"]: one for one in found.of_type("step") if one["kind"] == "segments"}
    closed = [one for one in rows if one["round"] is not None and not one["is_active"]]
    policies = {
        one["path"]: one["settings"][0]["value"]
        for one in run("retention", "-f", "ndjson", "--at", at, clean).of_type("partition")
    }
    counts: dict[str, int] = {}
    for one in closed:
        folder = one["path"].rpartition("/")[0]
        if "delete" in policies[folder]:
            counts[folder] = counts.get(folder, 0) + 1
    assert {path: step["segments"] for path, step in steps.items()} == counts
    for path, step in steps.items():
        gone = [
            one for one in Path(path).iterdir()
            if one.suffix != ".deleted" and one.name[:20].isdigit()
            and int(one.name[:20]) < step["before_offset"]
        ]  # fmt: skip
        assert step["bytes"] == sum(one.stat().st_blocks * 512 for one in gone) > 0
    (total,) = found.of_type("total")
    listed = json.loads(total["offsets_file"])
    assert listed["version"] == 1
    assert {(one["topic"], one["partition"]): one["offset"] for one in listed["partitions"]} == {
        (one["topic"], one["partition"]): one["before_offset"] for one in steps.values()
    }


def test_a_partition_that_may_not_be_listed_is_named_and_the_rest_counted(run, clean, lock_up):
    whole = ndjson(run, clean).of_type("topic")
    lock_up(clean / "small-segments-0")
    result = ndjson(run, clean, status=4)
    assert [one["topic"] for one in result.of_type("topic")] == [
        one["topic"] for one in whole if one["topic"] != "small-segments"
    ]
    assert len(result.of_type("error")) == 1


@pytest.mark.parametrize("words", [["--free", "much"], ["--free", "-1"], ["--at", "never"]])
def test_a_wrong_value_is_a_usage_error(run, clean, words):
    assert run("space", *words, clean).status == 2


@pytest.mark.parametrize("change", ["none", "watermark", "no settings"])
def test_the_bytes_of_the_trim_command_are_those_of_trim(run, copy_of, change):
    home = copy_of("4.3.1/clean")
    if change == "watermark":
        set_offsets(home / "replication-offset-checkpoint", {("small-segments", 0): 100})
    elif change == "no settings":
        shutil.rmtree(home / "__cluster_metadata-0")
    (total,) = ndjson(run, "--free", "1T", home, status=1).of_type("total")
    trim = run("trim", "-f", "ndjson", "--free", "1T", home)
    if change == "no settings":
        assert (trim.status, total["trim_bytes"]) == (5, 0)
        assert total["trim_refused"] in trim.stderr
        return
    assert total["trim_bytes"] == trim.of_type("total")[0]["bytes"] > 0
    lower = change == "watermark"
    assert (total["trim_bytes"] < total["step_bytes"]) == lower
    assert total["trim_keeps"] == ["small-segments-0"] * lower


def test_zeros_behind_the_entries_of_an_index_are_counted(run, copy_of):
    home = copy_of("4.3.1/clean")
    (before,) = ndjson(run, home).of_type("total")
    folder = home / "codec-none-0"
    index = folder / f"{0:020d}.index"
    entries = index.read_bytes()
    index.write_bytes(entries + bytes(10 << 20))  # a copy without holes
    with (folder / f"{0:020d}.timeindex").open("r+b") as holes:
        holes.truncate(10 << 20)
    (after,) = ndjson(run, home).of_type("total")
    assert (before["preallocated_bytes"], before["trim_bytes"]) == (0, None)
    # The first block of the index has its entries.
    assert after["preallocated_bytes"] == (10 << 20) - 4096
    assert "are preallocated index" in run("space", home).stderr
    assert "are preallocated index" not in run("space", folder.parent / "tx.mixed-0").stderr
