"""`dataclass` as the standard library has it, with methods that are compiled when they are called.

The standard library compiles up to six methods of each class while its module is imported, a third
of a millisecond for a frozen one. A command imports 60 to 180 such classes: that took a fifth of a
short run, which makes one or two objects of half of them and compares few. Here a class gets its
fields and slots at once. The fields of its first objects are set one by one; then its initializer
is compiled, and what compares, hashes and shows objects when it is first called. All these are the
standard library's own. Nothing is compiled to refuse a change of a frozen object: one function does
so for all.

Type checkers see the standard library's decorator. Only its arguments below are taken.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

FEW = 100
"""Objects of a class before its initializer is compiled, which takes as long as a hundred do."""

_STANDARD = ("__repr__", "__eq__", "__hash__")


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> Callable[[type], type]:
    """Return a decorator that makes a dataclass whose methods are not yet compiled."""

    def decorated(plain: type) -> type:
        own = vars(plain).keys()
        cls: Any = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )(plain)
        if "__init__" not in own:
            cls.__init__ = _initializer(cls, frozen, slots)
        for name in _STANDARD if eq else _STANDARD[:1]:
            if name not in own:
                setattr(cls, name, _standard(cls, name, frozen, slots))
        if eq and not frozen:
            cls.__hash__ = None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
        if frozen and slots:
            cls.__getstate__, cls.__setstate__ = _state, _set_state
        made: type = cls
        return made

    return decorated


def _initializer(cls: Any, frozen: bool, slots: bool) -> Callable[..., None]:
    """Return an initializer that puts the standard library's in its place.

    It does so after a few objects, and where arguments do not fit, which that one refuses.
    """
    put = object.__setattr__ if frozen else setattr
    fields: tuple[dataclasses.Field[Any], ...] = ()
    left = FEW

    def filled(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Set the fields one by one; returns False where an argument does not fit."""
        by_position = by_name = 0
        for field in fields:
            name = field.name
            if field.init and not field.kw_only and by_position < len(args):
                put(self, name, args[by_position])
                by_position += 1
            elif field.init and name in kwargs:
                put(self, name, kwargs[name])
                by_name += 1
            elif field.default_factory is not dataclasses.MISSING:
                put(self, name, field.default_factory())
            elif field.default is not dataclasses.MISSING:
                # Without slots the class has the default of what is no argument.
                if field.init or slots:
                    put(self, name, field.default)
            elif field.init:
                return False
        return by_position + by_name == len(args) + len(kwargs)

    def first_calls(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal fields, left
        fields = fields or dataclasses.fields(cls)
        left -= 1
        if left >= 0 and filled(self, args, kwargs):
            if hasattr(cls, "__post_init__"):
                self.__post_init__()
            return
        compiled = _made(cls, frozen, slots, init=True).__init__
        compiled.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = compiled
        compiled(self, *args, **kwargs)

    return first_calls


def _standard(cls: Any, name: str, frozen: bool, slots: bool) -> Callable[..., Any]:
    """Return a method that puts the standard library's in its place."""

    def method(self: Any, *args: Any) -> Any:
        setattr(cls, name, getattr(_made(cls, frozen, slots, init=False), name))
        return getattr(cls, name)(self, *args)

    return method


def _made(cls: Any, frozen: bool, slots: bool, *, init: bool) -> Any:
    """Return a class of the standard library with the fields of `cls`, to take methods from.

    It has an initializer, or what shows, compares and hashes.
    """
    fields = [(one.name, one.type, one) for one in dataclasses.fields(cls)]
    own: dict[str, Any] = {"__doc__": "If True, no signature is composed for the class."}
    if hasattr(cls, "__post_init__"):
        own["__post_init__"] = None  # asked for, not called
    return dataclasses.make_dataclass(
        cls.__name__, fields, namespace=own, init=init, repr=not init, eq=not init, frozen=frozen,
        slots=slots,
    )  # fmt: skip


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """Return the pickled state of a frozen object with slots, as the standard library does."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
