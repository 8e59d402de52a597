"""Checks each call in code that is traced once instead of being run in each iteration of a loop."""

import ast
import builtins
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final, cast, final

from evenfeed.core.captures import bound_values, names_used
from evenfeed.core.conversion import Array
from evenfeed.replicas.function.loops.guarded_objects import (
    checked,
    entered,
    following,
    is_library,
    property_of,
    refuse_iterators,
)
from evenfeed.replicas.function.loops.loop_checks import why_not_traced
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.function.source_code import compiled_again, definition_of
from evenfeed.replicas.function.staging import Unstaged

CALL: Final = "_evenfeed_call"
READ: Final = "_evenfeed_read"
ITEM: Final = "_evenfeed_item"
CHECK: Final = "_evenfeed_check"
ENTER: Final = "_evenfeed_enter"
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
# They call functions among their arguments as Python code does.
_WITH_CALLS: Final = ("evenfeed.nest", "jax._src.tree", "jax.tree")
# They look at the class of their argument only.
_ON_TYPES: Final = (isinstance, issubclass, type)
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


@final
class HeldBytes:
    """A NumPy array, and a digest of what was in it.

    Args:
        array: The array. It has no Python objects.
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        self._kind = array.shape, array.dtype
        self._digest = _digest(array)

    def are_in(self, now: Any) -> bool:
        """Return True if it is the same array, and nobody has changed it in place."""
        return (
            now is self._array
            and (now.shape, now.dtype) == self._kind
            and _digest(now) == self._digest
        )


def _digest(array: Array) -> int:
    return hash(array.tobytes())  # 64 bits with a secret key, 2 to 3 GB per second


def _is_same(now: Any, before: Any) -> bool:
    if isinstance(before, HeldBytes):
        return before.are_in(now)
    return now is before or (
        type(now) is type(before) and isinstance(now, VALUES) and now == before
    )


def _noted(value: Any, read: Callable[[], Any]) -> Any:
    if reading.found is not None and (isinstance(value, VALUES) or is_tensor_leaf(value)):
        reading.found.append((read, value))
    return value


def note_captured(function: FunctionType) -> None:
    """Note the values of the globals that a function names, and check what it closes over.

    Raises:
        Unstaged: It has an iterator of Python.
    """
    space = function.__globals__
    refuse_iterators(bound_values(function))
    for name in set(names_used(function.__code__)) & space.keys():
        refuse_iterators([space[name]])
        _noted(space[name], partial(space.get, name, MISSING))


def guarded_read(owner: Any, name: str) -> Any:
    """Return an attribute, and note its value if it may be another one at the next call."""
    if is_library(type(owner).__module__):
        return getattr(owner, name)
    function = property_of(owner, name)
    if function is not None:
        return guarded_call(function)(owner)
    value = getattr(owner, name)
    refuse_iterators([value])
    return _noted(value, partial(getattr, owner, name, MISSING))


def _guarded_getattr(owner: Any, name: str, *default: Any) -> Any:
    try:
        return guarded_read(owner, name)
    except AttributeError:
        if default:
            return default[0]
        raise


def _guarded_hasattr(owner: Any, name: str) -> bool:
    return _guarded_getattr(owner, name, MISSING) is not MISSING


def guarded_item(owner: Any, key: Any) -> Any:
    """Return an entry, and note its value if it may be another one at the next call."""
    value = checked(owner)[key]
    refuse_iterators([value])
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
            node.value = _check(node.value)
            return node  # of a tensor, or a new list
        return _called(ITEM, [node.value, key], node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Check the objects that an operator computes with."""
        self.generic_visit(node)
        node.left, node.right = _check(node.left), _check(node.right)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Check the object that an operator computes with."""
        self.generic_visit(node)
        node.operand = _check(node.operand)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Check what is added to a variable."""
        self.generic_visit(node)
        node.value = _check(node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Check the objects that are compared, except by identity."""
        self.generic_visit(node)
        if not all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
            node.left, node.comparators = _check(node.left), [*map(_check, node.comparators)]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Check the objects that are tested."""
        self.generic_visit(node)
        node.values = [*map(_check, node.values)]
        return node

    def visit_If(self, node: ast.If) -> Any:
        """Check the object that is tested."""
        self.generic_visit(node)
        node.test = _check(node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Check the object that is tested."""
        self.generic_visit(node)
        node.test = _check(node.test)
        return node

    def visit_For(self, node: ast.For) -> Any:
        """Check the object that is looped over."""
        self.generic_visit(node)
        node.iter = _check(node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        """Check the object that is looped over, and those that are tested."""
        self.generic_visit(node)
        node.iter, node.ifs = _check(node.iter), [*map(_check, node.ifs)]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        """Check the object that becomes text."""
        self.generic_visit(node)
        node.value = _check(node.value)
        return node

    def visit_withitem(self, node: ast.withitem) -> Any:
        """Check what a block enters."""
        self.generic_visit(node)
        node.context_expr = _called(ENTER, [node.context_expr], node.context_expr)
        return node


def _check(node: ast.expr) -> ast.expr:
    return node if isinstance(node, ast.Constant) else _called(CHECK, [node], node)


def _called(name: str, arguments: list[ast.expr], place: ast.AST) -> ast.expr:
    call = ast.Call(ast.Name(name, ast.Load()), arguments, [])
    return ast.fix_missing_locations(ast.copy_location(call, place))


def guarded_call(function: Any) -> Callable[..., Any]:
    """Return a function for a call in traced code: itself, or a version of it in which calls are checked too.

    Raises:
        Unstaged: It may do something that must be done in each iteration.
    """
    known = _INSTEAD.get(function) if isinstance(function, BuiltinMethodType) else None
    if known is not None:
        return known
    if _is_harmless(function):
        return partial(_with_guarded, function) if _calls_arguments(function) else function
    if isinstance(function, partial):
        given = cast("partial[Any]", function)
        return partial(guarded_call(given.func), *given.args, **given.keywords)
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        note_captured(function.__func__)
        return MethodType(_guarded(function.__func__), function.__self__)
    if isinstance(function, FunctionType):
        note_captured(function)
        return _guarded(function)
    name = getattr(function, "__name__", type(function).__name__)
    raise Unstaged(f"it calls {name}, which Python must do in each iteration")


def _with_guarded(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that calls functions among its arguments, with guarded ones."""
    return function(
        *map(_guarded_argument, args), **{k: _guarded_argument(v) for k, v in kwargs.items()}
    )


def _guarded_argument(value: Any) -> Any:
    if isinstance(value, FunctionType | MethodType | partial):
        return guarded_call(value)
    return checked(value)


def _calls_arguments(function: Any) -> bool:
    """Return True if a function calls others at once, as Python code does: those of transformations are traced."""
    if any(function is each for each in _BUILTINS):
        return not any(function is each for each in _ON_TYPES)
    module = str(getattr(function, "__module__", ""))
    return module.startswith(_WITH_CALLS) and isinstance(function, FunctionType)


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
    return is_library(module) and not module.startswith(_WITH_EFFECTS)


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
GUARDS: Final[dict[str, Any]] = {
    CALL: guarded_call,
    READ: guarded_read,
    ITEM: guarded_item,
    CHECK: checked,
    ENTER: entered,
}
_INSTEAD: Final[dict[Any, Callable[..., Any]]] = {
    getattr: _guarded_getattr,
    hasattr: _guarded_hasattr,
    next: following,
}
