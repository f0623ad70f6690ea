"""Commands that are printed, read back by shells."""

import shutil
import subprocess

import pytest

from logtool.disk import shell

WORDS = [
    "plain", "with space", "it's", "-rf-0", "--apply", "a\nb", "a\tb", "tab\t'and'\nquote\\",
    "$HOME", "`id`", "$(id)", "a;b", "*", "~", "", "ключ", "\u202egnp", "\x1b[31m", "!history",
    "byte \udcff", "bell \x07" + "7", "back\\slash", "=ls", "=it's",
    "a\n!b'!'",
]  # fmt: skip
SHELLS = [found for found in map(shutil.which, ("bash", "zsh", "ksh", "mksh")) if found]


@pytest.mark.parametrize("word", WORDS, ids=ascii)
def test_a_shell_reads_back_every_word(word):
    printed = shell.quote(word)
    assert printed.isprintable()
    assert SHELLS
    for found in SHELLS:
        code = f"printf '%s\\0' {printed}"
        got = subprocess.check_output([found, "-c", code])
        assert got == word.encode("utf-8", "surrogateescape") + b"\0"


def test_a_path_is_never_an_option():
    assert shell.path("-rf-0") == "./-rf-0"
    assert shell.path("/data/-rf-0") == "/data/-rf-0"
    assert shell.path("-a b\n") == "$'./-a b\\012'"


def test_an_option_has_its_value_also_where_that_begins_with_a_dash():
    assert shell.option("--accept-loss", "orders-0") == "--accept-loss orders-0"
    assert shell.option("--accept-loss", "-rf-0") == "--accept-loss=-rf-0"
    assert shell.option("--accept-loss", "a b-0") == "--accept-loss 'a b-0'"
