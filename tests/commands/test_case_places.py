"""The places in a case file that answers name: ``CASE.tar.zst:/PLACE``, which commands take."""

import shlex
from pathlib import Path

import pytest
from cases import COMMANDS
from damage import cut, damage_file, flip, zero
from verification import small_log_dir

from logtool.disk import expanded

ODD = ("-rf.tar.zst", "my $(touch evil) case.tar.zst")
"""Names of case files that a shell must be given in quotes."""


@pytest.fixture(params=["case.tar.zst"])
def case(request, run, scenario, tmp_path: Path, monkeypatch) -> str:
    """Return the relative name of a case file of a damaged log dir."""
    home = small_log_dir(
        scenario("4.3.1/killed"), tmp_path / "data", "codec-none-0", "codec-zstd-0", "tx.mixed-0",
        "small-segments-0", "__transaction_state-0",
    )  # fmt: skip
    damage_file(home / "codec-none-0" / f"{0:020d}.log", flip, 70)
    damage_file(home / "codec-zstd-0" / f"{0:020d}.log", cut, 900)
    damage_file(home / "tx.mixed-0" / f"{0:020d}.index", zero, 0, 8)
    (home / "replication-offset-checkpoint").write_text("0\n1\ncodec-none 0 999999\n")
    assert run("case", "--output", tmp_path / request.param, home).status == 0
    monkeypatch.chdir(tmp_path)
    return request.param


def texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_no_answer_names_a_temporary_directory(run, case, words) -> None:
    for more in ((), ("-v",), ("-f", "csv"), ("-f", "json"), ("-f", "ndjson")):
        found = run(*words, *more, f"./{case}")
        assert "logtool-case-" not in found.stdout + found.stderr, more
    paths = [one["path"] for one in found.objects if one.get("path")]
    assert paths or words == ("txns",)
    assert all(path.startswith(f"{case}:/1/data") for path in paths)


@pytest.mark.parametrize("case", ODD, indirect=True)
def test_a_printed_command_can_be_pasted(run, case) -> None:
    commands = set()
    for words in COMMANDS:
        found = run(*words, "-f", "ndjson", f"./{case}")
        lines = [line.strip() for line in run(*words, f"./{case}").stderr.splitlines()]
        commands |= {one for one in (*texts(found.objects), *lines) if one.startswith("logtool ")}
    for command in commands:
        name, *rest = shlex.split(command)[1:]
        assert name in (*expanded.COMMANDS, "explain"), command
        assert run(name, *rest).status in (0, 1), command
    assert any(command.startswith("logtool verify ") for command in commands)


def test_a_place_is_taken_in_place_of_the_file(run, case) -> None:
    whole = run("stat", "-f", "ndjson", case).objects[-1]
    log_dir = run("stat", "-f", "ndjson", f"{case}:/1/data").objects[-1]
    assert log_dir["batches"] == whole["batches"]
    (one,) = run("gaps", "-f", "ndjson", f"{case}:/1/data/codec-none-0").of_type("partition")
    assert one["path"] == f"{case}:/1/data/codec-none-0"
    assert run("dump", f"{case}:/1/data/codec-none-0").status == 2


@pytest.mark.parametrize("place", ["2/data", "1/dat", "1/data/../..", "1/data/absent-0"])
def test_a_place_that_is_not_there_is_incomplete(run, scenario, tmp_path, place) -> None:
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", "codec-none-0")
    case = tmp_path / "case.tar.zst"
    assert run("case", "--output", case, home).status == 0
    found = run("verify", f"{case}:/{place}")
    assert found.status == 4
    assert "logtool-case-" not in found.stderr
