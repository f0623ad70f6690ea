"""``logtool generate``: write man pages, shell completions and JSON Schemas."""

from pathlib import Path
from typing import Annotated, Any

import typer

from logtool.commands.program import completion, guides, manual
from logtool.commands.program.command_tree import read_tree
from logtool.commands.program.printed import documents_printed
from logtool.errors import UsageError
from logtool.schemas import documents

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The root of the repository.", show_default=False)
]


def generate(context: typer.Context, directory: Directory) -> None:
    """Write man/ and completions/ below DIR from the commands and the guides themselves.

    What logtool/schemas says of the rows that commands print is written from the tables of columns
    there. The same commands and guides make the same files. Pages of what is gone are removed.

    Examples:
      logtool generate .

    Exit status:
      0    the files were written
      2    DIR is no directory, or a guide in its man/ has no title

    """
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    try:
        files = generated_files(context.find_root().command, written_guides(directory / "man"))
    except ValueError as error:
        raise UsageError(str(error)) from None
    for name in files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
    for stale in (directory / "man").glob("logtool*.[17]"):
        if f"man/{stale.name}" not in files:
            stale.unlink()
    for name, content in files.items():
        (directory / name).write_text(content, "utf-8")


def written_guides(folder: Path) -> dict[str, str]:
    """Return the Markdown of the guides in `folder` that people write, by name."""
    there = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("logtool*.md"))}
    return {name: text for name, text in there.items() if name not in guides.made()}


def generated_files(program: Any, written: dict[str, str]) -> dict[str, str]:
    """Return every generated file by its path in the repository.

    Args:
        program: the whole program.
        written: the Markdown of the guides that people write, by name.

    Raises:
        ValueError: a guide does not begin with its title.

    """
    root, commands = read_tree(program)
    made = guides.made()
    texts = {**written, **made}
    names = sorted(texts)
    pages = {
        f"man/{manual.page_name(command)}.1": manual.render(command, commands, names)
        for command in (root, *commands)
    }
    pages |= {f"man/{name}.7": guides.render(name, texts[name], names) for name in names}
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
