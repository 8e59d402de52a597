"""Functions that a user could give, for elements of any spec, traceable and not.

Each is written once, in words that NumPy and JAX share: what it means is what it does to one element in
plain Python. There are few of them, and each is traced once for a spec, so that little is compiled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.elementwise import Filter
from evenfeed.runtime.functions.row_function import RowFunction, trace

Function = Callable[[Any], Any]
BOOL: Final = TensorSpec([], dtypes.bool)
TABLE: Final = np.array([3, 1, 4, 1, 5])


def weight(element: Any) -> int:
    """Return a whole number that hangs on all values of an element: it cannot be traced."""
    return sum(_weight(part) for part in flatten(element, DATA))


def _weight(part: Any) -> int:
    if part is None or isinstance(part, Dataset):
        return 0
    array = np.asarray(part)
    if array.dtype.kind in "OS":
        return sum(len(text) + text[-1] for text in array.ravel().tolist() if text)
    return int(3 * np.abs(array.astype(np.float64)).sum())


def counted_up(element: Any) -> Any:
    """Return a vector, possibly empty, whose length hangs on all values of an element."""
    return np.arange(weight(element) % 8)


def _refuse(element: Any) -> None:
    if weight(element) % 4 == 3:
        raise ValueError("a function fails")


def _twice(part: Any) -> Any:
    if getattr(part, "dtype", dtypes.string) == dtypes.string:
        return part
    with np.errstate(over="ignore"):  # eight bits run over
        return part + part


def doubled(element: Any) -> Any:
    return map_structure(_twice, element, rules=DATA)


def first(element: Any) -> Any:
    return flatten(element, DATA)[0]


def nested(element: Any) -> Any:
    return {"it": (first(element),), "all": element}


def looked_up(number: Any) -> Any:
    table: Any = TABLE if isinstance(number, np.ndarray | np.generic) else jnp.asarray(TABLE)
    return table[number]


def described(element: Any) -> Any:
    return str(weight(element)).encode()


def picky(element: Any) -> Any:
    _refuse(element)
    return element


def branching(element: Any) -> Any:
    return doubled(element) if weight(element) % 2 else element


def keyed(element: Any) -> Any:
    return np.int64(weight(element) % 5)


def is_even(element: Any) -> Any:
    return (first(element) % 2 == 0).all()


def is_small(element: Any) -> Any:
    return (first(element) < 4).all()


def is_light(element: Any) -> Any:
    return bool(weight(element) % 3)


def is_fine(element: Any) -> Any:
    _refuse(element)
    return True


def parity(element: Any) -> Any:
    return first(element) % 2


def running(element: tuple[Any, Any]) -> Any:
    state, inner = element
    return state + 1, (state, inner)


def running_weight(element: tuple[Any, Any]) -> Any:
    state, inner = element
    _refuse(inner)
    total = state + np.int64(weight(inner))
    return total, total


PLAIN: Final[dict[str, Function]] = {
    function.__name__: function
    for function in (
        *(doubled, first, nested, looked_up, described, picky, branching, keyed),
        *(is_even, is_small, is_light, is_fine, parity, running, running_weight, counted_up),
    )
}


@dataclass(frozen=True)
class Written:
    """A function as a user writes it, that another process can be sent."""

    plain: Function
    takes_parts: bool  # of a tuple, as separate arguments

    @property
    def __name__(self) -> str:
        return self.plain.__name__

    def __call__(self, *arguments: Any) -> Any:
        return self.plain(arguments if self.takes_parts else arguments[0])


def user_function(plain: Function, spec: Any) -> Written:
    """Return a function for elements of a spec."""
    return Written(plain, type(spec) is tuple)


_traced: Final[dict[Any, RowFunction]] = {}


def traced(plain: Function, spec: Any, **how: Any) -> RowFunction:
    """Return a function that is traced for elements of `spec`, once for all plans."""
    key = plain.__name__, repr(spec), repr(how)
    if key not in _traced:
        _traced[key] = trace(user_function(plain, spec), spec, None, **how)
    return _traced[key]


def shared_functions() -> dict[int, RowFunction]:
    """Return the functions that plans may share, by their identity."""
    return {id(function): function for function in _traced.values()}


def is_cheap(spec: Any) -> bool:
    """Tell whether functions of such elements are compiled in tests: so few specs that it takes no time."""
    specs = flatten(spec, DATA)
    return len(specs) < 3 and all(map(_is_cheap, specs))


def _is_cheap(spec: Any) -> bool:
    numbers = (dtypes.int64, dtypes.float32, dtypes.uint8)
    return isinstance(spec, TensorSpec) and spec.dtype in numbers and spec.shape.rank in (0, 1)


def has_ranks(spec: Any) -> bool:
    """Tell whether the rank of every part is known."""
    parts = [part for part in flatten(spec, DATA) if isinstance(part, TensorSpec)]
    return all(part.shape.rank is not None for part in parts)


def is_of_tensors(spec: Any) -> bool:
    """Tell whether no part is a dataset."""
    return all(isinstance(part, TensorSpec | NoneTensorSpec) for part in flatten(spec, DATA))


# --- functions that make datasets ---------------------------------------------------------------


def twice(element: Any) -> Dataset:
    return Dataset.from_tensors(element).repeat(2)


def counted(element: Any) -> Dataset:
    return Dataset.range(weight(element) % 3)


def mixed(element: Any) -> Dataset:
    numbers = Dataset.range(4).shuffle(3, seed=weight(element), reshuffle_each_iteration=False)
    predicate = traced(is_light, numbers.element_spec, output_signature=BOOL)
    return Dataset(Filter(plan_of(numbers), predicate))


def deep(element: Any) -> Dataset:
    return Dataset.range(2).flat_map(partial(_twice_of, element)).enumerate()


def _twice_of(element: Any, number: Any) -> Dataset:
    return twice(element)


def uneven(element: Any) -> Dataset:
    return Dataset.range(3 + weight(element) % 3).batch(2).batch(2)


def strict(element: Any) -> Dataset:
    _refuse(element)
    return Dataset.from_tensors(element)


_given: Final = Dataset.range(5).shuffle(3, seed=4)
_given_by_chance: Final = Dataset.range(5).shuffle(3)


def by_chance(element: Any) -> Dataset:
    """Return an order that nobody gave a seed for, in two rounds."""
    return Dataset.range(4).shuffle(4).repeat(2)


def given(element: Any) -> Dataset:
    """Return a dataset that was made before, which has an order of its own each time."""
    return Dataset.zip(_given, _given_by_chance)


def kept(element: Any) -> Dataset:
    """Return two rounds of one random order."""
    return Dataset.range(3).shuffle(3).cache().repeat(2)


INNER: Final[tuple[Function, ...]] = (
    *(twice, counted, mixed, deep, uneven, strict),
    *(by_chance, given, kept),
)


def as_it_is(key: Any, group: Dataset) -> Dataset:
    return group


def in_pairs(key: Any, group: Dataset) -> Dataset:
    return group.batch(2)


def size_by_key(key: Any) -> int:
    return 1 + int(key) % 3


def opened(*element: Any) -> Dataset:
    """Return the first part that is a dataset."""
    return next(part for part in flatten(element, DATA) if isinstance(part, Dataset))
