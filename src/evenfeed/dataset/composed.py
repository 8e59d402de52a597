"""Datasets of `tf.data.experimental` that are composed of other methods: lists, SQL queries, parsed features."""

# The elements of datasets have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import to_component
from evenfeed.core.errors import InvalidArgumentError, UnknownError, described, shortened
from evenfeed.core.lazy import sqlite3
from evenfeed.core.specs import TensorSpec, spec_of, type_spec_from_value
from evenfeed.core.structure import DATA, flatten, map_structure, pack
from evenfeed.dataset import Dataset, plan_of
from evenfeed.dataset.file_readers import TFRecordDataset
from evenfeed.formats.bytes.filesystems import matching_paths
from evenfeed.formats.example.example_parsing import parse_example
from evenfeed.plan.buffering import AUTOTUNE
from evenfeed.plan.checking import AssertCardinality

_ALL: Final = 2**63 - 1
_AS_STORED: Final = {"TEXT": (str, bytes), "REAL": float, "INTEGER": int}
# What the values of a column are if they need no conversion.
_PLAIN: Final = {dtypes.string: str, dtypes.int64: int, dtypes.float64: float}
_ROWS_TOGETHER: Final = 64
_RECORDS: Final = TensorSpec([None], dtypes.string)


@final
@dataclass(frozen=True)
class Reducer:
    """How `group_by_reducer` makes one element of a group.

    Args:
        init_func: Returns the first state of a group, given its key.
        reduce_func: Returns the next state, given the state and an element.
        finalize_func: Returns the element for the last state; the parts of a tuple are its arguments.
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]


def group_by_reducer(
    key_func: Callable[..., Any], reducer: Reducer
) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that reduces all elements with the same key to one.

    Args:
        key_func: Returns an int64 key for an element.
        reducer: How a group becomes an element.

    Examples:
        >>> import evenfeed as tf
        >>> reducer = tf.data.experimental.Reducer(lambda key: 0, lambda total, x: total + 1, lambda total: total)
        >>> counted = tf.data.experimental.group_by_reducer(lambda x: x % 2, reducer)
        >>> [int(count) for count in tf.data.Dataset.range(5).apply(counted)]
        [3, 2]
    """

    def reduced(key: Any, group: Dataset) -> Dataset:
        state = reducer.init_func(key)
        if group.cardinality() == 0:  # asks for the spec: the shape of the state may change
            states = group.scan(state, lambda *given: (reducer.reduce_func(*given), given[0]))
            if states.element_spec != spec_of(state):
                return states.map(reducer.finalize_func)
        state = group.reduce(state, reducer.reduce_func)
        parts = state if isinstance(state, tuple) else (state,)
        return Dataset.from_tensors(reducer.finalize_func(*parts))

    return lambda dataset: dataset.group_by_window(key_func, reduced, window_size=_ALL)


def from_list(elements: Any, name: str | None = None) -> Dataset:
    """Create a dataset of the elements of a list, which may be structures.

    Examples:
        >>> import evenfeed as tf
        >>> [int(x["a"]) for x in tf.data.experimental.from_list([{"a": 1}, {"a": 2}])]
        [1, 2]
    """
    if not isinstance(elements, Sequence) or not elements:
        what = f"A list of elements is needed, but got {shortened(elements)}."
        raise ValueError(described(what, fix="pass a list of at least one element."))
    specs = [map_structure(type_spec_from_value, element, rules=DATA) for element in elements]

    def common(*each: Any) -> Any:
        found = each[0]
        for spec in each[1:]:
            found = found.most_specific_common_supertype([spec])
            if found is None:
                raise ValueError(
                    described(
                        f"The elements have different types: {each[0]} and {spec}.",
                        fix="pass elements with the same structure and dtypes.",
                    )
                )
        return found

    signature = map_structure(common, *specs, rules=DATA)
    if all(_has_one_shape(spec) for spec in flatten(signature, DATA)):
        rows = [[to_component(part) for part in flatten(element, DATA)] for element in elements]
        columns = [np.stack(column) for column in zip(*rows, strict=True)]
        return Dataset.from_tensor_slices(pack(signature, columns, DATA))
    kept = list(elements)
    dataset = Dataset.from_generator(lambda: iter(kept), output_signature=signature, name=name)
    return Dataset(AssertCardinality(plan_of(dataset), len(kept)))


def _has_one_shape(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined()


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that appends zeros until there are so many elements.

    The elements must be dicts. They get a bool that is True for those that were there before.

    Args:
        cardinality: The number of elements to reach.
        mask_key: The key of the bool.

    Examples:
        >>> import evenfeed as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices({"a": [1, 2]})
        >>> padded = dataset.apply(tf.data.experimental.pad_to_cardinality(3))
        >>> [(int(x["a"]), bool(x["valid"])) for x in padded]
        [(1, True), (2, True), (0, False)]
    """
    wanted = whole_number(cardinality, "cardinality")

    def padded(dataset: Dataset) -> Dataset:
        spec: Any = dataset.element_spec
        count = int(dataset.cardinality())
        if count < 0 or not isinstance(spec, dict):
            raise ValueError(
                described(
                    f"pad_to_cardinality needs a known number of dicts, but got {spec} "
                    f"and the cardinality {count}.",
                    fix="pass a dataset of dicts whose cardinality is known.",
                )
            )
        if count > wanted:
            raise ValueError(
                described(
                    f"The dataset has {count} elements, more than {wanted}.",
                    fix="pass a larger cardinality.",
                )
            )
        empty: Any = map_structure(_zeros, spec, rules=DATA)
        zeros = Dataset.from_tensors({**empty, mask_key: np.array(False)}).repeat(wanted - count)
        marked = dataset.map(lambda element: {**element, mask_key: np.array(True)})
        return marked.concatenate(zeros)

    return padded


def parse_example_dataset(
    features: Any, num_parallel_calls: int | None = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that parses batches of examples, as `io.parse_example` does.

    Examples:
        >>> import evenfeed as tf
        >>> parse = tf.data.experimental.parse_example_dataset({"a": tf.io.FixedLenFeature([], tf.int64, 7)})
        >>> [x["a"].tolist() for x in tf.data.Dataset.from_tensors([b"", b""]).apply(parse)]
        [[7, 7]]
    """

    def parsed(dataset: Dataset) -> Dataset:
        spec: Any = dataset.element_spec
        if not isinstance(spec, TensorSpec) or not _RECORDS.is_compatible_with(spec):
            raise TypeError(
                described(
                    f"parse_example_dataset needs vectors of text, but the elements are {spec}.",
                    fix="call batch on a dataset of records first.",
                )
            )
        return dataset.map(
            lambda records: parse_example(records, features),
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
        )

    return parsed


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Callable[..., Dataset] | None = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Create a dataset of batches of features from files of examples.

    Args:
        file_pattern: Paths, or patterns with `*`, `?` and `[...]`.
        batch_size: The number of examples in a batch.
        features: As for `io.parse_example`.
        reader: Makes a dataset of records of a path; by default `TFRecordDataset`.
        label_key: The feature that is returned beside the others, as (features, label).
        reader_args: More arguments for the reader.
        num_epochs: How often to read the files; None repeats them without end.
        shuffle: Shuffle the files and the examples.
        shuffle_buffer_size: The number of examples to choose from.
        shuffle_seed: Makes the order the same in every run.
        prefetch_buffer_size: The number of batches to read ahead; by default chosen by evenfeed.
        reader_num_threads: The number of files to read at a time.
        parser_num_threads: The number of threads that parse.
        sloppy_ordering: Return examples as soon as they are read.
        drop_final_batch: Drop a short last batch.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> path = tempfile.mkdtemp() + "/a.tfrecord"
        >>> with tf.io.TFRecordWriter(path) as writer:
        ...     writer.write(b"")
        >>> features = {"a": tf.io.FixedLenFeature([], tf.int64, 7)}
        >>> read = tf.data.experimental.make_batched_features_dataset(path, 2, features, num_epochs=1)
        >>> [x["a"].tolist() for x in read]
        [[7]]
    """
    paths = matching_paths(file_pattern, "file_pattern")
    if not paths:
        raise InvalidArgumentError(f"No files match {file_pattern}.", fix="check the path.")
    if label_key is not None and label_key not in features:
        raise ValueError(
            described(f"label_key {label_key!r} is not in features.", fix="add it to features.")
        )
    read = reader or TFRecordDataset
    files = Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    records = files.interleave(
        lambda path: read(path, *(reader_args or ())),
        cycle_length=reader_num_threads or 1,
        num_parallel_calls=reader_num_threads,
        deterministic=not sloppy_ordering,
    )
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = records.repeat(num_epochs).batch(
        batch_size, drop_remainder=drop_final_batch or num_epochs is None
    )
    parse = parse_example_dataset(features, num_parallel_calls=parser_num_threads)
    parsed = batches.apply(parse)
    if label_key is not None:
        key = label_key

        def labelled(found: dict[str, Any]) -> tuple[dict[str, Any], Any]:
            return {name: found[name] for name in found if name != key}, found[key]

        parsed = parsed.map(labelled)
    return parsed.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def SqlDataset(  # noqa: N802 - TensorFlow's name
    driver_name: str, data_source_name: str, query: str, output_types: Any
) -> Dataset:
    """Create a dataset of the rows that a query of an SQLite database returns.

    Args:
        driver_name: "sqlite".
        data_source_name: The path of the database.
        query: The query.
        output_types: A tuple with the dtype of each column.

    Examples:
        >>> import sqlite3, tempfile
        >>> import evenfeed as tf
        >>> path = tempfile.mkdtemp() + "/a.db"
        >>> with sqlite3.connect(path) as database:
        ...     _ = database.execute("CREATE TABLE t (a INTEGER, b TEXT)")
        ...     _ = database.execute("INSERT INTO t VALUES (1, 'x')")
        >>> rows = tf.data.experimental.SqlDataset("sqlite", path, "SELECT * FROM t", (tf.int64, tf.string))
        >>> [(int(a), b.item()) for a, b in rows]
        [(1, b'x')]
    """
    if driver_name != "sqlite":
        raise InvalidArgumentError(
            f"The driver {driver_name!r} is not supported.", fix='pass "sqlite".'
        )
    types = tuple(dtypes.as_dtype(one) for one in flatten(output_types, rules=DATA))

    def rows() -> Iterator[Any]:
        with closing(_opened(data_source_name)) as database:
            try:
                cursor = database.execute(query)
                columns = cursor.description or ()
                if len(columns) != len(types):
                    raise InvalidArgumentError(
                        f"The query has {len(columns)} columns, but output_types has {len(types)}.",
                        fix="pass a query that selects rows, and one dtype for each column.",
                    )
                for found in _chunks(cursor):
                    pairs = zip(zip(*found, strict=True), types, strict=True)
                    yield from zip(*(_cells(database, *pair) for pair in pairs), strict=True)
            except sqlite3.Error as error:
                raise UnknownError(
                    f"The query failed: {error}.", fix="check the query and the database."
                ) from error

    signature = tuple(TensorSpec([], one) for one in types)
    return Dataset.from_generator(rows, output_signature=signature)


def _opened(path: str) -> Any:
    try:
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise InvalidArgumentError(
            f"The database {path} cannot be opened: {error}.", fix="check the path."
        ) from error


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield some rows at a time; those before an error, too."""
    found: list[Any] = [()]
    while found:
        found = []
        try:
            found.extend(islice(rows, _ROWS_TOGETHER))
        finally:
            if found:
                yield found


def _cells(database: Any, values: Sequence[Any], dtype: Any) -> Sequence[Any]:
    """Return the values of a column. Most are stored as what they become."""
    plain = _PLAIN.get(dtype)
    if plain is not None and set(map(type, values)) == {plain}:
        return values
    return [_cell(database, value, dtype) for value in values]


def _cell(database: Any, value: Any, dtype: Any) -> Any:
    """Return the value of a column. SQLite converts one of another type, as in TensorFlow: text without digits is 0."""
    if value is None:
        return b"" if dtype == dtypes.string else np.zeros((), dtype)
    kind = "TEXT" if dtype == dtypes.string else "REAL" if dtype.kind == "f" else "INTEGER"
    if not isinstance(value, _AS_STORED[kind]):
        ((value,),) = database.execute(f"SELECT CAST(? AS {kind})", (value,))
    return value if kind == "TEXT" else np.asarray(value).astype(dtype)


def _zeros(spec: TensorSpec) -> Any:
    shape = [0 if length is None else length for length in spec.shape]
    if spec.dtype == dtypes.string:
        return np.full(shape, b"", dtypes.string)
    return np.zeros(shape, spec.dtype)
