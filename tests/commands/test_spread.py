import ast
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer

from logtool.commands.program.spread import Without, spread


@dataclass(frozen=True)
class Group:
    """Three options."""

    first: Annotated[int, typer.Option("--first", help="The first.")] = 1
    second: Annotated[bool, typer.Option("--second")] = False
    third: Annotated[str | None, typer.Option("--third")] = None


taken = []


@spread
def whole(*, before: int = 0, group: Group, after: int = 0) -> None:
    """Take all of the group."""
    taken.append((before, group, after))


@spread
def part(*, group: Annotated[Group, Without("first", "third")]) -> None:
    """Take one option of the group."""
    taken.append(group)


def test_the_fields_of_a_group_stand_in_its_place_with_their_defaults():
    parameters = inspect.signature(whole).parameters
    assert list(parameters) == ["before", "first", "second", "third", "after"]
    assert [one.default for one in parameters.values()] == [0, 1, False, None, 0]
    assert whole.__annotations__["second"] == Group.__annotations__["second"]


def test_the_command_gets_an_object_of_the_group():
    whole(before=7, first=2, second=True, third="x", after=8)
    assert taken.pop() == (7, Group(2, True, "x"), 8)


def test_options_that_are_left_out_keep_their_defaults():
    assert list(inspect.signature(part).parameters) == ["second"]
    part(second=True)
    assert taken.pop() == Group(1, True, None)


def test_name_and_help_are_those_of_the_command_and_the_function_within_stays_hidden():
    assert (whole.__name__, "the group" in whole.__doc__) == ("whole", True)
    assert inspect.unwrap(whole) is whole


def test_a_mistyped_name_of_an_option_to_leave_out_is_an_error_when_the_command_is_defined():
    def command(*, group: Annotated[Group, Without("fourth")]) -> None:
        pass

    with pytest.raises(TypeError, match="fourth"):
        spread(command)


def commands():
    """Return the functions of commands that take groups, with where each stands."""
    folder = Path(__file__).resolve().parents[2] / "commands"
    return {
        f"{path.stem}.{node.name}": node
        for path in sorted(folder.glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and any(getattr(one, "id", None) == "spread" for one in node.decorator_list)
    }


@pytest.mark.parametrize("name", commands())
def test_a_command_is_short_and_has_a_dozen_options_of_its_own_at_most(name):
    function = commands()[name]
    text = function.body[0]  # the help and the man page, which may be long
    lines = function.end_lineno - function.lineno - (text.end_lineno - text.lineno)
    assert lines < 40
    assert len(function.args.args + function.args.kwonlyargs) <= 12
