"""`evenfeed.function`: compiles functions of tensors, and runs as plain Python those that cannot be compiled."""

import functools
from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any, Final, final
from weakref import ref

from evenfeed.core import side_effects
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.names.tensor_facts import explain_missing_member
from evenfeed.replicas import contexts
from evenfeed.replicas.containers import open_containers
from evenfeed.replicas.function.compiler import Compiler
from evenfeed.replicas.function.concrete import (
    ConcreteFunction,
    DrivenFunction,
    OpenFunction,
    OpenShapeError,
    from_specs,
)
from evenfeed.replicas.function.left_tracers import ReachableArrays
from evenfeed.replicas.function.modified_arguments import GivenArguments
from evenfeed.replicas.function.outputs import is_value
from evenfeed.replicas.function.plain_python import drive, mode, warn_not_compiled, with_loops
from evenfeed.replicas.function.retracing import Retraces, retraces_of
from evenfeed.replicas.function.signatures import InputSignature, Parameters
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.regrouping import leaves_of
from evenfeed.tensors.control.scopes import name_scope


@final
class Function:
    """A compiled function. Created by `evenfeed.function`.

    Attributes:
        python_function: The decorated function.
        name: Its name.
        steps: The programs for its calls of `strategy.run` when it runs as plain Python (see `run/running.py`).
        loops: The programs for its loops, also then (see `run/many_steps.py`).
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
        self.loops: OrderedDict[Any, Any] = OrderedDict()
        self._retraces = retraces
        self._parameters: Parameters | None = None
        self._positional = 0
        self._given_signature = input_signature
        self._signature: InputSignature | None = None
        self._compiler: Compiler | None = None
        self._driven: Callable[..., Any] | None = None
        self._unbound: tuple[Callable[..., Any], Any] | None = None
        self._unstaged: Unstaged | None = None
        self._inlined = 0
        self._concrete: dict[Any, ConcreteFunction] = {}
        self._bound: dict[int, tuple[Any, Function]] = {}

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        """The specs that the arguments must match; None if there is no signature."""
        return None if self._given_signature is None else tuple(self._given_signature)

    # --- calling ---------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        # Each line here adds to the cost of a step (benchmarks/training.py).
        compiler = self._compiler or self._get_compiler()
        if mode.eager:
            return self.python_function(*args, **kwargs)
        watcher = side_effects.here.watcher
        if watcher is not None and watcher.inlines:
            self._inlined = self._inlined or 1  # a map traces its function several times
            return self._inlined_call(args, kwargs)
        here = contexts.here.__dict__  # the thread's state, looked up once
        if here["stagings"]:
            return self._call_in_trace(args, kwargs)
        frames = here["frames"]
        level: Any = frames[-1] if frames else here["chosen"]
        alone = level is None or level.context is None or level.replicas.is_lone
        if alone and self._unstaged is None:
            if kwargs or len(args) < self._positional:
                args, kwargs = self._ordered(args, kwargs)
            try:
                return compiler(args, kwargs, level)
            except Unstaged as reason:
                self._give_up(reason)
        driven = self._driven or self._with_loops()
        return drive(self, driven, *self._fitted(args, kwargs))

    def _with_loops(self) -> Callable[..., Any]:
        """Return the function for runs as plain Python: its loops over `tf.range` are compiled if possible."""
        unbound, held = self._unbound or (self.python_function, None)
        looped = with_loops(unbound)
        self._driven = looped if held is None else _method(looped, held)
        return self._driven

    def _get_compiler(self) -> Compiler:
        """Create the compiler at the first call; for a method, when it is bound."""
        with _COMPILER_LOCK:  # only one thread creates it
            return self._compiler or self._make_compiler()

    def _make_compiler(self) -> Compiler:
        function = self.python_function
        self._parameters = Parameters(function)
        self._positional = self._parameters.count
        fit = None
        if self._given_signature is not None:
            self._signature = InputSignature(function, self.name, self._given_signature)
            fit = self._signature.fit
            self._positional = 0  # the signature handles the order
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
            with name_scope(""):  # names do not depend on who calls it first
                result = self.python_function(*args, **kwargs)
        except AttributeError as error:
            explain_missing_member(error)
            raise
        before.check_same(self.python_function)
        reachable.check()
        self._check_result(open_containers(result), given)
        return result

    def _check_given(self, given: list[Any]) -> None:
        for leaf in given:
            if type(leaf).__hash__ is None and not is_value(leaf):
                raise TypeError(
                    described(
                        f"{self.name} got {shortened(leaf)}, which may change: it is not hashable, so no program can "
                        "be cached for it.",
                        fix="pass its tensors, a frozen object, or a pytree: register the class with "
                        "jax.tree_util.register_dataclass.",
                    )
                )

    def _check_result(self, result: Any, given: list[Any]) -> None:
        for leaf in leaves_of(result)[0]:
            # Leaves of a pytree argument may be returned as they are: models hold their activation functions.
            if not is_value(leaf) and not any(leaf is each for each in given):
                raise TypeError(
                    described(
                        f"{self.name} returned {shortened(leaf)} of type {type(leaf).__name__}, but a compiled "
                        "function can only return tensors and None, or nests of them.",
                        fix="return what it computes, and keep other objects outside of the function.",
                    )
                )

    def _call_in_trace(self, args: Any, kwargs: Any) -> Any:
        """Inline the function into the one that is being traced."""
        if self._unstaged is not None:
            raise self._unstaged.again()
        self._inlined += 1
        return self._inlined_call(args, kwargs)

    def _inlined_call(self, args: Any, kwargs: Any) -> Any:
        given, named = self._fitted(args, kwargs)
        return self.python_function(*given, **named)

    def _give_up(self, reason: Unstaged) -> None:
        if reason.always and self._unstaged is None:
            self._unstaged = reason.again()
            what = (
                f"{self.name} runs as plain Python, and only its calls of strategy.run are compiled"
            )
            warn_not_compiled(what, reason)

    # --- methods ---------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function bound to one object, with its own programs and its own first call."""
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
        except TypeError:  # it has __slots__ and no weak references, so it becomes an argument
            return functools.partial(self, instance)
        # The bound function must not keep the object alive, or neither would ever be freed.
        function = _method(self.python_function, held)
        bound = Function(function, self._given_signature, Retraces(self.name))
        bound._unbound = self.python_function, held
        self._bound[number] = held, bound
        return Method(bound, instance)

    # --- inspection ------------------------------------------------------------------------

    def experimental_get_tracing_count(self) -> int:
        """Return how many times the function was traced.

        Examples:
            >>> import evenfeed as tf
            >>> double = tf.function(lambda x: x * 2)
            >>> _ = double(tf.constant(1.0)), double(tf.constant(2.0)), double(tf.constant([1.0]))
            >>> double.experimental_get_tracing_count()
            2
        """
        return self._inlined + (0 if self._compiler is None else self._compiler.traces)

    def get_concrete_function(
        self, *args: Any, **kwargs: Any
    ) -> ConcreteFunction | OpenFunction | DrivenFunction:
        """Trace the function for one signature, without running it.

        If the function reads a dataset, or its Python code depends on a tensor's value, it cannot be compiled as a
        single program. Then the returned function runs it as plain Python. A spec with an unknown length fits several
        programs: each is traced when it is first called.

        Args:
            args: Tensors or specs; other values become constants of the program. By default the specs of
                `input_signature`.
            kwargs: The same, as keyword arguments.

        Examples:
            >>> import evenfeed as tf
            >>> double = tf.function(lambda x: x * 2)
            >>> double.get_concrete_function(tf.TensorSpec([3])).structured_outputs
            TensorSpec(shape=(3,), dtype=tf.float32, name=None)
        """
        compiler = self._compiler or self._get_compiler()
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        given = self._fitted(*self._ordered(args, kwargs))
        try:
            given = from_specs(given)
            program = compiler.program(*given)
        except OpenShapeError:
            return OpenFunction(self.name, self, given, self._parameters)
        except Unstaged:
            return DrivenFunction(self.name, self, given, self._parameters)
        if program not in self._concrete:
            self._concrete[program] = ConcreteFunction(self.name, program, given, self._parameters)
        return self._concrete[program]

    def __repr__(self) -> str:
        return f"<evenfeed.function {self.name}>"


@final
class Method:
    """A function bound to an object. Keeps the object alive as long as the method itself lives."""

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


_COMPILER_LOCK: Final = RLock()


def compiled_function(value: object) -> Function | None:
    """Return the `Function` behind a value, which may be a bound method; None for any other value."""
    if isinstance(value, Method):
        return value.function
    return value if isinstance(value, Function) else None


def _method(function: Callable[..., Any], held: "ref[Any]") -> Callable[..., Any]:
    """Return a function with its first argument bound, without keeping that argument alive."""

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
    """Compile a function of tensors, at its first call with each signature.

    Its Python code runs once per signature: the structure, shapes and dtypes of the arguments, and the values of
    Python numbers and objects among them. The trace finds the variables that the function reads and assigns. A
    function that reads from an iterator, or whose Python code depends on a tensor's value, runs as plain Python
    each time, and each `strategy.run` in it is compiled.

    Args:
        func: The function; without it, a decorator is returned.
        input_signature: A spec, or a nest of specs, for each argument. Other arguments raise an error, and Python
            numbers become tensors.
        autograph: Accepted for compatibility; Python code is never rewritten.
        jit_compile: Accepted for compatibility; XLA always compiles.
        reduce_retracing: Accepted for compatibility; XLA programs have fixed shapes.
        experimental_implements: Accepted for compatibility.
        experimental_autograph_options: Accepted for compatibility.
        experimental_attributes: Accepted for compatibility.
        experimental_relax_shapes: Accepted for compatibility.
        experimental_compile: Accepted for compatibility.
        experimental_follow_type_hints: Accepted for compatibility.

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
                    f"evenfeed.function needs a function, but got {shortened(inner)}.",
                    fix="decorate a function with @evenfeed.function.",
                )
            )
        return Function(inner, input_signature)

    return decorated if func is None else decorated(func)
