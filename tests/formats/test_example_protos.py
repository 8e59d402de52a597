import copy
import pickle

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
