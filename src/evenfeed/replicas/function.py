"""`function`: compiles what is pure, and drives what is not."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import functools
import warnings
from collections.abc import Callable
from typing import Any, final

import numpy as np

from evenfeed.core.jax_door import jax, jax_tree
from evenfeed.replicas import contexts
from evenfeed.replicas.programs import Program
from evenfeed.replicas.signatures import checked
from evenfeed.replicas.staging import Unstaged
from evenfeed.tensors.creation import convert_to_tensor

_tree: Any = jax_tree  # whose functions have no types
_MANY_TRACES = 5


@final
class Compiler:
    """The programs of one function, one for each kind of arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._programs: dict[Any, Program] = {}
        self.traces = 0

    def __call__(self, args: Any, kwargs: Any) -> Any:
        """Run the program for these arguments.

        Raises:
            Unstaged: The function cannot be compiled.
        """
        leaves, tree = _tree.tree_flatten((args, kwargs))
        kinds: list[Any] = [tree, jax.config.read("jax_enable_x64")]
        arrays: list[Any] = []
        for leaf in leaves:
            array = leaf if isinstance(leaf, jax.Array) else _as_tensor(leaf)
            if array is None:
                kinds.append(_constant_key(leaf))
            else:
                kinds.append((array.shape, array.dtype))
                arrays.append(array)
        key = tuple(kinds)
        program = self._programs.get(key)
        if program is None:
            program = self._traced(key, tree, leaves)
        return program(arrays)

    def _traced(self, key: Any, tree: Any, leaves: list[Any]) -> Program:
        flat = [leaf if (array := _as_tensor(leaf)) is None else array for leaf in leaves]
        tensors = [i for i, leaf in enumerate(leaves) if _as_tensor(leaf) is not None]
        self.traces += 1
        try:
            program = Program(self._function, tree, flat, tensors)
        except Unstaged as reason:
            if not reason.why.startswith("a variable was created"):
                raise
            # It was made in the first trace; the second one finds it.
            program = Program(self._function, tree, flat, tensors)
        self._programs[key] = program
        return program


def _as_tensor(leaf: Any) -> Any:
    """Return an argument that a program takes as an array; None for a constant of the program."""
    if isinstance(leaf, jax.Array):
        return leaf
    if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind not in "OSU":
        return convert_to_tensor(leaf)
    return None


def _constant_key(leaf: Any) -> Any:
    """Return what tells constants apart: the value of what cannot change, else the object."""
    if isinstance(leaf, (bool, int, float, complex, str, bytes)):
        return type(leaf), leaf
    return _Same(leaf)


@final
class _Same:
    """Is equal to itself for the same object only; keeps the object alive."""

    __slots__ = ("_object",)

    def __init__(self, value: Any) -> None:
        self._object = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._object is self._object

    def __hash__(self) -> int:
        return id(self._object)


@final
class Function:
    """A function that runs compiled. Made by `evenfeed.function`.

    Attributes:
        python_function: The function that was decorated.
        input_signature: The specs that arguments must fit; None where any may come.
    """

    def __init__(self, function: Callable[..., Any], input_signature: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.python_function = function
        self.input_signature = input_signature
        self._compiler = Compiler(function)
        self._driven: Unstaged | None = None
        self._methods: dict[Any, Function] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        if self.input_signature is not None:
            args, kwargs = checked(self, args, kwargs)
        if contexts.staging() is not None:
            return self._inside(args, kwargs)
        context = contexts.replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            return self.python_function(*args, **kwargs)
        if self._driven is None:
            try:
                return self._compiler(args, kwargs)
            except Unstaged as reason:
                self._give_up(reason)
        return self._drive(args, kwargs)

    def _inside(self, args: Any, kwargs: Any) -> Any:
        """Become part of the function that is being traced."""
        if self._driven is not None:
            raise self._driven
        return self.python_function(*args, **kwargs)

    def _give_up(self, reason: Unstaged) -> None:
        self._driven = reason
        if not reason.expected:
            name = getattr(self.python_function, "__name__", "the function")
            origin = reason.origin
            warnings.warn_explicit(
                f"{name} runs as plain Python, and only what strategy.run calls in it is compiled: {reason.why}",
                UserWarning,
                origin.filename if origin else "<unknown>",
                origin.line if origin else 0,
            )

    def _drive(self, args: Any, kwargs: Any) -> Any:
        contexts.here.driving.append(self)
        try:
            return self.python_function(*args, **kwargs)
        finally:
            contexts.here.driving.pop()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self, instance)

    def experimental_get_tracing_count(self) -> int:
        """Return how often the function was traced."""
        return self._compiler.traces


def function(func: Any = None, input_signature: Any = None, **options: Any) -> Any:
    """Compile a function of tensors."""
    del options
    if func is None:
        return functools.partial(Function, input_signature=input_signature)
    return Function(func, input_signature)
