"""The commit that `logtool --version` prints."""

from pathlib import Path

import pytest

import logtool
from logtool.commands.program.version import commit_of

COMMIT = "b72e7b3f6a42fefff6c0daba521dc48f4c65316b"
CLONES = {
    "a branch": {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{COMMIT}\n"},
    "a packed branch": {
        "HEAD": "ref: refs/heads/main\n",
        "packed-refs": f"# pack-refs with: peeled\n{'0' * 40} refs/heads/x\n"
        f"{COMMIT} refs/heads/main\n",
    },
    "no branch": {"HEAD": f"{COMMIT}\n"},
}


def written(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


@pytest.mark.parametrize("name", CLONES)
def test_the_commit_of_a_clone(name, tmp_path):
    written(tmp_path / ".git", CLONES[name])
    assert commit_of(tmp_path / "logtool") == COMMIT[:12]


def test_the_commit_of_a_worktree(tmp_path):
    written(tmp_path / "main" / ".git", CLONES["a branch"])
    own = tmp_path / "main" / ".git" / "worktrees" / "x"
    written(own, {"HEAD": "ref: refs/heads/main\n", "commondir": "../..\n"})
    written(tmp_path / "tree", {".git": f"gitdir: {own}\n"})
    assert commit_of(tmp_path / "tree" / "logtool") == COMMIT[:12]


def test_a_package_has_the_commit_that_its_builder_wrote_or_none(tmp_path):
    written(tmp_path / "logtool", {"__init__.py": ""})
    assert commit_of(tmp_path / "logtool") is None
    written(tmp_path / "logtool", {"commit.txt": f"{COMMIT}\n"})
    assert commit_of(tmp_path / "logtool") == COMMIT[:12]
    written(tmp_path / "b", {".git/HEAD": "ref: refs/heads/new\n", ".git/packed-refs": ""})
    assert commit_of(tmp_path / "b" / "logtool") is None


def test_changelog_and_citation_have_the_version() -> None:
    root = Path(logtool.__file__).parents[1]
    assert f"## [{logtool.__version__}] - " in (root / "CHANGELOG.md").read_text()
    assert f"\nversion: {logtool.__version__}\n" in (root / "CITATION.cff").read_text()
