"""What a function captures: variables of enclosing functions, defaults, and the globals that it names.

This is the only module that looks into `__closure__` and `__globals__`.
"""

import builtins
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dis import get_instructions
from functools import lru_cache, partial
from operator import is_
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast, final

# Stands for the value of a variable that has none yet.
EMPTY: Final = object()

_FUNCTIONS: Final = (FunctionType, MethodType, partial)
_DEFINITIONS: Final = (FunctionType, MethodType, BuiltinFunctionType, ModuleType, type)

_ASSIGNING: Final = frozenset({"DELETE_DEREF", "STORE_DEREF"})
_ASSIGNING_GLOBALS: Final = frozenset({"DELETE_GLOBAL", "STORE_GLOBAL"})
_READING: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})

# The attribute of a function that keeps values: the function from which it was made. A table would never free it, as
# the one may refer to the other.
_LIVE: Final = "_evenfeed_live"


def bound_values(function: FunctionType) -> list[Any]:
    """Return the values of a function's closure variables, or EMPTY, and of its defaults."""
    cells = map(_content, function.__closure__ or ())
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def with_bound_values(function: FunctionType, values: Sequence[Any]) -> FunctionType:
    """Return a copy of a function with other bound values, in the order of `bound_values`."""
    cells, defaults = len(function.__closure__ or ()), len(function.__defaults__ or ())
    closure = tuple(CellType() if v is EMPTY else CellType(v) for v in values[:cells])
    rest = values[cells:]
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        tuple(rest[:defaults]),
        closure,
    )
    made.__kwdefaults__ = dict(zip(function.__kwdefaults__ or {}, rest[defaults:], strict=True))
    return made


# The Python code that they call sees the values of its own time.
_CALLED_LATER: Final = frozenset({"numpy_function", "py_func", "py_function"})
# They look at all names, or may change them.
_LOOKING: Final = frozenset({"eval", "exec", "globals", "locals", "vars"})


def with_values_of_now(
    function: Callable[..., Any], kept: dict[int, Callable[..., Any]] | None = None
) -> Callable[..., Any]:
    """Return a function that keeps the values which its variables have now, as a TensorFlow graph does.

    In `for k in range(3): parts.append(data.map(lambda x: x * k))`, each function has another `k`. Local functions that
    it captures keep theirs, too. Functions that modules define, classes and modules, variables without a value, and those
    that the function assigns to stay as they are: pickle finds what a module defines by its name.

    Args:
        function: The function.
        kept: What was made of the functions that capture it, and of others that they capture, by identity.
    """
    if type(function) is not FunctionType or _is_of_module(function):
        return function
    kept = {} if kept is None else kept
    if id(function) not in kept:
        kept[id(function)] = function  # for functions that capture themselves
        kept[id(function)] = _with_values_of_now(function, kept)
    return kept[id(function)]


def live(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that sees the values of its own time."""
    return getattr(function, _LIVE, function) if type(function) is FunctionType else function


def _with_values_of_now(
    function: FunctionType, kept: dict[int, Callable[..., Any]]
) -> Callable[..., Any]:
    code = function.__code__
    if not _LOOKING.isdisjoint(_names_in(code, _READING)):
        return function
    calls_later = not _CALLED_LATER.isdisjoint(names_used(code))
    cells = tuple(_cells_of_now(function, kept, _read_by(code) if calls_later else None))
    names = function.__globals__ if calls_later else _globals_of_now(function)
    if names is function.__globals__ and all(map(is_, cells, function.__closure__ or ())):
        return function
    made = FunctionType(code, names, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__module__, made.__doc__ = function.__module__, function.__doc__
    vars(made).update(vars(function))
    vars(made).setdefault(_LIVE, function)
    return made


def _is_of_module(function: FunctionType) -> bool:
    module = sys.modules.get(function.__module__)
    return getattr(module, function.__qualname__, None) is function


def _cells_of_now(
    function: FunctionType, kept: dict[int, Callable[..., Any]], names: Collection[str] | None
) -> Iterator[CellType]:
    """Yield the cells of a function, of which those with these names, or all, have a value of their own."""
    assigned = _names_in(function.__code__, _ASSIGNING)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        value = _content(cell)
        if name in assigned or (names is not None and name not in names):
            yield cell
            continue
        own = with_values_of_now(value, kept)
        is_same = own is value and (value is EMPTY or isinstance(value, _DEFINITIONS))
        yield cell if is_same else CellType(own)


def _read_by(code: CodeType) -> frozenset[str]:
    """Return the captured variables that a function itself reads, and not its inner functions alone."""
    found = (step for step in get_instructions(code) if step.opname == "LOAD_DEREF")
    return frozenset(step.argval for step in found)


def _globals_of_now(function: FunctionType) -> dict[str, Any]:
    code, names = function.__code__, function.__globals__
    used = _names_in(code, _READING)
    data = (names[name] for name in used if name in names)
    if all(isinstance(value, _DEFINITIONS) for value in data) or _names_in(
        code, _ASSIGNING_GLOBALS
    ):
        return names
    if any(name not in names and name not in _BUILTINS for name in used):
        return names  # it is defined later
    kept = (*used, "__builtins__", "__file__", "__name__", "__package__")
    return {name: names[name] for name in kept if name in names}


@lru_cache(maxsize=1024)
def _names_in(code: CodeType, instructions: frozenset[str]) -> frozenset[str]:
    """Return the names that some instructions of a function and of its inner functions have."""
    inner = [_names_in(part, instructions) for part in code.co_consts if isinstance(part, CodeType)]
    own = {step.argval for step in get_instructions(code) if step.opname in instructions}
    return frozenset(own).union(*inner)


def captured_values(function: FunctionType) -> Iterator[Any]:
    """Yield the values that a function uses besides its arguments: its bound values and its globals."""
    yield from (value for value in bound_values(function) if value is not EMPTY)
    names = function.__globals__
    yield from (names[name] for name in names_used(function.__code__) if name in names)


@lru_cache(maxsize=1024)
def names_used(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes that a function uses, and then those of its inner functions."""
    inner = [names_used(const) for const in code.co_consts if isinstance(const, CodeType)]
    return code.co_names + tuple(name for names in inner for name in names)


# Values that cannot change, and libraries whose functions depend on nothing but their arguments.
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))
_LIBRARIES: Final = frozenset({"evenfeed", "jax", "math", "numpy"})
# Except for these parts of them.
_STATEFUL: Final = frozenset(
    {"Module", "Variable", "data", "print", "random", "seterr", "summary", "timestamp", "update"}
)
_BUILTINS: Final = frozenset(vars(builtins))
_HARMLESS: Final = frozenset(
    {
        "abs",
        "all",
        "any",
        "bool",
        "dict",
        "divmod",
        "enumerate",
        "float",
        "int",
        "isinstance",
        "len",
        "list",
    }
    | {"max", "min", "pow", "range", "reversed", "round", "slice", "sum", "tuple", "zip"}
)


def _no_key(_: object) -> None:
    return None


# Instructions that change more than local variables.
_CHANGES: Final = frozenset({"IMPORT_NAME", "STORE_ATTR", "STORE_DEREF", "STORE_GLOBAL"})


def constant_key(
    function: object, key_of_value: Callable[[Any], str | None] = _no_key
) -> Hashable | None:
    """Return a key that functions have in common only if they always do the same; None if that is not certain.

    It is certain for code that refers to its arguments, to plain values, and to functions of a few libraries.

    Args:
        function: The function.
        key_of_value: Returns what counts of a captured value of another kind; None if the function may depend on more.
    """
    if (
        type(function) is not FunctionType
        or vars(function).keys() - {_LIVE}
        or not _changes_nothing(function.__code__)
    ):
        return None
    bound, names = bound_values(function), function.__globals__
    used = names_used(function.__code__)
    found = [(name, names[name]) for name in used if name in names]
    modules = [(name, id(value)) for name, value in found if _is_library(value)]
    plain = [(name, value) for name, value in found if type(value) in _PLAIN]
    if len(modules) + len(plain) < len(found):
        return None
    keys = [_key_of_bound(value, key_of_value) for value in bound]
    if None in keys:
        return None
    if any(name in _BUILTINS and name not in _HARMLESS and name not in names for name in used):
        return None
    code = function.__code__
    return (
        *(code, code.co_filename, function.__name__, tuple(function.__kwdefaults__ or ())),
        *(tuple(modules), tuple(name for name, _ in plain)),
        (*keys, *(_key_of_plain(value) for _, value in plain)),
    )


def _key_of_bound(value: Any, key_of_value: Callable[[Any], str | None]) -> str | None:
    known = type(value) in _PLAIN or _is_library(value)
    return _key_of_plain(value) if known else key_of_value(value)


def _key_of_plain(value: object) -> str:
    return f"{type(value)} {value!r}"


def _is_library(value: object) -> bool:
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _LIBRARIES


@lru_cache(maxsize=1024)
def _changes_nothing(code: CodeType) -> bool:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return (
        _STATEFUL.isdisjoint(code.co_names)
        and not any(step.opname in _CHANGES for step in get_instructions(code))
        and all(map(_changes_nothing, inner))
    )


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return EMPTY


def named_by(function: object, depth: int = 0) -> Iterator[Any]:
    """Yield the values that a callable refers to, and those of functions among them, up to `depth`."""
    match function:
        case FunctionType():
            values = list(captured_values(function))
        case MethodType():
            own = own_attributes(function.__self__, function.__func__)
            values = [*named_by(function.__func__), *own.values()]
        case partial():
            held = cast("partial[Any]", function)
            values = [*held.args, *held.keywords.values(), *named_by(held.func)]
        case _:
            call = call_of(function)
            values = [] if call is None else list(named_by(MethodType(call, function)))
    yield from values
    for value in values if depth else ():
        if isinstance(value, _FUNCTIONS) or call_of(value) is not None:
            yield from named_by(cast("object", value), depth - 1)


def call_of(function: object) -> FunctionType | None:
    """Return the `__call__` method of an object of a user class."""
    call = vars(cast("type[Any]", type(function))).get("__call__")
    return call if isinstance(call, FunctionType) else None


def own_attributes(owner: object, function: object) -> dict[str, Any]:
    """Return the attributes of an object that one of its methods uses."""
    held: Any = getattr(owner, "__dict__", None)
    if not isinstance(held, dict) or isinstance(owner, type):
        return {}
    names = _names_of_method(cast("type[Any]", type(owner)), function)
    return {name: value for name, value in cast("dict[str, Any]", held).items() if name in names}


def _names_of_method(kind: type, function: object) -> set[str]:
    """Return the names that a method uses, directly and through methods that it calls."""
    found: set[str] = set()
    pending = [function]
    while pending:
        method = pending.pop()
        names = set(names_used(method.__code__)) if isinstance(method, FunctionType) else set[str]()
        pending += [getattr(kind, name, None) for name in names - found]
        found |= names
    return found


class Place(ABC):
    """Something that a function may assign to."""

    @abstractmethod
    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yield its contents as pairs of key and value."""

    @abstractmethod
    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key."""

    @abstractmethod
    def label(self, key: Any) -> str:
        """Return how a user would write the entry of a key."""


def places_of(function: FunctionType) -> Iterator[Place]:
    """Yield the places outside of a function that it may assign to."""
    names = function.__code__.co_freevars
    yield from map(_Cell, function.__closure__ or (), names)
    yield Fields(function.__globals__, "", names_used(function.__code__))


@final
class _Cell(Place):
    """A variable of an enclosing function."""

    def __init__(self, cell: CellType, name: str) -> None:
        self._cell = cell
        self._name = name

    def items(self) -> Iterator[tuple[Any, Any]]:
        value = _content(self._cell)
        if value is not EMPTY:
            yield None, value

    def put(self, key: Any, value: Any) -> None:
        del key
        self._cell.cell_contents = value

    def label(self, key: Any) -> str:
        del key
        return self._name


@final
class Fields(Place):
    """The names of a module, or the attributes of an object.

    Args:
        values: The names and their values.
        before: How a user would write what stands before a name.
        names: The names that count, or None for all.
    """

    def __init__(
        self, values: dict[str, Any], before: str, names: Iterable[str] | None = None
    ) -> None:
        self._values = values
        self._before = before
        self._names = None if names is None else frozenset(names)

    def items(self) -> Iterator[tuple[Any, Any]]:
        for name in self._values.keys() if self._names is None else self._names:
            if name in self._values:
                yield name, self._values[name]

    def put(self, key: Any, value: Any) -> None:
        self._values[key] = value

    def label(self, key: Any) -> str:
        return f"{self._before}{key}"
