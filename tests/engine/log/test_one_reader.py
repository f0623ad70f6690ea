"""Above the formats one module decompresses batches and decodes their records."""

import ast
from pathlib import Path

import logtool
from logtool.log import records

DECODERS = {
    "compression": {"decompress", "snappy_block_into"},
    "record": {"parse", "parse_slices"},
    "legacy_batch": {"parse_messages"},
}
"""By module of formats, what only `logtool.log.records` may use."""


def test_no_other_module_decodes_records() -> None:
    root = Path(logtool.__file__).parent
    files = [*(root.parent / "commands").rglob("*.py"), *root.rglob("*.py")]
    formats = root.parent / "formats"
    found = set()
    for path in {file.resolve() for file in files}:
        if path.is_relative_to(formats) or path == Path(records.__file__).resolve():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                module = node.value.id if isinstance(node.value, ast.Name) else ""
                used = {node.attr}
            elif isinstance(node, ast.ImportFrom):
                module = (node.module or "").rpartition(".")[2]
                used = {name.name for name in node.names}
            else:
                continue
            if used & DECODERS.get(module, set()):
                found.add(f"{path.name}:{node.lineno}")
    assert found == set()
