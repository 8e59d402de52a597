"""Device names: every form that TensorFlow accepts, and invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.strategy.device_names import DEVICE_TYPES, DeviceName

numbers = st.integers(0, 10**6)
names = st.builds(
    DeviceName,
    job=st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]*", fullmatch=True),
    replica=numbers,
    task=numbers,
    device_type=st.sampled_from(DEVICE_TYPES),
    index=numbers,
)


@given(name=names)
def test_canonical_string_reads_back(name):
    assert DeviceName.parse(str(name)) == name


@given(name=names)
def test_short_string_names_the_device_in_this_process(name):
    here = DeviceName(device_type=name.device_type, index=name.index)
    assert DeviceName.parse(name.short) == here
    assert DeviceName.parse(f"/{name.short.lower()}") == here


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"),
        ("GPU:1", "/job:localhost/replica:0/task:0/device:GPU:1"),
        ("cpu", "/job:localhost/replica:0/task:0/device:CPU:0"),
        ("/gpu:0", "/job:localhost/replica:0/task:0/device:GPU:0"),
        ("/device:CPU:1", "/job:localhost/replica:0/task:0/device:CPU:1"),
        ("device:cpu:1", "/job:localhost/replica:0/task:0/device:CPU:1"),
        ("/job:worker/replica:0/task:0/device:GPU:0", "/job:worker/replica:0/task:0/device:GPU:0"),
        ("/job:worker/task:3/GPU:2", "/job:worker/replica:0/task:3/device:GPU:2"),
        ("/task:3/cpu:0", "/job:localhost/replica:0/task:3/device:CPU:0"),
        ("TPU:3", "/job:localhost/replica:0/task:0/device:TPU:3"),
        ("/cpu:*", "/job:localhost/replica:0/task:0/device:CPU:0"),
        ("CPU:01", "/job:localhost/replica:0/task:0/device:CPU:1"),
        ("CPU:0/", "/job:localhost/replica:0/task:0/device:CPU:0"),
    ],
)
def test_a_name_is_read_as_tensorflow_reads_it(text, canonical):
    assert str(DeviceName.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("GPX:0", "'GPX' is not one of CPU, GPU, TPU"),
        ("/device:GPX:0", "'GPX' is not one of CPU, GPU, TPU"),
        ("CPU:x", "'x' is not a non-negative integer"),
        ("CPU:-1", "'-1' is not a non-negative integer"),
        ("CPU:²", "'²' is not a non-negative integer"),
        ("/task:x/cpu:0", "'x' is not a non-negative integer"),
        ("", "it has no device type"),
        ("/job:worker", "it has no device type"),
        ("/device:CPU", "'device:CPU' is not part of a device name"),
        ("/job:/cpu:0", "'job:' is not part of a device name"),
        ("/cpu:0/gpu:1", "'gpu:1' repeats an earlier part"),
        ("/foo:1/bar:2", "'foo' is not one of CPU, GPU, TPU"),
        (3, "it is int, not a string"),
        (None, "it is NoneType, not a string"),
    ],
)
def test_what_is_no_name_is_refused_with_the_reason(text, why):
    with pytest.raises(ValueError, match="is not a device name") as refused:
        DeviceName.parse(text)
    assert type(refused.value) is ValueError
    assert why in str(refused.value)
    assert "test_device_names.py" in str(refused.value)
    assert '  fix: write it as "CPU:0"' in str(refused.value)


def test_a_name_cannot_be_changed():
    with pytest.raises(AttributeError):
        DeviceName.parse("CPU:0").index = 1
