import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.formats.example.example_protos import message_class

parse, serialize = tf.io.parse_tensor, tf.io.serialize_tensor


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "float64",
        "float16",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
        "complex64",
        "complex128",
    ],
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_numbers_come_back(dtype, shape):
    array = (np.arange(np.prod(shape)) % 2).reshape(shape).astype(dtype)
    back = np.asarray(parse(serialize(array), dtype))
    assert (back.dtype, back.shape) == (array.dtype, shape)
    np.testing.assert_array_equal(back, array)


def test_text_and_bfloat16_come_back():
    assert parse(serialize([["a", "é"], ["", "\0"]]), tf.string).tolist() == [
        [b"a", "é".encode()],
        [b"", b"\0"],
    ]
    half = np.array([1.5, -2], dtypes.bfloat16)
    assert parse(serialize(half), tf.bfloat16).tolist() == [1.5, -2]


TENSORFLOW = {
    # numbers by serialize_tensor
    "content": (
        tf.int32,
        "080312081202080212020802221001000000020000000300000004000000",
        [[1, 2], [3, 4]],
    ),
    # text by serialize_tensor
    "text": (tf.string, "080712041202080242016142026263", [b"a", b"bc"]),
    # three values by make_tensor_proto: the last value is repeated
    "filled": (tf.float32, "08011204120208032a0400002040", [2.5, 2.5, 2.5]),
    "half": (tf.float16, "081312006a02807c", 1.5),
    "complex": (tf.complex64, "080812004a080000803f00000040", 1 + 2j),
}


@pytest.mark.parametrize("name", TENSORFLOW)
def test_what_tensorflow_wrote_is_read(name):
    dtype, content, expected = TENSORFLOW[name]
    assert parse(bytes.fromhex(content), dtype).tolist() == expected


@pytest.mark.parametrize("name", ["content", "text"])
def test_what_is_written_is_what_tensorflow_writes(name):
    dtype, content, values = TENSORFLOW[name]
    assert serialize(np.array(values, dtype)).item().hex() == content


@pytest.mark.parametrize(
    ("content", "dtype", "words"),
    [
        (b"\xff\xff", tf.int32, "is not a valid TensorProto"),
        (serialize([1.0]).item(), tf.int32, "has dtype float32, but out_type is int32"),
        (bytes.fromhex("080312041202080222050100000002"), tf.int32, "not a whole number"),
        (
            bytes.fromhex("0803120412020803220401000000"),
            tf.int32,
            "needs 3 values, but there are 1",
        ),
        (
            bytes.fromhex("0801120a120808ffffffffffff3f2a0400002040"),
            tf.float32,
            "values, but there are 1",
        ),
    ],
)
def test_what_is_no_such_tensor_is_an_error(content, dtype, words):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        parse(content, dtype)
    assert words in str(caught.value)


def test_a_batch_of_bytes_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be scalar"):
        parse([b"", b""], tf.int32)


def test_a_dtype_without_a_form_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="int4 cannot be serialized"):
        parse(b"", tf.int4)


def proto(dtype, shape, **fields):
    made = message_class("TensorProto")(dtype=dtype, **fields)
    for length in shape:
        made.tensor_shape.dim.add(size=length)
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("dtype", "content", "why"),
    [
        (tf.string, proto(7, [6], tensor_content=b"123456"), "it has the bytes of numbers"),
        (tf.float32, proto(1, [-1, -2], tensor_content=b"12345678"), r"\[-1, -2\] is not a shape"),
        (tf.float32, proto(1, [1] * 65, tensor_content=b"1234"), "is not a shape"),
        (tf.int8, proto(6, [2], int_val=[300, 1]), "its values do not fit into int8"),
        (tf.float16, proto(19, [2], half_val=[-1, 1]), "its values do not fit into float16"),
        (tf.complex64, proto(8, [2], scomplex_val=[1, 2, 3]), "3 parts are not a whole number"),
    ],
)
def test_a_tensor_that_contradicts_itself_is_refused(dtype, content, why):
    with pytest.raises(tf.errors.InvalidArgumentError, match=why):
        parse(content, dtype)


def test_tensors_pass_through_records_of_a_dataset():
    rows = tf.data.Dataset.from_tensor_slices(np.arange(6.0, dtype=np.float32).reshape(3, 2))
    text = rows.map(tf.io.serialize_tensor)
    assert text.element_spec == tf.TensorSpec([], tf.string)
    back = text.map(lambda content: tf.ensure_shape(tf.io.parse_tensor(content, tf.float32), [2]))
    assert [row.tolist() for row in back] == [[0, 1], [2, 3], [4, 5]]
    assert parse(
        next(iter(rows.map(lambda x: tf.io.serialize_tensor(x * 2)))), tf.float32
    ).tolist() == [0, 2]


@pytest.mark.parametrize("dtype", [tf.int8, tf.int16, tf.int64, tf.float32, tf.complex64, tf.bool])
def test_numbers_survive_as_bytes(dtype):
    numbers = np.array([0, 1, 1, 0]).astype(dtype)
    np.testing.assert_array_equal(tf.io.decode_raw(numbers.tobytes(), dtype), numbers)
    swapped = tf.io.decode_raw(numbers.byteswap().tobytes(), dtype, little_endian=False)
    np.testing.assert_array_equal(swapped, numbers)


def test_what_is_decoded_may_be_written_to():
    found = tf.io.decode_raw(b"ab", tf.uint8)
    found[0] = 1
    assert found.tolist() == [1, 98]


def test_no_text_at_all():
    assert tf.io.decode_raw(np.array([], object), tf.uint8).shape == (0, 0)
