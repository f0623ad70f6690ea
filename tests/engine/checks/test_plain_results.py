"""Answers of stat, gaps and txns on plain partitions, compared with runs that list all files."""

import pytest
from damage import damage_file, flip
from verification import log_dirs, small_log_dir

from logtool.checks import fast_path
from logtool.commands.views.gaps_tables import DOCUMENT as GAPS
from logtool.commands.views.stat_tables import PARTITION, SEGMENT
from logtool.errors import UnreadableError
from logtool.gaps import ghosts
from logtool.gaps.objects import PartitionGaps
from logtool.gaps.run import GapOptions, Gaps
from logtool.stat.run import Survey
from logtool.stat.statistics import StatisticsOf
from logtool.txns.run import TransactionsRun

NOW_MS = 1_800_000_000_000


def of_stat(home):
    for one in Survey([home]):
        if isinstance(one, UnreadableError):
            yield str(one)
            continue
        place = one.partition.path, one.partition.topic, one.partition.number
        yield PARTITION.row(StatisticsOf(one.statistics, *place))
        for part in one.segments:
            yield SEGMENT.row(StatisticsOf(part.statistics, part.log, *place[1:], part.base_offset))
        yield [str(finding) for finding in one.findings]


def of_gaps(home):
    for one in Gaps([home], GapOptions(sums_alone=True)):
        if isinstance(one, UnreadableError):
            yield str(one)
            continue
        yield GAPS.row(PartitionGaps(one, ghosts.of(one.ledger, one.subject.facts)))
        yield one.segments, one.records, one.bytes, one.first_base, one.ledger.last_offset
        yield one.ledger.first_visible, one.ledger.last_visible, list(map(str, one.findings))


def of_txns(home):
    run = TransactionsRun([home], NOW_MS)
    for one in run:
        yield str(one) if isinstance(one, UnreadableError) else one
    summary = run.summary
    yield summary.partitions, summary.segments, summary.batches, summary.records, summary.bytes


ENGINES = {"stat": of_stat, "gaps": of_gaps, "txns": of_txns}


def compare(name, home, monkeypatch):
    """Check that an engine says the same with and without a quick look; return how many it took."""
    took = []
    look = fast_path.PlainPartitions.look

    def noted(self, path, *others, **options):
        found = look(self, path, *others, **options)
        took.extend([path] if found else [])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(fast_path.PlainPartitions, "look", noted)
        quick = list(ENGINES[name](home))
        plain = len(took)
        patch.setattr(fast_path, "LARGEST", 0)
        assert quick == list(ENGINES[name](home))
    assert len(took) == plain, "no partition is plain where every file is too large"
    return plain


@pytest.fixture
def home(scenario, tmp_path):
    names = "codec-none-1", "idempotent_writes-0", "small-segments-0"
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", *names)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("scenario_name", ["4.3.1/clean"])
def test_a_plain_partition_has_the_result_of_its_files(scenario, monkeypatch, name, scenario_name):
    plain = sum(compare(name, home, monkeypatch) for home in log_dirs(scenario(scenario_name)))
    assert plain or scenario_name != "4.3.1/clean"


@pytest.mark.parametrize("name", ENGINES)
def test_a_log_start_behind_the_first_segment_is_not_plain_to_gaps(home, monkeypatch, name):
    before = compare(name, home, monkeypatch)
    row = "0\n1\nidempotent_writes 0 7\n"
    (home / "log-start-offset-checkpoint").write_text(row)
    assert compare(name, home, monkeypatch) > 0
    assert before > 0


@pytest.mark.parametrize("name", ENGINES)
def test_damage_is_read_by_the_rules(home, monkeypatch, name):
    before = compare(name, home, monkeypatch)
    damage_file(home / "codec-none-1" / f"{0:020d}.log", flip, 100)
    assert compare(name, home, monkeypatch) == before - 1
