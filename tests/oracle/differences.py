"""Where evenfeed deliberately differs from TensorFlow, and why.

A test checks that every entry is still true.
"""

_STARTS = "A list of numbers is not one gradient to start with: pass one tensor for each target."
_WRAPS = "A Python number that does not fit raises; TensorFlow silently changes it."
_ROW_LOST = "A row that is longer than an empty first row raises; TensorFlow drops its values."
_BOOLS = "A list that mixes bools and numbers raises in either order, not only in one."
_COMPLEX = "A list may mix complex and real numbers, as it may mix floats and ints."
_CLASS_OF_ARRAY = "An array that cannot be converted to the dtype raises TypeError, as a list does."
_PROMOTES = "Mixed dtypes promote as in JAX, which does all the surrounding mathematics."
_DATACLASS = "A dataclass is a structure, so that elements can have your own type."
_ARRAY = "A NumPy array is a tensor: evenfeed has no tensor class of its own."
_OVERFLOW = "The count is exact; TensorFlow's overflows 64 bits."
_UNCOUNTABLE = (
    "An element whose number in `enumerate` does not fit into 64 bits raises; TensorFlow drops it."
)
_COUNTED = "An element that fails keeps its position, so take, skip and shard count it."
_SCALARS = "Scalars cannot be split: the error says to call batch; TensorFlow raises IndexError."
_COUNTS = "range counts in any integer or float dtype."
_SEED = "A seed that is not an integer raises at once; TensorFlow accepts it, and may fail later."
_FILLED_IN = "A field that an attrs class sets itself (init=False) is not part of a structure."
_NO_SEQUENCE = "A dict instead of a flat sequence raises TypeError, not KeyError."
_PRINTED_ARRAY = "A NumPy array is a tensor, and prints like one."
_GATHERS = "Values of any dtype can be gathered, including text, and nested values."
_INDEX = "A variable that holds an integer is an index, as a jax.Array is."
_REFERENCE = (
    "A reference compared with anything but a reference is unequal; TensorFlow raises TypeError."
)
_EXCLUSIVE = (
    "`case` with `exclusive=True` also raises in plain Python, if several conditions are True."
)
_ITSELF = "assign returns the variable itself; TensorFlow returns another object for it."
_ONE_SUM = "The sum over a single replica is its value, unchanged."
_ONE_VALUE = "On one replica a value made by a function is that value, not a PerReplica of one."
_LIST_MEAN = "A list has a mean as it has a sum; TensorFlow's mean of a list raises AttributeError."
_NESTED_AXIS = "Reducing nested values along an axis raises TypeError; TensorFlow adds them up."
_PYTHON_PARTS = "Parts that are Python numbers are reduced like tensors."
_NO_SUM = "Parts that have no sum raise an error that says so, not AttributeError."
_COPIES_SUM = "The copies of a variable can be summed; TensorFlow raises AssertionError."
_NO_VALUES = "A variable is not a DistributedValues, but has `values`."
_NO_ASSERTION = "A wrong argument raises ValueError, not AssertionError."
_DEFAULT_DEVICE = "The default strategy reports the device that it computes on."
_CUT_OFF = (
    "A truncated compressed file raises DataLossError; TensorFlow ends as if it were complete."
)
_NO_PAYLOAD = "`nan(1)` in a CSV file is not a number; `nan` is."
_MIRRORED = "A compiled run returns results that are the same on all replicas as Mirrored: one array, not one copy per replica."
_LOST_CHANGE = "A replica that changes a list or dict which all replicas get raises ValueError, because the change would be lost."
_TEXT_STAYS = (
    "A function whose replicas get different text runs as plain Python, and returns Python strings."
)

_LENGTHS_OF_NEIGHBOURS = "A replica without rows gets the other lengths of its neighbours' rows."
_NO_ROWS = "A replica without an element of its own gets no rows, and `element_spec` leaves their number open."

_SAVED = "A position can be saved unless a function was seen to draw, assign or pull: all other functions count as deterministic."
_STOPS = "A StopIteration in a function raises InvalidArgumentError, whichever method the function is passed to."

_WHOLE_COLOURS = "A crop of a JPEG file has the colours of the whole image; TensorFlow smooths the edges of the crop without the pixels around it."
_OPAQUE = "Palette colours without an alpha value are opaque: 255, not 15."
_NO_IMAGE = "A box for an image that does not exist raises InvalidArgumentError; TensorFlow's OutOfRangeError would end a dataset."
_ANY_CORNERS = "`non_max_suppression_padded` accepts opposite corners in any order; TensorFlow takes the order of the first box for all."
_WEBP_FLOATS = "`decode_image` decodes WebP files to float32 and uint16 too."

_NEXT_BATCH = "The batch after a failed element starts with the next element; TensorFlow drops the rest of the batch if a `map` is directly below."

_OUTSIDE_ROW = "`gather_nd` at a place outside of a ragged row raises; TensorFlow returns a value of another row."
_NEGATIVE_PLACE = (
    "`unravel_index` of a negative index raises; TensorFlow returns places that do not exist."
)
_ROWS_UNTRACED = "A function that computes with a ragged or sparse tensor runs per element, so `element_spec` lacks the lengths of its results."
_BATCHES_OF_ROWS = (
    "Batches of ragged or sparse batches may have different numbers of rows; TensorFlow raises."
)
_SLICE_OF_COPIES = "Assigning to a slice of a variable changes all copies, and aggregates as assign does; TensorFlow changes one copy."
_ENTRIES_OF_COPIES = "Variables with copies have all scatter methods, and sparse_read and gather_nd; TensorFlow raises."

_NO_POSITION = "A Dataset in a Checkpoint raises, because it has no position; TensorFlow accepts it and saves nothing."

_ZERO_CURVATURE = "A second derivative that is zero everywhere, such as that of relu, may be None; TensorFlow returns zeros."

_NAN_IS_LARGEST = "`sort`, `argsort` and `top_k` count NaN as the largest value; TensorFlow's order then depends on where the NaN stands."

_TENSOR_OF_ANOTHER_DTYPE = (
    "an argument of the wrong dtype is a TypeError; TensorFlow raises ValueError if it is a tensor, "
    "and TypeError if it is a Python number"
)
_FEWER_LENGTHS = (
    "fewer lengths than rows raise ValueError; TensorFlow leaves out the rows without a length"
)

DIFFERENT: dict[str, str] = {
    "derivatives.requests.a start that is a list of numbers": _STARTS,
    "wanted_dtypes.counts.take, a float tensor": _TENSOR_OF_ANOTHER_DTYPE,
    "wanted_dtypes.counts.batch, drop_remainder as a number": _TENSOR_OF_ANOTHER_DTYPE,
    "wanted_dtypes.nested_lengths.too few": _FEWER_LENGTHS,
    "refused_calls.not_numbers.top_k 1 inside": _NAN_IS_LARGEST,
    "refused_calls.not_numbers.top_k 1 leading": _NAN_IS_LARGEST,
    "refused_calls.not_numbers.top_k inside": _NAN_IS_LARGEST,
    "refused_calls.not_numbers.top_k rows": _NAN_IS_LARGEST,
    "refused_calls.not_numbers.sort": _NAN_IS_LARGEST,
    "refused_calls.not_numbers.argsort": _NAN_IS_LARGEST,
    "refused_calls.not_numbers.sort down": _NAN_IS_LARGEST,
    "refused_calls.not_numbers.argsort down": _NAN_IS_LARGEST,
    "checkpoints.iterators.a dataset": _NO_POSITION,
    "custom_training.loops.a gradient penalty": _ZERO_CURVATURE,
    "indexed_slices.mirrored_slices.NONE outside": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.SUM eager": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.SUM compiled": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.SUM outside": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.MEAN eager": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.MEAN compiled": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.MEAN outside": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.ONLY_FIRST_REPLICA eager": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.ONLY_FIRST_REPLICA compiled": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.ONLY_FIRST_REPLICA outside": _SLICE_OF_COPIES,
    "indexed_slices.mirrored_slices.scatter_nd_add": _ENTRIES_OF_COPIES,
    "indexed_slices.mirrored_slices.batch_scatter_update": _ENTRIES_OF_COPIES,
    "indexed_slices.mirrored_slices.sparse_read": _ENTRIES_OF_COPIES,
    "indexed_slices.mirrored_slices.gather_nd": _ENTRIES_OF_COPIES,
    "failing_elements.selected.take": _COUNTED,
    "failing_elements.selected.skip": _COUNTED,
    "failing_elements.selected.shard": _COUNTED,
    "ragged_functions.picked.gather_nd outside of a row": _OUTSIDE_ROW,
    "functions_of_rows.indices_out_of_range.unravel_index, negative": _NEGATIVE_PLACE,
    "functions_of_rows.indices_out_of_range.unravel_index, lowest": _NEGATIVE_PLACE,
    "ragged_elements.functions.the spec of doubled": _ROWS_UNTRACED,
    "ragged_elements.functions.the spec of sparse made dense": _ROWS_UNTRACED,
    "ragged_elements.batches.uneven batches": _BATCHES_OF_ROWS,
    "replica_idioms.open_lengths.3, kept: taken, steps": _LENGTHS_OF_NEIGHBOURS,
    "replica_idioms.open_lengths.2, dropped: taken": _NO_ROWS,
    "replica_idioms.open_lengths.3, dropped: taken": _NO_ROWS,
    "replica_idioms.open_lengths.3, dropped: taken, steps": _NO_ROWS,
    "damaged_files.compressed.GZIP, cut off": _CUT_OFF,
    "damaged_files.compressed.ZLIB, cut off": _CUT_OFF,
    "collectives.kinds.a closure, 2, in a function": _MIRRORED,
    "collectives.kinds.a closure, 2, after a function": _MIRRORED,
    "collectives.kinds.a closure, 2, run of a function": _MIRRORED,
    "collectives.kinds.an all_reduce, 2, in a function": _MIRRORED,
    "collectives.kinds.an all_reduce, 2, after a function": _MIRRORED,
    "collectives.kinds.an all_reduce, 2, run of a function": _MIRRORED,
    "collectives.made_in_a_function.texts, made": _TEXT_STAYS,
    "collectives.made_in_a_function.texts, given": _TEXT_STAYS,
    "constants.constant.int and complex": _COMPLEX,
    "constants.constant.int and bool": _BOOLS,
    "constants.constant.an empty row, then one": _ROW_LOST,
    "constants.convert_to_tensor.int and complex": _COMPLEX,
    "constants.convert_to_tensor.int and bool": _BOOLS,
    "constants.convert_to_tensor.an empty row, then one": _ROW_LOST,
    "constants.convert_to_tensor.a tensor and a float": _PROMOTES,
    "constants.constant_with_dtype.300 as uint8": _WRAPS,
    "constants.constant_with_dtype.-1 as uint8": _WRAPS,
    "constants.constant_with_dtype.128 as int8": _WRAPS,
    "constants.constant_with_dtype.2**40 as int32": _WRAPS,
    "constants.constant_with_dtype.int array as string": _CLASS_OF_ARRAY,
    "constants.constant_with_dtype.text array as int32": _CLASS_OF_ARRAY,
    "csv_files.numbers.b'nan(1)' as 2": _NO_PAYLOAD,
    "csv_files.numbers.b'nan(1)' as 3": _NO_PAYLOAD,
    "datasets.batch.None": "None has the wrong type, as 2.5 has: a TypeError.",
    "datasets.from_tensors.dataclass element_spec": _DATACLASS,
    "datasets.from_tensors.dataclass cardinality": _DATACLASS,
    "datasets.from_tensors.dataclass len": _DATACLASS,
    "datasets.from_tensors.dataclass elements": _DATACLASS,
    "datasets.from_tensors.dataclass as NumPy": _DATACLASS,
    "datasets.from_tensors.dataclass repr": _DATACLASS,
    "datasets.from_tensor_slices.dataclass element_spec": _DATACLASS,
    "datasets.from_tensor_slices.dataclass cardinality": _DATACLASS,
    "datasets.from_tensor_slices.dataclass len": _DATACLASS,
    "datasets.from_tensor_slices.dataclass elements": _DATACLASS,
    "datasets.from_tensor_slices.dataclass as NumPy": _DATACLASS,
    "datasets.from_tensor_slices.dataclass repr": _DATACLASS,
    "combining.enumerate_.beyond 64 bits": _UNCOUNTABLE,
    "combining.enumerate_.beyond 64 bits, of unknown length": _UNCOUNTABLE,
    "datasets.range_.up to the last int64 cardinality": _OVERFLOW,
    "datasets.range_.up to the last int64 len": _OVERFLOW,
    "datasets.repeat.cardinality beyond int64": _OVERFLOW,
    "distribution.iterators.len of the dataset": (
        "A distributed dataset has a `len` if the number of its steps is known"
    ),
    "distribution.per_replica.len": "A per-replica value has as many parts as replicas.",
    "distribution.per_replica.item": "A replica's part can be indexed by the replica's number.",
    "distribution.strategies.duplicates": _NO_ASSERTION,
    "distribution.strategies.distribute a list": (
        "Distributing anything but a Dataset raises a TypeError that says how to make one, not AttributeError."
    ),
    "distribution.unbatched.scalars on 2: made": _SCALARS,
    "distribution.unbatched.scalars on 3: made": _SCALARS,
    "distribution.unbatched.scalars on 4: made": _SCALARS,
    "functions.concat.int and float": _PROMOTES,
    "functions.concat.tensors of two dtypes": _PROMOTES,
    "functions.equal.int and float": _PROMOTES,
    "functions.equal.tensors of two dtypes": _PROMOTES,
    "functions.range_.as int8": _COUNTS,
    "functions.range_.as uint8": _COUNTS,
    "functions.reduce_mean.float16": "The sum inside a mean of half floats does not overflow.",
    "functions.set_seed.text": _SEED,
    "functions.set_seed.fraction": _SEED,
    "functions.set_seed.whole float": _SEED,
    "functions.stack.along 0.0": "An axis must be an integer; 0.0 is not one.",
    "functions.stack.np.int32 and np.int64": _PROMOTES,
    "functions.stack.arrays": "Arrays keep their dtype in stack, as they do in concat.",
    "functions.stack.array and list": "Arrays keep their dtype in stack, as they do in concat.",
    "functions.stack.an array of rows": "The rows of an array can be stacked along any axis.",
    "functions.stack.tensors of two dtypes": _PROMOTES,
    "images.decode_jpeg.a box": _WHOLE_COLOURS,
    "images.decode_png.palette 4": _OPAQUE,
    "modified_arguments.on_replicas.put, plain": _LOST_CHANGE,
    "modified_arguments.on_replicas.put, plain, compiled": _LOST_CHANGE,
    "modified_arguments.on_replicas.set a number, plain": _LOST_CHANGE,
    "modified_arguments.on_replicas.set a number, plain, compiled": _LOST_CHANGE,
    "nest.flatten.attrs class with a field of its own": _FILLED_IN,
    "nest.map_structure.attrs class with a field of its own": _FILLED_IN,
    "nest.pack_sequence_as.attrs class with a field of its own": _FILLED_IN,
    "nest.pack_sequence_as.a dict": _NO_SEQUENCE,
    "nest.pack_sequence_as.a dict for one": _NO_SEQUENCE,
    "nest.is_nested.bytearray": "A bytearray is one value, as bytes are.",
    "ordering.shuffle.None": "None has the wrong type, as 2.5 has: a TypeError.",
    "older_names.errors_in_batches.map, batch": _NEXT_BATCH,
    "older_names.errors_in_batches.map_and_batch": _NEXT_BATCH,
    "printing.options.unknown option": "An unknown argument is Python's own TypeError.",
    "printing.tensors.complex": "A complex number is printed; TensorFlow prints a question mark.",
    "printing.values.array": _PRINTED_ARRAY,
    "printing.values.2-d array": _PRINTED_ARRAY,
    "printing.values.float array": _PRINTED_ARRAY,
    "printing.values.long array": _PRINTED_ARRAY,
    "printing.values.empty array": _PRINTED_ARRAY,
    "shapes.equality.with [-1]": "Comparing shapes never raises: [-1] is not a shape, so it is not equal.",
    "specs.compatible_values.array": _ARRAY,
    "specs.made_of.from_tensor of an array": _ARRAY,
    "mirrored_variables.facts.float": "A variable with copies converts to a Python number like any other.",
    "mirrored_variables.facts.is distributed": _NO_VALUES,
    "mirrored_variables.facts.of one replica is distributed": _NO_VALUES,
    "mirrored_variables.facts.reduce SUM": _COPIES_SUM,
    "mirrored_variables.facts.reduce of one": _COPIES_SUM,
    "random_in_functions.saving.a generator": _SAVED,
    "random_in_functions.saving.calls Python": _SAVED,
    "random_in_functions.saving.makes an iterator": _SAVED,
    "random_in_functions.saving.reads": _SAVED,
    "random_in_functions.saving.resampled": _SAVED,
    "random_in_functions.saving.shuffled inside": _SAVED,
    "reducing.gathered.text": _GATHERS,
    "reducing.gathered.bools": _GATHERS,
    "reducing.gathered.bfloat16": _GATHERS,
    "reducing.gathered.a nest": _GATHERS,
    "reducing.on_one.mirrored: SUM None of a number": _ONE_SUM,
    "reducing.on_one.mirrored: SUM None of an int": _ONE_SUM,
    "reducing.on_one.mirrored: SUM None of a list": _ONE_SUM,
    "reducing.on_one.mirrored: MEAN 0 of a list": _LIST_MEAN,
    "reducing.on_one.one device: MEAN 0 of a list": _LIST_MEAN,
    "reducing.on_one.default: MEAN 0 of a list": _LIST_MEAN,
    "reducing.other_values.MEAN 0 of a list": _LIST_MEAN,
    "reducing.on_one.mirrored: values": _ONE_VALUE,
    "reducing.on_one.mirrored: values of numbers": _ONE_VALUE,
    "reducing.operations.None": _NO_ASSERTION,
    "reducing.operations.a number": _NO_ASSERTION,
    "reducing.other_values.SUM 0 of a tuple of values": _NESTED_AXIS,
    "reducing.other_values.MEAN 0 of a tuple of values": _NESTED_AXIS,
    "reducing.other_values.SUM 0 of parts that are lists": _NESTED_AXIS,
    "reducing.other_values.MEAN 0 of parts that are lists": _NESTED_AXIS,
    "reducing.other_values.SUM None of parts that are numbers": _PYTHON_PARTS,
    "reducing.other_values.MEAN None of parts that are numbers": _PYTHON_PARTS,
    "reducing.other_values.SUM None of parts that are ints": _PYTHON_PARTS,
    "reducing.other_values.MEAN None of parts that are ints": _PYTHON_PARTS,
    "reducing.other_values.SUM None of parts that are lists": _PYTHON_PARTS,
    "reducing.other_values.MEAN None of parts that are lists": _PYTHON_PARTS,
    "reducing.other_values.SUM None of parts that are text": _NO_SUM,
    "reducing.other_values.MEAN None of parts that are text": _NO_SUM,
    "reducing.other_values.SUM None of parts that are None": _NO_SUM,
    "reducing.other_values.MEAN None of parts that are None": _NO_SUM,
    "reducing.values_from_function.other structures": _NO_ASSERTION,
    "stopping.functions.a key": _STOPS,
    "stopping.functions.filter": _STOPS,
    "stopping.functions.flat_map": _STOPS,
    "stopping.functions.interleave": _STOPS,
    "stopping.functions.reduce": _STOPS,
    "stopping.functions.take_while": _STOPS,
    "stopping.generators.a function that cannot begin": _STOPS,
    "stopping.generators.an iterable that cannot begin": _STOPS,
    "strategies.extended.update of a number": _NO_ASSERTION,
    "strategies.facts.default: worker devices": _DEFAULT_DEVICE,
    "strategies.facts.default: parameter devices": _DEFAULT_DEVICE,
    "strategies.made.text for ops": "Anything but a CrossDeviceOps raises TypeError at once.",
    "strategies.made.one device, a list": "A device name that is not a string raises ValueError everywhere.",
    "strategies.scopes.set what is none": "Anything but a strategy raises TypeError, not AttributeError.",
    "composed_datasets.lists.other dtypes": "A list of elements of different types raises ValueError, not AttributeError.",
    "vision.crops.an index too high": _NO_IMAGE,
    "vision.crops.a negative index": _NO_IMAGE,
    "vision.suppression.padded, any corners": _ANY_CORNERS,
    "vision.webp.rgb, floats": _WEBP_FLOATS,
    "vision.webp.rgba, floats": _WEBP_FLOATS,
    "vision.webp.frames, floats": _WEBP_FLOATS,
    "variable_arithmetic.signs.n / 2": _PROMOTES,
    "variable_arithmetic.signs.range by a variable": _INDEX,
    "variable_arithmetic.signs.index": _INDEX,
    "variable_arithmetic.signs.hash": "A variable can be a dict key, by its identity; ref() works too.",
    "control_flow.branches.exclusive": _EXCLUSIVE,
    "variables.assigned.assign returns itself": _ITSELF,
    "variables.assigned.assign_add returns itself": _ITSELF,
    "variables.functions.type spec": "The spec of a variable is the spec of its value.",
    "variables.made.unknown argument": "An unknown argument is Python's own TypeError.",
    "variables.other_names.initialized_value": "initialized_value returns the value, which always exists.",
    "text_comparison.operators.an array of numbers, eager ==": _CLASS_OF_ARRAY,
    "text_comparison.operators.an array of numbers, eager !=": _CLASS_OF_ARRAY,
    "text_comparison.operators.an array of numbers, eager, reversed": _CLASS_OF_ARRAY,
    "references.references.numbers is not its value": _REFERENCE,
    "references.references.text is not its value": _REFERENCE,
    "references.references.element is not its value": _REFERENCE,
}
