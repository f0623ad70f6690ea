"""Files and directories that the user of the broker cannot read or write."""

import os
from pathlib import Path

import pytest
from verification import small_log_dir

NAME = "small-segments-0"
USER = 65534 if os.geteuid() == 0 else os.geteuid()
"""The owner of the log dirs: root may read and write everything."""
NOW, LATER, LINK = "data-dir/no-access", "data-dir/no-access-later", "data-dir/broken-link"


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir with a metadata log that belongs to `USER`."""
    made = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", NAME, "__cluster_metadata-0")
    for path in (made, *made.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        if os.geteuid() == 0:
            os.chown(path, USER, USER)
    return made


def findings(run, home, *, command="verify"):
    """Return code, path below the log dir and topic of the findings about access."""
    found = run(command, "-f", "ndjson", home).of_type("finding")
    return [
        (one["code"], str(Path(one["path"]).relative_to(home)), one["topic"])
        for one in found
        if one["code"] in (NOW, LATER, LINK)
    ]


def sealed(suffix):
    return lambda home: sorted((home / NAME).glob(f"*{suffix}"))[0]


def active(suffix):
    return lambda home: sorted((home / NAME).glob(f"*{suffix}"))[-1]


def at(name):
    return lambda home: home / name


CASES = {
    "a log": (sealed(".log"), 0o444, NOW, "small-segments"),
    "an unreadable log": (sealed(".log"), 0o044, NOW, "small-segments"),
    "an index of the active segment": (active(".index"), 0o444, NOW, "small-segments"),
    "an index of another segment": (sealed(".index"), 0o444, LATER, "small-segments"),
    "a time index of another segment": (sealed(".timeindex"), 0o444, LATER, "small-segments"),
    "an index that cannot be read": (sealed(".index"), 0o044, NOW, "small-segments"),
    "a snapshot": (sealed(".snapshot"), 0o000, NOW, "small-segments"),
    "partition.metadata": (at(f"{NAME}/partition.metadata"), 0o000, NOW, "small-segments"),
    "leader epochs": (at(f"{NAME}/leader-epoch-checkpoint"), 0o000, NOW, "small-segments"),
    "quorum-state": (
        at("__cluster_metadata-0/quorum-state"), 0o000, NOW, "__cluster_metadata"
    ),
    "meta.properties": (at("meta.properties"), 0o000, NOW, None),
    "a checkpoint": (at("recovery-point-offset-checkpoint"), 0o000, NOW, None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_file_without_access_is_an_error(run, home, name):
    chosen, mode, code, topic = CASES[name]
    path = chosen(home)
    path.chmod(mode)
    assert findings(run, home) == [(code, str(path.relative_to(home)), topic)]


@pytest.mark.parametrize("mode", [0o444, 0o644])
def test_what_a_broker_replaces_as_a_whole_may_be_read_only(run, home, mode):
    for path in (*home.glob("*checkpoint"), *home.glob("*-0/leader-epoch-checkpoint")):
        path.chmod(mode)
    assert findings(run, home) == []


def test_files_of_one_directory_are_one_finding(run, home):
    logs = sorted((home / NAME).glob("*.log"))
    for path in logs:
        path.chmod(0o444)
    (found,) = (
        one for one in run("verify", "-f", "ndjson", home).of_type("finding") if one["code"] == NOW
    )
    assert found["path"] == str(logs[0])
    assert str(len(logs) - 1) in found["message"]
    assert found["next"].startswith(f"chown -h -R {USER}:")
    assert found["severity"] == "error"
    assert found["broker"] == "refuses-to-start"


def test_a_directory_that_cannot_be_written_is_an_error(run, home):
    (home / NAME).chmod(0o555)
    try:
        assert findings(run, home) == [(NOW, NAME, "small-segments")]
        plan = run("plan", "-f", "ndjson", home)
        refused = [one for one in plan.of_type("action") if one["action"] == "refuse"]
        assert [one["path"] for one in refused] == [str(home)]
        assert plan.status == 1
        doctor = run("doctor", "-f", "ndjson", home)
        assert doctor.of_type("next")[0]["command"].startswith("chown -h -R ")
    finally:
        (home / NAME).chmod(0o755)


def test_a_checkpoint_that_was_not_finished_stops_the_next_one(run, home):
    path = home / "replication-offset-checkpoint.tmp"
    path.touch()
    path.chmod(0o444)
    if os.geteuid() == 0:
        os.chown(path, USER, USER)
    assert findings(run, home) == [(LATER, path.name, None)]
    actions = run("plan", "-f", "ndjson", home).of_type("action")
    assert [one["path"] for one in actions if one["action"] == "ignore"] == [str(home)]


def test_a_group_that_may_write_has_access(run, home):
    path = sealed(".log")(home)
    path.chmod(0o464)
    expected = [(NOW, str(path.relative_to(home)), "small-segments")]
    assert findings(run, home) == expected  # the rights of the owner count, not those of its group
    if os.geteuid() == 0:
        os.chown(path, 0, USER)
        assert findings(run, home) == []
        os.chown(path, 0, 0)
        assert findings(run, home) == expected


def test_a_link_to_a_partition_that_is_gone_is_not_a_lost_partition(run, home):
    (home / NAME).rename(home.parent / NAME)
    (home / NAME).symlink_to(home.parent / "gone" / NAME)
    found = run("verify", "-f", "ndjson", home).of_type("finding")
    codes = {one["code"] for one in found if one["topic"] == "small-segments"}
    assert LINK in codes
    assert "partition/lost" not in codes
    (home / NAME).unlink()
    (home / NAME).symlink_to(home.parent / NAME)
    assert findings(run, home) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes owners")
def test_the_user_is_the_owner_of_most_partition_dirs_where_the_log_dir_is_of_root(run, home):
    for path in (home, *home.rglob("*")):
        os.chown(path, 0, 0)
    sealed(".log")(home).chmod(0o444)
    assert findings(run, home) == []
    for path in (home / NAME, *(home / NAME).iterdir()):
        os.chown(path, USER, USER)
    os.chown(home / "__cluster_metadata-0", USER, USER)
    # The log dir is a mount point of root: most of its partitions belong to the user.
    assert (NOW, ".", None) in findings(run, home)


def test_cluster_and_recover_know_of_it_too(run, home):
    sealed(".log")(home).chmod(0o444)
    steps = run("cluster", "-f", "ndjson", home).of_type("step")
    assert any("chown -h -R " in one["text"] for one in steps)
    for more in ([], ["--apply"]):
        result = run("recover", "-f", "ndjson", *more, home)
        assert result.status == 1
        refused = [one for one in result.of_type("action") if one["action"] == "refuse"]
        assert [one["path"] for one in refused] == [str(home)]


def test_the_repair_of_a_linked_partition_names_its_real_place(run, home):
    real = home.parent / "elsewhere" / NAME
    real.parent.mkdir()
    (home / NAME).rename(real)
    (home / NAME).symlink_to(real)
    sorted(real.glob("*.log"))[0].chmod(0o444)
    found = run("verify", "-f", "ndjson", home).of_type("finding")
    (one,) = (one for one in found if one["code"] == NOW)
    assert str(real) in one["next"]
