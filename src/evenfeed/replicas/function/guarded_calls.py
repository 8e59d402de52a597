"""Checks each call in code that is traced once instead of being run in each iteration of a loop."""

import ast
import builtins
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final, cast

from evenfeed.core.captures import names_used
from evenfeed.replicas.function.loop_checks import why_not_traced
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.function.source_code import compiled_again, definition_of
from evenfeed.replicas.function.staging import Unstaged

CALL: Final = "_evenfeed_call"
READ: Final = "_evenfeed_read"
ITEM: Final = "_evenfeed_item"
MISSING: Final = object()

_BUILTINS: Final = tuple(
    getattr(builtins, name)
    for name in [
        "abs",
        "all",
        "any",
        "bool",
        "complex",
        "dict",
        "divmod",
        "enumerate",
        "float",
        "frozenset",
        "getattr",
        "hasattr",
        "int",
        "isinstance",
        "issubclass",
        "len",
        "list",
        "max",
        "min",
        "next",
        "pow",
        "range",
        "reversed",
        "round",
        "set",
        "sorted",
        "str",
        "sum",
        "tuple",
        "type",
        "zip",
    ]
)
# Their functions compute, or become part of the traced program.
LIBRARIES: Final = frozenset(
    ["equinox", "evenfeed", "flax", "jax", "jaxlib", "keras", "math", "numpy", "operator", "optax"]
)
# Except for these: they keep something, or do something else than in a trace.
_WITH_EFFECTS: Final = (
    "evenfeed.checkpoints",
    "evenfeed.replicas.generators",
    "evenfeed.summaries",
    "evenfeed.tensors.distributions",
    "evenfeed.tensors.python_calls",
    "evenfeed.tensors.randomness",
    "jax.profiler",
    "numpy.random",
)
VALUES: Final = (bool, int, float, complex, str, bytes, type(None))
_UNCHANGING: Final = (str, bytes, int, float, complex, tuple, frozenset, range)


class _Thread(threading.local):
    """What traced code has read from Python objects: how to read it again, and what it was."""

    found: "list[tuple[Callable[[], Any], Any]] | None" = None


reading: Final = _Thread()


def are_unchanged(found: "Sequence[tuple[Callable[[], Any], Any]]") -> bool:
    """Return True if values that traced code read from Python objects are still the same."""
    try:
        return all(_is_same(read(), before) for read, before in found)
    except (LookupError, ValueError):  # an entry or the value of a closure is gone
        return False


def _is_same(now: Any, before: Any) -> bool:
    return now is before or (
        type(now) is type(before) and isinstance(now, VALUES) and now == before
    )


def _noted(value: Any, read: Callable[[], Any]) -> Any:
    if reading.found is not None and (isinstance(value, VALUES) or is_tensor_leaf(value)):
        reading.found.append((read, value))
    return value


def note_globals(function: FunctionType) -> None:
    """Note the values of the globals that a function names."""
    space = function.__globals__
    for name in set(names_used(function.__code__)) & space.keys():
        _noted(space[name], partial(space.get, name, MISSING))


def guarded_read(owner: Any, name: str) -> Any:
    """Return an attribute, and note its value if it may be another one at the next call."""
    value = getattr(owner, name)
    is_library = str(type(owner).__module__).partition(".")[0] in LIBRARIES
    return value if is_library else _noted(value, partial(getattr, owner, name, MISSING))


def guarded_item(owner: Any, key: Any) -> Any:
    """Return an entry, and note its value if it may be another one at the next call."""
    value = owner[key]
    if not isinstance(owner, (dict, list)):
        return value
    entries = cast("dict[Any, Any]", owner)
    return _noted(value, lambda: entries[key])


class GuardedCalls(ast.NodeTransformer):
    """Wraps calls in `guarded_call`, and reads of Python objects in `guarded_read`, except in inner functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Leave inner functions alone: they are checked when they are called, unless the call is a step."""
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Leave inner functions alone."""
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """Wrap the function of a call."""
        self.generic_visit(node)
        node.func = _called(CALL, [node.func], node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Wrap the read of an attribute."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return _called(READ, [node.value, ast.Constant(node.attr)], node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """Wrap the read of an entry."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        key = node.slice
        parts = key.elts if isinstance(key, ast.Tuple) else [key]
        if any(isinstance(each, ast.Slice) for each in parts):
            return node  # of a tensor, or a new list
        return _called(ITEM, [node.value, key], node)


def _called(name: str, arguments: list[ast.expr], place: ast.AST) -> ast.expr:
    call = ast.Call(ast.Name(name, ast.Load()), arguments, [])
    return ast.fix_missing_locations(ast.copy_location(call, place))


def guarded_call(function: Any) -> Callable[..., Any]:
    """Return a function for a call in traced code: itself, or a version of it in which calls are checked too.

    Raises:
        Unstaged: It may do something that must be done in each iteration.
    """
    if _is_harmless(function):
        return function
    if isinstance(function, partial):
        given = cast("partial[Any]", function)
        return partial(guarded_call(given.func), *given.args, **given.keywords)
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        note_globals(function.__func__)
        return MethodType(_guarded(function.__func__), function.__self__)
    if isinstance(function, FunctionType):
        note_globals(function)
        return _guarded(function)
    name = getattr(function, "__name__", type(function).__name__)
    raise Unstaged(f"it calls {name}, which Python must do in each iteration")


def _is_harmless(function: Any) -> bool:
    if any(function is each for each in _BUILTINS):
        return True
    if isinstance(function, BuiltinMethodType) and isinstance(function.__self__, _UNCHANGING):
        return True
    # A function or class has a module of its own; any other object has that of its class.
    owner: Any = function if isinstance(function, (type, FunctionType)) else type(function)
    if isinstance(function, MethodType):
        owner = function.__func__
    elif isinstance(function, BuiltinMethodType):
        own: Any = function
        owner = own if own.__module__ else own.__self__.__class__
    module = str(owner.__module__)
    return module.partition(".")[0] in LIBRARIES and not module.startswith(_WITH_EFFECTS)


@lru_cache(maxsize=256)
def _guarded(function: FunctionType) -> FunctionType:
    definition = definition_of(function)
    if definition is None:
        raise Unstaged(f"it calls {function.__name__}, whose source code is not available")
    reason = why_not_traced(definition.body, is_loop=False)
    if reason is not None:
        raise Unstaged(f"it calls {function.__name__}, and {reason}")
    guard = GuardedCalls()
    definition.body = [cast("ast.stmt", guard.visit(each)) for each in definition.body]
    return compiled_again(function, definition, GUARDS)


# What guarded code calls, by name.
GUARDS: Final[dict[str, Any]] = {CALL: guarded_call, READ: guarded_read, ITEM: guarded_item}
