"""`function`: compiles what is pure, and drives what is not."""

import functools
from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any, Final, final
from weakref import ref

import numpy as np

from evenfeed.core import side_effects
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.specs import Specified
from evenfeed.core.tensor_types import explain_tracing
from evenfeed.replicas import contexts
from evenfeed.replicas.containers import open_containers
from evenfeed.replicas.function.compiler import Compiler
from evenfeed.replicas.function.concrete import ConcreteFunction, DrivenFunction, from_specs
from evenfeed.replicas.function.driving import drive, mode, say_why
from evenfeed.replicas.function.left_tracers import ReachableArrays
from evenfeed.replicas.function.modified_arguments import GivenArguments
from evenfeed.replicas.function.retracing import Retraces, retraces_of
from evenfeed.replicas.function.signatures import InputSignature, Parameters
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.regrouping import leaves_of
from evenfeed.replicas.values import DistributedValues
from evenfeed.replicas.variables.variable import Variable


@final
class Function:
    """A function that runs compiled. Made by `evenfeed.function`.

    Attributes:
        python_function: The function that was decorated.
        name: Its name.
        steps: The programs of what `strategy.run` runs in it where it runs as plain Python (see `steps.py`).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        input_signature: Any = None,
        retraces: Retraces | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.python_function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.steps: OrderedDict[Any, Compiler | None] = OrderedDict()
        self._retraces = retraces
        self._parameters: Parameters | None = None
        self._positional = 0
        self._given_signature = input_signature
        self._signature: InputSignature | None = None
        self._compiler: Compiler | None = None
        self._driven: Unstaged | None = None
        self._inlined = 0
        self._concrete: dict[Any, ConcreteFunction] = {}
        self._bound: dict[int, tuple[Any, Function]] = {}

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        """The specs that arguments must fit; None where any may come."""
        return None if self._given_signature is None else tuple(self._given_signature)

    # --- calling ---------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        # Each line here is part of what a step costs (benchmarks/training.py).
        compiler = self._compiler or self._begun()
        if mode.eager:
            return self.python_function(*args, **kwargs)
        watcher = side_effects.here.watcher
        if watcher is not None and watcher.inlines:
            self._inlined = self._inlined or 1  # a map looks at its function several times
            return self._as_part(args, kwargs)
        here = contexts.here.__dict__  # what this thread has, looked up once
        if here["stagings"]:
            return self._inside(args, kwargs)
        frames = here["frames"]
        level: Any = frames[-1] if frames else here["chosen"]
        alone = level is None or level.context is None or level.replicas.count == 1
        if alone and self._driven is None:
            if kwargs or len(args) < self._positional:
                args, kwargs = self._ordered(args, kwargs)
            try:
                return compiler(args, kwargs, level)
            except Unstaged as reason:
                self._give_up(reason)
        return drive(self, self.python_function, *self._fitted(args, kwargs))

    def _begun(self) -> Compiler:
        """Look at the function when it is first called: for a method, that is when it is bound."""
        with _BEGINNING:  # of several threads, one makes the compiler
            return self._compiler or self._looked_at()

    def _looked_at(self) -> Compiler:
        function = self.python_function
        self._parameters = Parameters(function)
        self._positional = self._parameters.count
        fit = None
        if self._given_signature is not None:
            self._signature = InputSignature(function, self.name, self._given_signature)
            fit = self._signature.fit
            self._positional = 0  # the signature knows the order too
        retraces = self._retraces or retraces_of(function, self.name)
        self._compiler = Compiler(self._traced, fit, retraces)
        return self._compiler

    def _ordered(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        parameters = self._parameters
        assert parameters is not None
        return (args, kwargs) if self._signature else parameters.in_order(args, kwargs)

    def _fitted(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return (args, kwargs) if self._signature is None else self._signature.fit(args, kwargs)

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        given = leaves_of(open_containers((args, kwargs)))[0]
        self._check_given(given)
        before = GivenArguments(args, kwargs, self._parameters.names if self._parameters else ())
        reachable = ReachableArrays(self.python_function, given)
        try:
            result = self.python_function(*args, **kwargs)
        except AttributeError as error:
            explain_tracing(error)
            raise
        before.check_same(self.python_function)
        reachable.check()
        self._check_result(open_containers(result), given)
        return result

    def _check_given(self, given: list[Any]) -> None:
        for leaf in given:
            if type(leaf).__hash__ is None and not _is_value(leaf):
                raise TypeError(
                    described(
                        f"{self.name} got {shortened(leaf)}, which may change: it has no hash, so no program can "
                        "be kept for it.",
                        fix="pass its tensors, a frozen one, or a tree: jax.tree_util.register_dataclass makes one.",
                    )
                )

    def _check_result(self, result: Any, given: list[Any]) -> None:
        for leaf in leaves_of(result)[0]:
            # What is in a tree that was passed goes through: models have their activations in them.
            if not _is_value(leaf) and not any(leaf is each for each in given):
                raise TypeError(
                    described(
                        f"{self.name} returned {shortened(leaf)} of type {type(leaf).__name__}, but a compiled "
                        "function returns tensors, or None, in nests.",
                        fix="return what it computes; keep other objects outside of the function.",
                    )
                )

    def _inside(self, args: Any, kwargs: Any) -> Any:
        """Become part of the function that is being traced."""
        if self._driven is not None:
            reason = self._driven
            raise Unstaged(
                reason.why, expected=reason.expected, always=reason.always, origin=reason.origin
            )
        self._inlined += 1
        return self._as_part(args, kwargs)

    def _as_part(self, args: Any, kwargs: Any) -> Any:
        given, named = self._fitted(args, kwargs)
        return self.python_function(*given, **named)

    def _give_up(self, reason: Unstaged) -> None:
        if reason.always and self._driven is None:
            self._driven = reason
            what = f"{self.name} runs as plain Python, and only what strategy.run calls in it is compiled"
            say_why(what, reason)

    # --- methods ---------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function of one object: it has programs, and a first call, of its own."""
        if instance is None:
            return self
        found = self._bound.get(id(instance))
        if found is not None and found[0]() is instance:
            return Method(found[1], instance)
        return self._bind(instance)

    def _bind(self, instance: Any) -> Any:
        number = id(instance)
        try:
            held = ref(instance, lambda _: self._bound.pop(number, None))
        except TypeError:  # it has __slots__: it cannot be watched, so it becomes an argument
            return functools.partial(self, instance)
        # What is kept for an object must not keep it alive, or neither would ever end.
        function = _method(self.python_function, held)
        bound = Function(function, self._given_signature, Retraces(self.name))
        self._bound[number] = held, bound
        return Method(bound, instance)

    # --- looking ---------------------------------------------------------------------------

    def experimental_get_tracing_count(self) -> int:
        """Return how often the function was traced.

        Examples:
            >>> import evenfeed as tf
            >>> double = tf.function(lambda x: x * 2)
            >>> _ = double(tf.constant(1.0)), double(tf.constant(2.0)), double(tf.constant([1.0]))
            >>> double.experimental_get_tracing_count()
            2
        """
        return self._inlined + (0 if self._compiler is None else self._compiler.traces)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction | DrivenFunction:
        """Trace the function for arguments of one kind, without running it.

        One that reads a dataset, or whose Python code depends on a tensor's value, is no single program:
        what comes back runs it as plain Python.

        Args:
            args: Tensors, or specs whose shape is known; other values become part of the program. Without
                any, those of the `input_signature`.
            kwargs: The same by name.

        Examples:
            >>> import evenfeed as tf
            >>> double = tf.function(lambda x: x * 2)
            >>> double.get_concrete_function(tf.TensorSpec([3])).structured_outputs
            TensorSpec(shape=(3,), dtype=tf.float32, name=None)
        """
        compiler = self._compiler or self._begun()
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        given = self._fitted(*self._ordered(args, kwargs))
        try:
            given = from_specs(given)
            program = compiler.program(*given)
        except Unstaged:
            return DrivenFunction(self.name, self, given, self._parameters)
        if program not in self._concrete:
            self._concrete[program] = ConcreteFunction(self.name, program, given, self._parameters)
        return self._concrete[program]

    def __repr__(self) -> str:
        return f"<evenfeed.function {self.name}>"


@final
class Method:
    """A function of one object, which it keeps alive as long as somebody has the method."""

    __slots__ = ("__self__", "__weakref__", "function")

    def __init__(self, function: Function, instance: Any) -> None:
        self.function = function
        self.__self__ = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Method) and other.function is self.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return f"<evenfeed.function {self.function.name} of {self.__self__!r}>"


_BEGINNING: Final = RLock()


def compiled_function(value: object) -> Function | None:
    """Return what `evenfeed.function` made, for a method that of its object; None for another value."""
    if isinstance(value, Method):
        return value.function
    return value if isinstance(value, Function) else None


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, (*_VALUES, jax.Array))


_VALUES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    np.ndarray,
    np.generic,
    DistributedValues,
    Variable,
    Specified,
)


def _method(function: Callable[..., Any], held: "ref[Any]") -> Callable[..., Any]:
    """Return a function with its first argument filled in, which does not keep that alive."""

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        return function(held(), *args, **kwargs)

    bound = functools.partial(function, None)
    method.__signature__ = Parameters(bound).of  # pyright: ignore[reportAttributeAccessIssue]
    return method


def function(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: object = None,
    experimental_attributes: object = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Compile a function of tensors, when it is first called with arguments of a kind.

    Its Python code runs once for each kind of arguments (their structure, shapes and dtypes, and the values
    of Python's numbers and objects among them); variables that it reads and assigns are found then. A
    function that reads from an iterator, or whose Python code depends on a tensor's value, runs as plain
    Python each time, and each `strategy.run` in it is compiled.

    Args:
        func: The function; without it, a decorator is returned.
        input_signature: A spec, or a nest of them, for each argument; other arguments are refused, and
            Python's numbers become tensors.
        autograph: Taken for compatibility: Python code is never rewritten.
        jit_compile: Taken for compatibility: XLA compiles always.
        reduce_retracing: Taken for compatibility: XLA's programs have fixed shapes.
        experimental_implements: Taken for compatibility.
        experimental_autograph_options: Taken for compatibility.
        experimental_attributes: Taken for compatibility.
        experimental_relax_shapes: Taken for compatibility.
        experimental_compile: Taken for compatibility.
        experimental_follow_type_hints: Taken for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> traced = []
        >>> @tf.function
        ... def double(x):
        ...     traced.append(x.shape)
        ...     return x * 2
        >>> double(tf.constant(1.0)), double(tf.constant(4.0))
        (Array(2., dtype=float32), Array(8., dtype=float32))
        >>> traced
        [()]
    """
    del autograph, jit_compile, reduce_retracing, experimental_implements
    del experimental_autograph_options, experimental_attributes, experimental_relax_shapes
    del experimental_compile, experimental_follow_type_hints

    def decorated(inner: Any) -> Function:
        if not callable(inner):
            raise TypeError(
                described(
                    f"function compiles a function, but got {shortened(inner)}.",
                    fix="decorate one: @evenfeed.function.",
                )
            )
        return Function(inner, input_signature)

    return decorated if func is None else decorated(func)
