"""Methods that call user functions on elements: map, filter, flat_map, interleave, scan, reduce."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from evenfeed.core import dtypes
from evenfeed.core.arguments import check_synchronous, count_or_none, whole_number, yes_or_no
from evenfeed.core.callsite import where_called
from evenfeed.core.randomness.random_bits import DrawsForElements
from evenfeed.core.specs import TensorSpec, spec_of
from evenfeed.core.structure import DATA, flatten, map_structure, pack
from evenfeed.core.tensor_types import host_tensor
from evenfeed.dataset import debug_mode
from evenfeed.dataset.face import (
    Face,
    as_dataset,
    checked_function,
    dataset_of,
    plan_made,
    shuffle_seed,
)
from evenfeed.plan.elementwise import (
    AUTOTUNE,
    Filter,
    Map,
    Scan,
    TakeWhile,
    WithKeys,
    check_state,
    parts_of_state,
    state_of_scan,
    widened,
)
from evenfeed.plan.flattening import FlatMap, Interleave, usual_cycle_length
from evenfeed.plan.node import Node
from evenfeed.runtime.build import build
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.functions.drawing import NOT_TRACED, Source, drawing, drawing_inside
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.probing import of_any_rank
from evenfeed.runtime.functions.row_function import RowFunction, trace
from evenfeed.runtime.functions.single_steps import folded, single_step
from evenfeed.runtime.functions.staging.captured_parts import captured, without_parts
from evenfeed.runtime.peek import Beginning, BehindState
from evenfeed.runtime.processes.portable import check_alone, check_portable

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


_BOOL: Final = TensorSpec([], dtypes.bool)


class Functions(Face):
    """Methods that call user functions on elements."""

    __slots__ = ()

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        vectorize: bool | None = None,
        output_signature: Any = None,
        processes: bool = False,
    ) -> "Dataset":
        """Apply a function to each element.

        The function is traced once, as in TensorFlow, and then runs on whole Blocks. A function that
        cannot be traced (strings, files, Python control flow) runs element by element.

        Args:
            map_func: Receives the components of a tuple as separate arguments, and any other element
                as one argument.
            num_parallel_calls: The number of elements to process concurrently, if the function runs
                element by element. With `processes`, the number of processes; one per core by default.
            deterministic: False lets results arrive out of order, if several elements are processed
                concurrently and only batches, `prefetch` and `with_options` follow.
            synchronous: Accepted for compatibility; not together with `num_parallel_calls`.
            use_unbounded_threadpool: Accepted for compatibility; ignored.
            name: Accepted for compatibility; ignored.
            vectorize: False runs the function element by element, on NumPy values.
            output_signature: The spec of the result, if tracing cannot determine it.
            processes: True runs the function element by element in other processes. Use it for pure
                Python functions, which threads cannot run in parallel. The function must be defined at
                the top level of a module.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(4).map(lambda x: x * 10)]
            [0, 10, 20, 30]
            >>> from math import factorial
            >>> numbers = tf.data.Dataset.range(5).map(factorial, 2, processes=True)
            >>> [int(x) for x in numbers]
            [1, 1, 2, 6, 24]
        """
        del use_unbounded_threadpool, name
        check_synchronous(synchronous, num_parallel_calls)
        settings: dict[str, Any] = {"vectorize": vectorize, "output_signature": output_signature}
        settings |= {"processes": processes}
        if (filled := captured(self._plan, map_func)) is not None:
            beside, function = dataset_of(filled[0]), filled[1]
            return beside._mapped(function, num_parallel_calls, deterministic, **settings)
        try:
            return self._mapped(
                map_func, num_parallel_calls, deterministic, may_draw=True, **settings
            )
        except DrawsForElements as draws:
            keyed = dataset_of(WithKeys(self._plan, shuffle_seed(draws.seed)))
            function = drawing_inside(map_func)
            return keyed._mapped(function, num_parallel_calls, deterministic, **settings)

    def random_map(
        self,
        map_func: Callable[..., Any],
        seed: int | None = None,
        *,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        vectorize: bool | None = None,
        output_signature: Any = None,
        generator: Source = "jax",
        processes: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Apply a function with random numbers to each element, for data augmentation.

        The random numbers depend only on the seed, the pass and the element's position in this dataset.
        They do not depend on threads, the Block size, prefetching, a later `shard`, or the position
        at which an iterator was restored.

        Args:
            map_func: Receives a key for `jax.random` or a `numpy.random.Generator`, followed by the
                arguments that `map` passes.
            seed: Combined with the global seed; makes the random numbers the same in every run. Each
                pass and each round of `repeat` draws different numbers.
            num_parallel_calls: As for `map`.
            deterministic: As for `map`.
            vectorize: As for `map`. It does not change the random numbers.
            output_signature: As for `map`.
            generator: "jax" passes a key; the function is traced and runs on whole Blocks if possible.
                "numpy" passes a Generator; the function is not traced and runs element by element. Use
                it for functions that call other libraries or branch on random numbers in Python.
            processes: As for `map`. It does not change the random numbers.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> import jax
            >>> def noisy(key, x):
            ...     return x + 0.1 * jax.random.normal(key)
            >>> dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).random_map(noisy, seed=7)
            >>> whole = [float(x) for x in dataset.take(3)]
            >>> len(set(whole))
            3
            >>> again = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).random_map(noisy, seed=7)
            >>> [float(x) for x in again.shard(3, 2)] == whole[2:]
            True
        """
        del name
        keyed = dataset_of(WithKeys(self._plan, shuffle_seed(seed)))
        settings: dict[str, Any] = {"vectorize": vectorize, "output_signature": output_signature}
        function = drawing(checked_function(map_func), generator)
        untraced = NOT_TRACED if generator == "numpy" else None
        settings |= {"untraced": untraced, "processes": processes}
        return keyed._mapped(function, num_parallel_calls, deterministic, **settings)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset":
        """Keep the elements for which a predicate returns True.

        Args:
            predicate: Called like the function of `map`; returns a scalar bool.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(6).filter(lambda x: x % 2 == 0)]
            [0, 2, 4]
        """
        del name
        if (filled := captured(self._plan, predicate)) is not None:
            return dataset_of(filled[0]).filter(filled[1]).map(without_parts)
        return dataset_of(Filter(self._plan, self._traced(predicate, "filtering", returns=_BOOL)))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset":
        """Keep elements until a predicate first returns False.

        Args:
            predicate: Called like the function of `map`; returns a scalar bool.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(9).take_while(lambda x: x < 3)]
            [0, 1, 2]
        """
        del name
        if (filled := captured(self._plan, predicate)) is not None:
            return dataset_of(filled[0]).take_while(filled[1]).map(without_parts)
        return dataset_of(TakeWhile(self._plan, self._traced(predicate, "testing", returns=_BOOL)))

    def flat_map(self, map_func: Callable[..., "Dataset"], name: str | None = None) -> "Dataset":
        """Map each element to a dataset, and concatenate the resulting datasets.

        Args:
            map_func: Called like the function of `map`; returns a Dataset.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(3).flat_map(tf.data.Dataset.range)
            >>> [int(x) for x in dataset]
            [0, 0, 1]
        """
        del name
        return dataset_of(FlatMap(*self._inner(map_func, "flat_map")))

    def interleave(
        self,
        map_func: Callable[..., "Dataset"],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Map each element to a dataset, and interleave the resulting datasets.

        Args:
            map_func: Called like the function of `map`; returns a Dataset.
            cycle_length: The number of datasets to interleave. By default, or with AUTOTUNE, it is
                `num_parallel_calls`; if that is None, the number of cores; if that is AUTOTUNE, a
                third of the number of cores.
            block_length: The number of consecutive elements to take from each dataset; 1 by default.
            num_parallel_calls: At most `cycle_length`. It changes neither the elements nor their order.
            deterministic: Accepted for compatibility; the order is always deterministic.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(1, 3).interleave(
            ...     lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2)
            >>> [int(x) for x in dataset]
            [1, 2, 1, 2]
        """
        del deterministic, name
        calls = count_or_none(num_parallel_calls, "num_parallel_calls")
        cycle = count_or_none(cycle_length, "cycle_length")
        if cycle is None or cycle == AUTOTUNE:
            cycle = usual_cycle_length(calls)
        block = 1 if block_length is None else whole_number(block_length, "block_length")
        return dataset_of(
            Interleave(
                *self._inner(map_func, "interleave"),
                cycle_length=cycle,
                block_length=block,
                num_parallel_calls=debug_mode.calls_at_a_time(calls),
            )
        )

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> "Dataset":
        """Map each element to an output while carrying a state from element to element.

        Args:
            initial_state: The state for the first element: a tensor, which may be ragged or sparse, or a structure.
            scan_func: Receives the state and the element; returns the new state and the output.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import numpy as np
            >>> import evenfeed as tf
            >>> sums = tf.data.Dataset.range(4).scan(np.int64(0), lambda s, x: (s + x, s + x))
            >>> [int(x) for x in sums]
            [0, 1, 3, 6]
        """
        del name
        structure, initial = initial_state, parts_of_state(initial_state)
        state = pack(structure, initial, DATA)
        function = self._folding(scan_func, state, "scanning", state_of_scan)
        return dataset_of(Scan(self._plan, structure, initial, function))

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """Read all elements, fold them into a state, and return the final state.

        Args:
            initial_state: The state for the first element: a tensor, which may be ragged or sparse, or a structure.
            reduce_func: Receives the state and the element; returns the new state.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import numpy as np
            >>> import evenfeed as tf
            >>> int(tf.data.Dataset.range(5).reduce(np.int64(0), lambda s, x: s + x))
            10
        """
        del name
        state = pack(initial_state, parts_of_state(initial_state), DATA)
        returns = map_structure(of_any_rank, spec_of(state), rules=DATA)
        function = self._folding(reduce_func, state, "reducing", _itself, returns)
        elements = ElementIterator(self._plan, flat=True)
        carried = folded(flatten(state, DATA), elements, function.one, single_step(function.traced))
        return pack(state, list(map(host_tensor, carried)), DATA)

    def apply(self, transformation_func: Callable[["Dataset"], "Dataset"]) -> "Dataset":
        """Call a function with this dataset, and return the dataset that it returns.

        Args:
            transformation_func: Receives this dataset; returns a Dataset.

        Examples:
            >>> import evenfeed as tf
            >>> len(tf.data.Dataset.range(9).apply(lambda dataset: dataset.batch(4)))
            3
        """
        return as_dataset(transformation_func(cast("Dataset", self)), "apply")

    def _mapped(
        self,
        function: Callable[..., Any],
        num_parallel_calls: int | None,
        deterministic: bool | None,
        *,
        vectorize: bool | None,
        processes: bool,
        **settings: Any,
    ) -> "Dataset":
        processes = yes_or_no(processes, "processes") and not debug_mode.mode.is_debugging
        if processes:
            check_portable(checked_function(function), vectorize)
            vectorize = False
        calls = debug_mode.calls_at_a_time(count_or_none(num_parallel_calls, "num_parallel_calls"))
        traced = self._traced(function, "mapping", calls, vectorize=vectorize, **settings)
        if processes:
            check_alone(traced.name, traced.effects)
        return dataset_of(
            Map(
                self._plan,
                traced,
                num_parallel_calls=calls,
                deterministic=deterministic,
                processes=processes,
            )
        )

    def _folding(
        self,
        function: Callable[..., Any],
        initial: Any,
        doing: str,
        new: Callable[[Any], Any],
        returns: Any = None,
    ) -> RowFunction:
        """Trace a function of a state and an element, widening the state's spec until it is a fixed point."""
        state = spec_of(initial)
        first = BehindState(flatten(initial, DATA), Beginning(self._plan, build))
        while True:
            traced = trace(
                checked_function(function),
                (state, self.element_spec),
                where_called(),
                vectorize=debug_mode.vectorization(),
                doing=doing,
                first_elements=first,
                returns=returns,
            )
            returned = new(traced.output_spec)
            check_state(state, returned, self._plan)
            if returned is returns:  # The function was not traced and accepts a state of any shape.
                return traced
            common = widened(state, returned)
            if common == state:
                return traced
            state = common

    def _inner(self, function: Callable[..., Any], method: str) -> tuple[Node, InnerDatasets]:
        """Return the elements that a function makes datasets from, and the function."""
        if (filled := captured(self._plan, function)) is not None:
            return dataset_of(filled[0])._inner(filled[1], method)
        traced = self._traced(function, "creating a dataset from", returns_values=True)
        return self._plan, InnerDatasets(traced, self.element_spec, partial(plan_made, method))


def _itself(spec: Any) -> Any:
    return spec
