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
_SCALARS = "Scalars cannot be cut: the error says to call batch; TensorFlow's is an IndexError."
_COUNTS = "range counts in any dtype of whole numbers or floats that it is asked for."
_SEED = "A seed that is no whole number raises at once; TensorFlow takes it, and may fail later."
_FILLED_IN = "A field that an attrs class fills in itself is no part of a structure."
_NO_SEQUENCE = "A dict in place of a flat sequence is a TypeError, not a KeyError."
_PRINTED_ARRAY = "A NumPy array is a tensor, and prints like one."

DIFFERENT: dict[str, str] = {
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
    "datasets.range_.up to the last int64 cardinality": _OVERFLOW,
    "datasets.range_.up to the last int64 len": _OVERFLOW,
    "datasets.repeat.cardinality beyond int64": _OVERFLOW,
    "distribution.per_replica.len": "A per-replica value has as many parts as replicas.",
    "distribution.per_replica.item": "A replica's part can be taken out by its number.",
    "distribution.strategies.duplicates": "A wrong argument is a ValueError, not an AssertionError.",
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
    "nest.flatten.attrs class with a field of its own": _FILLED_IN,
    "nest.map_structure.attrs class with a field of its own": _FILLED_IN,
    "nest.pack_sequence_as.attrs class with a field of its own": _FILLED_IN,
    "nest.pack_sequence_as.a dict": _NO_SEQUENCE,
    "nest.pack_sequence_as.a dict for one": _NO_SEQUENCE,
    "nest.is_nested.bytearray": "A bytearray is one value, as bytes are.",
    "ordering.shuffle.None": "None is of a wrong type, as 2.5 is: a TypeError.",
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
}
