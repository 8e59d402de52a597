"""The programs of one function: one for each kind of arguments."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any, Final, TypeAlias, final
from weakref import ref

import numpy as np

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import described
from evenfeed.core.iteration import Iterator
from evenfeed.core.lazy_jax import jax, jax_tree
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TypeSpec
from evenfeed.replicas import contexts
from evenfeed.replicas.containers import call_closed, has_containers, open_containers, opens_more
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.function.nnx_objects import NnxObjects, nnx_objects_in, with_nnx_objects
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.function.programs import Program
from evenfeed.replicas.function.retracing import Retraces
from evenfeed.replicas.function.staging import Creates, Unstaged
from evenfeed.replicas.regrouping import leaves_of
from evenfeed.replicas.values import PerReplica, agree
from evenfeed.tensors.creation import convert_to_tensor

_tree: Any = jax_tree  # whose functions have no types
_VALUES: Final = (bool, int, str, bytes, np.dtype, TensorShape, TypeSpec)

# Takes arguments as the user passes them; returns those that the function gets.
Fit = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


# One call: what tells its kind apart from others, and its arrays.
_Call: TypeAlias = tuple[tuple[Any, ...], list[Any]]


@final
class Compiler:
    """Runs a function compiled.

    Args:
        function: The function.
        fit: Checks and converts arguments of a kind that was not there before.
        retraces: Warns of too many traces; nothing, where None.

    """

    def __init__(
        self,
        function: Callable[..., Any],
        fit: Fit | None = None,
        retraces: Retraces | None = None,
    ) -> None:
        self._function = function
        self._fit = fit
        self._retraces = retraces
        # By what JAX knows of each array, which is quick to compare; then by what it means.
        self._known: dict[Any, Program] = {}
        self._programs: dict[Any, Program | Unstaged] = {}
        self._lock = RLock()
        # The door would look them up at each call.
        self._settings: Any = jax.config
        self._array: type = type(jax.numpy.zeros(()))
        self._flatten: Callable[[Any], tuple[list[Any], Any]] = _tree.tree_flatten
        self._traces = 0
        self._of_nnx: Compiler | None = None
        self._of_containers: Compiler | None = None

    @property
    def traces(self) -> int:
        """How often the function was traced."""
        inner = (each for each in (self._of_nnx, self._of_containers) if each is not None)
        return self._traces + sum(each.traces for each in inner)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], level: Frame | None) -> Any:
        """Run the program for these arguments.

        Args:
            args: The arguments.
            kwargs: Those by name.
            level: The strategy that is current.

        Raises:
            Unstaged: The function cannot be compiled.
        """
        # Each line here is part of what a step costs (benchmarks/training.py).
        flat = None if kwargs else self._flat(args, level)
        program = flat and self._known.get(flat[0])
        if not flat or program is None:
            return self._looked_up(args, kwargs, level, flat)
        if self._retraces is not None:
            self._retraces.calls += 1
        return program(flat[1])

    def _flat(self, args: tuple[Any, ...], level: Frame | None) -> _Call | None:
        """Open arguments that are arrays; None where there are others.

        Most steps take a batch or two: this takes half as long as to open a tree.
        """
        config, array_type = self._settings, self._array
        kinds = [
            level and _place(level),
            config.jax_enable_x64,
            config.jax_default_matmul_precision,
        ]
        arrays: list[Any] = []
        for arg in args:
            array: Any = arg
            if type(arg) is PerReplica:
                parts, kind = arg.opened()
                kinds.append(kind)
                array = parts[0] if len(parts) == 1 else None
            if type(array) is not array_type:
                return None
            kinds.append(array.aval)
            arrays.append(array)
        return tuple(kinds), arrays

    def _looked_up(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], level: Frame | None, flat: _Call | None
    ) -> Any:
        call = self._called(args, kwargs, level)
        asked = call[0]
        program = self._known.get(asked)
        if program is None:
            objects = nnx_objects_in((args, kwargs))
            if objects is not None:
                return self._with_objects(objects, args, kwargs, level)
            if has_containers((args, kwargs)):
                return self._with_containers(args, kwargs, level)
            program, call = self._found(args, kwargs, call, level)
        elif self._retraces is not None:
            self._retraces.calls += 1
        if flat is not None and asked in self._known:
            self._known[flat[0]] = program
        return program(call[1])

    def _with_objects(
        self, objects: NnxObjects, args: tuple[Any, ...], kwargs: Any, level: Frame | None
    ) -> Any:
        """Run on arguments with nnx objects among them, and do to these what the function does."""
        if self._of_nnx is None:
            self._of_nnx = Compiler(with_nnx_objects(self._function), None, self._retraces)
        rest = objects.without((args, kwargs))
        return objects.take_back(*self._of_nnx((objects.split, *rest), {}, level))

    def _with_containers(self, args: tuple[Any, ...], kwargs: Any, level: Frame | None) -> Any:
        """Run on arguments with dicts or lists of users' own classes among them."""
        if self._of_containers is None:
            closed = partial(call_closed, self._function)
            self._of_containers = Compiler(closed, self._fit, self._retraces)
        opened_args, opened_kwargs = open_containers((args, kwargs))
        return self._of_containers(opened_args, opened_kwargs, level)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], level: Frame | None) -> _Call:
        leaves, tree = self._flatten((args, kwargs))
        try:
            kinds, arrays = [leaf.aval for leaf in leaves], leaves
        except AttributeError:  # there are others than arrays of JAX's
            if opens_more(leaves):
                return self._called(args, kwargs, level)
            arrays = []
            kinds = [_kind(leaf, arrays) for leaf in leaves]
        config = self._settings
        key = (
            level and _place(level),
            config.jax_enable_x64,
            config.jax_default_matmul_precision,
            tree,
            *kinds,
        )
        return key, arrays

    def program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """Return the program for these arguments, traced where there is none."""
        if nnx_objects_in((args, kwargs)) is not None:
            raise ValueError(
                described(
                    "A program takes arrays, but nnx objects were passed, which it could not change.",
                    fix="call the function itself, or trace one of nnx.split(module).",
                )
            )
        level = contexts.frame()
        return self._found(args, kwargs, self._called(args, kwargs, level), level)[0]

    def _found(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], call: _Call, level: Frame | None
    ) -> tuple[Program, _Call]:
        values = [leaf for leaf in leaves_of((args, kwargs))[0] if isinstance(leaf, PerReplica)]
        if agree(values):
            call = self._called(args, kwargs, level)
        asked = call[0]
        if self._fit is not None:
            args, kwargs = self._fit(args, kwargs)
            call = self._called(args, kwargs, level)
        meaning = tuple(_meaning(kind) for kind in call[0])
        with self._lock:  # a second thread with the same arguments waits for the first one's trace
            found = self._programs.get(meaning)
            if found is None:
                self._forget_the_dead()
                found = self._traced(meaning, *self._flatten((args, kwargs)))
        if isinstance(found, Unstaged):
            raise found
        if found.is_lasting and asked == call[0]:
            self._known[asked] = found
        return found, call

    def _traced(self, meaning: Any, leaves: list[Any], tree: Any) -> Program:
        if any(isinstance(leaf, Iterator) for leaf in leaves):
            raise Unstaged("it takes an iterator", expected=True, always=True)
        self._traces += 1
        if self._retraces is not None:
            self._retraces.traced()
        try:
            program = self._program(tree, leaves)
        except Unstaged as reason:
            self._programs[meaning] = reason
            raise
        if program.is_lasting:
            self._programs[meaning] = program
        return program

    def _program(self, tree: Any, leaves: list[Any]) -> Program:
        tensors = [index for index, leaf in enumerate(leaves) if is_tensor_leaf(leaf)]
        parts = (self._function, tree, leaves, tensors)
        try:
            return Program(*parts)
        except Creates as reason:
            if any(isinstance(program, Program) for program in self._programs.values()):
                raise _too_late(reason.origin) from None
        # The variables are made in a trace of their own, in which all that needs no argument is computed.
        with jax.ensure_compile_time_eval():
            Program(*parts, creates=True)
        try:
            return Program(*parts)
        except Creates as reason:
            raise _each_time(reason.origin) from None

    def _forget_the_dead(self) -> None:
        """Drop the programs for objects that nobody can pass any more."""
        for programs in (self._known, self._programs):
            for key in [
                k for k in list(programs) if any(type(x) is _Same and x.is_dead for x in k)
            ]:
                programs.pop(key, None)


def _place(level: Frame) -> Any:
    return level.strategy, level.context is None


def _kind(leaf: Any, arrays: list[Any]) -> Any:
    """Return what tells a leaf's kind apart, and add it to the arrays where it is one."""
    if is_tensor_leaf(leaf):
        array: Any = convert_to_tensor(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
        arrays.append(array)
        return _array_meaning(array)
    return constant_key(leaf)


def constant_key(leaf: Any) -> Any:
    """Return what tells constants apart: the value of what cannot change, else the object."""
    if isinstance(leaf, (float, complex)):
        return type(leaf), repr(leaf)  # 0.0 is not -0.0, and NaN is NaN
    if isinstance(leaf, _VALUES):
        return type(leaf), leaf
    if isinstance(leaf, np.ndarray):  # text
        return leaf.shape, tuple(leaf.flat)
    return _Same(leaf)


def _meaning(kind: Any) -> Any:
    """Return what counts of an array: not where it lies."""
    return _array_meaning(kind) if isinstance(kind, jax.core.ShapedArray) else kind  # pyright: ignore[reportAttributeAccessIssue]


def _array_meaning(array: Any) -> Any:
    return array.shape, array.dtype, getattr(array, "weak_type", False)


@final
class _Same:
    """Is equal to itself for the same object only. It does not keep the object alive where that can be."""

    __slots__ = ("_find", "_number")

    def __init__(self, value: Any) -> None:
        self._number = id(value)
        try:
            self._find: Callable[[], Any] = ref(value)
        except TypeError:
            self._find = lambda: value

    @property
    def is_dead(self) -> bool:
        return self._find() is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same):
            return False
        mine = self._find()
        return mine is not None and mine is other._find()

    def __hash__(self) -> int:
        return self._number


def _too_late(origin: Origin | None) -> ValueError:
    return ValueError(
        described(
            "A function creates its variables in its first call; this one creates another later.",
            fix="create it before the first call, outside of the function.",
            origin=origin,
        )
    )


def _each_time(origin: Origin | None) -> ValueError:
    return ValueError(
        described(
            "A function creates each of its variables once, but this one creates another each time it is "
            "traced.",
            fix="keep it: `if self.v is None: self.v = evenfeed.Variable(...)`, or create it outside.",
            origin=origin,
        )
    )
