"""The base of `Dataset`: a plan, iteration, and the methods that describe the dataset."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast, final

import numpy as np

from evenfeed.core.arguments import (
    seconds_of,
    whole_number,
)
from evenfeed.core.callsite import where_called
from evenfeed.core.captures import with_values_of_now
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy import LazyModule
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.randomness.seeds import any_seed, operation_seed
from evenfeed.core.sparse.sparse_tensors import SparseTensor, to_dense
from evenfeed.core.specs import INFINITE, UNKNOWN, CompositeSpec
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.core.tensor_types import host_tensor
from evenfeed.dataset.debug_mode import vectorization
from evenfeed.plan.node import Node
from evenfeed.plan.options import Options, WithOptions, options_of
from evenfeed.plan.ordering import Take
from evenfeed.plan.templates import size_seen
from evenfeed.plan.windows import DatasetLike, DatasetSpec
from evenfeed.runtime.build import build, make_room
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.explain import Explanation, explained_plan
from evenfeed.runtime.fingerprint import identity
from evenfeed.runtime.functions.row_function import RowFunction, trace
from evenfeed.runtime.peek import Beginning

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset

# The room that distributes datasets knows this one, so it is found by its public name.
_distribution: Any = LazyModule("evenfeed.distribute")


class Face(DatasetLike):
    """Holds the plan of a dataset. The mixins add the methods that extend the plan."""

    __slots__ = ("_plan",)

    # The mixins create Datasets, but cannot import the class that they are part of. dataset.py sets it here.
    dataset_class: ClassVar["type[Dataset]"]

    def __init__(self, plan: Node) -> None:
        if not isinstance(plan, Node):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"Dataset() cannot be called with a value of type {type(plan).__name__}.",
                    fix="call Dataset.from_tensor_slices(value) or another Dataset.from_… method.",
                )
            )
        make_room(plan)
        self._plan = plan

    def _traced(
        self,
        function: Callable[..., Any],
        doing: str,
        calls: int | None = None,
        *,
        vectorize: bool | None = None,
        **settings: Any,
    ) -> RowFunction:
        return trace(
            checked_function(function),
            self.element_spec,
            where_called(),
            vectorize=vectorization(vectorize),
            doing=doing,
            num_parallel_calls=calls,
            first_elements=Beginning(self._plan, build),
            **settings,
        )

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a spec (shape and dtype) for each component."""
        return self._plan.element_spec

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec, face=Face.dataset_class)

    def cardinality(self) -> Any:
        """Return the number of elements, without reading any.

        Returns:
            A scalar: the number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.range(5).batch(2).cardinality()
            array(3)
        """
        size = size_seen(self._plan)
        # A Python int stays exact when the size does not fit into 64 bits.
        return host_tensor(np.int64(size)) if size < 2**63 else size

    def as_numpy_iterator(self) -> "NumpyIterator":
        """Iterate over the elements as plain NumPy values, with scalar strings as bytes.

        A ragged tensor becomes an array of arrays, and a sparse tensor a dense array.

        Raises:
            TypeError: An element holds a dataset or an Optional.

        Examples:
            >>> import evenfeed as tf
            >>> list(tf.data.Dataset.from_tensor_slices(["a", "b"]).as_numpy_iterator())
            [b'a', b'b']
        """
        return NumpyIterator(cast("Dataset", self))

    def distribute(self, sharding: Any, *, mesh: Any = None, options: Any = None) -> Any:
        """Put every batch on the devices of a mesh, as global `jax.Array` objects.

        Each process reads only the rows that its devices hold. See `evenfeed.distribute.global_batches`.

        Args:
            sharding: A `NamedSharding` or a `PartitionSpec` for all components, or a structure of them.
            mesh: The mesh of each `PartitionSpec`; by default that of `jax.set_mesh`.
            options: InputOptions.

        Examples:
            >>> import jax
            >>> import evenfeed as tf
            >>> mesh = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2])
            >>> rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
            >>> [x.tolist() for x in tf.data.Dataset.range(4).batch(2).distribute(rows)]
            [[0, 1], [2, 3]]
        """
        return _distribution.global_batches(self, sharding, mesh=mesh, options=options)

    def fingerprint(self) -> Any:
        """Return a number that datasets share if they make the same elements: a uint64 scalar.

        It depends on the steps, their functions and the data in memory, not on seeds. It may change with the version.

        Examples:
            >>> import evenfeed as tf
            >>> a, b = (tf.data.Dataset.range(n).batch(2) for n in (4, 5))
            >>> bool(a.fingerprint() == tf.data.Dataset.range(4).batch(2).fingerprint())
            True
            >>> bool(a.fingerprint() == b.fingerprint())
            False
        """
        return host_tensor(np.uint64(int(identity(self._plan)[:16], 16)))

    def explain(self, measure: float = 0.0) -> Explanation:
        """Describe how this dataset runs, step by step from its sources.

        For each step, the text shows the call, the source line, the cardinality and the element spec,
        and where and why reading becomes sequential. For each function, it shows whether the
        function runs on whole Blocks or per element, why, and its throughput over all passes so far.
        The last line says how an iterator resumes.

        Args:
            measure: Seconds to spend reading the dataset first, to measure throughput. This pass is not
                counted, so random orders do not change. By default nothing is read or called.

        Returns:
            A text that a prompt or a notebook displays as it is.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(10).shuffle(10, seed=1).filter(lambda x: x > 3).batch(2)
            >>> dataset.explain()  # doctest: +ELLIPSIS
             1  range(0, 10)      <doctest ...>:1  10 elements     () int64
             2  shuffle(10)       <doctest ...>:1  10 elements
             3  filter(<lambda>)  <doctest ...>:1  length unknown
                  vectorised: it traces; not run yet
                  read sequentially from here on: which elements remain is known only after they are read
             4  batch(2)          <doctest ...>:1  length unknown  (?,) int64
            resume: by position
        """
        return explained_plan(self._plan, seconds_of(measure, "measure"))

    def options(self) -> Options:
        """Return the options set by `with_options` so far, as a frozen object.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.range(3).options().deterministic is None
            True
        """
        return options_of(self._plan)

    def with_options(self, options: Options, name: str | None = None) -> "Dataset":
        """Set options on this dataset. A later call overrides an earlier one.

        Args:
            options: The options to set. They are copied, so later changes to them have no effect.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> options = tf.data.Options()
            >>> options.deterministic = False
            >>> tf.data.Dataset.range(3).with_options(options).batch(2).options().deterministic
            False
        """
        del name
        return dataset_of(WithOptions(self._plan, options))

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the only element of a dataset with exactly one element.

        Raises:
            InvalidArgumentError: The dataset has no element, or more than one.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.range(3).batch(3).get_single_element().tolist()
            [0, 1, 2]
        """
        del name
        found = list(dataset_of(Take(self._plan, 2)))
        if len(found) == 1:
            return found[0]
        raise InvalidArgumentError(
            "get_single_element needs exactly one element, but the dataset has "
            f"{'more than one' if found else 'none'}.",
            fix="call batch(n) first to get all elements as one, or take(1) to get the first.",
        )

    def __iter__(self) -> ElementIterator:
        return ElementIterator(self._plan, tensors=True, unordered=True)

    def __len__(self) -> int:
        size = size_seen(self._plan)
        if size in (INFINITE, UNKNOWN):
            kind = "infinite" if size == INFINITE else "unknown before it is read"
            raise TypeError(
                described(
                    f"The dataset has no len(): its length is {kind}.",
                    fix="call cardinality(), which has a value for both cases.",
                )
            )
        return size

    def __bool__(self) -> bool:
        return True  # Without this, `if dataset:` would call len(), which may raise or be 0.

    def __repr__(self) -> str:
        return f"<_{type(self._plan).__name__}Dataset element_spec={self.element_spec!r}>"


def dataset_of(plan: Node) -> "Dataset":
    """Wrap a plan in a Dataset."""
    return Face.dataset_class(plan)


def plan_of(dataset: "Dataset") -> Node:
    """Return the plan of a dataset."""
    return dataset._plan  # pyright: ignore[reportPrivateUsage] - how the layers above get the plan


def as_dataset(value: object, method: str) -> "Dataset":
    """Check that the result of a user function is a Dataset, and return it."""
    if isinstance(value, Face.dataset_class):
        return value
    raise TypeError(
        described(
            f"The function passed to {method} must return a Dataset, but returned {shortened(value)}.",
            fix="return Dataset.from_tensors(value), or call map if the function returns an element.",
        )
    )


def plan_made(method: str, value: object) -> Node:
    """Return the plan of the dataset that a user function returned."""
    return plan_of(as_dataset(value, method))


def checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check that an argument is callable, and return it, with the values that its variables have now."""
    if callable(function):
        return with_values_of_now(function)
    raise TypeError(
        described(
            f"Expected a function, but got {shortened(function)}.",
            fix="pass a function of an element, such as lambda x: x + 1.",
        )
    )


def plans_of(datasets: Any) -> tuple[Node, ...]:
    """Check that all values are Datasets, and return their plans."""
    given = tuple(datasets)  # It may be an iterator, which can be read only once.
    for dataset in given:
        if not isinstance(dataset, Face.dataset_class):
            raise TypeError(
                described(
                    f"Expected a Dataset, but got {shortened(dataset)}.",
                    fix="create one first: Dataset.from_tensor_slices(value).",
                )
            )
    return tuple(map(plan_of, given))


def shuffle_seed(seed: int | None) -> tuple[int, ...]:
    """Combine an operation's seed with the global seed; draw a random seed if neither is set."""
    given = operation_seed(None if seed is None else whole_number(seed, "seed"))
    return any_seed() if given is None else given


@final
class NumpyIterator(ElementIterator):
    """Iterates over the elements of a dataset as plain NumPy values. Created by `Dataset.as_numpy_iterator`.

    Args:
        dataset: The dataset. Its elements must not hold datasets or Optionals.

    Examples:
        >>> import evenfeed as tf
        >>> list(tf.data.NumpyIterator(tf.data.Dataset.range(2).batch(2)))
        [array([0, 1])]
    """

    def __init__(self, dataset: "Dataset") -> None:
        (plan,) = plans_of((dataset,))
        for spec in flatten(plan.element_spec, DATA):
            if isinstance(spec, CompositeSpec):
                raise TypeError(
                    described(
                        f"as_numpy_iterator supports only NumPy values, but an element holds {spec}.",
                        fix="iterate over the dataset itself.",
                    )
                )
        # Not a generator, which an exception would end, and not map(), in which Ctrl-C would lose an element.
        super().__init__(plan, form=_as_numpy, unordered=True)


def _as_numpy(element: Any) -> Any:
    return map_structure(_unwrapped, element, rules=DATA)


def _unwrapped(part: Any) -> Any:
    if isinstance(part, RaggedTensor):
        return part.numpy()
    if isinstance(part, SparseTensor):  # dense, as in TensorFlow
        return to_dense(part)
    return part if part is None or part.ndim else part[()]
