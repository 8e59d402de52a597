"""Names that TensorFlow has at its top level and in a namespace."""

import evenfeed as tf


def test_as_string_is_that_of_strings_also_in_a_map():
    assert tf.as_string is tf.strings.as_string
    assert [x.numpy() for x in tf.data.Dataset.range(2).map(tf.as_string)] == [b"0", b"1"]
