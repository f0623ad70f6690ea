"""`dump` of files of older brokers, compared with the numbers that their own tools printed.

Those tools lay out their lines in other ways than today's, which `dump --format kafka` follows: so
each number and each text that has a name in both is compared.
"""

import re

import pytest
from conftest import SCENARIOS
from dumps import MODES, expected, failures

OLD = [name for name in SCENARIOS if int(name[0]) < 3]
NUMBER = re.compile(r"\b([a-zA-Z]+): (-?[\w.]+)(?= |$)")
UNLIKE = {
    # Of the batch in one tool, of the record in the other.
    "records": {"crc", "baseoffset", "lastoffset", "basesequence", "lastsequence", "position",
                "partitionleaderepoch", "magic", "isvalid"},
    # This is no field of the batch on disk.
    "batches": {"count"},
    "entries": set(),
}  # fmt: skip


def fields(line: str) -> dict[str, str]:
    """Return the named numbers of a line, up to where the content of the record begins."""
    head = re.split(r" (?:headerKeys|key|payload|endTxnMarker): ", line)[0]
    head = head.replace("OptionalLong.empty", "None")
    return {name.lower(): value.lower() for name, value in NUMBER.findall(head)}


def content(line: str) -> str:
    """Return the key and the value as text."""
    return line[match.start() :] if (match := re.search(r" (?:key|payload): ", line)) else ""


def fields_of(text: str, mode: str) -> list[tuple[dict[str, str], str]]:
    """Return fields and content of each batch, record or entry in what was printed of a file."""
    lines = [line for line in text.split("\n")[1:] if "ffset: " in line]
    lines = [line for line in lines if "tarting offset: " not in line]
    if mode == "records":
        lines = [line for line in lines if " keysize: " in line.lower()]
    # The older tools print the zeros behind the last entry too.
    padding = re.compile(r"timestamp: 0 offset: \d+")
    return [(fields(line), content(line)) for line in lines if not padding.fullmatch(line)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OLD)
def test_each_number_is_that_of_the_tool_of_the_time(run, scenario, monkeypatch, name, mode):
    given_up = failures(name, mode)
    wanted = dict(expected(scenario(f"{name}.expected") / mode))
    compared = 0
    monkeypatch.chdir(scenario(name))
    for file, printed in wanted.items():
        if file in given_up:
            continue
        theirs = fields_of(printed, mode)
        mine = fields_of(run("dump", "-f", "kafka", *MODES[mode], file).stdout, mode)
        assert len(mine) == len(theirs), file
        for (numbers, text), (wanted_numbers, wanted_text) in zip(mine, theirs, strict=True):
            common = (numbers.keys() & wanted_numbers.keys()) - UNLIKE[mode]
            assert [numbers[key] for key in common] == [wanted_numbers[key] for key in common], file
            assert len(common) > 1, file
            # The tool of 1.0 leaves out the key of a tombstone.
            assert text == wanted_text or wanted_numbers["valuesize"] == "-1", file
            compared += 1
    assert compared > 50
