"""Options that several commands share, written once as dataclasses and spread into signatures.

A command names such a dataclass as the type of a parameter and gets an object of it. Typer, the
help and the man page see its fields, each as an option of its own, in the place of the parameter::

    @spread
    def stat(*, inputs: Inputs, segments: Segments = False, printing: Printing) -> None:
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_args

Command = Callable[..., None]


class Without:
    """Options of a group that a command does not take; they keep their defaults.

    Use as ``printing: Annotated[Printing, Without("progress")]``.
    """

    def __init__(self, *names: str) -> None:
        self.names = names


def spread(function: Command) -> Command:
    """Return the command with each parameter that is a dataclass replaced by its fields."""
    signature = inspect.signature(function)
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        group, *notes = get_args(parameter.annotation) or (parameter.annotation,)
        if not (isinstance(group, type) and is_dataclass(group)):
            parameters.append(parameter)
            continue
        left_out = {one for note in notes if isinstance(note, Without) for one in note.names}
        if unknown := left_out - {field.name for field in fields(group)}:
            raise TypeError(f"{group.__name__} has no option {', '.join(sorted(unknown))}")
        taken = [field for field in fields(group) if field.name not in left_out]
        groups[name] = group, [field.name for field in taken]
        parameters += [
            parameter.replace(name=field.name, annotation=field.type, default=field.default)
            for field in taken
        ]

    def command(**given: Any) -> None:
        made = {
            name: group(**{option: given.pop(option) for option in options})
            for name, (group, options) in groups.items()
        }
        function(**given, **made)

    # Not functools.wraps: inspect.signature must not find the signature of the inner function.
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__module__, command.__qualname__ = function.__module__, function.__qualname__
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command
