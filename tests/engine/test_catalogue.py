"""The catalogue of findings: complete in both directions, and fit to be printed."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

import logtool
from logtool.findings import Broker, Rule, Severity, catalogue

PACKAGE = Path(logtool.__file__).parent
CODE = re.compile(r"[a-z]+(-[a-z]+)*/[a-z]+(-[a-z]+)*")
WIDTH = 100
IMPOSSIBLE = {
    # Composed by the tables, but no input leads there: files of the root are never renamed for
    # deletion or compaction, and each index join gives only some of the verdicts.
    "data-dir/leftover-deleted",
    "data-dir/leftover-cleaned",
    "data-dir/leftover-swap",
    "offset-index/wrong-timestamp",
    "offset-index/later-before",
    "time-index/wrong-offset",
}
COMMANDS = {
    "checkpoint", "cleaner", "cluster", "diff", "dirs", "verify", "dump", "dump-index", "explain",
    "groups", "metadata", "plan", "quorum", "rebuild-index", "recover", "remote", "retention",
    "salvage", "txns", "undelete", "undo", "watermark",
}  # fmt: skip

Function = tuple[str, str]
"""(module, name)."""
Inside = ast.FunctionDef | None
"""The function that an expression stands in."""
Place = tuple[ast.expr, str, Inside]
"""An expression, its module and its function."""


class Source:
    """Works out which codes the source can give to a `Finding`, without running it.

    It begins at every ``Finding(code, ...)`` and ``replace(finding, code=...)`` and follows names
    back through assignments, loops over literals, module tables, parameters and their callers.
    """

    def __init__(self) -> None:
        self.trees: dict[str, ast.Module] = {}
        for folder in (
            "",
            "checks",
            "loading",
            "node",
            "log",
            "groups",
            "remote",
            "txns",
            "formats",
            "formats/automq",
            "commands",
        ):
            for path in sorted((PACKAGE / folder).glob("*.py")):
                name = ".".join(["logtool", *filter(None, folder.split("/")), path.stem])
                self.trees[name] = ast.parse(path.read_text("utf-8"), str(path))
        self._imports = {name: dict(_imports(tree)) for name, tree in self.trees.items()}
        self._functions = {
            (name, node.name): node
            for name, tree in self.trees.items()
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
        }
        self._calls = [
            (name, function, node)
            for name, tree in self.trees.items()
            for function, node in _calls(tree)
        ]

    def raised(self) -> set[str]:
        """Return every code that a finding can get."""
        codes: set[str] = set()
        for module, function, call in self._calls:
            code = self._code_argument(module, call)
            if code is None:
                continue
            found = self._values(code, module, function)
            assert found, f"{module}:{call.lineno}: the codes of this call are unknown"
            codes |= found
        return codes

    def mentioned(self) -> set[str]:
        """Return every literal that has the form of a code."""
        return {
            node.value
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and CODE.fullmatch(node.value)
        }

    def _code_argument(self, module: str, call: ast.Call) -> ast.expr | None:
        """Return the expression that becomes the code of a finding, if this call makes one."""
        name = self._target(module, call)[1]
        if name == "Finding" and call.args:
            return call.args[0]
        if name in ("Finding", "replace"):
            return next((k.value for k in call.keywords if k.arg == "code"), None)
        return None

    def _target(self, module: str, call: ast.Call) -> Function:
        match call.func:
            case ast.Name(id=name) if (module, name) in self._functions:
                return module, name
            case ast.Name(id=name):
                return self._imports[module].get(name, (module, name))
            case ast.Attribute(value=ast.Name(id=base), attr=name):
                return ".".join(self._imports[module].get(base, ("", base))), name
        return "", ""

    def _values(self, node: ast.expr, module: str, function: Inside) -> set[str]:
        """Return the strings that an expression can be; empty if that is unknown."""
        match node:
            case ast.Constant(value=str() as text):
                return {text}
            case ast.IfExp(body=one, orelse=other):
                return self._values(one, module, function) | self._values(other, module, function)
            case ast.FormattedValue(value=value):
                return self._values(value, module, function)
            case ast.JoinedStr(values=parts):
                each = [self._values(part, module, function) for part in parts]
                return {"".join(texts) for texts in product(*each)}
            case ast.Name() | ast.Subscript():
                found = [self._values(*place) for place in self._expand(node, module, function)]
                return set().union(*found)
        return set()

    def _expand(self, node: ast.expr, module: str, function: Inside) -> Iterator[Place]:
        """Yield the values that a name or a table stands for, each with the place it stands in."""
        if isinstance(node, ast.Subscript):
            for table, place, inside in self._expand(node.value, module, function):
                if isinstance(table, ast.Dict):
                    yield from ((value, place, inside) for value in table.values)
        if not isinstance(node, ast.Name):
            return
        if function and node.id in (names := [arg.arg for arg in _parameters(function)]):
            yield from self._arguments((module, function.name), node.id, names.index(node.id))
        for scope, inside in ((function, function), (self.trees[module], None)):
            if scope is None:
                continue
            found = list(_bindings(scope, node.id))
            for value, index, loops in found:
                for one in self._unpacked(value, index, loops, module, inside):
                    yield one, module, inside
            if found:
                return

    def _arguments(self, target: Function, name: str, index: int) -> Iterator[Place]:
        for module, function, call in self._calls:
            if self._target(module, call) == target:
                given = [k.value for k in call.keywords if k.arg == name]
                for value in given or call.args[index : index + 1]:
                    yield value, module, function

    def _unpacked(
        self, value: ast.expr, index: int | None, loops: bool, module: str, function: Inside
    ) -> Iterator[ast.expr]:
        """Yield the values of a target: `value`, or its elements, or part `index` of either."""
        values = [value]
        if loops:
            items = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
            source = value.func.value if items else value  # type: ignore[attr-defined]
            tables = [source, *(node for node, _, _ in self._expand(source, module, function))]
            values = []
            for table in tables:
                if isinstance(table, ast.Dict):
                    values += [
                        ast.Tuple([k, v], ast.Load())
                        for k, v in zip(table.keys, table.values, strict=True)
                        if k
                    ]
                elif isinstance(table, ast.List | ast.Tuple):
                    values += table.elts
        elif index is not None:
            values = [value, *(node for node, _, _ in self._expand(value, module, function))]
        for one in values:
            if index is None:
                yield one
            elif isinstance(one, ast.Tuple):
                yield one.elts[index]


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _imports(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, (node.module, alias.name)


def _calls(tree: ast.Module) -> Iterator[tuple[Inside, ast.Call]]:
    """Yield each call with the innermost function around it."""
    stack: list[tuple[Inside, ast.AST]] = [(None, tree)]
    while stack:
        function, node = stack.pop()
        if isinstance(node, ast.Call):
            yield function, node
        if isinstance(node, ast.FunctionDef):
            function = node
        stack += [(function, child) for child in ast.iter_child_nodes(node)]


def _bindings(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, int | None, bool]]:
    """Yield (value, index in it, whether it is looped over) of each place that binds `name`."""
    body = ast.walk(scope) if isinstance(scope, ast.FunctionDef) else ast.iter_child_nodes(scope)
    for node in body:
        match node:
            case ast.Assign(targets=[target], value=value):
                loops = False
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                loops = False
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                loops = True
            case _:
                continue
        if isinstance(target, ast.Name) and target.id == name:
            yield value, None, loops
        elif isinstance(target, ast.Tuple):
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Name) and part.id == name:
                    yield value, index, loops


@cache
def source() -> Source:
    return Source()


def texts(rule: Rule) -> tuple[str, ...]:
    said = rule.title, rule.meaning, *rule.broker_does.values(), rule.action
    return said if rule.redpanda is None else (*said, rule.redpanda)


EACH_RULE = pytest.mark.parametrize("rule", catalogue().values(), ids=catalogue())


def test_every_code_that_can_be_raised_is_in_the_catalogue() -> None:
    assert source().raised() - IMPOSSIBLE - set(catalogue()) == set()


def test_every_code_of_the_catalogue_can_be_raised() -> None:
    assert set(catalogue()) - (source().raised() - IMPOSSIBLE) == set()


def test_the_combinations_left_out_are_composed_somewhere() -> None:
    assert source().raised() >= IMPOSSIBLE


def test_every_code_that_the_source_mentions_is_in_the_catalogue() -> None:
    areas = {code.partition("/")[0] for code in catalogue()}
    mentioned = {code for code in source().mentioned() if code.partition("/")[0] in areas}
    assert mentioned - set(catalogue()) == set()


def test_titles_are_unique() -> None:
    titles = [rule.title for rule in catalogue().values()]
    assert len(titles) == len(set(titles))


def test_the_codes_of_an_area_stand_together() -> None:
    areas = [code.partition("/")[0] for code in catalogue()]
    changes = [area for before, area in zip([None, *areas], areas, strict=False) if area != before]
    assert len(changes) == len(set(changes))


def test_a_code_that_is_not_there_is_refused() -> None:
    from logtool.findings import Finding

    with pytest.raises(KeyError):
        _ = Finding("batch/none", "").severity


def test_each_rule_is_what_toml_reads_from_the_whole_file() -> None:
    whole = tomllib.loads((PACKAGE / "catalogue.toml").read_text("utf-8"))
    assert list(catalogue()) == list(whole)
    for code, entry in whole.items():
        rule = catalogue()[code]
        named = "severity", "broker", "remedy"
        assert [getattr(rule, name) for name in named] == [entry[name] for name in named]
        does = {role: text.strip() for role, text in entry["broker-does"].items()}
        assert list(rule.broker_does.items()) == list(does.items())
        head, tail = ("title", "meaning"), ("action", "redpanda")
        before, after = ([entry[name].strip() for name in part if name in entry]
                         for part in (head, tail))  # fmt: skip
        assert list(texts(rule)) == [*before, *does.values(), *after]


def test_a_rule_is_parsed_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or loads(text))
    fresh = catalogue.__wrapped__()
    for _ in range(2):
        assert fresh["batch/crc"] == catalogue()["batch/crc"]
        assert "batch/none" not in fresh and fresh.get("batch/none") is None
    assert [text for text in parsed if "CRC" in text] == parsed
    assert sum(len(text) for text in parsed) < 5000


def test_the_file_is_plain_text_of_limited_width() -> None:
    for number, line in enumerate((PACKAGE / "catalogue.toml").read_text("utf-8").splitlines(), 1):
        assert len(line) <= WIDTH, f"line {number}"
        assert line == line.rstrip(), f"line {number}"
        assert line.isascii() and line.isprintable(), f"line {number}"


@EACH_RULE
def test_form(rule: Rule) -> None:
    assert CODE.fullmatch(rule.code)
    assert all(text.strip() for text in texts(rule))
    assert "\n" not in rule.title and len(rule.title) <= 80
    assert rule.title[0].islower() or rule.title.split()[0].isupper()
    assert not rule.title.endswith(".")
    said = dict.fromkeys(rule.broker_does.values(), 4)
    reported = (rule.meaning, 5), (rule.action, 4), (rule.redpanda or ".", 4), *said.items()
    assert said
    for text, most in reported:
        assert text.endswith((".", ":"))
        assert len(text.splitlines()) <= most


@EACH_RULE
def test_what_stops_a_broker_is_an_error(rule: Rule) -> None:
    if rule.broker is Broker.REFUSES:
        assert rule.severity is Severity.ERROR


@EACH_RULE
def test_actions_name_only_commands_that_exist(rule: Rule) -> None:
    named = re.findall(r"`logtool ([a-z-]+)", " ".join(texts(rule)))
    assert set(named) <= COMMANDS


@EACH_RULE
def test_no_action_says_to_remove_what_holds_records(rule: Rule) -> None:
    assert not re.search(r"\brm\b", " ".join(texts(rule)))
    for sentence in re.split(r"[.:;](?:\s|$)", rule.action):
        if re.search(r"\b(remove|delete)\b", sentence, re.IGNORECASE):
            kept = re.search(r"\b[Dd]o not\b|stale\s+rows", sentence)
            assert kept, sentence
