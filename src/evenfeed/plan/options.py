"""`tf.data.Options` with its sections and enums, and the plan node for `Dataset.with_options`.

Most options are hints to TensorFlow's runtime. They are stored, compared and merged as in TensorFlow, so that
programs can read back what they set. evenfeed itself uses `deterministic`, `threading`,
`experimental_distribute` and `experimental_external_state_policy`.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, cast, final, overload

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node

Value = TypeVar("Value")
Section = TypeVar("Section", bound="OptionsBase")


class AutoShardPolicy(enum.IntEnum):
    """How the elements of a dataset are sharded among workers.

    LANES is evenfeed's own: the sources are dealt to `num_lanes` lanes, and each worker reads some of them. The global
    batches do not depend on the number of workers.
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3
    LANES = 4


class ExternalStatePolicy(enum.Enum):
    """What `get_state` does if functions of a dataset have state that an iterator's state does not include.

    FAIL, the default, raises FailedPreconditionError. WARN warns. IGNORE does nothing.
    """

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.Enum):
    """The algorithm that TensorFlow tunes a pipeline with."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


@final
class _Option(Generic[Value]):
    """A descriptor for one option: its default, or None, until it is set."""

    def __init__(self, kind: type[Value], default: Value | None = None) -> None:
        self.kind = kind
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "_Option[Value]": ...
    @overload
    def __get__(self, instance: "OptionsBase", owner: type) -> Value | None: ...
    def __get__(
        self, instance: "OptionsBase | None", owner: type
    ) -> "_Option[Value] | Value | None":
        return self if instance is None else instance.values_set.get(self.name, self.default)

    def __set__(self, instance: "OptionsBase", value: Value) -> None:
        if not isinstance(value, self.kind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"{self.name} must be of type {self.kind.__name__}, but got {shortened(value)}.",
                    fix=f"pass a {self.kind.__name__}.",
                )
            )
        if instance.frozen:
            raise ValueError(
                described(
                    "The options of a dataset cannot be changed.",
                    fix="set a new evenfeed.data.Options(), and call dataset.with_options(options).",
                )
            )
        instance.values_set[self.name] = value


@final
class _Section(Generic[Section]):
    """A descriptor for a group of nested options."""

    def __init__(self, kind: type[Section]) -> None:
        self.kind = kind
        self.default = None
        self._option = _Option(kind)

    def __set_name__(self, owner: type, name: str) -> None:
        self._option.name = self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "_Section[Section]": ...
    @overload
    def __get__(self, instance: "OptionsBase", owner: type) -> Section: ...
    def __get__(self, instance: "OptionsBase | None", owner: type) -> "_Section[Section] | Section":
        return self if instance is None else instance.values_set[self.name]

    def __set__(self, instance: "OptionsBase", value: Section) -> None:
        self._option.__set__(instance, value)


class OptionsBase:
    """The base class of options: named values, each of a fixed type."""

    __slots__ = ("frozen", "values_set")

    def __init__(self) -> None:
        object.__setattr__(self, "frozen", False)
        object.__setattr__(self, "values_set", {})
        for name, option in _options(type(self)):
            if isinstance(option, _Section):
                self.values_set[name] = option.kind()

    values_set: dict[str, Any]
    frozen: bool

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(vars(type(self)).get(name), (_Option, _Section, property)):
            raise AttributeError(
                described(f"{type(self).__name__} has no option {name!r}."), name=name, obj=self
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._shown() == cast("Self", other)._shown()

    __hash__ = None  # pyright: ignore[reportAssignmentType] - options are mutable

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._shown().items())
        return f"{type(self).__name__}({values})"

    def _shown(self) -> dict[str, Any]:
        pairs = ((name, getattr(self, name)) for name, _ in _options(type(self)))
        return {name: value for name, value in pairs if value is not None}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), dict(self.values_set), self.frozen)


def _options(kind: type) -> "Iterator[tuple[str, _Option[Any] | _Section[Any]]]":
    for name, value in vars(kind).items():
        if isinstance(value, (_Option, _Section)):
            yield name, cast("_Option[Any] | _Section[Any]", value)


def _rebuilt(kind: type[OptionsBase], values: dict[str, Any], frozen: bool) -> OptionsBase:
    made = kind()
    made.values_set.update(values)
    object.__setattr__(made, "frozen", frozen)
    return made


def frozen(options: OptionsBase) -> Any:
    """Return an immutable copy, including its sections."""
    values = {
        name: frozen(value) if isinstance(value, OptionsBase) else value
        for name, value in options.values_set.items()
    }
    return _rebuilt(type(options), values, True)


def merged(first: OptionsBase, second: OptionsBase) -> Any:
    """Merge two options. If both set a value, the second one wins."""
    made = type(first)()
    for options in (first, second):
        for name, value in options.values_set.items():
            if isinstance(value, OptionsBase):
                made.values_set[name] = merged(made.values_set[name], value)
            # As in TensorFlow, setting an option to its default does not override an earlier value.
            elif value != getattr(type(options), name).default:
                made.values_set[name] = value
    return made


@final
class ThreadingOptions(OptionsBase):
    """The numbers of threads that a dataset uses.

    Attributes:
        private_threadpool_size: The number of threads for this dataset; 0 for the machine's default.
        max_intra_op_parallelism: The number of threads within one operation.
    """

    __slots__ = ()
    max_intra_op_parallelism = _Option(int)
    private_threadpool_size = _Option(int)


@final
class AutotuneOptions(OptionsBase):
    """Options for tuning a running pipeline."""

    __slots__ = ()
    enabled = _Option(bool)
    cpu_budget = _Option(int)
    ram_budget = _Option(int)
    autotune_algorithm = _Option(AutotuneAlgorithm)
    initial_parallelism = _Option(int)
    min_parallelism = _Option(int)


@final
class DistributeOptions(OptionsBase):
    """Options for sharding a dataset that a strategy distributes.

    Attributes:
        auto_shard_policy: How workers shard the dataset.
        num_devices: Not used.
        num_lanes: The number of lanes with `AutoShardPolicy.LANES`. It stays the same when workers come and go.
    """

    __slots__ = ()
    auto_shard_policy = _Option(AutoShardPolicy, AutoShardPolicy.AUTO)
    num_devices = _Option(int)
    num_lanes = _Option(int)


@final
class OptimizationOptions(OptionsBase):
    """Options for TensorFlow's graph rewrites. evenfeed's rewrites never change results, so they are always on."""

    __slots__ = ()
    apply_default_optimizations = _Option(bool)
    filter_fusion = _Option(bool)
    filter_parallelization = _Option(bool)
    inject_prefetch = _Option(bool)
    map_and_batch_fusion = _Option(bool)
    map_and_filter_fusion = _Option(bool)
    map_fusion = _Option(bool)
    map_parallelization = _Option(bool)
    noop_elimination = _Option(bool)
    parallel_batch = _Option(bool)
    seq_interleave_prefetch = _Option(bool)
    shuffle_and_repeat_fusion = _Option(bool)


@final
class ServiceOptions(OptionsBase):
    """Options of the tf.data service, which evenfeed does not have."""

    __slots__ = ()
    pinned = _Option(bool)


@final
class Options(OptionsBase):
    """Options of a dataset, set with `Dataset.with_options`.

    Attributes:
        deterministic: Keep the order of elements that are produced in parallel.
        experimental_distribute: Sharding options; `auto_shard_policy` selects how to shard among workers.
        experimental_external_state_policy: What `get_state` does if functions use their own random number
            generators, assign variables or advance iterators.
        threading: The numbers of threads.
        autotune: Tuning options.

    Examples:
        >>> import evenfeed as tf
        >>> options = tf.data.Options()
        >>> options.deterministic = False
        >>> options.threading.private_threadpool_size = 4
        >>> options.deterministic, options.threading.private_threadpool_size
        (False, 4)
    """

    __slots__ = ()
    autotune = _Section(AutotuneOptions)
    dataset_name = _Option(str)
    deterministic = _Option(bool)
    experimental_distribute = _Section(DistributeOptions)
    experimental_external_state_policy = _Option(ExternalStatePolicy)
    experimental_optimization = _Section(OptimizationOptions)
    experimental_service = _Section(ServiceOptions)
    experimental_slack = _Option(bool)
    experimental_symbolic_checkpoint = _Option(bool)
    experimental_warm_start = _Option(bool)
    framework_type = _Option[list[str]](list)
    threading = _Section(ThreadingOptions)

    @property
    def experimental_deterministic(self) -> bool | None:
        """The old name of `deterministic`."""
        return self.deterministic

    @experimental_deterministic.setter
    def experimental_deterministic(self, value: bool) -> None:
        self.deterministic = value

    @property
    def experimental_threading(self) -> ThreadingOptions:
        """The old name of `threading`."""
        return self.threading

    @experimental_threading.setter
    def experimental_threading(self, value: ThreadingOptions) -> None:
        self.threading = value

    def merge(self, options: "Options") -> "Options":
        """Return new options with the values of both. If both set a value, that of `options` wins."""
        if not isinstance(options, Options):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(described(f"merge expects Options, but got {shortened(options)}."))
        return merged(self, options)


@final
@dataclass(frozen=True)
class WithOptions(Node):
    """Sets options for the whole plan that it is part of."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        elementwise=True,
        same_elements=True,
        sequential=None,
        keeps_batch_size=True,
        passes_files=True,
        rewinds=True,
        saves_at_delivery=True,
    )

    child: Node
    options: Options

    def __post_init__(self) -> None:
        if not isinstance(self.options, Options):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"with_options expects Options, but got {shortened(self.options)}.",
                    fix="pass evenfeed.data.Options().",
                    origin=self.origin,
                )
            )
        # Users may change their object later; that must not change this dataset.
        object.__setattr__(self, "options", frozen(self.options))

    @property
    def element_spec(self) -> Any:
        return self.child.element_spec

    @property
    def size(self) -> int:
        return self.child.size


_UNSET: Final[Options] = frozen(Options())


def options_of(plan: Node) -> Options:
    """Merge all options in a plan. Later calls of with_options win."""
    given = [node.options for node in plan.bottom_up() if isinstance(node, WithOptions)]
    # Most plans set none, and each dataset that a function opens asks.
    return frozen(reduce(Options.merge, given, Options())) if given else _UNSET
