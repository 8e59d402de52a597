"""Where evenfeed deliberately answers otherwise than TensorFlow, and why.

A test sees to it that every entry is still true.
"""

_WRAPS = "A Python number that does not fit raises; TensorFlow keeps other digits, silently."
_ROW_LOST = "A row that is longer than an empty first one raises; TensorFlow loses its values."
_BOOLS = "A list that mixes bools and numbers raises in both orders, not in one only."
_COMPLEX = "Complex numbers may stand beside real ones, as floats may beside ints."
_CLASS_OF_ARRAY = "An array that cannot have the dtype is the TypeError that a list is."
_PROMOTES = "Mixed dtypes promote as in JAX, on which all mathematics around this runs."
_DATACLASS = "A dataclass is a structure, so that datasets can have elements of a user's own type."
_ARRAY = "A NumPy array is a tensor: evenfeed has no tensor class of its own."
_OVERFLOW = "The count is exact; TensorFlow's runs over 64 bits."
_UNCOUNTABLE = (
    "An element whose number in `enumerate` does not fit into 64 bits raises; TensorFlow drops it."
)
_SCALARS = "Scalars cannot be cut: the error says to call batch; TensorFlow's is an IndexError."
_COUNTS = "range counts in any dtype of whole numbers or floats that it is asked for."
_SEED = "A seed that is no whole number raises at once; TensorFlow takes it, and may fail later."
_FILLED_IN = "A field that an attrs class fills in itself is no part of a structure."
_NO_SEQUENCE = "A dict in place of a flat sequence is a TypeError, not a KeyError."
_PRINTED_ARRAY = "A NumPy array is a tensor, and prints like one."
_GATHERS = "Values of any dtype can be gathered, text among them, and nests of values."
_INDEX = "A variable that holds a whole number is an index, as a jax.Array is."
_ITSELF = "assign returns the variable itself; TensorFlow another object that stands for it."
_ONE_SUM = "The value of a single replica is its own sum: it is returned as it is."
_ONE_VALUE = "On one replica a value made by a function is that value, not a PerReplica of one."
_LIST_MEAN = (
    "A list has a mean as it has a sum; TensorFlow's mean of a list is a missing attribute."
)
_NESTED_AXIS = "An axis of a nest of values is a TypeError; TensorFlow adds up its values."
_PYTHON_PARTS = "Parts that are Python's numbers are reduced as tensors are."
_NO_SUM = "Parts that have no sum are an error that says so, not a missing attribute."
_COPIES_SUM = "The copies of a variable have a sum; TensorFlow's is an AssertionError."
_NO_VALUES = "A variable is no DistributedValues; it has its values all the same."
_NO_ASSERTION = "A wrong argument is a ValueError, not an AssertionError."
_DEFAULT_DEVICE = "The default strategy names the device on which it computes."
_CUT_OFF = (
    "A compressed file that is cut off is a DataLossError; TensorFlow ends as if it were whole."
)
_NO_PAYLOAD = "`nan(1)` in a CSV file is no number; `nan` is one."
_MIRRORED = "A compiled run returns what is the same on all replicas as Mirrored: one array, not a copy each."
_LOST_CHANGE = "What a replica puts into a list or dict that all are given would be lost: a ValueError says so."
_TEXT_STAYS = "A function whose replicas get text of their own runs as plain Python, and returns Python's texts."

_LENGTHS_OF_NEIGHBOURS = "A replica without rows gets the other lengths of its neighbours' rows."
_NO_ROWS = "A replica without an element of its own gets no rows, and `element_spec` leaves their number open."

_SAVED = "A position is saved unless a function was seen to draw, assign or pull: the rest counts as deterministic."
_STOPS = "A StopIteration in a function is an InvalidArgumentError, wherever the function is given."

_WHOLE_COLOURS = (
    "A box of a JPEG file has the colours that the whole image has there; TensorFlow smooths those "
    "at the edges of the box without what lies beyond."
)
_OPAQUE = "Colours of a palette are opaque, where nothing else is said: 255, not 15."

_NEXT_BATCH = "The batch after an element that fails begins with the next element; TensorFlow drops the rest of a batch if a `map` stands right below."

DIFFERENT: dict[str, str] = {
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
    "datasets.batch.None": "None is of a wrong type, as 2.5 is: a TypeError.",
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
        "A distributed dataset has a `len` where the number of its steps is known"
    ),
    "distribution.per_replica.len": "A per-replica value has as many parts as replicas.",
    "distribution.per_replica.item": "A replica's part can be taken out by its number.",
    "distribution.strategies.duplicates": _NO_ASSERTION,
    "distribution.strategies.distribute a list": (
        "What is no Dataset is a TypeError that says how to make one, not a missing attribute."
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
    "functions.reduce_mean.float16": "The sum below a mean of half floats does not overflow.",
    "functions.set_seed.text": _SEED,
    "functions.set_seed.fraction": _SEED,
    "functions.set_seed.whole float": _SEED,
    "functions.stack.along 0.0": "An axis is a whole number, and 0.0 is none.",
    "functions.stack.np.int32 and np.int64": _PROMOTES,
    "functions.stack.arrays": "Arrays keep their dtype in a stack, as they do in concat.",
    "functions.stack.array and list": "Arrays keep their dtype in a stack, as they do in concat.",
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
    "ordering.shuffle.None": "None is of a wrong type, as 2.5 is: a TypeError.",
    "older_names.errors_in_batches.map, batch": _NEXT_BATCH,
    "older_names.errors_in_batches.map_and_batch": _NEXT_BATCH,
    "printing.options.unknown option": "An unknown argument is Python's own TypeError.",
    "printing.tensors.complex": "A complex number is printed; TensorFlow prints a question mark.",
    "printing.values.array": _PRINTED_ARRAY,
    "printing.values.2-d array": _PRINTED_ARRAY,
    "printing.values.float array": _PRINTED_ARRAY,
    "printing.values.long array": _PRINTED_ARRAY,
    "printing.values.empty array": _PRINTED_ARRAY,
    "shapes.equality.with [-1]": "To compare never raises: [-1] is no shape, so it is not equal.",
    "specs.compatible_values.array": _ARRAY,
    "specs.made_of.from_tensor of an array": _ARRAY,
    "mirrored_variables.facts.float": "A variable with copies becomes a Python number as any other does.",
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
    "strategies.made.text for ops": "What is no CrossDeviceOps is a TypeError at once.",
    "strategies.made.one device, a list": "A device name that is no text is a ValueError wherever one is taken.",
    "strategies.scopes.set what is none": "What is no strategy is a TypeError, not a missing attribute.",
    "variable_arithmetic.signs.n / 2": _PROMOTES,
    "variable_arithmetic.signs.range by a variable": _INDEX,
    "variable_arithmetic.signs.index": _INDEX,
    "variable_arithmetic.signs.hash": "A variable may be the key of a dict, by its identity; ref() serves too.",
    "variables.assigned.assign returns itself": _ITSELF,
    "variables.assigned.assign_add returns itself": _ITSELF,
    "variables.functions.type spec": "The spec of a variable is that of its value.",
    "variables.made.unknown argument": "An unknown argument is Python's own TypeError.",
    "variables.other_names.initialized_value": "initialized_value returns the value, which is always there.",
    "text_comparison.operators.an array of numbers, eager ==": _CLASS_OF_ARRAY,
    "text_comparison.operators.an array of numbers, eager !=": _CLASS_OF_ARRAY,
    "text_comparison.operators.an array of numbers, eager, reversed": _CLASS_OF_ARRAY,
}
