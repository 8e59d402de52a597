import copy
import pickle

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

import evenfeed as tf
from evenfeed.formats.example.example_protos import message_class


def test_messages_are_made_and_read_as_in_tensorflow():
    made = tf.train.Example()
    made.features.feature["n"].int64_list.value.extend([1, 300])
    assert made.SerializeToString(deterministic=True).hex() == "0a0e0a0c0a016e12071a050a0301ac02"
    back = tf.train.Example.FromString(made.SerializeToString())
    assert back == made == copy.deepcopy(made) == pickle.loads(pickle.dumps(made))
    assert back.features.feature["n"].WhichOneof("kind") == "int64_list"
    assert tf.train.Example.DESCRIPTOR.full_name == "tensorflow.Example"


def test_messages_of_the_same_names_may_be_registered_by_others():
    message_class("Example")
    other = descriptor_pb2.FileDescriptorProto(name="other/example.proto", package="tensorflow")
    other.message_type.add(name="Example")
    descriptor_pool.Default().AddSerializedFile(other.SerializeToString())
    assert tf.train.Example().features is not None


def test_lists_take_tensors_of_every_kind():
    (floats, labels, texts), *_ = tf.data.Dataset.from_tensor_slices(([0.5, 1], [3, 4], ["a", "b"]))
    assert list(tf.train.FloatList(value=[floats, tf.constant(1.5), 2]).value) == [0.5, 1.5, 2.0]
    numbers = [True, np.bool_(False), np.int64(5), labels, tf.constant(7), tf.constant(True)]
    assert list(tf.train.Int64List(value=numbers).value) == [1, 0, 5, 3, 7, 1]
    assert list(tf.train.Int64List(value=tf.constant([True, False])).value) == [1, 0]
    made = [texts, tf.constant("b"), tf.io.serialize_tensor([1]), b"c", tf.constant(["d"])[0]]
    expected = [b"a", b"b", tf.io.serialize_tensor([1]).numpy(), b"c", b"d"]
    assert list(tf.train.BytesList(value=made).value) == expected
    assert list(tf.train.BytesList(value=(text for text in made)).value) == expected
    assert list(tf.train.BytesList().value) == []


def test_lists_reject_what_protobuf_rejects():
    for wrong in ("a", 1, tf.constant(["a"])):
        with pytest.raises(TypeError, match="expected bytes"):
            tf.train.BytesList(value=[b"a", wrong])
    with pytest.raises(TypeError, match="must assign iterable"):
        tf.train.Int64List(value=tf.constant(3))
    with pytest.raises(TypeError, match="integer"):
        tf.train.Int64List(value=[True, tf.constant(1.5)])
