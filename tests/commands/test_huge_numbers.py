"""Numbers of thousands of digits, and small files that are not small."""

import os

import pytest

from logtool.disk.files import SMALL_FILE_LIMIT

DIGITS = "9" * 5000
TRANSACTIONS = f"orders-0/{0:020d}.txnindex"
COMMANDS = [
    ["verify"], ["doctor"], ["plan"], ["recover"], ["watermark"], ["rebuild-index"], ["sanity"],
    ["txns"], ["checkpoint", "lint"], ["stat"], ["gaps"], ["dump"],
]  # fmt: skip


@pytest.fixture
def log_dir(partition):
    home = partition.parent
    (home / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    return home


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("meta.properties", f"version=1\ncluster.id=c\nnode.id={DIGITS}\n"),
        ("meta.properties", f"version={DIGITS}\ncluster.id=c\nnode.id=1\n"),
        ("recovery-point-offset-checkpoint", f"0\n1\norders 0 {DIGITS}\n"),
        ("replication-offset-checkpoint", f"0\n{DIGITS}\norders 0 1\n"),
        ("orders-0/leader-epoch-checkpoint", f"0\n1\n{DIGITS} 0\n"),
        ("orders-0/partition.metadata", f"version: {DIGITS}\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ"),
        (".kafka_cleanshutdown", f'{{"version":0,"brokerEpoch":{DIGITS}}}'),
    ],
)
def test_a_number_of_thousands_of_digits_is_no_bug(run, log_dir, command, name, content):
    (log_dir / name).write_text(content)
    result = run(*command, log_dir)
    assert result.status in (0, 1, 4), result.stderr


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("verify", ["meta.properties", "orders-0/leader-epoch-checkpoint", TRANSACTIONS]),
        ("plan", ["recovery-point-offset-checkpoint", "orders-0/leader-epoch-checkpoint"]),
        ("watermark", ["orders-0/leader-epoch-checkpoint"]),
        ("rebuild-index", ["recovery-point-offset-checkpoint"]),
        ("sanity", [TRANSACTIONS]),
        ("txns", [TRANSACTIONS]),
    ],
)
def test_a_small_file_above_the_limit_is_not_read(run, log_dir, command, names):
    for name in names:
        path = log_dir / name
        before = path.read_bytes() if path.exists() else None
        path.touch()
        os.truncate(path, SMALL_FILE_LIMIT + 1)
        result = run(command, log_dir)
        assert f"{path}: " in result.stderr
        assert result.status == 4
        path.write_bytes(before) if before is not None else path.unlink()


@pytest.mark.parametrize(
    "line",
    [
        ["recover", "--from-offset", DIGITS],
        ["recover", "--from-offset", f"orders-0={DIGITS}"],
        ["recover", "--accept-loss", f"orders-{DIGITS}"],
        ["recover", "--from-offset", f"orders-{DIGITS}=1"],
        ["plan", "--kafka-version", f"{DIGITS}.1"],
        ["verify", "--max-rate", DIGITS],
        ["verify", "--max-duration", DIGITS],
    ],
    ids=lambda line: " ".join(line[:2]),
)
def test_an_option_of_thousands_of_digits_is_a_usage_error(run, log_dir, line):
    result = run(*line, log_dir)
    assert (result.status, len(result.stderr.splitlines())) == (2, 2)
