"""--flavour in every command that has a directory of Kafka or Redpanda to judge."""

import pytest
import redpanda_files as rp

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
    assert "holds nothing that a Kafka broker writes" in result.stderr


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
    assert "holds nothing that Redpanda writes" in result.stderr


@pytest.mark.parametrize("name", ["0-1-v1.log", "0-1-v1.base_index"])
def test_a_file_that_is_forced_to_be_kafkas_is_named_as_one_that_is_not(run, folder, name):
    result = run("rebuild-index", "--flavour", "kafka", folder / name)
    assert result.status == 4
    told = "is a segment or an index of Redpanda by its name, which --flavour kafka leaves out"
    assert result.stderr == f"logtool: {folder / name}: {told}\n"
