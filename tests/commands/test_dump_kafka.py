"""`dump --format kafka` against what Kafka's own tool printed about the same files."""

import pytest
from conftest import SCENARIOS
from dumps import MODES, expected, failures

CASES = [(name, mode) for name in SCENARIOS if int(name[0]) >= 3 for mode in MODES]
"""Older tools print other lines; see `test_dump_older_kafka`."""


def as_before_4(line: str) -> str:
    """Kafka 3.9 does not spell out who leads; the rest of the line is the same."""
    head, found, _ = line.partition("LeaderChange: {")
    return f"{head}controlType: LEADER_CHANGE(2)" if found else line


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_every_file_looks_as_kafka_prints_it(run, scenario, monkeypatch, name, mode):
    folder = scenario(f"{name}.expected") / mode
    given_up = failures(name, mode)
    wanted = {file: text for file, text in expected(folder) if file not in given_up}
    assert wanted or name.endswith(("formatted", "recovered", "running")), "nothing to compare"
    if not wanted:
        return
    monkeypatch.chdir(scenario(name))
    result = run("dump", "-f", "kafka", *MODES[mode], *wanted)
    assert result.status in (0, 1)
    found = result.stdout
    if name.startswith("3."):
        found = "\n".join(map(as_before_4, found.split("\n")))
    for file, text in wanted.items():
        at = found.index(f"Dumping {file}\n")
        assert found[at : at + len(text)] == text, file
    assert len(found) == sum(map(len, wanted.values()))
