"""Random plans with one node at the top, for nodes that need more than `st.builds`.

`@means(Shuffle, made_by=steps.shuffles)` names them where the meaning of the node is.
"""

import copy
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from tests.plans import user_functions as users
from tests.plans.sources import Plans, beginnings
from tests.plans.user_functions import has_ranks, is_cheap, is_of_tensors, traced, user_function

from evenfeed.core import dtypes
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import EvenfeedError
from evenfeed.core.specs import UNKNOWN, TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.batching import Rebatch, Unbatch
from evenfeed.plan.buffering import Cache
from evenfeed.plan.checking import AssertCardinality, Unique
from evenfeed.plan.choosing import Choose, Sample
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Map, Scan
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.own_rows import OwnRows
from evenfeed.plan.sources import Range
from evenfeed.plan.windows import Window

_folder: Final = tempfile.TemporaryDirectory(prefix="evenfeed-plans-")
_some: Final = st.integers(1, 3)


# --- children that a node can take --------------------------------------------------------------


def tensors(node: Node) -> Node:
    """Return a plan whose elements have no datasets in them: windows are opened."""
    while not is_of_tensors(node.element_spec):
        node = plan_of(Dataset(node).flat_map(users.opened))
    return node


def finite(node: Node) -> Node:
    """Return a plan that ends, also if all that comes is an error.

    What ends is asked first: behind an error of the first part, the end of the second is not seen.
    """
    return node if node.size >= 0 else Zip((0, 0), (Range(0, 12), node))


def with_rows(node: Node) -> Node:
    """Return a plan whose elements can be cut along a first axis."""
    node = finite(tensors(node))
    try:
        return Unbatch(node).child
    except ValueError:
        return Batch(node, 2, drop_remainder=node.size % 2 == 0)


def _compilable(node: Node) -> Node:
    """Return a plan with elements that functions are compiled for, in tests: others become numbers."""
    return node if is_cheap(node.element_spec) else _keyed(node)


def _keyed(node: Node) -> Node:
    return Map(node, traced(users.keyed, node.element_spec, output_signature=_NUMBER))


def new_name() -> str:
    """Return a new name for what is kept in files."""
    return str(Path(_folder.name) / uuid.uuid4().hex)


def _variation(node: Node, number: int) -> Node:
    """Return a plan with elements alike."""
    return [node, Skip(node, 1), Repeat(node, 2), Take(node, 2)][number % 4]


# --- one function for each node -----------------------------------------------------------------


seeds: Final = st.tuples(st.integers(0, 9), st.integers(0, 9))


def shuffles(child: Plans) -> Plans:
    sizes = st.sampled_from([-2, 1, 2, 3, 5, 100])

    def shuffled(node: Node, size: int, seed: tuple[int, int], reshuffle: bool) -> Node:
        size = 4 if size == UNKNOWN and node.size < 0 else size
        return Shuffle(node, size, seed, reshuffle=reshuffle)

    return st.builds(shuffled, child, sizes, seeds, st.booleans())


def shards(child: Plans) -> Plans:
    places = _some.flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1)))
    return st.builds(lambda node, place: Shard(node, *place), child, places)


def own_rows(child: Plans) -> Plans:
    shares = st.sampled_from([Share(0, 1, 2), Share(0, 2, 1), Share(1, 2, 1), Share(1, 2, 2)])
    return st.builds(OwnRows, child, st.integers(3, 6), shares, drop_remainder=st.booleans())


def zips(child: Plans) -> Plans:
    others = st.one_of(child, beginnings)
    return st.one_of(
        st.builds(lambda one, two: Zip((0, 0), (one, two)), child, others),
        st.builds(lambda one, two: Zip({"b": 0, "a": (0,)}, (two, one)), child, others),
    )


def chains(child: Plans) -> Plans:
    """Return plans whose second part is a variation of the first: the specs must fit."""
    others = st.sampled_from(
        [
            lambda node: node,
            copy.deepcopy,
            lambda node: Skip(node, 1),
            lambda node: Repeat(node, 2),
            lambda node: Batch(node, 2),
            lambda node: Batch(node, 1, drop_remainder=True),
        ]
    )

    def chained(node: Node, other: Callable[[Node], Node]) -> Node:
        node = tensors(node)
        return Concatenate(node, other(node))

    return st.builds(chained, child, others)


_TRACEABLE: Final = (users.doubled, users.first, users.nested, users.looked_up)


def maps(child: Plans) -> Plans:
    functions = st.sampled_from([*_TRACEABLE, users.described, users.picky, users.branching])
    calls = st.sampled_from([None, None, 1, 3])
    return st.builds(_mapped, child, functions, calls, st.sampled_from([True, True, False]))


def _mapped(node: Node, plain: users.Function, calls: int | None, signed: bool) -> Node:
    node = tensors(node)
    if plain in (users.doubled, users.looked_up):
        node = _compilable(node)
    spec = node.element_spec
    if plain is users.looked_up and spec != _NUMBER:
        plain = users.nested
    if not has_ranks(spec):  # nothing can be traced
        plain, signed = users.picky, True
    if plain in _TRACEABLE:
        function = traced(plain, spec, vectorize=None if is_cheap(spec) else False)
        return Map(node, function, num_parallel_calls=calls)
    signature = TensorSpec([], dtypes.string) if plain is users.described else spec
    if not signed:
        unsigned = Dataset(node).map(user_function(plain, spec), num_parallel_calls=calls)
        try:
            _ = unsigned.element_spec
        except (ValueError, EvenfeedError):
            pass  # no element, or none that does not fail, to learn it from
        else:
            return plan_of(unsigned)
    function = traced(plain, spec, output_signature=signature, vectorize=False)
    return Map(node, function, num_parallel_calls=calls)


def chosen(kind: type[Node], compiled: users.Function) -> Callable[[Plans], Plans]:
    """Return plans whose elements a predicate chooses: one that traces, or one that looks at values."""

    def built(node: Node, plain: users.Function) -> Node:
        node = finite(tensors(node))
        node = _compilable(node) if plain is compiled else node
        spec = node.element_spec
        return kind(node, traced(plain, spec, output_signature=users.BOOL))

    functions = st.sampled_from([compiled, users.is_light, users.is_fine])
    return lambda child: st.builds(built, child, functions)


def scans(child: Plans) -> Plans:
    def scanned(node: Node, plain: users.Function) -> Node:
        node = tensors(node)
        spec = (_NUMBER, node.element_spec)
        results = (_NUMBER, spec if plain is users.running else _NUMBER)
        function = traced(plain, spec, output_signature=results)
        return Scan(node, 0, (np.array(0),), function)

    return st.builds(scanned, child, st.sampled_from([users.running, users.running_weight]))


_NUMBER: Final = TensorSpec([], dtypes.int64)


def flattened(child: Plans) -> Plans:
    def flat(node: Node, plain: users.Function, again: bool) -> Node:
        dataset = Dataset(finite(tensors(node)))
        once = dataset.flat_map(user_function(plain, dataset.element_spec))
        twice = once.flat_map(user_function(users.twice, once.element_spec))
        return plan_of(twice if again else once)

    return st.builds(flat, child, _inner, st.booleans())


_inner: Final = st.sampled_from(users.INNER)


def interleaved(child: Plans) -> Plans:
    def in_turn(node: Node, plain: users.Function, cycle: int, block: int) -> Node:
        dataset = Dataset(finite(tensors(node)))
        function = user_function(plain, dataset.element_spec)
        return plan_of(dataset.interleave(function, cycle, block))

    return st.builds(in_turn, child, _inner, _some, _some)


def groups(child: Plans) -> Plans:
    def grouped(node: Node, size: int, per_key: bool, batched: bool) -> Node:
        dataset = Dataset(finite(tensors(node)))
        spec = dataset.element_spec
        specs = flatten(spec, DATA)
        compiled = is_cheap(spec) and specs[0] == _NUMBER
        plain = users.parity if compiled else users.keyed
        groups = dataset.group_by_window(
            lambda *_: np.int64(0),
            users.in_pairs if batched else users.as_it_is,
            None if per_key else size,
            users.size_by_key if per_key else None,
        )
        return replace(plan_of(groups), key=traced(plain, spec, output_signature=_NUMBER))

    return st.builds(grouped, child, _some, st.booleans(), st.booleans())


def padded(child: Plans) -> Plans:
    def padded(node: Node, size: int, drop: bool, at_most: int | None) -> Node:
        specs = flatten(node.element_spec, DATA)
        if not all(isinstance(s, TensorSpec) and s.shape.rank is not None for s in specs):
            node = _keyed(tensors(node))
        shapes = [1 if at_most else None] if specs == [TensorSpec([None], dtypes.int32)] else None
        return plan_of(Dataset(node).padded_batch(size, shapes, drop_remainder=drop))

    return st.builds(padded, child, _some, st.booleans(), st.sampled_from([None, None, 1]))


def rebatched(child: Plans) -> Plans:
    sizes = st.lists(_some, min_size=1, max_size=3).map(tuple)
    return st.builds(Rebatch, child.map(with_rows), sizes, drop_remainder=st.booleans())


def windows(child: Plans) -> Plans:
    return st.builds(
        Window,
        child.map(tensors),
        _some,
        st.integers(1, 4),
        st.integers(1, 2),
        drop_remainder=st.booleans(),
        face=st.just(Dataset),
    )


def caches(child: Plans) -> Plans:
    def cached(node: Node, in_files: bool) -> Node:
        return Cache(tensors(node), new_name()) if in_files else Cache(node)

    return st.builds(cached, child, st.booleans())


def snapshots(child: Plans) -> Plans:
    def kept(node: Node, compression: str | None) -> Node:
        return plan_of(Dataset(tensors(node)).snapshot(new_name(), compression))

    return st.builds(kept, child, st.sampled_from([None, "GZIP"]))


def choices(child: Plans) -> Plans:
    numbers = st.lists(st.sampled_from([0, 0, 1, 1, 0, 1, 2, -1]), max_size=9)

    def chosen(node: Node, number: int, places: list[int], stop: bool) -> Node:
        node = finite(node)
        order = plan_of(Dataset.from_tensor_slices(np.array(places, np.int64)))
        return Choose((node, _variation(node, number)), order, stop_on_empty=stop)

    return st.builds(chosen, child, st.integers(0, 3), numbers, st.booleans())


def samples(child: Plans) -> Plans:
    fixed_weights = st.sampled_from([(0.5, 0.5), (0.9, 0.1)])
    given = st.integers(0, 9).map(
        lambda n: plan_of(Dataset.from_tensor_slices(np.linspace(0, 1, 2 * n).reshape(n, 2)))
    )

    def sampled(node: Node, number: int, weights: Any, **how: Any) -> Node:
        node = finite(node)
        return Sample((node, _variation(node, number)), weights, **how)

    return st.builds(
        sampled,
        child,
        st.integers(0, 3),
        st.one_of(fixed_weights, given),
        seed=st.tuples(st.integers(0, 9)),
        stop_on_empty=st.booleans(),
        reshuffle=st.booleans(),
    )


def packed(child: Plans) -> Plans:
    def built(node: Node, length: int, **how: Any) -> Node:
        node = finite(tensors(node))
        try:
            return plan_of(Dataset(node).pack(length, **how))
        except (TypeError, ValueError):  # they hold no vectors, or names that are taken
            return plan_of(Dataset(_vectors(node)).pack(length, **how))

    return st.builds(
        built,
        child,
        st.integers(1, 6),
        strategy=st.sampled_from(["first_fit", "concat"]),
        num_bins=_some,
        too_long=st.sampled_from(["split", "truncate", "error"]),
        drop_remainder=st.booleans(),
    )


def _vectors(node: Node) -> Node:
    """Return a plan whose elements are vectors of different lengths."""
    specs = flatten(node.element_spec, DATA)
    if all(isinstance(spec, TensorSpec) and spec.shape.rank == 0 for spec in specs):
        return Batch(node, 3)
    signature = TensorSpec([None], dtypes.int64)
    function = traced(users.counted_up, node.element_spec, output_signature=signature)
    return Map(node, function)


def promised(child: Plans) -> Plans:
    def promised(node: Node, other: int | None) -> Node:
        count = node.size if other is None and node.size >= -1 else other or 3
        return AssertCardinality(node, count)

    return st.builds(promised, child, st.one_of(st.none(), st.integers(-1, 6)))


def unique(child: Plans) -> Plans:
    def different(node: Node) -> Node:
        node = finite(tensors(node))
        if node.element_spec != _NUMBER:
            node = _keyed(node)
        return Unique(node)

    return st.builds(different, child)
