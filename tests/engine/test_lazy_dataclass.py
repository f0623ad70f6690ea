"""The project's dataclasses are those of the standard library, but for when they are compiled."""

import ast
import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import logtool
from logtool import lazy_dataclass

PACKAGE = Path(logtool.__file__).parent
SETTINGS = [
    {"frozen": frozen, "slots": slots, "eq": eq, "kw_only": kw_only}
    for frozen, slots, eq, kw_only in product((False, True), repeat=4)
]


def define(decorator: Callable[..., Any], settings: dict[str, bool], name: str) -> type:
    class Example:
        """An example."""

        first: int
        second: "str"
        third: list[int] = field(default_factory=list, compare=False)
        fourth: int = 4
        fifth: int = field(default=5, init=False)
        sixth: list[int] = field(default_factory=lambda: [6], init=False, repr=False)
        last: int = field(default=9, init=False)

        def both(self) -> str:
            return f"{self.first}{self.second}"

    base: Any = decorator(**settings)(Example)

    class More(base):
        """One with more fields, which looks at its object when it is made."""

        seventh: int = 7
        fourth: int = 44

        def __post_init__(self) -> None:
            object.__setattr__(self, "fifth", self.first + 50)

    More.__qualname__ = More.__name__ = name
    globals()[name] = decorator(**settings)(More)  # where pickle finds it
    made: type = globals()[name]
    return made


def define_both(number: int) -> tuple[type, type]:
    ours = define(lazy_dataclass.dataclass, SETTINGS[number], f"Ours{number}")
    theirs = define(dataclasses.dataclass, SETTINGS[number], f"Theirs{number}")
    return ours, theirs


EACH = pytest.mark.parametrize("number", range(len(SETTINGS)), ids=[str(s) for s in SETTINGS])


def outcome_of(act: Callable[[], object]) -> object:
    """Return the outcome of a call: a value as text, or an error, without the class's name."""
    try:
        done = act()
    except Exception as error:
        done = f"{type(error).__name__}: {error}"
    return str(done).replace("Ours", "").replace("Theirs", "")


def made(cls: Any, **more: object) -> Any:
    return cls(first=1, second="b", **more)


def compiled(cls: Any) -> Any:
    """Return the class when so many objects of it were made that its initializer is compiled."""
    for _ in range(lazy_dataclass.FEW + 1):
        made(cls)
    return cls


ACTS: dict[str, Callable[[Any], object]] = {
    "made": lambda cls: dataclasses.asdict(made(cls)),
    "made by position": lambda cls: dataclasses.asdict(cls(1, "b", [3], 4, 7)),
    "made with all": lambda cls: dataclasses.asdict(made(cls, third=[3], fourth=0, seventh=0)),
    "made twice": lambda cls: (made(cls), dataclasses.asdict(made(cls))),
    "an argument is missing": lambda cls: cls(first=1),
    "an argument is unknown": lambda cls: made(cls, eighth=8),
    "one that is not taken": lambda cls: made(cls, fifth=8),
    "one that is given twice": lambda cls: cls(1, first=2, second="b"),
    "too many": lambda cls: cls(1, "b", [3], 4, 7, 8),
    "shown": lambda cls: repr(made(cls)).partition(" object at ")[0],
    "equal": lambda cls: (made(cls) == made(cls, third=[3]), made(cls) != made(cls, fourth=0)),
    "equal to another": lambda cls: (made(cls) == 1, made(cls).__eq__(1)),
    "hashed": lambda cls: (hash(made(cls)) == hash(made(cls)), {made(cls): 1}[made(cls)]),
    "can be hashed": lambda cls: cls.__hash__ is None,
    "changed": lambda cls: setattr(made(cls), "first", 2),
    "changed back": lambda cls: (one := made(cls), setattr(one, "first", 2), one.first)[-1],
    "deleted": lambda cls: delattr(made(cls), "first"),
    "given what it has not": lambda cls: hasattr(made(cls), "__dict__"),
    "replaced": lambda cls: dataclasses.asdict(dataclasses.replace(made(cls), fourth=40)),
    "replaced what is not taken": lambda cls: dataclasses.replace(made(cls), fifth=40),
    "copied": lambda cls: dataclasses.asdict(copy.deepcopy(made(cls, third=[3]))),
    "pickled": lambda cls: dataclasses.asdict(pickle.loads(pickle.dumps(made(cls, third=[3])))),
    "matched": lambda cls: cls.__match_args__,
    "fields": lambda cls: [(one.name, one.type, one.init) for one in dataclasses.fields(cls)],
    "a method": lambda cls: made(cls).both(),
    "a list of its own": lambda cls: made(cls).third is made(cls).third,
    "the parameters": lambda cls: list(inspect.signature(compiled(cls)).parameters),
}


@EACH
def test_objects_do_what_those_of_the_standard_library_do(number: int) -> None:
    for name, act in ACTS.items():
        # New classes for each act: one that was compiled for another proves nothing.
        ours, theirs = define_both(number)
        assert outcome_of(partial(act, ours)) == outcome_of(partial(act, theirs)), name


@EACH
def test_objects_do_so_again_once_all_is_compiled(number: int) -> None:
    ours, theirs = define_both(number)
    compiled(ours)
    for _ in range(2):
        for name, act in ACTS.items():
            assert outcome_of(partial(act, ours)) == outcome_of(partial(act, theirs)), name


def test_nothing_is_compiled_before_it_is_needed() -> None:
    for settings in SETTINGS:
        cls: Any = define(lazy_dataclass.dataclass, settings, "Ours")
        methods = [vars(cls).get(name) for name in ("__init__", "__repr__", "__eq__", "__hash__")]
        files = {one.__code__.co_filename for one in methods if one is not None}
        assert files == {lazy_dataclass.__file__}
        made(cls)
        assert cls.__init__.__code__.co_filename == lazy_dataclass.__file__
        assert compiled(cls).__init__.__code__.co_filename == "<string>"


def test_every_dataclass_of_the_package_is_one_of_these() -> None:
    # The two links of the package are not followed.
    folders = PACKAGE, PACKAGE / "commands", PACKAGE / "formats"
    sources = {path for folder in folders for path in folder.resolve().rglob("*.py")}
    assert len(sources) > 300
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                taken = {one.name for one in node.names}
                assert "dataclass" not in taken or path.name == "lazy_dataclass.py", path
