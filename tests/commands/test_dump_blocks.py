"""Lines of blocks are byte for byte the lines of single objects."""

import re
from itertools import product

import pytest
from conftest import SCENARIOS, new_logs
from thinned import some

from logtool.commands.printing import block_lines
from logtool.dump.stream import Dump
from logtool.formats import _rendering
from logtool.formats.record import Record
from logtool.log import records as log_records
from logtool.log.walk import scanner

ELAPSED = re.compile(r'"elapsed_s": [0-9.e-]+')


@pytest.fixture(autouse=True)
def with_blocks(monkeypatch):
    """Take the loop that makes lines of blocks also where it is plain Python, which is slower."""
    monkeypatch.setattr(_rendering, "COMPILED", True)


@pytest.fixture
def both(run, monkeypatch):
    """Return a function: stdout from blocks and from objects alone, and the number of blocks."""

    def printed(*arguments):
        real = Dump._all
        seen = []

        def counted(self):
            for item in real(self):
                seen.append(type(item).__name__)
                yield item

        def as_objects(self):
            self.in_blocks = False
            return real(self)

        outputs = []
        for replacement in (counted, as_objects):
            monkeypatch.setattr(Dump, "_all", replacement)
            result = run("dump", *arguments)
            outputs.append((result.status, ELAPSED.sub("", result.stdout), result.stderr))
        monkeypatch.setattr(Dump, "_all", real)
        return (*outputs, seen.count("Block"))

    return printed


FORMATS = ("ndjson", "json", "csv", "tsv", "kafka")
VALUES = ("utf8", "hex", "base64", "len")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        # Each scenario in one format, which take turns; the rest in the long run.
        pytest.param(name, format, marks=() if is_short else pytest.mark.long)
        for number, name in enumerate(SCENARIOS)
        for format in FORMATS
        for is_short in [format == FORMATS[number % len(FORMATS)]]
    ],
)
def test_blocks_print_what_objects_print(both, scenario, name, format):
    logs = new_logs(name, scenario(name))
    # Objects take seconds, so the ways to show values take turns: each format of each scenario has
    # one, each scenario three of the four. All of them print odd batches in all formats.
    turn = (SCENARIOS.index(name) + FORMATS.index(format)) % len(VALUES)
    # With the secrets, for those of a metadata log are left out of records one by one.
    records = ["--records", "--decode", "none", "--show-secrets", "--values", VALUES[turn]]
    for more in ([], records):
        fast, slow, blocks = both("-f", format, *more, *logs)
        assert fast == slow
        # Messages of magic 0 and 1 go one by one.
        some = any(path.stat().st_size for path in logs) and "/magic-" not in name
        assert bool(blocks) == some


def hard_records():
    values = (
        None, b"", b"plain", b'quo"te \\ back', b"a,b\tc\nd\re", bytes(range(128)), b"\x7f",
        "ключ-鍵 🗎".encode(), b"\xff\xfe", "\u2028\x85\xa0".encode(), b"=1+1", b" lead",
    )  # fmt: skip
    for number, value in enumerate(values):
        headers = [(value or b"", value)] * (number % 3)
        yield Record(number, number * 999, values[-number], value, headers)


HEADERS = {
    "plain": {},
    "compressed": {"attributes": 4},
    "of a producer, sequences wrap": {
        "attributes": 0x10, "producer_id": 9, "producer_epoch": 3, "base_sequence": 2**31 - 3,
    },
    "log append time": {"attributes": 0x08, "max_timestamp": 1_800_000_000_000},
    "no timestamp": {"base_timestamp": -1, "max_timestamp": -1},
    "the first seconds of 1970": {"base_timestamp": 0, "max_timestamp": 0},
    "a delete horizon": {"attributes": 0x40},
    "a delete horizon that is no time": {"attributes": 0x40, "base_timestamp": -1},
    "no calendar has the time": {"base_timestamp": 2**62, "max_timestamp": 2**62},
    "a time before 1970": {"base_timestamp": -5000, "max_timestamp": -1},
    "no epoch": {"leader_epoch": -1},
    "an offset at the end": {"base_offset": 2**63 - 20},
    "a count that is too large": {"record_count": 13},
    "a count that is negative": {"record_count": -2},
    "a control batch": {"attributes": 0x20},
    "not compressed as it says": {"attributes": 0x07},
}  # fmt: skip


@pytest.mark.parametrize(("name", "format"), some(product(HEADERS, FORMATS), 34, several=True))
def test_odd_batches_between_others_print_the_same(both, log, make_batch, name, format):
    records = list(hard_records())
    first, *rest = make_batch(0, records), make_batch(40, records), make_batch(60, [])
    odd = make_batch(20, records, **{k: v for k, v in HEADERS[name].items() if k != "base_offset"})
    if "base_offset" in HEADERS[name]:
        odd = HEADERS[name]["base_offset"].to_bytes(8, "big") + odd[8:]
    log.write_bytes(b"".join([first, odd, odd, *rest, make_batch(61, []), first, *rest]))
    shown = (["--records", "--decode", "none", "--values", value] for value in VALUES)
    for more in ([], ["--records", "--decode", "none"], *shown, ["--producer", "9"]):
        fast, slow, _ = both("-f", format, *more, log)
        assert fast == slow


def test_producers_that_take_turns_are_not_mixed_up(both, log, make_batch):
    batches = [
        make_batch(n * 2, [Record(0), Record(1)], producer_id=n % 3, base_sequence=n)
        for n in range(9)
    ]
    log.write_bytes(b"".join(batches))
    for format in ("ndjson", "json", "csv", "tsv"):
        fast, slow, blocks = both("-f", format, "--records", "--decode", "none", log)
        assert fast == slow
        assert blocks == 1


def test_a_column_of_another_file_stays_that_of_the_other_file(both, partition, log):
    (partition.parent / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    properties = partition.parent / "meta.properties"
    for paths in ([properties, log], [log, properties], [log.with_suffix(".index"), log]):
        for format in ("csv", "tsv"):
            fast, slow, _ = both("-f", format, "--records", "--decode", "none", *paths)
            assert fast == slow


SIZES = (*range(36), 63, 64, 65, 255, 256, 4095, 4096, 4097, 65_536, 1_048_575, 1_048_576)


@pytest.mark.parametrize("codec", range(5))
def test_records_of_all_sizes_print_the_same(both, log, make_batch, codec):
    texts = {
        "ascii": b'{"order": 17, "note": "a \\ b"} ',
        "utf8": 'ключ-鍵 🗎 " \\ '.encode(),
        "control": bytes(range(32)) + b"\x7f",
        "binary": b"almost a text \xff",
    }
    batches = []
    for text in texts.values():
        whole = text * (SIZES[-1] // len(text) + 1)
        # The ends of texts may tear a character.
        records = [
            Record(n, n, whole[:size], whole[len(whole) - size :], [(whole[:9], whole[:size])])
            for n, size in enumerate(SIZES[:-2])
        ]
        batches.append(make_batch(100 * len(batches), records, attributes=codec))
        for size in SIZES[-2:]:
            one = Record(0, 0, None, whole[:size])
            batches.append(make_batch(100 * len(batches), [one], attributes=codec))
    log.write_bytes(b"".join(batches))
    # The codec matters to the bytes of a block, which are the same for each format.
    for format in FORMATS if codec == 0 else [FORMATS[codec]]:
        fast, slow, blocks = both("-f", format, "--records", "--decode", "none", log)
        assert fast == slow
        assert blocks


@pytest.mark.parametrize("format", FORMATS)
def test_blocks_print_the_same_wherever_a_buffer_ends(both, log, make_batch, monkeypatch, format):
    # Of what is read, of what is a block, and of what is printed at once.
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 3000)
    monkeypatch.setattr(log_records, "BLOCK_SIZE", 2000)
    monkeypatch.setattr(block_lines, "_AT_ONCE", 1500)
    monkeypatch.setattr(block_lines, "_MOST", 4000)
    records = list(hard_records())
    batches = [
        make_batch(
            n * 20, [*records[: n % 13], Record(13, value=b"x" * (n * 997 % 5000))],
            producer_id=n % 3, base_sequence=n,
        )
        for n in range(60)
    ]  # fmt: skip
    torn = bytearray(batches[30])
    torn[-1] ^= 1
    log.write_bytes(b"".join([*batches[:30], torn, *batches[31:]]))
    for more in ([], ["--producer", "1"], ["--offset", "100..700"], ["--grep", "plain"]):
        fast, slow, blocks = both("-f", format, "--records", "--decode", "none", *more, log)
        assert fast == slow
        assert blocks > 3
