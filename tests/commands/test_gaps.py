"""The command: what it prints, how it ends, what it refuses."""

import csv
import io
import json
import re
import shutil

import pytest
from damage import flip

from logtool.commands.views.gaps_tables import DOCUMENT
from logtool.formats.record import Record
from logtool.schemas.columns import Way


@pytest.fixture
def holed(log, make_batch):
    """Return a partition dir with the offsets 0 to 2 and 6 to 8."""
    data = log.read_bytes()
    first = int.from_bytes(data[8:12], "big") + 12
    second = int.from_bytes(data[first + 8 : first + 12], "big") + 12
    log.write_bytes(data[:first] + data[first + second :])
    for index in log.parent.glob("*index"):
        index.unlink()
    return log.parent


def test_a_log_dir_without_loss_ends_well(run, scenario):
    result = run("gaps", scenario("4.3.1/clean"))
    assert result.status == 0
    assert len(result.lines) == 5
    (line,) = (line for line in result.lines if "compacted.keys-0: " in line)
    assert re.findall(r"[\d.]+", line.partition("keys-0: ")[2])[:5] == [
        "0",
        "1439",
        "480",
        "960",
        "66.67",
    ]


def test_a_gap_that_may_mean_loss_is_shown_and_makes_the_status_1(run, holed):
    result = run("gaps", holed)
    assert result.status == 1
    assert "3 through 5: unknown" in result.stdout
    assert "1 gap " in result.stderr


def test_the_policy_can_be_given(run, holed):
    result = run("gaps", "--cleanup-policy", "compact", holed)
    assert result.status == 0
    assert "3 through 5" not in result.stdout
    shown = run("gaps", "-v", "--cleanup-policy", "compact", holed).stdout
    assert "3 through 5: compaction" in shown


def test_damage_makes_the_status_1(run, damaged_log):
    result = run("gaps", "-f", "ndjson", damaged_log.parent)
    assert result.status == 1
    (gap,) = result.of_type("gap")
    assert (gap["first_offset"], gap["last_offset"], gap["reason"]) == (3, 5, "damage")
    assert gap["ghosts"] == 1


def test_the_lines_are_the_partition_its_gaps_the_topics_and_a_summary(run, scenario):
    result = run("gaps", "-f", "ndjson", scenario("4.3.1/clean"))
    kinds = [obj["type"] for obj in result.objects]
    assert kinds[0] == "partition"
    assert kinds[-1] == "summary"
    assert kinds[-2] == "topic"
    topic = next(obj for obj in result.of_type("topic") if obj["topic"] == "codec-none")
    assert (topic["partitions"], topic["offsets"]) == (3, 960)
    partition = next(o for o in result.of_type("partition") if o["topic"] == "compacted.keys")
    gaps = [gap for gap in result.of_type("gap") if gap["topic"] == "compacted.keys"]
    assert sum(gap["missing"] for gap in gaps) == partition["missing"]
    assert sum(gap["ghosts"] for gap in gaps) == partition["ghosts"]
    assert partition["ghost_bytes"] == 61 * partition["ghosts"]
    assert result.objects[-1]["partitions"] == len(result.of_type("partition"))


def test_every_object_has_the_keys_of_its_table(run, holed, tmp_path):
    follower = tmp_path / "b" / holed.name
    shutil.copytree(holed, follower)
    (follower / "00000000000000000000.log").write_bytes(b"")
    result = run(
        "gaps", "-f", "ndjson", "--ghosts", "--rounds", "1M", "--follower", follower, holed
    )  # fmt: skip
    tables = {one.type: one for one in DOCUMENT.tables}
    objects = [obj for obj in result.objects if obj["type"] not in ("summary", "error")]
    assert {obj["type"] for obj in objects} == tables.keys() - {"finding"}
    for obj in objects:
        keys = [key for key in obj if key != "schema"]
        assert keys == ["type", *tables[obj["type"]].names(Way.NDJSON)]


def test_rows_of_csv_are_gaps(run, scenario):
    result = run("gaps", "-f", "csv", scenario("3.9.0/compaction"))
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["reason"] for row in rows} == {"compaction"}
    assert run("gaps", "-f", "tsv", scenario("3.9.0/compaction")).status == 0


def test_markdown_and_json_say_the_same(run, holed):
    document = json.loads(run("gaps", "--json", holed).stdout)
    gap = next(item for item in document["items"] if item["type"] == "gap")
    assert gap["evidence"] in run("gaps", "-f", "markdown", holed).stdout


def test_a_table_counts_ghosts_only_where_they_are_asked_for(run, holed):
    plain, verbose, asked = (run("gaps", *more, holed) for more in ((), ("-v",), ("--ghosts",)))
    counted = ["ghost batch in" in one.stdout for one in (plain, verbose, asked)]
    assert counted == [False, True, True]
    assert "gap" in plain.stdout
    (partition,) = run("gaps", "-f", "ndjson", holed).of_type("partition")
    assert (partition["ghosts"], partition["ghost_bytes"]) == (1, 61)


def test_ghosts_are_printed_one_by_one(run, holed):
    result = run("gaps", "--ghosts", "-f", "ndjson", holed)
    (ghost,) = result.of_type("ghost")
    assert (ghost["first_offset"], ghost["last_offset"], ghost["size"]) == (3, 5, 61)
    assert ghost["epoch_from"] == "leader-epoch-checkpoint"


def test_only_the_topics_asked_for_are_looked_at(run, scenario):
    result = run("gaps", "-f", "ndjson", "--topic", "compacted*", scenario("4.3.1/clean"))
    assert {obj["topic"] for obj in result.of_type("partition")} == {
        "compacted.keys", "compacted-tx",
    }  # fmt: skip


def test_a_log_by_itself_is_looked_at_from_its_base(run, scenario):
    folder = scenario("4.3.1/clean") / "deleted_segments-0"
    path = sorted(folder.glob("*.log"))[0]
    (partition,) = run("gaps", "-f", "ndjson", path).of_type("partition")
    assert partition["log_start_offset"] == int(path.stem)


def test_what_cannot_be_read_makes_the_status_4(run, tmp_path, holed):
    result = run("gaps", "-f", "ndjson", tmp_path / "missing", holed)
    assert result.status == 4
    assert result.objects[-1]["complete"] is False
    assert run("gaps", holed / "leader-epoch-checkpoint").status == 4


def test_time_that_runs_out_makes_the_status_6(run, holed):
    assert run("gaps", "--max-duration", "0.000000001s", holed).status == 6


def test_contradictions_are_refused(run, holed):
    assert run("gaps").status == 2
    assert run("gaps", "--json", "-f", "csv", holed).status == 2
    assert run("gaps", "-q", "-v", holed).status == 2


def test_several_threads_say_the_same(run, scenario, monkeypatch):
    monkeypatch.setattr("logtool.running.run.WORTH_A_POOL", 0)
    home = scenario("4.3.1/clean")
    one, two = (run("gaps", "-f", "csv", "-j", jobs, home).stdout for jobs in (1, 2))
    assert one == two


def test_a_flipped_byte_in_the_last_batch_is_a_gap_up_to_the_end(run, log):
    data = log.read_bytes()
    log.write_bytes(flip(data, len(data) - 1))
    result = run("gaps", "-f", "ndjson", log.parent)
    assert result.status == 1
    (gap,) = result.of_type("gap")
    assert (gap["first_offset"], gap["last_offset"], gap["reason"]) == (6, None, "damage")


# --output and --follower


@pytest.fixture
def target(tmp_path):
    """Return the path of a log that may be written."""
    (tmp_path / "filled").mkdir()
    return tmp_path / "filled" / f"{0:020d}.log"


def test_the_filled_log_is_accepted_by_verify(run, holed, target):
    result = run("gaps", "--cleanup-policy", "compact", "--output", target, holed)
    assert result.status == 0
    assert "1 ghost" in result.stderr
    assert run("verify", "--level", "records", target).status == 0
    batches = run("dump", "-f", "ndjson", target).of_type("batch")
    assert [(b["base_offset"], b["last_offset"], b["record_count"]) for b in batches] == [
        (0, 2, 3), (3, 5, 0), (6, 8, 3),
    ]  # fmt: skip


def test_a_filled_log_that_hides_a_loss_is_reported(run, holed, target):
    result = run("gaps", "--output", target, "--fill-losses", holed)
    assert result.status == 1
    assert "1 ghost;" in result.stderr
    assert "--fill-losses" not in result.stderr


def test_a_gap_that_may_mean_loss_is_left_open_unless_an_option_asks_to_fill_it(run, holed, target):
    result = run("gaps", "--output", target, holed)
    assert result.status == 1
    assert "0 ghosts;" in result.stderr
    assert "--fill-losses" in result.stderr
    (log,) = holed.glob("*.log")
    assert target.read_bytes() == log.read_bytes()
    assert run("gaps", "--fill-losses", holed).status == 2


def test_a_file_that_is_there_is_left_alone(run, holed, target):
    target.write_bytes(b"mine")
    assert run("gaps", "--output", target, holed).status == 5
    assert target.read_bytes() == b"mine"


@pytest.mark.parametrize("where", [".", ".."])
def test_nothing_is_written_into_a_log_dir(run, holed, where):
    (holed.parent / "meta.properties").write_text("version=1\n")
    target = holed / where / f"{77:020d}.log"
    assert run("gaps", "--output", target, holed).status == 5
    assert not target.exists()


def test_a_file_of_another_name_is_refused(run, holed, target):
    assert run("gaps", "--output", target.with_name("filled.bin"), holed).status == 2
    wrong = run("gaps", "--output", target.with_name(f"{7:020d}.log"), holed)
    assert wrong.status == 2
    assert target.name in wrong.stderr
    assert list(target.parent.iterdir()) == []


def test_a_folder_that_is_not_there_makes_the_status_4(run, holed, tmp_path):
    target = tmp_path / "none" / f"{0:020d}.log"
    assert run("gaps", "--output", target, holed).status == 4


def test_only_one_partition_can_be_written_or_compared(run, scenario, target):
    result = run("gaps", "--output", target, scenario("4.3.1/clean"))
    assert result.status == 2
    assert "--output" in result.stderr
    home = scenario("4.3.1/clean")
    assert run("gaps", "--follower", home, home / "codec-none-0").status == 2


def test_a_follower_is_shown_with_and_without_ghosts(run, tmp_path, make_batch):
    def replica(name, *spans):
        folder = tmp_path / name / "orders-0"
        folder.mkdir(parents=True)
        made = [
            make_batch(first, (), last_offset_delta=last - first, leader_epoch=epoch)
            for first, last, epoch in spans
        ]
        (folder / f"{0:020d}.log").write_bytes(b"".join(made))
        return folder

    leader = replica("a", (0, 10, 1), (11, 20, 1), (33, 40, 3))
    other = replica("b", (0, 10, 1))
    result = run("gaps", "--follower", other, leader)
    rows = [(line.split()[0], re.findall(r"\d+", line)) for line in result.lines[-3:]]
    assert rows == [
        ("batches", ["11", "20"]), ("ghost", ["21", "32"]), ("batches", ["33", "40", "21", "28"]),
    ]  # fmt: skip
    assert result.lines[-1].endswith("WRONG")
    stretches = run("gaps", "-f", "ndjson", "--follower", other, leader).of_type("stretch")
    assert [(s["ghost"], s["without_ghosts_first_offset"]) for s in stretches] == [
        (False, 11), (True, None), (False, 21),
    ]  # fmt: skip
    assert run("gaps", "--follower", tmp_path / "c", leader).status == 4


def test_a_gap_that_only_a_damaged_offset_explains_gets_no_ghosts(run, log, make_batch):
    far = 1 << 62
    log.write_bytes(make_batch(0, [Record(0)]))
    log.with_name(f"{far:020d}.log").write_bytes(make_batch(far, [Record(0)]))
    for index in log.parent.glob("*index"):
        index.unlink()
    (found,) = run("gaps", "-f", "ndjson", log.parent).of_type("partition")
    assert (found["missing"], found["ghosts"]) == (far - 1, 0)
