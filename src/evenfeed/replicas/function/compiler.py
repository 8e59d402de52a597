"""`Compiler`: the programs of one function, one per signature of its arguments."""

from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any, TypeAlias, cast, final
from weakref import ref

import numpy as np

from evenfeed.core.callsite import Origin
from evenfeed.core.concurrency.forked_jax import fork
from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.core.iteration import Iterator
from evenfeed.core.lazy_jax import jax, jax_tree
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TypeSpec
from evenfeed.replicas import contexts
from evenfeed.replicas.containers import call_closed, has_containers, open_containers, opens_more
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.function.compile_notice import compile_notice
from evenfeed.replicas.function.flat_arguments import opened
from evenfeed.replicas.function.nnx_objects import NnxObjects, nnx_objects_in, with_nnx_objects
from evenfeed.replicas.function.open_variables import Candidates, are_held
from evenfeed.replicas.function.outputs import (
    HOST_ARRAYS,
    is_tensor_leaf,
    is_text_leaf,
    text_unstaged,
)
from evenfeed.replicas.function.programs import Program
from evenfeed.replicas.function.retracing import Retraces
from evenfeed.replicas.function.staging import Creates, Incomplete, InContextMesh, Unstaged
from evenfeed.replicas.key_orders import flattened
from evenfeed.replicas.regrouping import leaves_of
from evenfeed.replicas.values import PerReplica, agree, array_and_kind
from evenfeed.tensors.creation import convert_to_tensor

_VALUES: Any = (
    bool,
    int,
    str,
    bytes,
    np.dtype,
    TensorShape,
    TypeSpec,
)

# Takes the arguments that the user passes; returns those that the function gets.
Fit = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]

# One call: its cache key, and its arrays.
_Call: TypeAlias = tuple[tuple[Any, ...], list[Any]]


@final
class Compiler:
    """Runs a function compiled.

    Args:
        function: The function.
        fit: Checks and converts the arguments of each new signature.
        retraces: Warns about too many traces; None for no warning.
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
        # First by the aval of each array, which is quick to compare; then by what matters of it.
        self._known: dict[Any, Program] = {}
        self._programs: dict[Any, Candidates | Unstaged] = {}
        self._lock = RLock()
        # Looked up once: lazy_jax would look them up at each call.
        self._settings: Any = jax.config
        self._array: type = type(jax.numpy.zeros(()))
        self._flatten: Callable[[Any], tuple[list[Any], Any]] = jax_tree.tree_flatten
        self._traces = 0
        self._nnx_compiler: Compiler | None = None
        self._container_compiler: Compiler | None = None

    @property
    def traces(self) -> int:
        """How many times the function was traced."""
        inner = (
            each for each in (self._nnx_compiler, self._container_compiler) if each is not None
        )
        return self._traces + sum(each.traces for each in inner)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], level: Frame | None) -> Any:
        """Run the program for these arguments.

        Args:
            args: The arguments.
            kwargs: The keyword arguments.
            level: The current strategy.

        Raises:
            Unstaged: The function cannot be compiled.
        """
        # Each line here adds to the cost of a step (benchmarks/training.py).
        if fork.of is not None:
            fork.refuse()
        flat = None if kwargs else self._flat(args, level)
        program = flat and self._known.get(flat[0])
        if not flat or program is None or not are_held(program.open_shapes):
            return self._run_slow_path(args, kwargs, level, flat)
        if self._retraces is not None:
            self._retraces.calls += 1
        return program(flat[1])

    def _flat(self, args: tuple[Any, ...], level: Frame | None) -> _Call | None:
        """Return the key and arrays of arguments that are arrays, or tuples or dicts of arrays; None if there are others.

        Most steps take a batch or two: this takes half the time of flattening a pytree.
        """
        config, array_type = self._settings, self._array
        kinds = [
            level and _strategy_key(level),
            config.jax_enable_x64,
            config.jax_default_matmul_precision,
        ]
        arrays: list[Any] = []
        for arg in opened(args, kinds):
            array: Any = arg
            if type(arg) is PerReplica:
                array, kind = array_and_kind(arg)
                if kind is None:
                    parts, kind = arg.opened()
                    array = parts[0] if len(parts) == 1 else None
                kinds.append(kind)
            if type(array) is not array_type:
                return None
            kinds.append(array.aval)
            arrays.append(array)
        return tuple(kinds), arrays

    def _run_slow_path(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], level: Frame | None, flat: _Call | None
    ) -> Any:
        call = self._key_and_arrays(args, kwargs, level)
        call_key = call[0]
        program = self._known.get(call_key)
        if program is None or not are_held(program.open_shapes):
            objects = nnx_objects_in((args, kwargs))
            if objects is not None:
                return self._with_objects(objects, args, kwargs, level)
            if has_containers((args, kwargs)):
                return self._with_containers(args, kwargs, level)
            with compile_notice.watch(self._function):
                program, call = self._program_for(args, kwargs, call, level)
                return self._remembered(program, flat, call_key)(call[1])
        if self._retraces is not None:
            self._retraces.calls += 1
        return self._remembered(program, flat, call_key)(call[1])

    def _remembered(self, program: Program, flat: _Call | None, call_key: Any) -> Program:
        """Let later calls find the program by their flat key, if they have one."""
        if flat is not None and self._known.get(call_key) is program:
            self._known[flat[0]] = program
        return program

    def _with_objects(
        self, objects: NnxObjects, args: tuple[Any, ...], kwargs: Any, level: Frame | None
    ) -> Any:
        """Run on arguments that contain nnx objects, and update these as the function does."""
        if self._nnx_compiler is None:
            self._nnx_compiler = Compiler(with_nnx_objects(self._function), None, self._retraces)
        rest = objects.without((args, kwargs))
        return objects.take_back(*self._nnx_compiler((objects.split, *rest), {}, level))

    def _with_containers(self, args: tuple[Any, ...], kwargs: Any, level: Frame | None) -> Any:
        """Run on arguments that contain dicts or lists of user classes."""
        if self._container_compiler is None:
            closed = partial(call_closed, self._function)
            self._container_compiler = Compiler(closed, self._fit, self._retraces)
        opened_args, opened_kwargs = open_containers((args, kwargs))
        return self._container_compiler(opened_args, opened_kwargs, level)

    def _key_and_arrays(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], level: Frame | None
    ) -> _Call:
        leaves, tree = self._flatten((args, kwargs))
        arrays: list[Any]
        try:
            arrays = leaves
            kinds = [leaf.aval for leaf in leaves]
        except AttributeError:  # some leaves are not JAX arrays
            if opens_more(leaves):
                return self._key_and_arrays(args, kwargs, level)
            arrays = []
            kinds = [_kind(leaf, arrays) for leaf in leaves]
        config = self._settings
        key = (
            level and _strategy_key(level),
            config.jax_enable_x64,
            config.jax_default_matmul_precision,
            tree,
            *kinds,
        )
        return key, arrays

    def program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """Return the program for these arguments; trace it if there is none."""
        if nnx_objects_in((args, kwargs)) is not None:
            raise ValueError(
                described(
                    "A concrete function takes arrays, but got nnx objects, which it could not update.",
                    fix="call the function itself, or trace a function of nnx.split(module).",
                )
            )
        level = contexts.frame()
        return self._program_for(args, kwargs, self._key_and_arrays(args, kwargs, level), level)[0]

    def _program_for(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], call: _Call, level: Frame | None
    ) -> tuple[Program, _Call]:
        values = [leaf for leaf in leaves_of((args, kwargs))[0] if isinstance(leaf, PerReplica)]
        if agree(values):
            call = self._key_and_arrays(args, kwargs, level)
        call_key = call[0]
        if self._fit is not None:
            args, kwargs = self._fit(args, kwargs)
            call = self._key_and_arrays(args, kwargs, level)
        signature = tuple(_without_placement(kind) for kind in call[0])
        with (
            self._lock
        ):  # a second thread with the same arguments waits for the first thread's trace
            entry = self._programs.get(signature)
            found = entry.find() if isinstance(entry, Candidates) else entry
            if found is None:
                self._drop_dead_programs()
                ordered = args, dict(sorted(kwargs.items()))  # only keywords lose their order
                found = self._traced(signature, *flattened(ordered))
        if isinstance(found, Unstaged):
            raise found.again()
        if found.is_lasting and call_key == call[0]:
            self._known[call_key] = found
        return found, call

    def _traced(self, signature: Any, leaves: list[Any], tree: Any) -> Program:
        if any(isinstance(leaf, Iterator) for leaf in leaves):
            raise Unstaged("it takes an iterator", expected=True, always=True)
        self._traces += 1
        if self._retraces is not None:
            self._retraces.traced()
        try:
            program = self._program(tree, leaves)
        except Unstaged as reason:
            self._programs[signature] = reason.again()
            raise
        if program.is_lasting:
            candidates = self._programs.get(signature)
            if not isinstance(candidates, Candidates):
                candidates = self._programs[signature] = Candidates()
            candidates.add(program)
        return program

    def _program(self, tree: Any, leaves: list[Any]) -> Program:
        tensors = [index for index, leaf in enumerate(leaves) if is_tensor_leaf(leaf)]
        parts = (self._function, tree, leaves, tensors)
        try:
            return _complete(*parts)
        except Creates as reason:
            if any(isinstance(each, Candidates) for each in self._programs.values()):
                raise _late_variable_error(reason.origin) from None
        # A separate trace creates the variables. It computes concretely whatever needs no argument.
        with jax.ensure_compile_time_eval():
            creating = _complete(*parts, creates=True)
        if creating.started:
            values = creating([leaves[index] for index in tensors])
            for variable, value in zip(creating.started, values, strict=True):
                variable.start(value)
        try:
            return _complete(*parts)
        except Creates as reason:
            raise _repeated_variable_error(reason.origin) from None

    def _drop_dead_programs(self) -> None:
        """Drop the programs for objects that no longer exist."""
        for programs in (self._known, self._programs):
            for key in [
                k for k in list(programs) if any(type(x) is _Identity and x.is_dead for x in k)
            ]:
                programs.pop(key, None)


def _complete(
    function: Any, tree: Any, leaves: Any, tensors: Any, *, creates: bool = False
) -> Program:
    """Trace until all Keras variables that the function uses are inputs of its program."""
    while True:
        try:
            return _program_of(function, tree, leaves, tensors, creates)
        except Incomplete:  # each variable is new only once
            continue


def _program_of(function: Any, tree: Any, leaves: Any, tensors: Any, creates: bool) -> Program:
    try:
        return Program(function, tree, leaves, tensors, creates=creates)
    except InContextMesh:
        with apart_from_context_mesh():
            return Program(function, tree, leaves, tensors, creates=creates)


def _strategy_key(level: Frame) -> Any:
    return level.strategy, level.context is None


def _kind(leaf: Any, arrays: list[Any]) -> Any:
    """Return a leaf's part of the cache key; add the leaf to `arrays` if it is an array.

    Raises:
        Unstaged: It is a tensor of text. As a constant, each text would be compiled.
    """
    if is_tensor_leaf(leaf):
        array: Any = convert_to_tensor(leaf) if isinstance(leaf, HOST_ARRAYS) else leaf
        arrays.append(array)
        return _array_signature(array)
    if is_text_leaf(leaf):
        raise text_unstaged()
    return constant_key(leaf)


def constant_key(leaf: Any) -> Any:
    """Return a constant's part of the cache key: the value if it is immutable, else the object's identity."""
    if isinstance(leaf, (float, complex)):
        return type(leaf), repr(leaf)  # 0.0 is not -0.0, and NaN is NaN
    if isinstance(leaf, _VALUES):
        return type(leaf), leaf
    if isinstance(leaf, np.ndarray):
        text = cast("Array", leaf)
        return text.shape, tuple(text.flat)
    return _Identity(leaf)


def _without_placement(kind: Any) -> Any:
    """Return a part of the cache key without the placement of arrays."""
    return _array_signature(kind) if isinstance(kind, jax.core.ShapedArray) else kind


def _array_signature(array: Any) -> Any:
    return array.shape, array.dtype, getattr(array, "weak_type", False)


@final
class _Identity:
    """Equal only for the same object. Holds a weak reference to it if possible."""

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
        if not isinstance(other, _Identity):
            return False
        mine = self._find()
        return mine is not None and mine is other._find()

    def __hash__(self) -> int:
        return self._number


def _late_variable_error(origin: Origin | None) -> ValueError:
    return ValueError(
        described(
            "A function can create variables only in its first call, but this one creates another one later.",
            fix="create it before the first call, outside of the function.",
            origin=origin,
        )
    )


def _repeated_variable_error(origin: Origin | None) -> ValueError:
    return ValueError(
        described(
            "A function can create a variable only once, but this one creates a new one each time it is "
            "traced.",
            fix="keep it: `if self.v is None: self.v = evenfeed.Variable(...)`, or create it outside.",
            origin=origin,
        )
    )
