"""Standard streams closed or full, and signals that end a command: what is said, which status."""

import json
import signal
import subprocess
import sys

import pytest
from processes import interrupted

from logtool.formats.record import Record

LOGTOOL = [sys.executable, "-m", "logtool"]


def shell(line, child_environment, *arguments, **more):
    """Run a line of shell in which ``"$@"`` is logtool with `arguments`."""
    command = ["sh", "-c", line, "sh", *LOGTOOL, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120,
        env=child_environment(), **more,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def assert_one_line(errors, *words):
    (line,) = errors.splitlines()
    assert line.startswith("logtool: ")
    assert all(word in line for word in words), line


@pytest.mark.parametrize("arguments", [["verify"], ["dump", "-f", "ndjson"], ["--help"]])
def test_a_closed_standard_output_is_one_line_and_4(partition, child_environment, arguments):
    paths = [] if arguments == ["--help"] else [partition]
    status, out, err = shell('"$@" >&-', child_environment, *arguments, *paths)
    assert (status, out) == (4, "")
    assert_one_line(err, "standard output", "closed")


def test_a_closed_standard_output_changes_nothing(copy_of, child_environment):
    log_dir = copy_of("4.3.1/killed")
    before = sorted((path, path.stat().st_mtime_ns) for path in log_dir.rglob("*"))
    status, _, _ = shell('"$@" >&-', child_environment, "recover", "--apply", log_dir)
    assert status == 4
    assert sorted((path, path.stat().st_mtime_ns) for path in log_dir.rglob("*")) == before


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_a_standard_error_that_takes_nothing_does_not_change_the_verdict(
    partition, damaged_log, child_environment, redirect
):
    said = shell('"$@"', child_environment, "verify", "-f", "ndjson", partition)
    status, out, err = shell(
        f'"$@" {redirect}', child_environment, "verify", "-f", "ndjson", partition
    )
    assert (status, err) == (said[0], "") == (1, "")
    codes = [
        [json.loads(line).get("code") for line in text.splitlines()] for text in (out, said[1])
    ]
    assert codes[0] == codes[1]
    assert "batch/crc" in codes[0]


def test_with_all_streams_closed_no_file_takes_their_place(partition, child_environment):
    before = {path: path.read_bytes() for path in partition.iterdir()}
    assert shell('"$@" <&- >&- 2>&-', child_environment, "verify", partition)[0] == 4
    assert {path: path.read_bytes() for path in partition.iterdir()} == before


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["verify", "--help"], ["explain", "batch/crc"]]
)
def test_what_does_not_fit_on_a_full_device_is_said_in_one_line(child_environment, arguments):
    status, _, err = shell('"$@" >/dev/full', child_environment, *arguments)
    assert status == 4
    assert_one_line(err, "No space left")


def test_a_closed_standard_input_names_no_paths(child_environment):
    status, out, err = shell('"$@" <&-', child_environment, "verify", "--files-from", "-")
    assert (status, out) == (4, "")
    assert_one_line(err, "--files-from -", "closed")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("command", ["verify", "dump", "stat"])
def test_a_signal_ends_a_command_with_a_summary(
    scenario, child_environment, command, number, status
):
    line = [command, "-v", "-f", "ndjson", scenario("4.3.1/clean")]
    code, lines, errors = interrupted(*line, environment=child_environment(), number=number)
    last = json.loads(lines[-1])
    assert (code, last["type"], last["complete"]) == (status, "summary", False)
    assert "Traceback" not in errors


def test_nohup_holds(scenario, child_environment):
    code, lines, _ = interrupted(
        "verify", "-v", "-f", "ndjson", scenario("4.3.1/clean"),
        environment=child_environment(), number=signal.SIGHUP,
        before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    assert code == 0
    assert json.loads(lines[-1])["complete"] is True


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_lines_that_a_signal_ends_are_whole_and_in_order_before_the_summary(
    log, make_batch, child_environment, unbuffered
):
    # Lines are made in a thread, some MiB ahead of those that a reader has taken.
    batches = [make_batch(n, [Record(0, value=b"%d" % n * 20_000)]) for n in range(600)]
    log.write_bytes(b"".join(batches))
    command = [sys.executable, "-m", "logtool", "dump", "--records", "--format", "ndjson", log]
    environment = child_environment() | {"PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout
        taken = process.stdout.read(3_000_000)
        process.send_signal(signal.SIGINT)
        taken += process.stdout.read()
    assert process.returncode == 130
    *lines, summary = map(json.loads, taken.splitlines())
    assert (summary["type"], summary["complete"]) == ("summary", False)
    offsets = [line["offset"] for line in lines if line["type"] == "record"]
    assert offsets == list(range(len(offsets)))
    assert 0 < len(offsets) < len(batches)


def test_a_signal_while_python_compiles_a_text_keeps_its_status(child_environment):
    # Dataclasses compile their methods by `exec` when they are first used.
    program = (
        "import sys\n"
        "from logtool.errors import ending, signal_of\n"
        "try:\n"
        "    exec('raise end', {'end': ending(2)})\n"
        "except KeyboardInterrupt as end:\n"
        "    sys.exit(128 + signal_of(end))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=child_environment(), check=False)
    assert done.returncode == 130
