"""The face: `Dataset`, whose methods add one node to a plan."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import (
    compression_of,
    compression_type_of,
    folder_of,
    path_of,
    seconds_of,
    whole_number,
    yes_or_no,
)
from evenfeed.core.callsite import where_called
from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.element_draws import DrawsForElements
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError, described
from evenfeed.core.seeds import operation_seed
from evenfeed.core.specs import TensorSpec, TypeSpec, spec_of
from evenfeed.core.structure import DATA, flatten, map_structure, pack
from evenfeed.core.tensor_types import host_tensor
from evenfeed.formats.array_records import ArrayRecordFile
from evenfeed.formats.json_lines import JsonFile, checked_spec, guessed_spec
from evenfeed.formats.parquet_groups import row_groups
from evenfeed.formats.paths import as_text, expanded_paths, matching_paths
from evenfeed.formats.reader import DataFile
from evenfeed.formats.saved import load_saved
from evenfeed.formats.webdataset import shards
from evenfeed.options import Options
from evenfeed.plan import resampling
from evenfeed.plan.batching import Rebatch, Unbatch, padded_batch
from evenfeed.plan.buffering import AUTOTUNE, Cache, Prefetch
from evenfeed.plan.checking import Ignored, IgnoreErrors, Unique
from evenfeed.plan.choosing import Choose, Counter, Random, Sample
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, WithKeys
from evenfeed.plan.files import Files, check_read
from evenfeed.plan.filtering import Filter, TakeWhile
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.generating import FromGenerator, signature_of
from evenfeed.plan.grouping import Batch
from evenfeed.plan.mapping import Map
from evenfeed.plan.node import Node
from evenfeed.plan.options_node import WithOptions, options_of
from evenfeed.plan.ordering import Passes, Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.saving import Snapshot
from evenfeed.plan.scanning import Scan, check_state, widened
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.plan.windowing import Buckets, GroupByWindow
from evenfeed.plan.windows import DatasetLike, DatasetSpec, Held, Window
from evenfeed.runtime.beginning import Beginning, BehindState
from evenfeed.runtime.build import build
from evenfeed.runtime.calls import bound
from evenfeed.runtime.drawing import NOT_TRACED, Source, drawing, drawing_inside
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.explaining import Explanation, explained_plan
from evenfeed.runtime.functions import RowFunction, trace
from evenfeed.runtime.identity import identity
from evenfeed.runtime.inner import InnerDatasets
from evenfeed.runtime.portable import check_portable
from evenfeed.runtime.saving import check_shard, save_elements

_BOOL: Final = TensorSpec([], dtypes.bool)
_WHOLE_NUMBER: Final = TensorSpec([], dtypes.int64)


class Dataset(DatasetLike):
    """A sequence of elements, described step by step and read only when iterated over.

    A dataset never changes: each method returns a new one. Elements are NumPy arrays, or tuples and
    dicts of them.

    Examples:
        >>> import evenfeed as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0]}).batch(2)
        >>> [batch["x"].tolist() for batch in dataset]
        [[1.0, 2.0], [3.0]]
    """

    __slots__ = ("_plan",)

    def __init__(self, plan: Node) -> None:
        if not isinstance(plan, Node):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"A Dataset is not made of {type(plan).__name__} directly.",
                    fix="call Dataset.from_tensor_slices(value) or another Dataset.from_… method.",
                )
            )
        self._plan = plan

    @staticmethod
    def range(*args: int, output_type: object = dtypes.int64, name: str | None = None) -> "Dataset":
        """Count like Python's range: `range(stop)`, `range(start, stop)`, `range(start, stop, step)`.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5, 0, -2)]
            [5, 3, 1]
        """
        del name
        if not 1 <= len(args) <= 3:
            raise ValueError(
                described(
                    f"range takes one to three numbers, but got {len(args)}.",
                    fix="call range(stop), range(start, stop) or range(start, stop, step).",
                )
            )
        numbers = [whole_number(arg, "an argument of range") for arg in args]
        start, stop = numbers[:2] if len(numbers) > 1 else (0, numbers[0])
        return Dataset(Range(start, stop, *numbers[2:], dtype=dtypes.as_dtype(output_type)))

    @staticmethod
    def from_tensors(tensors: object, name: str | None = None) -> "Dataset":
        """Make a dataset of one element: the value itself.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.from_tensors(([1.0], [2])).element_spec
            (TensorSpec(shape=(1,), dtype=tf.float32, name=None),
             TensorSpec(shape=(1,), dtype=tf.int32, name=None))
        """
        del name
        return Dataset(Tensor(*_arrays(tensors)))

    @staticmethod
    def from_tensor_slices(tensors: object, name: str | None = None) -> "Dataset":
        """Make a dataset of the rows of one array, or of a structure of arrays of one length.

        Arrays are not copied. A list becomes an array; a tuple or a dict is a structure.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices(([1, 2], ["a", "b"]))
            >>> [(int(x), bytes(y.item())) for x, y in dataset]
            [(1, b'a'), (2, b'b')]
        """
        del name
        return Dataset(TensorSlice(*_arrays(tensors)))

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Make a dataset of the names of files.

        Args:
            file_pattern: A pattern with `*`, `?` and `[...]`, or several. The files are looked for now.
            shuffle: False gives the names sorted. By default each pass has a random order of its own.
            seed: Makes the order the same in every run of the program, together with the global one.
            name: Taken for compatibility.

        Examples:
            >>> import tempfile, pathlib
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> for name in ["b.txt", "a.txt", "c.csv"]:
            ...     _ = (pathlib.Path(folder.name) / name).write_bytes(b"")
            >>> files = tf.data.Dataset.list_files(folder.name + "/*.txt", shuffle=False)
            >>> [pathlib.Path(bytes(name.item()).decode()).name for name in files]
            ['a.txt', 'b.txt']
            >>> folder.cleanup()
        """
        del name
        names = Dataset.from_tensor_slices(as_text(matching_paths(file_pattern, "file_pattern")))
        if len(names) == 0:
            raise InvalidArgumentError(
                f"No files matched pattern: {shortened(file_pattern)}",
                fix="check the folder and the pattern.",
            )
        mixed = shuffle is None or yes_or_no(shuffle, "shuffle")
        return names.shuffle(len(names), seed) if mixed else names

    @staticmethod
    def from_parquet(
        paths: Any,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002 - what people call it
        fill_null: Mapping[str, Any] | None = None,
    ) -> "Dataset":
        """Make a dataset of the rows of Parquet files, as dicts of columns. It needs `evenfeed[parquet]`.

        Only what is wanted is read: `columns`, and the row groups that may have rows which `filter` leaves.
        Without a filter every row has a position: `shuffle`, `shard` and `skip` read only row groups that
        they need.

        Args:
            paths: A path or a pattern, or several. The tables at the ends of the files are read now.
            columns: The names of columns; all by default.
            filter: Which rows: `[("column", ">", 3), ...]`, or an expression of `pyarrow.compute`.
            fill_null: What stands for nulls, by the names of columns. Others are an error for their row.

        Examples:
            >>> import tempfile
            >>> import pyarrow, pyarrow.parquet
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> table = pyarrow.table({"x": [1, 2, 3], "y": ["a", "b", "c"], "z": [0, 0, 0]})
            >>> pyarrow.parquet.write_table(table, folder.name + "/table.parquet")
            >>> rows = tf.data.Dataset.from_parquet(folder.name + "/*.parquet", columns=["x", "y"])
            >>> len(rows)
            3
            >>> [(batch["x"].tolist(), batch["y"].tolist()) for batch in rows.batch(2)]
            [([1, 2], [b'a', b'b']), ([3], [b'c'])]
            >>> folder.cleanup()
        """
        spec, groups = row_groups(expanded_paths(paths, "paths"), columns, filter, fill_null)
        return Dataset(Files(groups, spec))

    @staticmethod
    def from_array_record(paths: Any) -> "Dataset":
        """Make a dataset of the records of ArrayRecord files, as bytes; it needs `evenfeed[array-record]`.

        Every record has a position: `shuffle`, `shard` and `skip` read nothing that they pass over.

        Args:
            paths: A path or a pattern, or several, on this machine.

        Examples:
            >>> import tempfile
            >>> from array_record.python.array_record_module import ArrayRecordWriter
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> writer = ArrayRecordWriter(folder.name + "/a.array_record", "group_size:1")
            >>> for number in range(3):
            ...     _ = writer.write(b"record %d" % number)
            >>> writer.close()
            >>> records = tf.data.Dataset.from_array_record(folder.name + "/*.array_record")
            >>> len(records)
            3
            >>> list(records.skip(1).as_numpy_iterator())
            [b'record 1', b'record 2']
            >>> folder.cleanup()
        """
        files = tuple(map(ArrayRecordFile, expanded_paths(paths, "paths")))
        return Dataset(Files(files, TensorSpec([], dtypes.string)))

    @staticmethod
    def from_webdataset(paths: Any, parts: Any = None) -> "Dataset":
        """Make a dataset of the samples in WebDataset shards: tar files, not compressed.

        Neighbours in a tar file whose names are the same up to the first dot are one sample: a dict from the
        rest of the name to the bytes, and from `__key__` to the name. Every sample has a position.

        Args:
            paths: A path or a pattern, or several.
            parts: The ends of names that are wanted, such as "jpg" and "cls"; those of the first sample by
                default.

        Examples:
            >>> import io, tarfile, tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> with tarfile.open(folder.name + "/shard-0.tar", "w") as tar:
            ...     for name, content in {"a.txt": b"one", "a.cls": b"1", "b.txt": b"two", "b.cls": b"2"}.items():
            ...         member = tarfile.TarInfo(name)
            ...         member.size = len(content)
            ...         tar.addfile(member, io.BytesIO(content))
            >>> samples = tf.data.Dataset.from_webdataset(folder.name + "/*.tar")
            >>> [(s["__key__"].item(), s["txt"].item(), s["cls"].item()) for s in samples]
            [(b'a', b'one', b'1'), (b'b', b'two', b'2')]
            >>> folder.cleanup()
        """
        spec, files = shards(expanded_paths(paths, "paths"), parts)
        return Dataset(Files(files, spec))

    @staticmethod
    def from_json_lines(
        paths: Any, output_signature: Any = None, compression_type: str | None = None
    ) -> "Dataset":
        r"""Make a dataset of the lines of files, each a value of JSON.

        Args:
            paths: A path or a pattern, or several.
            output_signature: What is wanted of each line: a dict of `TensorSpec`s, perhaps nested. Text is
                `tf.string`, and a list a tensor. By default the first hundred lines tell what all have;
                whole numbers are then int64, others float64, and lists of any length.
            compression_type: "GZIP", "ZLIB", or "" and None for files as they are.

        Examples:
            >>> import tempfile, pathlib
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> path = pathlib.Path(folder.name) / "rows.jsonl"
            >>> path.write_text('{"x": 1, "tags": ["a"]}\n{"x": 2, "tags": []}\n')
            45
            >>> rows = tf.data.Dataset.from_json_lines(path)
            >>> [(int(row["x"]), row["tags"].tolist()) for row in rows]
            [(1, [b'a']), (2, [])]
            >>> wanted = {"x": tf.TensorSpec([], tf.float32)}
            >>> [b["x"].tolist() for b in tf.data.Dataset.from_json_lines(path, wanted).batch(2)]
            [[1.0, 2.0]]
            >>> folder.cleanup()
        """
        names, packed = expanded_paths(paths, "paths"), compression_type_of(compression_type)
        guessed = output_signature is None
        spec = guessed_spec(names[0], packed) if guessed else checked_spec(output_signature)
        files = tuple(JsonFile(name, packed, spec) for name in names)
        return Dataset(Files(files, spec, as_reader=True))

    def repeat(self, count: int | None = None, name: str | None = None) -> "Dataset":
        """Play the dataset `count` times; without end where `count` is None or negative.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        del name
        return Dataset(Repeat(self._plan, -1 if count is None else whole_number(count, "count")))

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Stack consecutive elements into batches along a new leading axis.

        Args:
            batch_size: Number of elements in a full batch, over all replicas.
            drop_remainder: Drop a short last batch, so that every batch has one shape and XLA
                compiles once.
            num_parallel_calls: Taken for compatibility: batches are cut from columns.
            deterministic: Taken for compatibility: the order is always kept.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> [b.tolist() for b in tf.data.Dataset.range(5).batch(2)]
            [[0, 1], [2, 3], [4]]
        """
        del deterministic, name
        size = whole_number(batch_size, "batch_size")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        parallel = num_parallel_calls is not None
        return Dataset(Batch(self._plan, size, drop_remainder=drop, parallel=parallel))

    def take(self, count: int, name: str | None = None) -> "Dataset":
        """Keep the first `count` elements; all of them where `count` is -1.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5).take(2)]
            [0, 1]
        """
        del name
        return Dataset(Take(self._plan, whole_number(count, "count")))

    def skip(self, count: int, name: str | None = None) -> "Dataset":
        """Leave out the first `count` elements; all of them where `count` is -1.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5).skip(3)]
            [3, 4]
        """
        del name
        return Dataset(Skip(self._plan, whole_number(count, "count")))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> "Dataset":
        """Keep every `num_shards`-th element from `index` on.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(7).shard(3, 1)]
            [1, 4]
        """
        del name
        shards, number = whole_number(num_shards, "num_shards"), whole_number(index, "index")
        return Dataset(Shard(self._plan, shards, number))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> "Dataset":
        """Bring the elements into a random order, each drawn from the next `buffer_size`.

        Args:
            buffer_size: How many elements to draw from; as many as there are for a uniform order. A
                dataset of arrays is shuffled by position: nothing is copied into a buffer.
            seed: Makes the order the same in every run of the program, together with the global one.
            reshuffle_each_iteration: Whether each pass has an order of its own.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(100).shuffle(100, seed=7)
            >>> sorted(int(x) for x in dataset) == list(range(100))
            True
        """
        del name
        size = whole_number(buffer_size, "buffer_size")
        again = reshuffle_each_iteration is not False
        return Dataset(Shuffle(self._plan, size, shuffle_seed(seed), reshuffle=again))

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset":
        """Put a count before each element.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices([10, 20]).enumerate(start=5)
            >>> [(int(i), int(x)) for i, x in dataset]
            [(5, 10), (6, 20)]
        """
        del name
        return Dataset(Enumerate(self._plan, whole_number(start, "start")))

    def concatenate(self, dataset: "Dataset", name: str | None = None) -> "Dataset":
        """Let the elements of another dataset follow those of this one.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(7, 9))]
            [0, 1, 7, 8]
        """
        del name
        return Dataset(Concatenate(self._plan, *_plans([dataset])))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> "Dataset":
        """Put the elements of several datasets side by side, until the shortest ends.

        Args:
            args: Datasets, or one structure of them: a tuple, a dict, nested.
            datasets: The structure, by name.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 12)
            >>> [(int(x), int(y)) for x, y in tf.data.Dataset.zip(a, b)]
            [(0, 10), (1, 11)]
        """
        del name
        given = args if datasets is None else (datasets,)
        return zipped(given[0] if len(given) == 1 else given)

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
        """Replace each element by what a function makes of it.

        The function is traced once, like TensorFlow traces it, and runs on whole Blocks at a time;
        what cannot be traced (text, files, Python control flow) runs element by element.

        Args:
            map_func: Gets the parts of a tuple as separate arguments, anything else as one.
            num_parallel_calls: How many elements to work on at a time, where it runs per element; with
                `processes`, how many of these, one for each core by default.
            deterministic: False lets results come as soon as they are there, where it runs on several
                elements at a time.
            synchronous: Taken for compatibility.
            use_unbounded_threadpool: Taken for compatibility.
            name: Taken for compatibility.
            vectorize: False runs it element by element, on NumPy values.
            output_signature: What it returns, where that cannot be found by tracing.
            processes: True runs it element by element in other processes, for functions of pure
                Python, which threads do not run at the same time. It must be defined at the top level
                of a module.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(4).map(lambda x: x * 10)]
            [0, 10, 20, 30]
            >>> from math import factorial
            >>> numbers = tf.data.Dataset.range(5).map(factorial, 2, processes=True)
            >>> [int(x) for x in numbers]
            [1, 1, 2, 6, 24]
        """
        del synchronous, use_unbounded_threadpool, name
        how: dict[str, Any] = {"vectorize": vectorize, "output_signature": output_signature}
        how |= {"processes": processes}
        try:
            return self._mapped(map_func, num_parallel_calls, deterministic, may_draw=True, **how)
        except DrawsForElements as draws:
            keyed = Dataset(WithKeys(self._plan, shuffle_seed(draws.seed)))
            function = drawing_inside(map_func)
            return keyed._mapped(function, num_parallel_calls, deterministic, **how)

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
        """Replace each element by what a function makes of it and of random numbers: augmentation.

        What the function draws follows from the seed, the pass and the element's position here, and
        from nothing else: not from threads, the size of Blocks, prefetching, a shard that is taken
        later, or where an iterator was restored.

        Args:
            map_func: Gets a key for `jax.random`, or a `numpy.random.Generator`, and then what a
                function given to `map` gets.
            seed: Makes the draws the same in every run of the program, together with the global one.
                Each pass and each round of a repetition has others.
            num_parallel_calls: As for `map`.
            deterministic: As for `map`.
            vectorize: As for `map`. The draws are the same.
            output_signature: As for `map`.
            generator: "jax" for a key: the function is traced and runs on whole Blocks where it can.
                "numpy" for a Generator: the function is not traced and runs per element, which suits
                those that call other libraries or decide by chance with Python's `if`.
            processes: As for `map`. The draws are the same.
            name: Taken for compatibility.

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
        keyed = Dataset(WithKeys(self._plan, shuffle_seed(seed)))
        how: dict[str, Any] = {"vectorize": vectorize, "output_signature": output_signature}
        function = drawing(_callable(map_func), generator)
        untraced = NOT_TRACED if generator == "numpy" else None
        how |= {"untraced": untraced, "processes": processes}
        return keyed._mapped(function, num_parallel_calls, deterministic, **how)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Leave out and repeat elements, so that their classes come in given parts.

        The dataset is read in several passes side by side.

        Args:
            class_func: Returns the class of an element: a whole number from 0 on.
            target_dist: How many of each class are to come: as many numbers as classes.
            initial_dist: How many of each there are; estimated on the way by default.
            seed: Makes the draws the same in every run of the program, together with the global one.
            name: Taken for compatibility.

        Returns:
            A dataset of pairs: the class, and the element.

        Examples:
            >>> import evenfeed as tf
            >>> rare = tf.data.Dataset.range(10_000).map(lambda x: tf.cast(x % 10 == 0, tf.int32))
            >>> even = rare.rejection_resample(lambda x: x, target_dist=[0.5, 0.5], seed=1)
            >>> bool(0.45 < np.mean([label for label, x in even]) < 0.55)
            True
        """
        del name
        target = resampling.distribution(target_dist, "target_dist")
        spreads = type(self.element_spec) is tuple
        classed = self.map(bound(_beside_parts if spreads else _beside, _callable(class_func)))
        resampling.check_class(classed.element_spec[0])
        if initial_dist is None:
            chances, original = _estimated(classed, target), None
        else:
            known = resampling.known_chances(initial_dist, target)
            chances, original = Dataset.from_tensors(known).repeat(), known[1]
        if original == 1:
            return classed
        filtered = _kept(classed, chances, seed)
        if original == 0:
            return filtered
        return Dataset.sample_from_datasets(
            [classed, filtered], chances.map(resampling.weights), seed, stop_on_empty_dataset=True
        )

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset":
        """Keep the elements for which a function returns true.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(6).filter(lambda x: x % 2 == 0)]
            [0, 2, 4]
        """
        del name
        return Dataset(Filter(self._plan, self._traced(predicate, "filtering", returns=_BOOL)))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset":
        """Keep the elements before the first for which a function returns false.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(9).take_while(lambda x: x < 3)]
            [0, 1, 2]
        """
        del name
        return Dataset(
            TakeWhile(self._plan, self._traced(predicate, "asking about", returns=_BOOL))
        )

    def flat_map(self, map_func: Callable[..., "Dataset"], name: str | None = None) -> "Dataset":
        """Replace each element by the elements of a dataset that a function makes of it.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(3).flat_map(tf.data.Dataset.range)
            >>> [int(x) for x in dataset]
            [0, 0, 1]
        """
        del name
        return Dataset(FlatMap(self._plan, self._inner(map_func)))

    def interleave(
        self,
        map_func: Callable[..., "Dataset"],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Read several datasets that a function makes of elements in turn.

        Args:
            map_func: Makes a dataset of an element.
            cycle_length: How many of them are open at a time; by default as many as there are cores.
            block_length: How many elements to take of each in its turn.
            num_parallel_calls: Taken for compatibility: the elements and their order are the same.
            deterministic: Taken for compatibility: the order is always kept.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(1, 3).interleave(
            ...     lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2)
            >>> [int(x) for x in dataset]
            [1, 2, 1, 2]
        """
        del num_parallel_calls, deterministic, name
        cycle = (
            (os.cpu_count() or 1)
            if cycle_length is None
            else whole_number(cycle_length, "cycle_length")
        )
        block = 1 if block_length is None else whole_number(block_length, "block_length")
        function = self._inner(map_func)
        return Dataset(Interleave(self._plan, function, cycle_length=cycle, block_length=block))

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> "Dataset":
        """Carry a state from element to element: the function returns the next one and an output.

        Examples:
            >>> import evenfeed as tf
            >>> sums = tf.data.Dataset.range(4).scan(np.int64(0), lambda s, x: (s + x, s + x))
            >>> [int(x) for x in sums]
            [0, 1, 3, 6]
        """
        del name
        structure, initial = initial_state, tuple(_components(initial_state))
        state = pack(structure, initial, DATA)
        function = self._folding(scan_func, state, "scanning", _first_of_two)
        return Dataset(Scan(self._plan, structure, initial, function))

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """Fold all elements into a state, and return it.

        Examples:
            >>> import evenfeed as tf
            >>> int(tf.data.Dataset.range(5).reduce(np.int64(0), lambda s, x: s + x))
            10
        """
        del name
        state = pack(initial_state, _components(initial_state), DATA)
        returns = map_structure(_of_any_length, spec_of(state), rules=DATA)
        function = self._folding(reduce_func, state, "reducing", _itself, returns)
        carried = flatten(state, DATA)
        for number, element in enumerate(ElementIterator(self._plan)):
            carried = function.one([*carried, *flatten(element, DATA)], number)
        return pack(state, list(map(host_tensor, carried)), DATA)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, "Dataset"], "Dataset"],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Collect elements by key, and read what a function makes of each full group.

        Args:
            key_func: Returns the key of an element: a whole number.
            reduce_func: Makes a dataset of a key and the dataset of a group.
            window_size: How many elements fill a group.
            window_size_func: The same, for each key.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(6).group_by_window(
            ...     lambda x: x % 2, lambda key, group: group.batch(3), window_size=3)
            >>> [batch.tolist() for batch in dataset]
            [[0, 2, 4], [1, 3, 5]]
        """
        del name
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                described("Pass either window_size or window_size_func, and not both.")
            )
        reduced = partial(_reduced, _callable(reduce_func))
        size = partial(_size_of_group, window_size, window_size_func)
        spec = self.element_spec
        empty = Held(spec, tuple(None for _ in flatten(spec, DATA)), 0)
        result = reduced(0, empty).element_spec
        key = self._traced(key_func, "finding the key of", returns=_WHOLE_NUMBER)
        return Dataset(GroupByWindow(self._plan, key, reduced, size, result))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Batch sequences with others of like length, padded to the longest of the batch.

        Args:
            element_length_func: Returns the length of an element.
            bucket_boundaries: The lengths at which buckets end, rising.
            bucket_batch_sizes: The batch size of each bucket, one more than boundaries.
            padded_shapes: As for `padded_batch`.
            padding_values: As for `padded_batch`.
            pad_to_bucket_boundary: Pad to one less than the bucket's boundary, for fixed shapes.
            no_padding: Do not pad: all elements of a bucket have one shape.
            drop_remainder: Drop short batches.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> rows = tf.data.Dataset.from_generator(
            ...     lambda: [[1], [2, 3, 4], [5]], output_signature=tf.TensorSpec([None], tf.int32))
            >>> buckets = rows.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [2], [2, 2])
            >>> [batch.tolist() for batch in buckets]
            [[[1], [5]], [[2, 3, 4]]]
        """
        del name
        buckets = Buckets(
            tuple(bucket_boundaries), tuple(bucket_batch_sizes), to_boundary=pad_to_bucket_boundary
        )

        padding = None if no_padding else (padded_shapes, padding_values, self.element_spec)
        return self.group_by_window(
            bound(partial(_bucket_of, buckets), _callable(element_length_func)),
            partial(_batched, buckets, padding, drop_remainder),
            window_size_func=partial(_size_of_bucket, buckets),
        )

    def apply(self, transformation_func: Callable[["Dataset"], "Dataset"]) -> "Dataset":
        """Return what a function makes of this dataset.

        Examples:
            >>> import evenfeed as tf
            >>> len(tf.data.Dataset.range(9).apply(lambda dataset: dataset.batch(4)))
            3
        """
        return _as_dataset(transformation_func(self), "apply")

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> "Dataset":
        """Make a dataset of what a function yields, or of the iterable that it returns.

        Each pass calls the function anew. Nothing is pulled before it is asked for. A restored iterator
        calls the function and passes over the elements that came before: one that reads from
        elsewhere should do so in the same order each time.

        Args:
            generator: A function that yields elements in the structure of `output_signature`.
            output_types: The dtypes alone, as older programs give them.
            output_shapes: The shapes that go with `output_types`.
            args: Arguments for the function; they arrive as arrays.
            output_signature: A `TensorSpec`, or a tuple or dict of them. What is yielded is cast to it;
                what does not fit is an error when it is reached.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> def squares():
            ...     for i in range(3):
            ...         yield i, i * i
            >>> spec = tf.TensorSpec([], tf.int32)
            >>> dataset = tf.data.Dataset.from_generator(squares, output_signature=(spec, spec))
            >>> [(int(x), int(y)) for x, y in dataset]
            [(0, 0), (1, 1), (2, 4)]
        """
        del name
        signature = signature_of(output_types, output_shapes, output_signature)
        given = () if args is None else tuple(to_array(arg) for arg in args)
        return Dataset(FromGenerator(generator, signature, given))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: object = dtypes.int64, name: str | None = None
    ) -> "Dataset":
        """Count from `start` by `step`, without end.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.counter(5, -2).take(3)]
            [5, 3, 1]
        """
        del name
        kind = dtypes.as_dtype(dtype)
        first, by = to_array(start, kind).item(), to_array(step, kind).item()
        return Dataset(Counter(first, by, dtype=kind))

    @staticmethod
    def random(
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Draw random whole numbers of 32 bits, without end.

        Args:
            seed: Makes the numbers the same in every run of the program, together with the global one.
            rerandomize_each_iteration: Whether each pass has numbers of its own.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> first, second = tf.data.Dataset.random(seed=4), tf.data.Dataset.random(seed=4)
            >>> list(first.take(3)) == list(second.take(3))
            True
        """
        del name
        return Dataset(Random(shuffle_seed(seed), reshuffle=bool(rerandomize_each_iteration)))

    @staticmethod
    def choose_from_datasets(
        datasets: "Sequence[Dataset]",
        choice_dataset: "Dataset",
        stop_on_empty_dataset: bool = True,
    ) -> "Dataset":
        """Take the next element of the dataset that each choice names.

        Args:
            datasets: Datasets with elements alike.
            choice_dataset: Numbers of datasets, as scalars of int64.
            stop_on_empty_dataset: End at the first choice that has no element left; else pass it over.

        Examples:
            >>> import evenfeed as tf
            >>> words = [tf.data.Dataset.from_tensors(word).repeat() for word in ("tick", "tock")]
            >>> dataset = tf.data.Dataset.choose_from_datasets(words, tf.data.Dataset.range(2))
            >>> list(dataset.as_numpy_iterator())
            [b'tick', b'tock']
        """
        parts = _plans(datasets)
        (choices,) = _plans([choice_dataset])
        return Dataset(Choose(parts, choices, stop_on_empty=stop_on_empty_dataset))

    @staticmethod
    def sample_from_datasets(
        datasets: "Sequence[Dataset]",
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> "Dataset":
        """Take the next element of a dataset drawn at random.

        Args:
            datasets: Datasets with elements alike.
            weights: How likely each is drawn: as many floats as datasets, or a dataset with such a
                vector for each draw. All alike by default; a dataset of weight 0 is left out.
            seed: Makes the draws the same in every run of the program, together with the global one.
            stop_on_empty_dataset: End as soon as one that has ended is drawn, which keeps the mixture
                to the weights; else go on with the others.
            rerandomize_each_iteration: Whether each pass has draws of its own.

        Examples:
            >>> import evenfeed as tf
            >>> a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(100, 103)
            >>> mixed = tf.data.Dataset.sample_from_datasets([a, b], weights=[0.5, 0.5], seed=1)
            >>> sorted(int(x) for x in mixed)
            [0, 1, 2, 100, 101, 102]
        """
        parts = _plans(datasets)
        if not isinstance(weights, Dataset):
            parts, weights = _weighted(parts, weights)
            if len(parts) == 1:
                return Dataset(parts[0])
        given = plan_of(weights) if isinstance(weights, Dataset) else weights
        again = bool(rerandomize_each_iteration)
        sample = Sample(
            parts, given, shuffle_seed(seed), stop_on_empty=stop_on_empty_dataset, reshuffle=again
        )
        return Dataset(sample)

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Stack consecutive elements of unlike shapes, filled up to one shape.

        Args:
            batch_size: Number of elements in a full batch.
            padded_shapes: The shape of each part, in the structure of an element; None (or -1) for a
                length that the longest element of the batch decides. By default, what the spec knows.
            padding_values: What to fill with: a scalar of the part's dtype, or one for each part; by
                default 0, False or empty text.
            drop_remainder: Drop a short last batch.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> rows = tf.data.Dataset.from_generator(
            ...     lambda: [[1], [2, 3]], output_signature=tf.TensorSpec([None], tf.int32))
            >>> [batch.tolist() for batch in rows.padded_batch(2)]
            [[[1, 0], [2, 3]]]
        """
        del name
        size = whole_number(batch_size, "batch_size")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        plan = padded_batch(self._plan, size, padded_shapes, padding_values, drop_remainder=drop)
        return Dataset(plan)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: dtypes.DType = dtypes.int64,
        name: str | None = None,
    ) -> "Dataset":
        """Raise an UnimplementedError: JAX computes on arrays, and has none with rows of unlike lengths.

        Examples:
            >>> import evenfeed as tf
            >>> spec = tf.TensorSpec([None], tf.int32)
            >>> rows = tf.data.Dataset.from_generator(lambda: [[1], [2, 3]], output_signature=spec)
            >>> try:
            ...     rows.ragged_batch(2)
            ... except tf.errors.UnimplementedError as error:
            ...     print(error.message)
            ragged_batch is not there: JAX has no tensors whose rows differ in length.
            >>> next(iter(rows.padded_batch(2))).tolist()
            [[1, 0], [2, 3]]
        """
        del batch_size, drop_remainder, row_splits_dtype, name
        raise UnimplementedError(
            "ragged_batch is not there: JAX has no tensors whose rows differ in length.",
            fix="use padded_batch(batch_size), and map the lengths beside the rows where a step needs them.",
        )

    def unbatch(self, name: str | None = None) -> "Dataset":
        """Cut each element along its first axis.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.from_tensors([4, 5, 6]).unbatch()]
            [4, 5, 6]
        """
        del name
        return Dataset(Unbatch(self._plan))

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> "Dataset":
        """Cut the rows of all batches into batches of another size.

        Args:
            batch_size: Rows of a batch, or a list of such numbers that take turns.
            drop_remainder: Drop a short last batch.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> [b.tolist() for b in tf.data.Dataset.range(6).batch(4).rebatch([1, 2])]
            [[0], [1, 2], [3], [4, 5]]
        """
        del name
        sizes = np.asarray(batch_size)
        if sizes.ndim > 1:
            raise ValueError(
                described(f"batch_size is a number or a list, but got {batch_size!r}.")
            )
        numbers = tuple(whole_number(size, "batch_size") for size in np.atleast_1d(sizes))
        drop = yes_or_no(drop_remainder, "drop_remainder")
        return Dataset(Rebatch(self._plan, numbers, drop_remainder=drop))

    def cache(self, filename: str | os.PathLike[str] = "", name: str | None = None) -> "Dataset":
        """Keep the elements of the first whole pass, so that later ones do not ask for them again.

        A pass that was not read to its end is not kept. The elements that come out cannot be written to.

        Args:
            filename: Where to keep them on disk, as the beginning of file names; in memory by default.
                While one iterator writes, another that wants to is an AlreadyExistsError.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(3).cache()
            >>> [int(x) for x in dataset], [int(x) for x in dataset]
            ([0, 1, 2], [0, 1, 2])
        """
        del name
        fix = "pass where the cache is to stand on disk, or nothing to keep it in memory."
        return Dataset(Cache(self._plan, path_of(filename, "filename", fix)))

    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: Callable[["Dataset"], "Dataset"] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Write the elements of the first whole pass into a folder, and read them from there later on.

        Later passes are those of other programs too. A dataset that was made otherwise, with another
        function or other data, writes elements of its own beside them; seeds make no difference. A
        pass that ended early, or in which an element failed, is not kept.

        Args:
            path: The folder, which is made where it is not there.
            compression: "GZIP" for smaller files; None or "AUTO" for files that are mapped into memory.
            reader_func: Makes the dataset to read of a dataset of datasets, one for each shard; by
                default their elements come in turn.
            shard_func: Returns the number of the shard that an element goes to.
            name: Taken for compatibility.

        Examples:
            >>> import tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> dataset = tf.data.Dataset.range(3).snapshot(folder.name)
            >>> [int(x) for x in dataset], [int(x) for x in dataset]
            ([0, 1, 2], [0, 1, 2])
            >>> folder.cleanup()
        """
        del name
        kind, shard = compression_of(compression), self._shard(shard_func)
        folder = os.path.join(folder_of(path), identity(self._plan, shard, kind))
        reading = partial(_read_plan, _optional(reader_func))
        return Dataset(Snapshot(self._plan, folder, compression=kind, shard=shard, reading=reading))

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Write all elements into a folder, for `Dataset.load`.

        What was saved there before is replaced once all is written. A program that is stopped before
        leaves it as it was.

        Args:
            path: The folder, which is made where it is not there.
            compression: "GZIP" for smaller files; else they are mapped into memory when they are read.
            shard_func: Returns the number of the shard that an element goes to; each has its file.
            checkpoint_args: Not there yet.

        Examples:
            >>> import tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> tf.data.Dataset.range(10).save(folder.name)
            >>> [int(x) for x in tf.data.Dataset.load(folder.name).skip(7)]
            [7, 8, 9]
            >>> folder.cleanup()
        """
        if checkpoint_args is not None:
            raise UnimplementedError(
                "A saving cannot be stopped and resumed yet.", fix="leave checkpoint_args out."
            )
        kind, shard = compression_of(compression), self._shard(shard_func)
        save_elements(self._plan, folder_of(path), kind, shard, build)

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[["Dataset"], "Dataset"] | None = None,
        wait: bool = False,
    ) -> "Dataset":
        """Read what `save` wrote.

        Its rows can be addressed: `shuffle`, `shard`, `skip` and resume read nothing that they pass over.

        Args:
            path: The folder.
            element_spec: What the elements are; needed only where they are objects of a class of yours.
            compression: Taken for compatibility: the files know theirs.
            reader_func: Makes the dataset to read of a dataset of datasets, one for each shard; by
                default their elements come in turn.
            wait: Wait until the dataset is saved, by another program.

        Examples:
            >>> import tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> tf.data.Dataset.range(6).save(folder.name, shard_func=lambda x: x % 2)
            >>> [int(x) for x in tf.data.Dataset.load(folder.name)]
            [0, 1, 2, 3, 4, 5]
            >>> one_by_one = lambda shards: shards.flat_map(lambda shard: shard)
            >>> [int(x) for x in tf.data.Dataset.load(folder.name, reader_func=one_by_one)]
            [0, 2, 4, 1, 3, 5]
            >>> folder.cleanup()
        """
        compression_of(compression)
        saved = load_saved(folder_of(path), wait=yes_or_no(wait, "wait"))
        spec = saved.element_spec if element_spec is None else saved.spec_like(element_spec)
        return Dataset(_read_plan(_optional(reader_func), saved.files, spec))

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> "Dataset":
        """Read elements ahead in a thread, while those before are being used.

        Args:
            buffer_size: How many; `AUTOTUNE` (or None) keeps two reads of the consumer's length ready.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(3).prefetch(tf.data.AUTOTUNE)]
            [0, 1, 2]
        """
        del name
        size = AUTOTUNE if buffer_size is None else whole_number(buffer_size, "buffer_size")
        return Dataset(Prefetch(self._plan, size))

    def unique(self, name: str | None = None) -> "Dataset":
        """Leave out elements that came before; they have one part, of int32, int64 or text.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()]
            [1, 37, 2]
        """
        del name
        return Dataset(Unique(self._plan))

    def ignore_errors(
        self,
        log_warning: bool = False,
        name: str | None = None,
        *,
        max_total: int | None = None,
        max_consecutive: int | None = None,
    ) -> "Dataset":
        """Leave out elements that fail, and go on behind them.

        How many were left out, and which: `ignored_errors()`.

        Args:
            log_warning: Log each error, as a warning of the logger "evenfeed".
            name: Taken for compatibility.
            max_total: Let an error through once so many were ignored in a pass.
            max_consecutive: Let an error through once so many were ignored one behind the other.

        Examples:
            >>> import evenfeed as tf
            >>> spec = tf.TensorSpec([], tf.int32)
            >>> dataset = tf.data.Dataset.from_generator(lambda: [1, "x", 3], output_signature=spec)
            >>> dataset = dataset.ignore_errors()
            >>> [int(x) for x in dataset], dataset.ignored_errors().count
            ([1, 3], 1)
        """
        del name
        return Dataset(
            IgnoreErrors(
                self._plan,
                log_warning=log_warning,
                max_total=max_total,
                max_consecutive=max_consecutive,
            )
        )

    def ignored_errors(self) -> Ignored:
        """Return what `ignore_errors`, the nearest one, left out in all passes so far.

        It has the number of elements, `count`, and `skipped`: the file, the byte and the reason of each.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.TFRecordDataset(["/none.tfrecord"]).ignore_errors()
            >>> list(dataset)
            []
            >>> [(file, offset, reason[:13]) for file, offset, reason in dataset.ignored_errors().skipped]
            [('/none.tfrecord', None, 'NotFoundError')]
        """
        found = (node for node in self._plan.walk() if isinstance(node, IgnoreErrors))
        nearest = next(found, None)
        return Ignored() if nearest is None else nearest.ignored

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Cut the elements into windows, each of which is a dataset.

        Elements with several parts give that structure of datasets, one for each part.

        Args:
            size: Number of elements of a window.
            shift: How far the next window begins from this one; `size` by default.
            stride: Distance of the elements within a window.
            drop_remainder: Drop windows that are short.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> windows = tf.data.Dataset.range(4).window(3, shift=1, drop_remainder=True)
            >>> [[int(x) for x in window] for window in windows]
            [[0, 1, 2], [1, 2, 3]]
        """
        del name
        length, step = whole_number(size, "size"), whole_number(stride, "stride")
        by = length if shift is None else whole_number(shift, "shift")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        return Dataset(Window(self._plan, length, by, step, drop_remainder=drop, face=Dataset))

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
        return Dataset(WithOptions(self._plan, options))

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the element of a dataset that has only one.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.range(3).batch(3).get_single_element().tolist()
            [0, 1, 2]
        """
        del name
        found = list(self.take(2))
        if len(found) == 1:
            return found[0]
        raise InvalidArgumentError(
            f"The dataset has {'more than one element' if found else 'no element'}.",
            fix="call batch(n) first for all elements, or take(1) for the first.",
        )

    def _mapped(
        self,
        function: Callable[..., Any],
        num_parallel_calls: int | None,
        deterministic: bool | None,
        *,
        vectorize: bool | None,
        processes: bool,
        **how: Any,
    ) -> "Dataset":
        processes = yes_or_no(processes, "processes")
        if processes:
            check_portable(_callable(function), vectorize)
            vectorize = False
        calls = (
            None
            if num_parallel_calls is None
            else whole_number(num_parallel_calls, "num_parallel_calls")
        )
        traced = self._traced(function, "mapping", calls, vectorize=vectorize, **how)
        return Dataset(
            Map(
                self._plan,
                traced,
                num_parallel_calls=calls,
                deterministic=deterministic,
                processes=processes,
            )
        )

    def _traced(
        self, function: Callable[..., Any], doing: str, calls: int | None = None, **how: Any
    ) -> RowFunction:
        return trace(
            _callable(function),
            self.element_spec,
            where_called(),
            doing=doing,
            num_parallel_calls=calls,
            first_elements=Beginning(self._plan, build),
            **how,
        )

    def _folding(
        self,
        function: Callable[..., Any],
        initial: Any,
        doing: str,
        new: Callable[[Any], Any],
        returns: Any = None,
    ) -> RowFunction:
        """Trace a function of a state and an element; the state's shape may change on the way."""
        state = spec_of(initial)
        first = BehindState(flatten(initial, DATA), Beginning(self._plan, build))
        while True:
            traced = trace(
                _callable(function),
                (state, self.element_spec),
                where_called(),
                doing=doing,
                first_elements=first,
                returns=returns,
            )
            returned = new(traced.output_spec)
            check_state(state, returned, self._plan)
            common = widened(state, returned)
            if common == state:
                return traced
            state = common

    def _inner(self, function: Callable[..., Any]) -> InnerDatasets:
        traced = self._traced(function, "making a dataset of", returns_values=True)
        return InnerDatasets(traced, self.element_spec, partial(_plan_made, "flat_map"))

    def _shard(self, function: Callable[..., Any] | None) -> RowFunction | None:
        if function is None:
            return None
        return check_shard(self._traced(function, "choosing the shard of"))

    @property
    def element_spec(self) -> Any:
        """The specs of an element's parts, in the structure of an element."""
        return self._plan.element_spec

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

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Iterate over the elements as plain NumPy values: scalar text as bytes.

        Examples:
            >>> import evenfeed as tf
            >>> list(tf.data.Dataset.from_tensor_slices(["a", "b"]).as_numpy_iterator())
            [b'a', b'b']
        """
        return (map_structure(_unwrapped, x, rules=DATA) for x in ElementIterator(self._plan))

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


def plan_of(dataset: Dataset) -> Node:
    """Return the plan behind the face."""
    return dataset._plan  # pyright: ignore[reportPrivateUsage] - the door for the layers above


def _as_dataset(value: object, method: str) -> Dataset:
    if isinstance(value, Dataset):
        return value
    raise TypeError(
        described(
            f"The function of {method} must return a Dataset, but returned {shortened(value)}.",
            fix="return Dataset.from_tensors(value), or call map for functions of elements.",
        )
    )


def _plan_made(method: str, value: object) -> Node:
    return plan_of(_as_dataset(value, method))


def _reduced(reduce_func: Callable[..., Any], key: int, group: Node) -> Node:
    return _plan_made("group_by_window", reduce_func(np.int64(key), Dataset(group)))


def _size_of_group(
    window_size: int | None, window_size_func: Callable[..., Any] | None, key: int
) -> int:
    asked: Any = window_size if window_size_func is None else window_size_func(np.int64(key))
    return int(asked)


def _bucket_of(buckets: Buckets, length_func: Callable[..., Any], *element: Any) -> Any:
    return np.int64(buckets.of_length(int(length_func(*element))))


def _size_of_bucket(buckets: Buckets, bucket: Any) -> int:
    return buckets.batch_sizes[int(bucket)]


def _batched(
    buckets: Buckets, padding: tuple[Any, ...] | None, drop: bool, bucket: Any, group: Dataset
) -> Dataset:
    size = _size_of_bucket(buckets, bucket)
    if padding is None:
        return group.batch(size, drop)
    asked, values, spec = padding
    return group.padded_batch(size, buckets.padded_shapes(int(bucket), asked, spec), values, drop)


def _read_plan(
    reader_func: Callable[[Dataset], Dataset] | None, files: tuple[DataFile, ...], spec: Any
) -> Node:
    """Return the plan that reads files: a row of each in turn, or as the user's function says."""
    if reader_func is None:
        return Files(files, spec, in_turn=len(files) > 1)
    shards = [Dataset(Files((file,), spec)) for file in files]
    of_shards = Held(DatasetSpec(spec, face=Dataset), (shards,), len(shards))
    plan = _plan_made("load", reader_func(Dataset(of_shards)))
    check_read(plan, spec)
    return plan


def _optional(function: Any) -> Any:
    return None if function is None else _callable(function)


def _callable(function: Callable[..., Any]) -> Callable[..., Any]:
    if callable(function):
        return function
    raise TypeError(
        described(
            f"A function is needed, but got {shortened(function)}.",
            fix="pass a function of an element, such as lambda x: x + 1.",
        )
    )


def _beside(class_func: Callable[..., Any], element: Any) -> Any:
    return class_func(element), element


def _beside_parts(class_func: Callable[..., Any], *parts: Any) -> Any:
    return class_func(*parts), parts


def _estimated(classed: Dataset, target: Array) -> Dataset:
    """Return, for each element, what `resampling.chances` makes of the classes that came up to it."""
    classes = classed.map(_first).batch(resampling.ESTIMATED_AT_A_TIME)
    seen = resampling.nothing_seen(len(target))
    return (
        classes.scan(seen, resampling.estimated)
        .unbatch()
        .map(partial(resampling.chances, target=target))
    )


def _kept(classed: Dataset, chances: Dataset, seed: int | None) -> Dataset:
    """Return the elements that chance lets through, the same in each pass as in TensorFlow."""
    together = plan_of(Dataset.zip(chances.map(_first), classed))
    keyed = Dataset(WithKeys(together, shuffle_seed(seed), passes=Passes(counted=False)))
    return keyed.filter(resampling.is_kept).map(_last)


def _first(*parts: Any) -> Any:
    return parts[0]


def _last(*parts: Any) -> Any:
    return parts[-1]


def _of_any_length(spec: TypeSpec) -> TypeSpec:
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        return spec
    return TensorSpec([None] * spec.shape.rank, spec.dtype)


def _itself(spec: Any) -> Any:
    return spec


def _first_of_two(spec: Any) -> Any:
    parts = cast("tuple[Any, ...]", spec) if type(spec) is tuple else ()
    if len(parts) == 2:
        return parts[0]
    raise TypeError(
        described(
            f"A scan's function must return (new state, output), but returns {spec}.",
            fix="return two values: the state for the next element, and what to yield.",
        )
    )


def _components(value: Any) -> list[Array]:
    return [to_array(part) for part in flatten(value, DATA)]


def _plans(datasets: Any) -> tuple[Node, ...]:
    """Return the plans of several datasets, each checked to be one."""
    for dataset in datasets:
        if not isinstance(dataset, Dataset):
            raise TypeError(
                described(
                    f"A dataset is needed, but got {shortened(dataset)}.",
                    fix="make one first: Dataset.from_tensor_slices(value).",
                )
            )
    return tuple(map(plan_of, datasets))


def _weighted(parts: tuple[Node, ...], weights: Any) -> tuple[tuple[Node, ...], tuple[float, ...]]:
    """Return the datasets that can be drawn, and how likely; an empty one where none can be."""
    given = np.ones(len(parts)) if weights is None else to_array(weights)
    if given.dtype.kind != "f":
        raise TypeError(described("weights must be floats.", fix="pass [0.5, 0.5]."))
    if given.shape != (len(parts),):
        raise ValueError(
            described(f"There are {len(parts)} datasets, but the weights have shape {given.shape}.")
        )
    pairs = [pair for pair in zip(parts, given.tolist(), strict=True) if pair[1] > 0]
    if not pairs and parts:
        return (Take(parts[0], 0),), (1.0,)
    return tuple(part for part, _ in pairs), tuple(weight for _, weight in pairs)


def zipped(structure: Any) -> Dataset:
    """Return a dataset of the elements of all datasets in a structure."""
    parts = flatten(structure, DATA)
    for part in parts:
        if not isinstance(part, Dataset):
            raise TypeError(
                described(
                    f"zip takes datasets, but got {shortened(part)}.",
                    fix="pass datasets, or a tuple or dict of them; a list is a tensor in the making.",
                )
            )
    return Dataset(Zip(structure, tuple(map(plan_of, parts))))


def shuffle_seed(seed: int | None) -> tuple[int, ...]:
    """Return what a shuffle starts from: seeds that were given, or fresh random numbers."""
    given = operation_seed(None if seed is None else whole_number(seed, "seed"))
    return given if given is not None else (_random_bits(), _random_bits())


def _arrays(value: object) -> tuple[Any, list[Array | None]]:
    """Return the structure of `value`, and its parts as arrays."""
    return value, [None if part is None else to_array(part) for part in flatten(value, DATA)]


def _unwrapped(part: Any) -> Any:
    return part if part is None or part.ndim else part[()]


def _random_bits() -> int:
    return int.from_bytes(os.urandom(8), "little")
