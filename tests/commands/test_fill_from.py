"""``logtool recover --fill-from``: damage gives way to the batches of another copy."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from answers import assert_valid
from changes import everything
from damage import damage_file, flip, overwrite, remove_file
from salvage_campaign import batches
from verification import set_offsets, small_log_dir

LOG = f"{0:020d}.log"
NAME = "codec-none-0"
POINTS, WATERMARKS = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir of a killed broker with three partitions, none of them damaged."""
    names = (NAME, "tx.mixed-0", "small-segments-0")
    return small_log_dir(scenario("4.3.1/killed"), tmp_path / "home", *names)


def logs(home):
    return {str(path.relative_to(home)): path.read_bytes() for path in home.glob("*/*.log")}


def hit(home, name=NAME, number=9):
    """Let the CRC of one batch fail; returns its position."""
    log = home / name / LOG
    at = batches(log)[number][0]
    damage_file(log, flip, at + 70)
    return at


def actions(result, *words):
    assert_valid("plan", result.objects)
    return [obj for obj in result.of_type("action") if obj["action"] in words]


def unfilled(run, home, *copies):
    """Return why nothing is taken, and check that nothing was lost without consent."""
    fills = [word for copy in copies for word in ("--fill-from", copy)]
    before = everything(home)
    result = run("recover", "--apply", "-f", "ndjson", "--topic", "codec-none", *fills, home)
    assert result.status in (1, 5)
    if result.status == 5:
        assert everything(home) == before
    (action,) = actions(result, "unfilled")
    return action["reason"]


def test_damage_is_filled_nothing_is_cut_and_undo_puts_everything_back(run, home, copy):
    at = hit(home)
    remove_file(home / "small-segments-0" / f"{42:020d}.log")
    for path in (home / "small-segments-0").glob(f"{114:020d}.*"):
        remove_file(path)
    torn = home / "tx.mixed-0" / f"{1992:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-40])
    before, theirs = everything(home), everything(copy)
    planned = run("recover", "--fill-from", copy, home)
    result = run("recover", "--apply", "-f", "ndjson", "--fill-from", copy, home)
    assert everything(home) != before
    assert planned.status == 1
    assert f"fill      {LOG} @{at}" in planned.stdout
    assert result.status == 0
    assert {obj["target"] for obj in actions(result, "fill")} == {
        str(copy / name) for name in (NAME, "small-segments-0", "tx.mixed-0")
    }
    assert all(obj["first_offset"] <= obj["last_offset"] for obj in actions(result, "fill"))
    assert not actions(result, "truncate", "unfilled", "lacks")
    # A segment that the fill makes counts.
    counts = [(one["recovered_segments"], one["segments"]) for one in result.of_type("partition")]
    assert all(recovered <= segments for recovered, segments in counts)
    assert logs(home) == logs(copy)
    assert everything(copy) == theirs
    again = run("recover", "--fill-from", copy, "-f", "ndjson", home)
    assert (again.status, {one["action"] for one in again.of_type("action")}) == (0, {"recover"})
    assert not any(one["severity"] == "error" for one in findings(run, home))
    (undo_dir,) = home.parent.glob("home.logtool-undo-*")
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(home) == before


def findings(run, home):
    return run("verify", "-f", "ndjson", home).of_type("finding")


def test_damage_that_no_start_reads_is_filled_too_after_an_orderly_stop(
    run, scenario, tmp_path, copy
):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", "small-segments-0")
    theirs = shutil.copytree(home, tmp_path / "theirs")
    hit(home, "small-segments-0", 2)
    assert run("recover", "--apply", "--fill-from", theirs, home).status == 0
    assert logs(home) == logs(theirs)
    assert (home / ".kafka_cleanshutdown").exists()


def test_two_copies_that_are_damaged_at_other_places_fill_what_the_other_lacks(
    run, home, copy, tmp_path
):
    second = shutil.copytree(copy, tmp_path / "second")
    before = logs(home)
    for number in (9, 3):
        hit(home, number=number)
    hit(copy, number=9)
    hit(second, number=3)
    result = run("recover", "--apply", "--fill-from", copy, "--fill-from", second, home)
    assert result.status == 0
    assert logs(home) == before


def test_a_copy_that_is_damaged_at_the_same_place_fills_nothing_and_the_loss_needs_consent(
    run, home, copy
):
    set_offsets(home / POINTS, {("codec-none", 0): 0})
    hit(home)
    hit(copy)
    assert unfilled(run, home, copy)
    accept = ("--accept-loss", NAME, "--topic", "codec-none")
    result = run("recover", "--apply", "--fill-from", copy, *accept, home)
    assert result.status == 1
    assert "1 damaged range " in result.stderr
    assert len(batches(home / NAME / LOG)) == 9


def test_a_copy_with_a_part_of_what_is_damaged_does_not_pass_for_the_whole(run, home, copy):
    at, end = (batches(home / NAME / LOG)[number][0] for number in (9, 12))
    damage_file(home / NAME / LOG, overwrite, at, bytes(end - at))
    hit(copy, number=10)
    assert "damaged" in unfilled(run, home, copy)
    sound = [data for number, (_, data) in enumerate(batches(copy / NAME / LOG)) if number != 9]
    (copy / NAME / LOG).write_bytes(b"".join(sound))
    assert "lacks offsets" in unfilled(run, home, copy)


def without(folder, *numbers):
    """Take some batches out of a log, as the log cleaner does."""
    sound = batches(folder / LOG)
    kept = [data for number, (_, data) in enumerate(sound) if number not in numbers]
    (folder / LOG).write_bytes(b"".join(kept))


def test_a_compacted_log_is_filled_from_a_copy_that_was_cleaned_alike_and_from_no_other(
    run, home, copy, tmp_path
):
    other = shutil.copytree(copy, tmp_path / "other")
    for folder in (home / NAME, other / NAME):
        without(folder, 4)
    without(copy / NAME, 4, 9)
    log = home / NAME / LOG
    at, end = (batches(log)[number][0] for number in (8, 10))
    damage_file(log, overwrite, at, bytes(end - at))
    assert "cleaned" in unfilled(run, home, copy)
    log.write_bytes(log.read_bytes()[:at] + log.read_bytes()[end - 7 :])
    assert run("recover", "--apply", "--fill-from", other, home).status == 0
    assert log.read_bytes() == (other / NAME / LOG).read_bytes()


def test_a_directory_that_waits_for_its_deletion_is_not_filled(run, home, copy):
    hit(home)
    gone = home / f"{NAME}.{'0' * 32}-delete"
    (home / NAME).rename(gone)
    before = logs(home)
    assert run("recover", "--apply", "--fill-from", copy, home).status in (0, 1)
    assert logs(home) == before


def test_a_segment_whose_name_a_directory_has_is_not_filled(run, home, copy):
    log = sorted((home / "small-segments-0").glob("*.log"))[2]
    log.unlink()
    log.mkdir()
    words = ("--apply", "-f", "ndjson", "--topic", "small-segments", "--fill-from", copy, home)
    result = run("recover", *words)
    assert result.status == 1
    (one,) = result.of_type("partition")
    assert one["outcome"] == "offline"
    assert log.is_dir()


def test_what_can_be_filled_is_although_the_rest_is_cut(run, home, copy):
    set_offsets(home / POINTS, {("codec-none", 0): 0})
    sound = batches(home / NAME / LOG)
    for number in (9, 3):
        hit(home, number=number)
    hit(copy)
    words = ("--topic", "codec-none", "--fill-from", copy, home)
    assert run("recover", "--apply", *words).status == 5
    assert "1 partition" in run("recover", "--apply", "--accept-loss", NAME, *words).stderr
    assert batches(home / NAME / LOG) == sound[:9]


def other_topic(copy):
    path = copy / NAME / "partition.metadata"
    head, _, topic_id = path.read_bytes().rpartition(b" ")
    path.write_bytes(head + b" AAAA" + topic_id[4:])


def other_cluster(copy):
    path = copy / "meta.properties"
    lines = [line for line in path.read_bytes().splitlines() if b"cluster.id" not in line]
    path.write_bytes(b"\n".join([*lines, b"cluster.id=another", b""]))


def later_start(copy):
    data = (copy / NAME / LOG).read_bytes()
    at = batches(copy / NAME / LOG)[20][0]
    (copy / NAME / LOG).unlink()
    (copy / NAME / f"{int.from_bytes(data[at : at + 8], 'big'):020d}.log").write_bytes(data[at:])


def cleaned(copy):
    without(copy / NAME, 4, 8, 15)


def cleaned_inside(copy):
    without(copy / NAME, 4, 9)


def is_itself(copy):
    shutil.rmtree(copy)
    copy.symlink_to(copy.parent / "home")


def has_none(copy):
    shutil.rmtree(copy / NAME)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (other_topic, "topic id"),
        (other_cluster, "cluster: another"),
        (later_start, "begins at"),
        (cleaned, "differ"),
        (cleaned_inside, "lacks offsets"),
        (is_itself, "itself"),
        (has_none, NAME),
    ],
    ids=lambda one: getattr(one, "__name__", "reason"),
)
def test_what_is_no_copy_of_the_log_is_refused_with_the_reason(run, home, copy, change, why):
    at, end = (batches(home / NAME / LOG)[number][0] for number in (9, 11))
    damage_file(home / NAME / LOG, overwrite, at, b"\xee" * (end - at))
    change(copy)
    assert why in unfilled(run, home, copy)


def tear(home, *, epoch=None, watermark=0):
    """Cut the last batch in two, above the high watermark; let a copy have another epoch there."""
    for name in (POINTS, WATERMARKS):
        set_offsets(home / name, {("codec-none", 0): watermark})
    for path in (home / NAME).glob("*.snapshot"):
        path.unlink()
    log = home / NAME / LOG
    at = batches(log)[-1][0]
    if epoch is None:
        log.write_bytes(log.read_bytes()[: at + 100])
    else:
        damage_file(log, overwrite, at + 12, epoch.to_bytes(4, "big"))
    return at


def test_half_a_batch_at_the_end_is_made_whole_where_its_bytes_are_those_of_the_copy(
    run, home, copy
):
    tear(home)
    set_offsets(copy / WATERMARKS, {("codec-none", 0): 0})
    words = ("--topic", "codec-none", "--fill-from", copy, home)
    assert run("recover", "--apply", *words).status == 0
    assert (home / NAME / LOG).read_bytes() == (copy / NAME / LOG).read_bytes()


def test_what_a_leader_may_have_cut_is_not_taken_from_a_copy_of_another_epoch(run, home, copy):
    at = tear(home)
    tear(copy, epoch=7)
    words = ("-f", "ndjson", "--topic", "codec-none", "--fill-from", copy, home)
    result = run("recover", "--apply", *words)
    (action,) = actions(result, "unfilled")
    assert "leader epoch" in action["reason"]
    assert (home / NAME / LOG).stat().st_size == at


def test_behind_the_high_watermarks_zeros_are_not_filled_though_the_epoch_is_the_same(
    run, home, copy
):
    at = tear(home)
    set_offsets(copy / WATERMARKS, {("codec-none", 0): 0})
    (home / NAME / f"{0:020d}.index").unlink()
    damage_file(home / NAME / LOG, overwrite, at, bytes(100))
    result = run("recover", "-f", "ndjson", "--topic", "codec-none", "--fill-from", copy, home)
    assert len(actions(result, "unfilled")) == 1
    set_offsets(copy / WATERMARKS, {("codec-none", 0): 10**6})
    result = run("recover", "-f", "ndjson", "--topic", "codec-none", "--fill-from", copy, home)
    assert len(actions(result, "fill")) == 1


def test_a_copy_that_is_not_there_is_said_and_the_others_are_taken(run, home, copy):
    hit(home)
    before = logs(copy)
    gone = Path(f"{copy}-gone")
    result = run("recover", "--apply", "--fill-from", gone, "--fill-from", copy, home)
    assert result.status == 4
    assert f"{gone}: No such file" in result.stderr
    assert logs(home) == before


@pytest.mark.parametrize(
    "words", [("--strategy", "supplement"), ("--truncate-to", f"{NAME}=20")], ids=" ".join
)
def test_options_that_do_not_go_with_it_are_refused(run, home, copy, words):
    result = run("recover", "--fill-from", copy, *words, home)
    assert result.status == 2
    assert "--fill-from" in result.stderr


@pytest.fixture
def odd(home, tmp_path):
    """Return log dirs of two brokers whose names a shell must not see bare; one is damaged."""
    mine, theirs = tmp_path / "broker 1's", tmp_path / "$(broker 2)"
    home.rename(mine)
    shutil.copytree(mine, theirs)
    hit(mine)
    return mine, theirs


def followed(run, command, mine, theirs):
    """Run what a command proposed, as a shell reads it."""
    words = shlex.split(command)
    assert words[:3] == ["logtool", "recover", "--apply"]
    assert run(*words[1:]).status == 0
    assert logs(mine) == logs(theirs)


def test_verify_proposes_first_to_repair_the_log_from_a_copy_among_its_paths(run, odd):
    result = run("verify", "-f", "ndjson", *odd)
    (finding,) = (one for one in result.of_type("finding") if one["code"] == "batch/crc")
    (summary,) = result.of_type("summary")
    assert summary["next"][0] == finding["next"]
    assert any(one.startswith("logtool dump") for one in summary["next"])
    assert f"next: {finding['next']}" in run("verify", *odd).stdout
    assert run("verify", "-f", "ndjson", odd[0]).of_type("finding")[0]["next"] != finding["next"]
    followed(run, finding["next"], *odd)


def test_plan_proposes_to_repair_what_a_start_would_cut(run, odd):
    set_offsets(odd[0] / POINTS, {("codec-none", 0): 0})
    result = run("plan", "-f", "ndjson", *odd)
    fixes = [one["fix"] for one in result.of_type("partition") if one["fix"]]
    assert result.of_type("summary")[0]["next"][0] == fixes[0]
    assert f"  next      {fixes[0]}" in run("plan", *odd).stdout
    assert not any(one["fix"] for one in run("plan", "-f", "ndjson", odd[0]).of_type("partition"))
    followed(run, fixes[0], *odd)


def test_diff_proposes_to_repair_the_copy_that_is_damaged_or_lacks_a_segment(run, odd):
    mine, theirs = odd
    remove_file(mine / "small-segments-0" / f"{42:020d}.log")
    result = run("diff", "-f", "ndjson", f"1={mine}", f"2={theirs}")
    fixes = [fix for one in result.of_type("partition") for fix in one["fixes"]]
    assert len(fixes) == 2
    shown = run("diff", f"1={mine}", f"2={theirs}").stdout
    assert all(f"  next: {fix}" in shown for fix in fixes)
    assert run(*shlex.split(fixes[0])[1:]).status == 0
    followed(run, fixes[1], mine, theirs)


def offsets(batch):
    """Return the first and the last offset of a batch."""
    first, delta = int.from_bytes(batch[:8]), int.from_bytes(batch[23:27])
    return first, first + delta


def test_batches_behind_the_end_that_are_taken_too_are_listed(run, home, copy):
    log = home / NAME / LOG
    known = [(at, *offsets(data)) for at, data in batches(log)]
    end = known[-3][0]
    damage_file(log, lambda data: data[:end])
    hit(home, number=3)
    whole = (copy / NAME / LOG).read_bytes()
    set_offsets(copy / WATERMARKS, {("codec-none", 0): known[-1][2] + 1})
    words = ("-f", "ndjson", "--topic", "codec-none", "--fill-from", copy, home)
    planned, done = run("recover", *words), run("recover", "--apply", *words)
    fills = [(one["first_offset"], one["last_offset"]) for one in actions(planned, "fill")]
    assert fills == [known[3][1:3], (known[-3][1], known[-1][2])]
    assert actions(done, "fill") == actions(planned, "fill")
    assert log.read_bytes() == whole


def test_a_partition_that_only_the_backup_has_is_absent_with_the_command_that_copies_it(
    run, home, copy, tmp_path
):
    shutil.copytree(copy / NAME, copy / "later-0")
    shutil.rmtree(home / NAME)
    for words in (), ("--apply",):
        result = run("recover", *words, "-f", "ndjson", "--fill-from", copy, home)
        (found,) = actions(result, "absent")
        assert (result.status, found["path"]) == (1, str(home / NAME))
        assert found["target"] == str(copy / NAME)
    assert (
        actions(run("recover", "-f", "ndjson", "--fill-from", copy, home / "tx.mixed-0"), "absent")
        == []
    )
    assert run("recover", "--apply", "--fill-from", copy, "--topic", "tx.mixed", home).status == 0
    command = found["reason"].rpartition(": ")[2]
    subprocess.run(shlex.split(command), check=True)
    assert run("recover", "--apply", "--fill-from", copy, home).status == 0
