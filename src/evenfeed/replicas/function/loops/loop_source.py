"""Finds the loops over `tf.range` in the source code of a function, and lets them run in compiled programs.

Such a loop, in a function that runs as plain Python because it reads an iterator, becomes:

    def body(number, carried): ...                      # its body, as a function
    done, new = run_loop(body, tf.range(n), carried)    # runs the iterations that can be compiled
    if done: carried, others = new
    for number in tf.range(n)[done:]: ...               # the loop itself, for what is left; its errors are noted

The body is only ever traced. It stays a loop wherever a trace would not do what the loop does: see `loop_checks.py`.
"""

import ast
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, cast, final

from evenfeed.replicas.function.loops.counted_ranges import LeftIterations, counted_range
from evenfeed.replicas.function.loops.guarded_calls import GUARDS, GuardedCalls
from evenfeed.replicas.function.loops.loop_checks import stored_names, why_not_traced
from evenfeed.replicas.function.source_code import compiled_again, definition_of
from evenfeed.replicas.function.staging import Unstaged

_PREFIX: Final = "_evenfeed_"
_RUN: Final = f"{_PREFIX}run_loop"
_RANGE: Final = f"{_PREFIX}range"
_LEAVE: Final = f"{_PREFIX}leave"
_LEFT: Final = f"{_PREFIX}left"
_ERROR: Final = f"{_PREFIX}error"


def with_compiled_loops(
    function: Callable[..., Any], run: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function whose loops over `tf.range` run in compiled programs where they can.

    Args:
        function: The function. It is returned as it is if it has no such loop, or no source code.
        run: Runs iterations: called with the body, the range, and functions that return the carried variables.
    """
    if isinstance(function, MethodType):
        return MethodType(with_compiled_loops(function.__func__, run), function.__self__)
    if isinstance(function, partial):
        given = cast("partial[Any]", function)
        return partial(with_compiled_loops(given.func, run), *given.args, **given.keywords)
    if not isinstance(function, FunctionType):
        return function
    definition = definition_of(function)
    if definition is None or not _Loops(definition).replace():
        return function
    try:
        return compiled_again(function, definition, _helpers(run))
    except SyntaxError:  # a statement that is not allowed in an inner function
        return function


def _helpers(run: Callable[..., Any]) -> dict[str, Any]:
    return {_RUN: run, _RANGE: counted_range, _LEAVE: _leave, _LEFT: LeftIterations, **GUARDS}


def _leave(reason: str = "it leaves the loop") -> None:
    """End the trace of a loop's body."""
    raise Unstaged(reason)


@final
class _Loops(ast.NodeTransformer):
    """Replaces the innermost loops over `tf.range` in a function."""

    def __init__(self, definition: ast.FunctionDef) -> None:
        self._definition = definition
        self._count = 0

    def replace(self) -> bool:
        """Replace the loops; return True if there were any."""
        self._definition.body = [
            new for statement in self._definition.body for new in _list(self.visit(statement))
        ]
        return self._count > 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node  # its own loops belong to it

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Leave classes alone."""
        return node

    def visit_For(self, node: ast.For) -> Any:
        before = self._count
        self.generic_visit(node)
        if self._count > before or not _is_over_range(node) or not _reads(node):
            return node
        parts = _parts_of(node, self._definition)
        if parts is None:
            return node
        self._count += 1
        return _replacement(node, parts, self._count)


def _list(found: Any) -> list[ast.stmt]:
    return cast("list[ast.stmt]", found) if isinstance(found, list) else [found]


def _is_over_range(node: ast.For) -> bool:
    call = node.iter
    named = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    return (
        named
        and cast("ast.Attribute", cast("ast.Call", call).func).attr == "range"
        and isinstance(node.target, ast.Name)
        and not node.orelse
    )


def _reads(node: ast.For) -> bool:
    """Return True if a loop may read an iterator and run a step: it calls something in each iteration."""
    return any(isinstance(each, ast.Call) for each in ast.walk(ast.Module(node.body, [])))


@final
@dataclass(frozen=True)
class _Parts:
    """The variables of a loop: those that are carried from one iteration to the next, and others that it sets.

    `reason` is why its body cannot be traced.
    """

    carried: list[str]
    others: list[str]
    reason: str | None


def _parts_of(node: ast.For, definition: ast.FunctionDef) -> _Parts | None:
    target = cast("ast.Name", node.target).id
    stored = stored_names(node.body)
    inside = {id(each) for each in ast.walk(node)}
    outside = [each for each in ast.walk(definition) if id(each) not in inside]
    if _are_captured(stored | {target}, outside):
        return None
    loaded = {e.id for e in outside if isinstance(e, ast.Name) and isinstance(e.ctx, ast.Load)}
    first_read = _read_first(node.body, {target}) & stored
    carried = sorted(first_read - {target})
    others = sorted(((stored | {target}) & loaded) - set(carried))
    return _Parts(carried, others, why_not_traced(node.body, is_loop=True))


def _are_captured(names: set[str], outside: Sequence[ast.AST]) -> bool:
    """Return True if an inner function outside of the loop uses its variables: it would see old values."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    for each in outside[1:]:
        if isinstance(each, ast.Global | ast.Nonlocal) and names & set(each.names):
            return True
        if isinstance(each, inner):
            used = {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}
            if used & names:
                return True
    return False


def _read_first(body: Sequence[ast.stmt], known: set[str]) -> set[str]:
    """Return the names that statements may read before they set them."""
    found: set[str] = set()
    known = set(known)
    for statement in body:
        found |= _loaded(statement) - known
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.FunctionDef):
            known |= stored_names([statement])
    return found


def _loaded(statement: ast.stmt) -> set[str]:
    names = {
        each.id
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store)
    }
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        names.add(statement.target.id)
    inner = (each for each in ast.walk(statement) if isinstance(each, ast.AugAssign))
    return names | {each.target.id for each in inner if isinstance(each.target, ast.Name)}


@final
class _Traced(GuardedCalls):
    """Turns the body of a loop into that of a function that is traced."""

    def __init__(self, result: ast.expr) -> None:
        self._result = result
        self._depth = 0

    def visit_For(self, node: ast.For) -> Any:  # noqa: N802 - a name of ast
        """Leave alone what leaves or continues an inner loop."""
        self._depth += 1
        found = super().visit_For(node)
        self._depth -= 1
        return found

    def visit_Break(self, node: ast.Break) -> Any:  # noqa: N802 - a name of ast
        """Give up the trace."""
        return node if self._depth else _statement(f"return {_LEAVE}()", node)

    def visit_Continue(self, node: ast.Continue) -> Any:  # noqa: N802 - a name of ast
        """End the iteration."""
        return node if self._depth else ast.copy_location(ast.Return(self._result), node)


def _replacement(node: ast.For, parts: _Parts, number: int) -> list[ast.stmt]:
    over, body, done, new = (
        f"{_PREFIX}{name}_{number}" for name in ("over", "body", "done", "new")
    )
    carried, others = _tuple(parts.carried), _tuple(parts.others)
    target = cast("ast.Name", node.target).id
    result = ast.parse(f"({carried}, {others})", mode="eval").body
    traced = [_Traced(result).visit(each) for each in deepcopy(node.body)]
    if parts.reason is not None:
        traced.insert(0, _statement(f"{_LEAVE}({parts.reason!r})", node))
    definition = _statement(f"def {body}({', '.join((target, *parts.carried))}): pass", node)
    cast("ast.FunctionDef", definition).body = [*traced, ast.Return(result)]
    values = ", ".join(f"lambda: {name}" for name in parts.carried)
    setting = (
        f"if {done}: ({carried}, {others}) = {new}" if parts.carried or parts.others else "pass"
    )
    statements = [
        ast.Assign([ast.Name(over, ast.Store())], _over_numbers(cast("ast.Call", node.iter))),
        definition,
        _statement(
            f"{done}, {over}, {new} = {_RUN}({body}, {over}, [{values}], {_has_steps(node)})", node
        ),
        _statement(setting, node),
        _statement(f"{over} = {_LEFT}({over}, {done})", node),
        _noting(ast.For(node.target, ast.Name(over, ast.Load()), node.body, [], None), over, node),
    ]
    for each in statements:
        ast.copy_location(each, node)
        ast.fix_missing_locations(each)
    return statements


def _noting(loop: ast.For, over: str, place: ast.For) -> ast.stmt:
    """Return a loop whose errors name the iteration."""
    made = _statement(
        f"try: pass\nexcept Exception as {_ERROR}:\n {over}.note({_ERROR})\n raise", place
    )
    cast("ast.Try", made).body = [loop]
    return made


def _has_steps(node: ast.For) -> bool:
    """Return True if a loop calls a method `run`: probably that of a strategy."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr == "run" for each in calls)


def _over_numbers(call: ast.Call) -> ast.Call:
    """Return a call of `counted_range` with the function and the arguments of a call of `tf.range`."""
    return ast.Call(ast.Name(_RANGE, ast.Load()), [call.func, *call.args], call.keywords)


def _tuple(names: Sequence[str]) -> str:
    return "(" + "".join(f"{name}, " for name in names) + ")"


def _statement(text: str, place: ast.stmt) -> ast.stmt:
    """Return a statement at the place of another one, so that warnings show the user's line."""
    made = ast.parse(text).body[0]
    for each in ast.walk(made):
        ast.copy_location(each, place)
    return made
