"""Records of a batch with a wrong CRC: shown where a reader cannot take them for sound ones."""

import pytest
from damage import damage_file, flip
from dumps import of_type
from verification import batches, logs

from logtool.formats.record_batch import HEADER_SIZE


@pytest.fixture
def bad(log):
    """Return the log of `partition` with a changed byte in the value of its first record."""
    damage_file(log, flip, log.read_bytes().index(b"value"), 0x20)
    return log


def test_records_of_a_bad_batch_are_shown_as_what_they_are(objects, bad):
    found = objects("--records", bad, status=1)
    kinds = [one["type"] for one in found]
    assert kinds == [
        "file", "error", "batch", *["bad-record"] * 3, *(["batch"] + ["record"] * 3) * 2,
    ]  # fmt: skip
    first, second, third = of_type("bad-record", found)
    assert [one["offset"] for one in (first, second, third)] == [0, 1, 2]
    assert (first["key"]["utf8"], first["value"]["utf8"]) == ("key", "Value")
    assert third["value"] == {"size": 2, "base64": "//4="}
    assert {one["batch_position"] for one in (first, second, third)} == {0}
    assert "bad-record" not in [one["type"] for one in objects(bad, status=1)]


def test_a_table_marks_each_of_them(run, bad):
    result = run("dump", "--records", bad)
    marked = [line for line in result.lines if "may be wrong" in line]
    assert (result.status, [line.split()[0] for line in marked]) == (1, ["0", "1", "2"])


def test_a_range_of_offsets_chooses_among_them(objects, bad):
    found = objects("--records", "--offset", "1..4", bad, status=1)
    assert [one["offset"] for one in of_type("bad-record", found)] == [1, 2]
    assert [one["offset"] for one in of_type("record", found)] == [3, 4]
    assert not of_type("bad-record", objects("--records", "--producer", "7", bad, status=1))


@pytest.mark.parametrize("format", ["csv", "tsv", "kafka", "kcat", "console-producer"])
def test_a_format_without_a_mark_has_none_of_them(run, bad, format):
    result = run("dump", "--records", "-f", format, bad)
    assert result.status in (1, 5)
    assert "Value" not in result.stdout


@pytest.mark.parametrize("options", [("--key", "key"), ("--value", "Value"), ("--count",)])
def test_a_search_and_a_count_take_sound_records_alone(objects, bad, options):
    found = objects("--records", *options, bad, status=1)
    assert not of_type("bad-record", found)
    assert all(one["records"] == 6 for one in of_type("total", found))


def test_a_compressed_batch_is_shown_if_it_decompresses(objects, scenario, copy_of):
    home = copy_of("4.3.1/killed") / "codec-gzip-0"
    log = logs(home)[0]
    sound = of_type("record", objects("--records", log))
    table = batches(log)
    row = int((table.attributes & 7).argmax())
    start = int(table.position[row])
    inside = [
        one for one in sound if table.base_offset[row] <= one["offset"] <= table.last_offset[row]
    ]
    whole = log.read_bytes()
    log.write_bytes(flip(whole, start + 17))  # the CRC itself
    shown = of_type("bad-record", objects("--records", log, status=1))
    assert shown == [one | {"type": "bad-record", "crc_valid": None} for one in inside]
    log.write_bytes(flip(whole, start + HEADER_SIZE))  # no stream of gzip begins like that
    found = objects("--records", log, status=1)
    assert not of_type("bad-record", found)
    assert [one["reason"] for one in of_type("error", found)] == ["crc", "bad-records"]


def test_what_does_not_decode_is_no_further_damage(run, log):
    damage_file(log, flip, log.read_bytes().index(b"value") - 1)  # the length of the value
    result = run("dump", "--records", "-f", "ndjson", log)
    (first, second) = result.of_type("error")
    assert (first["reason"], second["reason"]) == ("crc", "bad-records")
    assert result.objects[-1]["findings"]["error"] == 1


def test_a_secret_of_the_metadata_log_stays_hidden(objects, copy_of):
    log = logs(copy_of("4.3.1/killed") / "__cluster_metadata-0")[-1]
    table = batches(log)
    damage_file(log, flip, int(table.position[1]) + int(table.size[1]) - 1)
    bad = of_type("bad-record", objects("--records", log, status=1))
    assert bad
    assert {char for one in bad for char in one["value"]["utf8"]} == {"*"}
    shown = of_type("bad-record", objects("--records", "--show-secrets", log, status=1))
    assert [one["value"]["size"] for one in shown] == [one["value"]["size"] for one in bad]
    assert shown != bad
