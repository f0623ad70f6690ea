"""The table of gaps, compared with the local command for the same log dirs."""

import os
import random
from pathlib import Path

import pytest
from conftest import SCENARIOS
from pipeline.places import span
from staged_tables import answers
from verification import batches, log_dirs, logs

from logtool.errors import UnreadableError
from logtool.formats import offset_checkpoint, record_batch
from logtool.gaps.run import GapOptions, Gaps
from logtool.gaps.table import GapPlace, GapReason

REPORTED = (GapPlace.HEAD, GapPlace.BATCHES, GapPlace.SEGMENTS, GapPlace.LOST_END)
COLUMNS = ["log_dir", "directory", "first_offset", "last_offset", "kind", "reason", "evidence",
           "before_segment", "after_segment", "damaged"]  # fmt: skip


def local(log_dir: Path) -> list[tuple]:
    """Return the rows of the table, by the columns above, as the local command has them."""
    rows = []
    for result in Gaps([log_dir], GapOptions()):
        if isinstance(result, UnreadableError):
            continue
        ledger, folder = result.ledger, result.subject.partition.path
        for row, number in enumerate(ledger.verdict.tolist()):
            gap, verdict = ledger.gaps[row : row + 1], ledger.verdicts[number]
            kind = GapPlace(int(gap.kind[0]))
            if kind not in REPORTED or verdict.reason is GapReason.RETENTION:
                continue
            before, after = int(gap.before_segment[0]), int(gap.after_segment[0])
            rows.append((
                str(folder.parent), folder.name, int(gap.first_offset[0]), int(gap.last_offset[0]),
                kind.label, str(verdict.reason), verdict.evidence, None if before < 0 else before,
                after, bool(gap.damaged[0]),
            ))  # fmt: skip
    return sorted(rows)


def asked(homes, work, *, cut=False):
    """Return the rows of the table for log dirs."""
    rows = answers(homes, ["gaps"], work, cut=cut)["gaps"]
    assert all(row["missing"] == row["last_offset"] - row["first_offset"] + 1 for row in rows)
    return sorted(tuple(row[name] for name in COLUMNS) for row in rows)


def test_every_gap_of_every_real_log_dir_with_its_reason(scenario, tmp_path):
    homes = [home for name in SCENARIOS for home in log_dirs(scenario(name))]
    found = asked(homes, tmp_path)
    assert found == sorted(row for home in homes for row in local(home))
    assert {row[4] for row in found} >= {"between-batches", "between-segments"}
    assert len(found) > 100


def test_a_lost_beginning_and_a_lost_end(copy_of, tmp_path):
    home = copy_of("4.3.1/clean")
    for path in (home / "index.dense-0").glob(f"{0:020d}.*"):
        path.unlink()
    for path in (home / "small-segments-0").glob(f"{869:020d}.[lit]*"):
        path.unlink()
    torn = home / "codec-none-0" / f"{0:020d}.log"
    os.truncate(torn, torn.stat().st_size - 9)
    found = asked([home], tmp_path)
    assert found == local(home)
    lost = {row[1]: (*row[2:6], row[9]) for row in found if row[5] not in ("compaction", "aborted")}
    (before,) = batches(torn).last_offset[-1:].tolist()
    assert lost == {
        "codec-none-0": (before + 1, 359, "lost-end", "damage", True),
        "index.dense-0": (0, 258, "head", "segment-missing", False),
        "small-segments-0": (869, 899, "lost-end", "end-missing", False),
    }


def write_partition(folder: Path, dice: random.Random) -> int:
    """Write a partition of anything that is between sound and absurd; returns where it ends."""
    folder.mkdir(parents=True)
    at = dice.choice([0, 0, 7])
    skips = dice.choice([[0], [0, 0, 0, 2], [0, 1, 5]])
    kinds = dice.choice([["sound"], ["sound"] * 8 + ["broken", "foreign"],
                         ["sound"] * 6 + ["fewer", "horizon"]])  # fmt: skip
    for _ in range(dice.randint(1, 5)):
        base, content = at, []
        for _ in range(dice.choice([0, 1, 3, 6])):
            at += dice.choice(skips)
            last = at + dice.choice([0, 0, 3, 9])
            kind = dice.choice(kinds)
            flags = record_batch.DELETE_HORIZON if kind == "horizon" else 0
            first = 2**40 if kind == "foreign" else at
            fewer = last - at if kind == "fewer" and last > at else None
            one = span(first, first + last - at, fewer, attributes=flags)
            content.append(one[:-1] + bytes([one[-1] ^ 1]) if kind == "broken" else one)
            at = last + 1
        (folder / f"{base:020d}.log").write_bytes(b"".join(content))
        if dice.random() < 0.2:
            entry = max(1, at - base + dice.choice([-2, 1])).to_bytes(4, "big") + bytes(4)
            (folder / f"{base:020d}.index").write_bytes(entry)
        at += dice.choice([0, 0, 0, 1, 4])
        if at > base + 4 and dice.random() < 0.1:
            at -= dice.choice([1, 3])  # the next segment overlaps this one
        if at == base:
            at += 1
    for suffix in (".index", ".snapshot"):
        if dice.random() < 0.2:
            (folder / f"{dice.randint(0, at):020d}{suffix}").write_bytes(b"")
    return at


@pytest.mark.parametrize(("seed", "cut"), [(1, False), (2, True)])
def test_any_log_dir_gives_what_the_local_command_gives(tmp_path, seed, cut):
    dice = random.Random(seed)
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        starts, cleaned = {}, {}
        for number in range(80):
            end = write_partition(home / f"t-{number}", dice)
            if dice.random() < 0.4:
                starts["t", number] = dice.randint(0, end)
            if dice.random() < 0.2:
                cleaned["t", number] = dice.randint(0, end)
        for name, rows in (("log-start", starts), ("cleaner", cleaned)):
            content = offset_checkpoint.encode(offset_checkpoint.build(rows))
            (home / f"{name}-offset-checkpoint").write_bytes(content)
    (homes[1] / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    found = asked(homes, tmp_path / "work", cut=cut)
    expected = sorted(row for home in homes for row in local(home))
    different = {row[:2] for row in set(found) ^ set(expected)}
    assert different == set()
    assert found == expected
    assert {row[4] for row in found} == {kind.label for kind in REPORTED}
    assert {row[5] for row in found} >= {
        "compaction", "segment-missing", "damage", "unknown", "truncation-hole",
    }  # fmt: skip


def test_a_partition_that_could_not_be_read_has_no_gaps(copy_of, tmp_path):
    home = copy_of("4.3.1/clean")
    before = local(home)
    log = logs(home / "compacted.keys-0")[0]
    log.unlink()
    log.symlink_to("nowhere")
    expected = [row for row in before if row[1] != "compacted.keys-0"]
    assert asked([home], tmp_path) == expected
    assert len(expected) < len(before)


def test_the_facts_of_a_log_dir_are_plain_rows_and_what_cannot_be_read_has_none(scenario, tmp_path):
    from logtool.spark.questions.facts import FACTS, facts_of

    found = facts_of(str(scenario("4.3.1/clean")))
    assert found.schema == FACTS
    assert len(found) > 5
    assert len(facts_of(str(tmp_path / "none"))) == 0
