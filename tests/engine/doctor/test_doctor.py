"""Doctor judges nothing by itself: it is held against verify and plan, and against the clock."""

import shutil

import pytest
from conftest import SCENARIOS
from damage import append_to_file, cut, damage_file, flip, overwrite, remove_file
from examining import examined, of, the
from verification import log_dirs, logs, set_offsets, small_log_dir

from logtool.actions import Action
from logtool.doctor import diagnosis, examination
from logtool.doctor.answers import (
    FULL,
    NEARLY_FULL,
    BrokerState,
    DamageAnswer,
    DiskAnswer,
    Gravity,
    HighWatermark,
    Limit,
    Next,
    NextStart,
    OldFormats,
    VersionsAnswer,
)
from logtool.doctor.examination import Examination
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.log.kafka import KAFKA
from logtool.node.host_limits import BROKER_FILES, BROKER_MAPS
from logtool.node.options import StartOptions
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.summary import Summary
from logtool.running.workers import Pace
from logtool.startup.forecast import Forecast
from logtool.startup.log_dir_start import LogDirStart
from logtool.startup.partition import PartitionForecast
from logtool.verify import Level, Verification

PARTITIONS = ("small-segments-0", "codec-none-0", "index.dense-0", "tx.mixed-0")
WATERMARK = "replication-offset-checkpoint"


def grave(items):
    """Return the warnings of plan, on the log dirs and of the partitions."""
    for item in items:
        if isinstance(item, Action | PartitionForecast):
            actions = (item,) if isinstance(item, Action) else item.actions
            yield from (one for one in actions if one.is_grave)


def assert_judged_as_by_verify_and_plan(*paths):
    run, reported = examined(*paths)
    verification = Verification(paths)
    verified = list(verification)
    assert of(Finding, reported) == of(Finding, verified)
    planned = list(Forecast(paths, StartOptions()))
    assert of(Action, reported) == list(grave(planned))
    assert {str(one) for one in of(UnreadableError, reported)} == {
        str(one) for one in of(UnreadableError, [*verified, *planned])
    }
    assert run.summary.codes == verification.summary.codes
    assert run.summary.batches == verification.summary.batches
    assert run.summary.bytes == verification.summary.bytes
    found = int(verification.summary.exit_status())
    assert int(run.summary.exit_status()) == (found or int(any(grave(planned))))
    below = the(HighWatermark, reported).below
    assert [one.request.path for one in below] == [
        one.request.path for one in of(PartitionForecast, planned) if one.lost_acknowledged
    ]
    start = the(NextStart, reported)
    assert start.losing == [
        one.request.path.name for one in of(PartitionForecast, planned) if one.losses
    ]
    assert start.refuses == any(one.action == "refuse" for one in grave(planned))
    return reported


@pytest.mark.parametrize("name", SCENARIOS)
def test_of_what_real_brokers_left_it_says_what_verify_and_plan_say(scenario, name):
    reported = assert_judged_as_by_verify_and_plan(*log_dirs(scenario(name)))
    # A stray partition is a warning, and the log dirs of three brokers are not those of one.
    if not name.endswith("/replicas"):
        assert not {Gravity.WARNING, Gravity.ERROR} & {
            the(DamageAnswer, reported).state, the(HighWatermark, reported).state
        }  # fmt: skip
        # A torn batch is cut, so that plan ends with status 1; no sound record goes.
        torn = name.endswith("/torn")
        assert (the(NextStart, reported).state is Gravity.WARNING) is torn
    old = {one.path.name for one in of(Finding, reported) if one.code == "batch/old-format"}
    assert bool(old) == ("/magic-" in name)
    answered = of(OldFormats, reported)
    assert [(set(one.partitions), one.complete) for one in answered] == [(old, True)] * bool(old)


def bad_batch(home):
    damage_file(logs(home / "small-segments-0")[2], overwrite, 70, b"\xff\xff")


DAMAGE = {
    "a bad batch": bad_batch,
    "a bad batch, and nothing is flushed": lambda home: (
        bad_batch(home), remove_file(home / "recovery-point-offset-checkpoint")),
    "acknowledged records that are gone": lambda home: set_offsets(
        home / WATERMARK, {("codec-none", 0): 9000}),
    "an index that is too long": lambda home: append_to_file(
        logs(home / "index.dense-0")[0].with_suffix(".index"), b"12345"),
    "an index that lies": lambda home: damage_file(
        logs(home / "index.dense-0")[0].with_suffix(".index"), flip, 13),
    "a snapshot that is damaged": lambda home: damage_file(
        max((home / "tx.mixed-0").glob("*.snapshot")), flip, 9),
    "a log that is cut": lambda home: damage_file(
        logs(home / "codec-none-0")[-1], cut, 1000),
    "a checkpoint that cannot be parsed": lambda home: damage_file(
        home / WATERMARK, overwrite, 0, b"x"),
    "an identity that is broken": lambda home: (home / "meta.properties").write_text("version=x\n"),
    "a folder with a name that stops brokers": lambda home: (home / "backup").mkdir(),
    "a log that is a link": lambda home: (
        logs(home / "codec-none-0")[0].rename(home.parent / "away"),
        (home / "codec-none-0" / f"{0:020d}.log").symlink_to(home.parent / "away")),
}  # fmt: skip


@pytest.mark.parametrize("stop", ["clean", "killed"])
@pytest.mark.parametrize("name", DAMAGE)
def test_of_damage_it_says_what_verify_and_plan_say(scenario, tmp_path, name, stop):
    home = small_log_dir(scenario(f"4.3.1/{stop}"), tmp_path / "data", *PARTITIONS)
    DAMAGE[name](home)
    reported = assert_judged_as_by_verify_and_plan(home)
    assert {Gravity.WARNING, Gravity.ERROR} & {
        the(DamageAnswer, reported).state,
        the(NextStart, reported).state,
    }


def test_partitions_that_are_selected_are_judged_as_by_verify(scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *PARTITIONS)
    bad_batch(home)
    _, reported = examined(home / "small-segments-0", home / "codec-none-0")
    assert [one.code for one in of(Finding, reported)] == ["batch/crc"]
    assert the(DamageAnswer, reported).partitions == 2


@pytest.fixture
def damaged(scenario, tmp_path):
    """Return a log dir with a bad batch, which a quick look does not see, and a bad index."""
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *PARTITIONS)
    bad_batch(home)
    append_to_file(logs(home / "index.dense-0")[0].with_suffix(".index"), b"12345")
    return home


@pytest.fixture
def options(damaged):
    """Return the options for a broker with its metadata log in a log dir that was not given."""
    own = {"process.roles": "broker", "log.dirs": f"/,{damaged}"}
    return StartOptions(static=own)


def codes(reported):
    return {one.code for one in of(Finding, reported) if one.severity != "info"}


def test_when_time_is_over_before_the_batches_the_quick_look_and_the_start_are_reported(
    damaged, options
):
    class UntilTheBatches(Pace):
        def spend(self, count):
            if run.forecast_ended:
                self.end()
            super().spend(count)

    run = Examination([damaged], options, budget=Budget(pace=UntilTheBatches()))
    reported = list(diagnosis.diagnose([run]))
    assert codes(reported) == {"offset-index/length"}
    damage = the(DamageAnswer, reported)
    assert (damage.complete, damage.checked, damage.looked_at) == (False, 0, damage.segments)
    assert the(NextStart, reported).complete
    assert int(run.summary.exit_status()) == 1


def test_when_time_is_over_among_the_batches_each_finding_is_reported_once(damaged):
    pace = Pace()
    run = Examination([damaged], StartOptions(), budget=Budget(pace=pace))

    def progressed(now):
        if run.forecast_ended and now.path.name == "small-segments-0":
            pace.end()

    run.on_progress = progressed
    reported = list(diagnosis.diagnose([run]))
    damage = the(DamageAnswer, reported)
    assert 0 < damage.checked < damage.segments
    found = [(one.code, one.path, one.position) for one in of(Finding, reported)]
    assert len(set(found)) == len(found)
    assert "offset-index/length" in codes(reported)
    assert int(run.summary.exit_status()) == 1
    assert of(Next, reported)[0].command.startswith("logtool plan ")


def test_without_any_time_what_was_not_reached_is_counted(damaged):
    pace = Pace()
    pace.end()
    run, reported = examined(damaged, budget=Budget(pace=pace))
    damage, start = the(DamageAnswer, reported), the(NextStart, reported)
    assert (damage.looked_at, damage.checked, damage.partitions) == (0, 0, 4)
    assert (start.partitions, start.not_reached, start.complete) == (0, 4, False)
    assert the(VersionsAnswer, reported).kafka == "4.4"
    assert codes(reported) == {"metadata/absent"}
    assert int(run.summary.exit_status()) == 1


def test_no_request_is_made_once_time_is_over(damaged, monkeypatch):
    pace, made = Pace(), []
    pace.end()
    monkeypatch.setattr(LogDirStart, "request", lambda *_: made.append(1))
    list(Forecast([damaged], StartOptions(), run=Run(budget=Budget(pace=pace))))
    assert not made


def test_a_partition_without_faults_is_never_listed(scenario, tmp_path, monkeypatch):
    """Three looks read it, and the numbers of its files come from the first."""
    home = small_log_dir(
        scenario("4.3.1/clean"), tmp_path / "home", "index.dense-0", "idempotent_writes-0"
    )
    (home / ".kafka_cleanshutdown").touch()
    listed = []
    monkeypatch.setattr(examination, "MOST_LOGS", 1)  # retention is not looked at
    monkeypatch.setattr(type(KAFKA), "partition", lambda _, path, __: listed.append(path))
    run = Examination([home], StartOptions())
    run.look()
    assert run.homes[0].segments == len(list(home.glob("*/*.log")))
    assert not listed


def test_what_a_signal_interrupts_is_reported_as_far_as_it_came(damaged, options):
    run = Examination([damaged], options)

    def interrupt(_):
        if run.forecast_ended:
            raise KeyboardInterrupt

    run.on_progress = interrupt
    reported = []
    with pytest.raises(KeyboardInterrupt):
        for item in diagnosis.diagnose([run]):
            reported.append(item)
    assert codes(reported) == {"offset-index/length"}
    assert not the(DamageAnswer, reported).complete
    assert of(Next, reported)


def test_a_log_dir_is_named_with_who_wrote_it(scenario):
    _, reported = examined(scenario("3.9.2/clean"))
    versions = the(VersionsAnswer, reported)
    assert (versions.kafka, versions.shown, versions.mode) == ("3.9", "3.9", "kraft")
    assert versions.metadata_version == 21
    assert [(one.version, one.node_id) for one in versions.identities] == [(1, 1)]
    assert the(BrokerState, reported).clean


def test_zookeeper_is_reported_and_the_release_is_assumed(scenario):
    versions = the(VersionsAnswer, examined(scenario("2.2.2/zookeeper"))[1])
    assert (versions.mode, versions.shown, versions.state) == ("zookeeper", None, Gravity.INFO)
    assert versions.identities[0].version == 0


def test_disks_are_reported_once_with_what_the_log_dirs_take(scenario):
    homes = log_dirs(scenario("4.3.1/two-log-dirs"))
    _, reported = examined(*homes)
    disk = the(DiskAnswer, reported)
    assert list(disk.paths) == homes
    usage = shutil.disk_usage(homes[0])
    assert disk.total == usage.total
    assert disk.logs == sum(
        path.stat().st_size for home in homes for path in home.glob("*/*") if path.is_file()
    )


def a_disk(used, available, inodes=0, free=0, read_only=False):
    return DiskAnswer(
        paths=[], total=used + available, used=used, available=available, inodes=inodes,
        free_inodes=free, read_only=read_only, logs=0,
    )  # fmt: skip


def test_a_disk_is_the_worse_the_fuller_it_is_of_bytes_or_of_inodes():
    states = {used: a_disk(used, 100 - used).state for used in range(101)}
    assert {used for used, state in states.items() if state is Gravity.WARNING} == set(
        range(NEARLY_FULL, FULL)
    )
    assert states[99] is states[100] is Gravity.ERROR
    assert a_disk(1, 99, inodes=100, free=0).state is Gravity.ERROR
    assert a_disk(1, 99, inodes=100, free=100).state is Gravity.GOOD
    assert a_disk(1, 99, read_only=True).state is Gravity.INFO
    assert a_disk(0, 0).used_percent == 100


def test_limits_are_held_against_what_a_broker_holds_open_and_maps(scenario):
    home = scenario("4.3.1/clean")
    _, reported = examined(home)
    files, maps = of(Limit, reported)
    segments = the(DamageAnswer, reported).segments
    assert segments == len(list(home.glob("*/*.log")))
    assert files.needed == BROKER_FILES + segments + len(list(home.glob("*/*.txnindex")))
    active = {max(folder.glob("*.log")).with_suffix("") for folder in {*home.glob("*-*/")}
              if any(folder.glob("*.log"))}  # fmt: skip
    mapped = {
        path
        for suffix in ("index", "timeindex")
        for path in home.glob(f"*/*.{suffix}")
        if path.stat().st_size > 0 or path.with_suffix("") in active
    }
    assert maps.needed == BROKER_MAPS + len(mapped)
    assert Limit("open-files", 3, 2).state is Gravity.WARNING
    assert Limit("open-files", 3, 3).state is Limit("open-files", 3, None).state is Gravity.GOOD


def test_summaries_of_levels_are_those_of_verify(damaged):
    run, _ = examined(damaged)
    quick = Verification([damaged], level=Level.QUICK)
    list(quick)
    assert isinstance(run.quick.summary, Summary)
    assert run.quick.summary.codes == quick.summary.codes
