"""The promises of man/logtool-trust.md that something never happens."""

import ast
import socket
from pathlib import Path

import pytest

from logtool import cli
from logtool.errors import UsageError
from logtool.running import resume
from logtool.watermark.simulation import scenario

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path
    for folder in ("logtool", "commands", "formats")
    for path in (ROOT / folder).rglob("*.py")
    if not any(part.is_symlink() for part in path.parents)
)
FORBIDDEN = {
    "pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "subprocess", "socket",
    "urllib.request", "http.client", "ftplib", "smtplib", "telnetlib", "code", "yaml", "ctypes",
}  # fmt: skip
ALLOWED = {
    # To find out which Java there is.
    ("logtool/running/java.py", "subprocess"),
    # To find out whether a master of Spark answers, and to read how its JVM ended: it starts none.
    ("logtool/spark/session.py", "socket"),
    ("logtool/spark/session.py", "subprocess"),
    # For the name of this machine.
    ("logtool/spark/scan/ownership.py", "socket"),
}
CALLS = {"eval", "exec", "compile", "__import__", "breakpoint"}
METHODS = {("os", "system"), ("os", "popen"), ("os", "execv"), ("os", "spawnv"), ("os", "fork")}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def called(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            yield node.func.value.id, node.func.attr


def test_no_module_can_unpickle_evaluate_start_a_program_or_open_a_connection():
    assert len(SOURCES) > 200
    found = set()
    for path in SOURCES:
        name = str(path.relative_to(ROOT))
        tree = ast.parse(path.read_text())
        found |= {(name, module) for module in imported(tree) if module in FORBIDDEN}
        found |= {(name, call) for call in called(tree) if call in CALLS | METHODS}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in ("shell", "allow_pickle"):
                assert isinstance(node.value, ast.Constant), name
                assert node.value.value is False, name
    assert found == ALLOWED


@pytest.mark.parametrize("command", [["verify"], ["plan"], ["recover"], ["gaps"], ["stat"]])
def test_a_local_path_uses_no_network(scenario, monkeypatch, capsys, command):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert cli.run([*command, str(scenario("4.3.1/clean"))]) in (0, 1)
    assert "bug" not in capsys.readouterr().err


FORGED_RESUME = [
    b"[" * 100_000, b'{"schema": "logtool.resume/1", "checked": []}',
    b'{"schema": "logtool.resume/1", "checked": {"a": [1, 2]}}', b"9" * 5000, b"\xff", b"null",
    b'{"schema": "logtool.resume/1", "checked": {"a": [1e999, 2, 3]}}',
    b'{"schema": "logtool.resume/1", "checked": {"a": [1, 2, NaN]}}',
]  # fmt: skip


@pytest.mark.parametrize("content", FORGED_RESUME, ids=range(len(FORGED_RESUME)))
def test_a_forged_resume_file_is_one_line(tmp_path, content):
    path = tmp_path / "resume.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"resume\.json.* --resume"):
        resume.load(path)


def test_a_resume_file_is_not_written_through_a_link_that_waits_for_it(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "resume.json.tmp").symlink_to(victim)
    resume.load(tmp_path / "resume.json").save()
    assert victim.read_bytes() == b"precious"
    assert resume.load(tmp_path / "resume.json").checked == {}


@pytest.mark.parametrize(
    "text", ["replicas = " + "[" * 5000 + "]" * 5000, "leader = " + "9" * 5000, "a = \udcff"]
)
def test_a_file_that_is_no_scenario_is_one_line(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=r"mine\.toml: "):
        scenario.read(str(path))
