"""``logtool generate``: write man pages, shell completions and JSON Schemas."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from logtool.commands.program import completion, guides, manual
from logtool.commands.program.command_tree import read_tree
from logtool.commands.program.printed import documents_printed
from logtool.errors import UsageError
from logtool.schemas import documents

_RELEASE = re.compile(r"^## \[[0-9.]+\] - ([0-9]{4}-[0-9]{2}-[0-9]{2})$", re.MULTILINE)
Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The root of the repository.", show_default=False)
]


def generate(context: typer.Context, directory: Directory) -> None:
    """Write man pages, completions and JSON Schemas below DIR.

    They are made from the commands, from the guides in man/, and from the column tables in
    logtool/schemas. Man pages have the date of the newest release in CHANGELOG.md. The same
    input makes the same files. Pages of commands and guides that do not exist any more are removed.

    Examples:
      logtool generate .

    Exit status:
      0    the files were written
      2    DIR is not a directory, its CHANGELOG.md has no release with a date, or a guide in its
           man/ has no title

    """
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    try:
        date = release_date((directory / "CHANGELOG.md").read_text("utf-8"))
        guides_there = written_guides(directory / "man")
        files = generated_files(context.find_root().command, guides_there, date)
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    for name in files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
    for stale in (directory / "man").glob("logtool*.[17]"):
        if f"man/{stale.name}" not in files:
            stale.unlink()
    for name, content in files.items():
        (directory / name).write_text(content, "utf-8")


def release_date(changelog: str) -> str:
    """Return the date of the newest release in a changelog; ValueError without one."""
    newest = _RELEASE.search(changelog)
    if newest is None:
        raise ValueError("CHANGELOG.md has no release with a date")
    return newest[1]


def written_guides(folder: Path) -> dict[str, str]:
    """Return the Markdown of the guides in `folder` that people write, by name."""
    there = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("logtool*.md"))}
    return {name: text for name, text in there.items() if name not in guides.made()}


def generated_files(program: Any, written: dict[str, str], date: str) -> dict[str, str]:
    """Return every generated file by its path in the repository.

    Args:
        program: the whole program.
        written: the Markdown of the guides that people write, by name.
        date: the date of the newest release, for the man pages.

    Raises:
        ValueError: a guide does not begin with its title.

    """
    root, commands = read_tree(program)
    made = guides.made()
    texts = {**written, **made}
    names = sorted(texts)
    pages = {
        f"man/{manual.page_name(command)}.1": manual.render(command, commands, names, date)
        for command in (root, *commands)
    }
    pages |= {f"man/{name}.7": guides.render(name, texts[name], names, date) for name in names}
    pages |= {f"man/{name}.md": text for name, text in made.items()}
    pages |= {
        f"logtool/schemas/{name}": text
        for name, text in documents.files(documents_printed()).items()
    }
    return pages | {
        "completions/logtool": completion.bash(root, commands),
        "completions/_logtool": completion.zsh(root, commands),
        "completions/logtool.fish": completion.fish(root, commands),
    }
