"""The commands behind a forecast: each is printed, is in `next`, and does what it is there for."""

import shlex
import shutil

from damage import cut as cut_to
from recovering import POINTS, logs
from verification import set_offsets

from logtool.startup import forecast


def commands(run, *words):
    """Return the commands of a forecast; every one of those that mend is in the text too."""
    found = run("plan", "-f", "ndjson", *words).of_type("summary")[0]["next"]
    shown = run("plan", *words).stderr
    mends = [one for one in found if not one.startswith(("logtool verify", "logtool salvage"))]
    assert [one for one in mends if f": {one}\n" not in shown] == []
    return mends


def do(run, command, **replaced):
    """Run a printed command; the values of `replaced` take the place of words in it."""
    tool, *words = shlex.split(command)
    assert tool == "logtool"
    return run(*(replaced.get(word, word) for word in words))


def shorten(log, size=30):
    log.write_bytes(cut_to(log.read_bytes(), log.stat().st_size - size))


def last_log(home, name):
    return max((home / name).glob("*.log"))


def test_nothing_lost_means_no_command(run, killed):
    assert commands(run, killed) == []


def test_a_loss_is_filled_from_a_copy_or_accepted(run, killed, tmp_path):
    copy = shutil.copytree(killed, tmp_path / "copy")
    log = last_log(killed, "codec-none-0")
    whole = log.read_bytes()
    shorten(log)
    fill, accept = commands(run, killed)
    assert fill == f"logtool recover --fill-from COPY {killed}/codec-none-0"
    assert accept == f"logtool recover --apply --accept-loss codec-none-0 {killed}"
    filled = do(run, f"{fill} --apply", COPY=str(copy))
    assert (filled.status, log.read_bytes() == whole) == (0, True)
    shorten(log)
    assert do(run, accept).status == 0
    assert not [one for one in commands(run, killed) if "recover" in one]


def test_losses_of_several_partitions_are_one_command(run, killed):
    for name in ("codec-none-0", "small-segments-0"):
        shorten(last_log(killed, name))
    ends = {("codec-none", 0): 360, ("small-segments", 0): 2628}
    set_offsets(killed / "replication-offset-checkpoint", ends)
    fill, accept = commands(run, killed)
    dirs = f"{killed}/codec-none-0 {killed}/small-segments-0"
    assert fill == f"logtool recover --fill-from COPY {dirs}"
    options = "--accept-loss codec-none-0 --accept-loss small-segments-0"
    assert accept == f"logtool recover --apply {options} {killed}"
    _, chosen = commands(run, "--topic", "small*", killed)
    assert (
        chosen
        == f"logtool recover --apply --accept-loss small-segments-0 --topic 'small*' {killed}"
    )
    assert do(run, accept).status == 0


def test_a_copy_at_hand_needs_no_template(run, killed, tmp_path):
    copy = shutil.copytree(killed / "codec-none-0", tmp_path / "b" / "codec-none-0")
    shorten(last_log(killed, "codec-none-0"))
    found = run("plan", "-f", "ndjson", killed / "codec-none-0", copy).of_type("summary")[0]
    repair, *more = (one for one in found["next"] if "recover" in one)
    assert repair.startswith("logtool recover --apply --fill-from ")
    assert [one for one in more if "COPY" in one] == []


def test_checkpoints_that_stop_the_broker_are_rebuilt(run, killed):
    (killed / POINTS).write_text("x")
    epochs = killed / "codec-none-0" / "leader-epoch-checkpoint"
    epochs.write_text("x")
    (rebuild,) = commands(run, killed)
    assert rebuild == f"logtool checkpoint rebuild {killed}"
    found = do(run, f"{rebuild} --apply")
    assert found.status == 0
    assert commands(run, killed) == []


def test_a_log_that_no_broker_loads_is_recovered(run, killed):
    log = logs(killed)[-1]
    odd = log.with_name(f"{8672:020d}.log")
    odd.write_bytes(log.read_bytes())
    recover, *_ = commands(run, killed)
    assert recover == f"logtool recover {log.parent}"
    (one,) = do(run, f"{recover} -f ndjson").of_type("partition")
    assert one["outcome"] == "loads"


def test_a_long_recovery_can_be_done_before_the_start(run, killed, monkeypatch):
    command = f"logtool recover --mark-clean {killed}"
    monkeypatch.setattr(forecast, "LONG", 1)
    assert commands(run, killed) == [command]
    # Only a whole log dir can be marked as clean.
    assert commands(run, killed, "--topic", "codec-none") == []
    assert do(run, f"{command} --apply").status == 0
    assert commands(run, killed) == []
