from pathlib import Path

import pytest

from logtool.errors import UsageError
from logtool.log import inputs
from logtool.log.inputs import NodeDir

NAMED = {
    "a directory": ("/data", NodeDir(Path("/data"))),
    "with its broker": ("7=/data", NodeDir(Path("/data"), 7)),
    "a directory with a sign in it": ("1=/a=b", NodeDir(Path("/a=b"), 1)),
    "a line end in it": ("1=/a\nb", NodeDir(Path("/a\nb"), 1)),
    "no directory": ("1=", NodeDir(Path("1="))),
    "no number": ("x=/data", NodeDir(Path("x=/data"))),
    "more digits than an id has": ("12345678901=/data", NodeDir(Path("12345678901=/data"))),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_a_text_names(name):
    text, meant = NAMED[name]
    assert inputs.parse_node_dir(text) == meant


def test_a_directory_that_is_there_by_the_whole_text_is_that_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1=data").mkdir()
    assert inputs.parse_node_dir("1=data") == NodeDir(Path("1=data"))


def test_the_path_behind_the_number_is_held_to_what_the_command_takes():
    def refuse(text):
        raise UsageError(text)

    with pytest.raises(UsageError, match=r"^s3://bucket$"):
        inputs.parse_node_dir("1=s3://bucket", refuse)
