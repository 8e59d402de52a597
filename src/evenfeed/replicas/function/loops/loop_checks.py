"""Which Python code may be traced once, instead of being run in each iteration of a loop.

Code that computes with tensors and calls libraries does the same in both cases. Code that keeps something, prints, or
asks for the time does not.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Final

# Statements that leave nothing behind except local variables.
_STATEMENTS: Final = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Break,
    ast.Continue,
    ast.Expr,
    ast.For,
    ast.FunctionDef,
    ast.If,
    ast.Pass,
    ast.Return,
    ast.With,
)
_COMPREHENSIONS: Final = (ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.SetComp)
_SCOPES: Final = (ast.FunctionDef, ast.Lambda, *_COMPREHENSIONS)


def stored_names(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements set, except inside of inner functions. `:=` in a comprehension counts."""
    found: set[str] = set()
    for each in (each for statement in body for each in _walk_here(statement)):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.FunctionDef):
            found.add(each.name)
        elif isinstance(each, _COMPREHENSIONS):
            named = (inner for inner in ast.walk(each) if isinstance(inner, ast.NamedExpr))
            found |= {inner.target.id for inner in named}
    return found


def _walk_here(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, except for what is in inner functions and comprehensions."""
    yield node
    if isinstance(node, _SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk_here(child)


def why_not_traced(body: Sequence[ast.stmt], *, is_loop: bool) -> str | None:
    """Return why statements must run in each iteration; None if they may be traced once.

    Args:
        body: The statements.
        is_loop: Whether they are the body of the loop itself, which must not return.
    """
    for each in (each for statement in body for each in _walk_here(statement)):
        if isinstance(each, ast.Return) and is_loop:
            return f"line {each.lineno} returns out of the loop"
        if isinstance(each, ast.stmt) and not isinstance(each, _STATEMENTS):
            return f"Python must run line {each.lineno} in each iteration"
        if isinstance(each, ast.Yield | ast.YieldFrom | ast.Await):
            return f"line {each.lineno} waits for other code"
        if isinstance(each, ast.Attribute | ast.Subscript) and not isinstance(each.ctx, ast.Load):
            return f"line {each.lineno} changes a Python object"
    return None
