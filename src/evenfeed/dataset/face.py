"""What every dataset is: a plan, and what can be asked about it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from evenfeed.core.arguments import (
    seconds_of,
    whole_number,
)
from evenfeed.core.callsite import where_called
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.seeds import any_seed, operation_seed
from evenfeed.core.specs import INFINITE, UNKNOWN, CompositeSpec
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.core.tensor_types import host_tensor
from evenfeed.plan.node import Node
from evenfeed.plan.options import Options, WithOptions, options_of
from evenfeed.plan.ordering import Take
from evenfeed.plan.windows import DatasetLike, DatasetSpec
from evenfeed.runtime.build import build, make_room
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.explain import Explanation, explained_plan
from evenfeed.runtime.functions.row_function import RowFunction, trace
from evenfeed.runtime.peek import Beginning

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


class Face(DatasetLike):
    """A plan behind the methods that users call; the families of them add to it."""

    __slots__ = ("_plan",)

    # The families make Datasets, of which they are parts: it says itself who it is.
    whole: ClassVar["type[Dataset]"]

    def __init__(self, plan: Node) -> None:
        if not isinstance(plan, Node):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"A Dataset is not made of {type(plan).__name__} directly.",
                    fix="call Dataset.from_tensor_slices(value) or another Dataset.from_… method.",
                )
            )
        make_room(plan)
        self._plan = plan

    def _traced(
        self, function: Callable[..., Any], doing: str, calls: int | None = None, **how: Any
    ) -> RowFunction:
        return trace(
            checked_function(function),
            self.element_spec,
            where_called(),
            doing=doing,
            num_parallel_calls=calls,
            first_elements=Beginning(self._plan, build),
            **how,
        )

    @property
    def element_spec(self) -> Any:
        """The specs of an element's parts, in the structure of an element."""
        return self._plan.element_spec

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec, face=Face.whole)

    def cardinality(self) -> Any:
        """Return how many elements there are, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.range(5).batch(2).cardinality()
            array(3)
        """
        size = self._plan.size
        return (
            host_tensor(np.int64(size)) if size < 2**63 else size
        )  # exact also where 64 bits do not suffice

    def as_numpy_iterator(self) -> ElementIterator:
        """Iterate over the elements as plain NumPy values: scalar text as bytes.

        Examples:
            >>> import evenfeed as tf
            >>> list(tf.data.Dataset.from_tensor_slices(["a", "b"]).as_numpy_iterator())
            [b'a', b'b']
        """
        for spec in flatten(self.element_spec, DATA):
            if isinstance(spec, CompositeSpec):
                raise TypeError(
                    described(
                        f"as_numpy_iterator has only NumPy values, but an element holds {spec}.",
                        fix="iterate over the dataset itself.",
                    )
                )
        # Neither a generator, which an exception would end, nor a map, in which Ctrl-C would lose an element.
        return ElementIterator(self._plan, form=_as_numpy)

    def explain(self, measure: float = 0.0) -> Explanation:
        """Say how this dataset runs, step by step from its sources to its end.

        For each step: the call and the line that made it, how many elements it has and what they are,
        and where elements stop to have positions, and why. For each function: whether it runs on whole
        Blocks or per element, why, and how fast it was in all passes so far. At the end, how an
        iterator resumes.

        Args:
            measure: Read for about so many seconds before, as an iterator would, to know the rates; the
                pass is not counted, so random orders stay what they would have been. By default
                nothing is read or called.

        Returns:
            A text, which a prompt or a notebook shows as it is.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(10).shuffle(10, seed=1).filter(lambda x: x > 3).batch(2)
            >>> dataset.explain()  # doctest: +ELLIPSIS
             1  range(0, 10)      <doctest ...>:1  10 elements     () int64
             2  shuffle(10)       <doctest ...>:1  10 elements
             3  filter(<lambda>)  <doctest ...>:1  length unknown
                  vectorised: it traces; not run so far
                  elements have no positions from here on: which elements stay is known only when they are read
             4  batch(2)          <doctest ...>:1  length unknown  (?,) int64
            resume: by position
        """
        return explained_plan(self._plan, seconds_of(measure, "measure"))

    def options(self) -> Options:
        """Return what `with_options` set so far, as options that cannot be changed.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.range(3).options().deterministic is None
            True
        """
        return options_of(self._plan)

    def with_options(self, options: Options, name: str | None = None) -> "Dataset":
        """Set options; where two set the same, the later one holds.

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
        """Return the element of a dataset that has only one.

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
            f"The dataset has {'more than one element' if found else 'no element'}.",
            fix="call batch(n) first for all elements, or take(1) for the first.",
        )

    def __iter__(self) -> ElementIterator:
        return ElementIterator(self._plan, tensors=True)

    def __len__(self) -> int:
        size = self._plan.size
        if size in (INFINITE, UNKNOWN):
            kind = "endless" if size == INFINITE else "not known before it is read"
            raise TypeError(
                described(
                    f"The dataset has no len(): its length is {kind}.",
                    fix="ask cardinality(), which has a value for both cases.",
                )
            )
        return size

    def __bool__(self) -> bool:
        return True  # a dataset is a value, however many elements it has

    def __repr__(self) -> str:
        return f"<_{type(self._plan).__name__}Dataset element_spec={self.element_spec!r}>"


def dataset_of(plan: Node) -> "Dataset":
    """Return the dataset that reads a plan."""
    return Face.whole(plan)


def plan_of(dataset: "Dataset") -> Node:
    """Return the plan behind the face."""
    return dataset._plan  # pyright: ignore[reportPrivateUsage] - the door for the layers above


def as_dataset(value: object, method: str) -> "Dataset":
    """Return what a user's function made, if it is a dataset."""
    if isinstance(value, Face.whole):
        return value
    raise TypeError(
        described(
            f"The function of {method} must return a Dataset, but returned {shortened(value)}.",
            fix="return Dataset.from_tensors(value), or call map for functions of elements.",
        )
    )


def plan_made(method: str, value: object) -> Node:
    """Return the plan of what a user's function made."""
    return plan_of(as_dataset(value, method))


def checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, checked to be one."""
    if callable(function):
        return function
    raise TypeError(
        described(
            f"A function is needed, but got {shortened(function)}.",
            fix="pass a function of an element, such as lambda x: x + 1.",
        )
    )


def plans_of(datasets: Any) -> tuple[Node, ...]:
    """Return the plans of several datasets, each checked to be one."""
    given = tuple(datasets)  # an iterator gives them only once
    for dataset in given:
        if not isinstance(dataset, Face.whole):
            raise TypeError(
                described(
                    f"A dataset is needed, but got {shortened(dataset)}.",
                    fix="make one first: Dataset.from_tensor_slices(value).",
                )
            )
    return tuple(map(plan_of, given))


def shuffle_seed(seed: int | None) -> tuple[int, ...]:
    """Return what a shuffle starts from: seeds that were given, or fresh random numbers."""
    given = operation_seed(None if seed is None else whole_number(seed, "seed"))
    return any_seed() if given is None else given


def _as_numpy(element: Any) -> Any:
    return map_structure(_unwrapped, element, rules=DATA)


def _unwrapped(part: Any) -> Any:
    return part if part is None or part.ndim else part[()]
