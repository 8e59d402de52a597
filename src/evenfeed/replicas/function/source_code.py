"""The source code of a function as a syntax tree, and functions that are compiled from a changed one."""

import ast
import inspect
import textwrap
from types import CellType, CodeType, FunctionType
from typing import Any


def definition_of(function: FunctionType) -> "ast.FunctionDef | None":
    """Return the syntax tree of a function, with the line numbers of its file; None if there is no source code.

    That of a lambda is a definition that returns its expression.
    """
    if function.__code__.co_name == "<lambda>":
        return _definition_of_lambda(function)
    try:
        # Of its code: that of a decorated function is its wrapper, not what `__wrapped__` says.
        lines, first = inspect.getsourcelines(function.__code__)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    ast.increment_lineno(definition, first - 1)
    definition.decorator_list = []
    return definition


def _definition_of_lambda(function: FunctionType) -> "ast.FunctionDef | None":
    """Look for a lambda in its whole file: its line need not be a statement, and may have other lambdas."""
    try:
        tree = ast.parse("".join(inspect.findsource(function)[0]))
    except (OSError, TypeError, SyntaxError):
        return None
    own = function.__code__
    for each in ast.walk(tree):
        if isinstance(each, ast.Lambda) and each.lineno == own.co_firstlineno:
            definition = ast.FunctionDef("function", each.args, [ast.Return(each.body)], [])
            ast.fix_missing_locations(ast.copy_location(_without_defaults(definition), each))
            if _places(each) == set(own.co_positions()):
                return definition
    return None


def _places(node: ast.Lambda) -> "set[tuple[int | None, ...]]":
    """Return the places of a lambda's instructions in its file: no other lambda has the same."""
    module = compile(ast.Expression(node), "<lambda>", "eval")
    (code,) = (each for each in module.co_consts if isinstance(each, CodeType))
    return set(code.co_positions())


def compiled_again(
    function: FunctionType, definition: ast.FunctionDef, extra: dict[str, Any]
) -> FunctionType:
    """Return a function with the code of a changed definition, and everything else of the original function.

    Args:
        function: The original function.
        definition: Its changed definition.
        extra: Other names that the definition uses.
    """
    names = [*function.__code__.co_freevars, *extra]
    definition.name = (
        "_evenfeed_function"  # else its name would be bound to this definition inside of it
    )
    inner = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    result = ast.Return(ast.Name(definition.name, ast.Load()))
    factory = ast.FunctionDef("factory", inner, [_without_defaults(definition), result], [])
    module = ast.fix_missing_locations(ast.Module([factory], []))
    space: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec"), space)
    made: FunctionType = space["factory"](*[None] * len(names))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: CellType(value) for name, value in extra.items()}
    old = function.__code__
    code = made.__code__.replace(co_name=old.co_name, co_qualname=old.co_qualname)
    closure = tuple(cells[name] for name in code.co_freevars)
    again = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    again.__kwdefaults__ = function.__kwdefaults__
    return again


def _without_defaults(definition: ast.FunctionDef) -> ast.FunctionDef:
    """Drop defaults and annotations, which are not evaluated again."""
    arguments = definition.args
    definition.returns = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [each and ast.Constant(None) for each in arguments.kw_defaults]
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for each in (*every, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None
    return definition
