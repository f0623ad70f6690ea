"""Every command takes a time that grows with the segments and partitions, not with their square.

Calls are counted, not seconds: those are the same on every machine, however busy it is.
"""

from pathlib import Path

import pytest
from calls import calls_of
from thinned import some
from tiny_segments import FIRST_TIME, write

from logtool import cli

FEW, MANY = 20, 80
COMMANDS = {
    "verify": ["verify"],
    "doctor": ["doctor"],
    "verify quick": ["verify", "--level", "quick"],
    "verify records": ["verify", "--level", "records"],
    "plan": ["plan"],
    "recover": ["recover"],
    "recover supplement": ["recover", "--strategy", "supplement"],
    "recover trusted": ["recover", "--strategy", "supplement", "--trust-log"],
    "rebuild-index": ["rebuild-index"],
    "gaps": ["gaps"],
    "watermark": ["watermark"],
    "watermark of two": ["watermark", "OTHER"],
    "diff": ["diff", "OTHER"],
    "diff identical": ["diff", "--identical", "OTHER"],
    "stat": ["stat"],
    "stat segments": ["stat", "--segments"],
    "txns": ["txns"],
    "dump": ["dump"],
    "dump-index": ["dump-index", "--join-log"],
    "checkpoint show": ["checkpoint", "show"],
    "checkpoint lint": ["checkpoint", "lint"],
    "checkpoint rebuild": ["checkpoint", "rebuild"],
    "sanity": ["sanity"],
}


def log_dir(home: Path, node: int, count: int, shape: str) -> Path:
    """Return a log dir of so many segments in one partition, or of so many partitions."""
    partitions = 1 if shape == "segments" else count
    step = 2 if shape == "segments" else 1  # offsets that are missing between segments
    for number in range(partitions):
        bases = range(0, count // partitions * step, step)
        write(home / f"orders-{number}", bases)
    rows = "".join(f"orders {number} 0\n" for number in range(partitions))
    for name in ("recovery-point", "replication"):
        (home / f"{name}-offset-checkpoint").write_text(f"0\n{partitions}\n{rows}")
    identity = f"version=1\nnode.id={node}\ncluster.id=J8aAPcfLQt2bqs1JT_rMgQ\n"
    (home / "meta.properties").write_text(identity)
    return home


@pytest.fixture(
    scope="module", params=["segments", pytest.param("partitions", marks=pytest.mark.long)]
)
def pairs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Path, Path]]:
    """Return log dirs of few and of many, each with that of another broker."""
    home = tmp_path_factory.mktemp("growth")
    return [
        (
            log_dir(home / f"{n}-1", 1, n, request.param),
            log_dir(home / f"{n}-2", 2, n, request.param),
        )
        for n in (FEW, MANY)
    ]


@pytest.mark.parametrize("command", some(COMMANDS, 12))
def test_four_times_as_much_is_about_four_times_the_work(pairs, command, capsys):
    counts: list[int] = []
    for log_dir, other in pairs:
        words = [str(other) if word == "OTHER" else word for word in COMMANDS[command]]
        line = [*words, str(log_dir), "-f", "ndjson"]
        assert cli.run(line) in (0, 1)  # what is imported or made once does not count
        counts.append(calls_of(lambda line=line: cli.run(line)))  # type: ignore[misc]
    capsys.readouterr()
    few, many = counts
    assert many < 4.2 * few, counts


@pytest.mark.parametrize("question", ["--offset", "--timestamp"])
def test_a_lookup_among_four_times_the_segments_is_at_most_four_times_the_work(
    pairs: list[tuple[Path, Path]], question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = []
    for log_dir, _ in pairs:
        wanted = "20" if question == "--offset" else str(FIRST_TIME + 20)
        line = ["lookup", str(log_dir / "orders-0"), question, wanted]
        assert cli.run(line) in (0, 1)
        counts.append(calls_of(lambda line=line: cli.run(line)))  # type: ignore[misc]
    capsys.readouterr()
    assert counts[1] < 4.2 * counts[0], counts
