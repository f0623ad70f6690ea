"""--flavour in every command that has a directory of Kafka or Redpanda to judge."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import redpanda_files as rp
from verification import small_log_dir

from logtool.formats.redpanda.names import DATA_DIR_MARKER as MARKER

COMMANDS = {
    "verify": [],
    "stat": [],
    "gaps": [],
    "txns": [],
    "dump": [],
    "dump-index": [],
    "lookup": ["--offset", "3"],
    "diff": ["OTHER"],
    "plan": [],
    "recover": [],
    "rebuild-index": [],
    "salvage": ["--output", "saved"],
    "groups": [],
    "watermark": [],
    "sanity": [],
    "doctor": [],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log()})
    (made / "0-1-v1.base_index").write_bytes(rp.index(0, 18, (0, 0)))
    rp.data_dir(tmp_path / "b", {"0-1-v1.log": rp.log()})
    (tmp_path / "OTHER").symlink_to(tmp_path / "b" / "data")
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.parametrize("name", COMMANDS)
def test_a_data_directory_that_is_forced_to_be_what_it_is_is_read_as_without(run, folder, name):
    data = folder.parents[2]
    result = run(name, "--flavour", "redpanda", *COMMANDS[name], data)
    # There is no topic __consumer_offsets, which groups has to say.
    assert result.status in ((4,) if name == "groups" else (0, 1)), result.stderr
    assert result.stdout.startswith("flavour: redpanda")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("dump", "dump-index")])
def test_a_data_directory_that_is_forced_to_be_kafkas_holds_nothing_of_it(run, folder, name):
    result = run(name, "--flavour", "kafka", *COMMANDS[name], folder.parents[2])
    assert result.status == 4
    assert str(folder.parents[2]) in result.stderr
    assert "Kafka" in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("level", ["log dir", "partition"])
def test_a_log_dir_of_kafka_that_is_forced_to_be_redpandas_is_not_taken_for_empty(
    run, partition, tmp_path, monkeypatch, name, level
):
    monkeypatch.chdir(tmp_path)
    path = partition if level == "partition" else partition.parent
    words = [str(path) if word == "OTHER" else word for word in COMMANDS[name]]
    result = run(name, "--flavour", "redpanda", *words, path)
    assert result.status == 4
    assert str(path) in result.stderr
    assert "Redpanda" in result.stderr


@pytest.mark.parametrize("name", ["0-1-v1.log", "0-1-v1.base_index"])
def test_a_file_that_is_forced_to_be_kafkas_is_named_as_one_that_is_not(run, folder, name):
    result = run("rebuild-index", "--flavour", "kafka", folder / name)
    assert result.status == 4
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"logtool: {folder / name}: ")
    assert "--flavour kafka" in line


@pytest.fixture
def small_copy(scenario, tmp_path):
    """Return a function that copies some partitions of a log dir of a real broker."""
    return lambda name, *some: Path(small_log_dir(scenario(name), tmp_path / "home", *some))


def steady(result) -> list[dict[str, Any]]:
    """Return the objects of an answer without what differs from run to run, or names the marker."""
    objects = [one for one in result.objects if MARKER not in json.dumps(one)]
    for one in objects:
        for name in ("schema", "elapsed_s", "findings", "codes", "age_s"):
            one.pop(name, None)
    # doctor counts the marker among its findings, and the disk has a file more.
    return [one for one in objects if one["type"] not in ("damage", "disk")]


NDJSON = {name: [*words, "-f", "ndjson"] for name, words in COMMANDS.items()}
"""Commands whose answers can be compared object by object; `sanity` measures times."""


@pytest.mark.parametrize("name", [name for name in NDJSON if name not in ("salvage", "sanity")])
def test_a_log_dir_that_looks_like_redpandas_is_kafkas_where_that_is_given(
    run, small_copy, monkeypatch, tmp_path, name
):
    """The marker of a data directory lies in a log dir of Kafka: names alone say Redpanda."""
    home = small_copy("4.3.1/clean", "codec-none-0", "small-segments-0", "__consumer_offsets-0")
    monkeypatch.chdir(tmp_path)
    path = home / "codec-none-0" if name in ("lookup", "gaps", "verify") else home
    words = [str(path) if word == "OTHER" else word for word in NDJSON[name]]
    before = run(name, *words, path)
    (home / MARKER).touch()
    forced = run(name, "--flavour", "kafka", *words, path)
    assert forced.status == before.status
    assert steady(forced) == steady(before)


@pytest.mark.parametrize("name", ["gaps", "diff", "groups", "stat", "verify", "txns"])
def test_a_partition_of_kafka_next_to_a_directory_of_redpanda_keeps_its_flavour(
    run, small_copy, monkeypatch, tmp_path, name
):
    home = small_copy("4.3.1/clean", "codec-none-0", "__consumer_offsets-0")
    monkeypatch.chdir(tmp_path)
    path = home / ("__consumer_offsets-0" if name == "groups" else "codec-none-0")
    alone = tmp_path / "alone"
    alone.mkdir()
    path = path.rename(alone / path.name)
    words = [str(path) if word == "OTHER" else word for word in NDJSON[name]]
    before = run(name, *words, path)
    rp.data_dir(tmp_path / "other", {"0-1-v1.log": rp.log()})
    (tmp_path / "other" / "data" / "kafka").rename(alone / "kafka")
    after = run(name, *words, path)
    assert after.status == before.status
    assert steady(after) == steady(before)


@pytest.mark.parametrize("name", ["gaps", "diff", "stat", "verify"])
def test_a_partition_of_redpanda_in_a_folder_of_any_name_keeps_its_flavour(
    run, folder, tmp_path, name
):
    copy = tmp_path / "copies" / "copy"
    copy.parent.mkdir()
    shutil.copytree(folder, copy)
    words = [str(folder) if word == "OTHER" else word for word in NDJSON[name]]
    result = run(name, *words, copy)
    assert result.objects[0]["flavour"] == "redpanda"
    (counted,) = [one["records"] for one in result.of_type("summary")]
    assert counted > 0


def test_lookup_in_a_log_dir_that_is_given_as_kafkas_knows_its_log_start(run, small_copy):
    home = small_copy("4.3.1/clean", "deleted-records.mid-0")
    (home / MARKER).touch()
    words = ("--flavour", "kafka", "--offset", "3", "-f", "ndjson")
    result = run("lookup", *words, home / "deleted-records.mid-0")
    assert result.status == 1
    assert result.objects[0]["log_start_offset"] == 77
