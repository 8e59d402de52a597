import numpy as np
import pytest
from tests.images.pictures import jpeg, pixels

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.images import hot_loops

NUMBERED = np.arange(100, dtype=np.int32).reshape(10, 10, 1)


def corner(image):
    return int(np.asarray(image).ravel()[0])


def test_every_crop_is_as_likely():
    found = np.bincount(
        [
            corner(tf.image.stateless_random_crop(NUMBERED, [8, 9, 1], seed=(1, number)))
            for number in range(1200)
        ],
        minlength=100,
    ).reshape(10, 10)
    assert found[:3, :2].sum() == 1200
    assert (
        found[:3, :2].min() > 140
    )  # 200 are expected; this is more than four standard deviations below


def test_half_of_all_are_mirrored():
    flips = [
        corner(tf.image.stateless_random_flip_left_right(NUMBERED, seed=(7, number)))
        for number in range(1000)
    ]
    assert set(flips) == {0, 9}
    assert 430 < flips.count(9) < 570


@pytest.fixture(autouse=True)
def _the_seed_is_set_for_one_test():
    yield
    tf.random.set_seed(None)


def test_each_image_of_a_batch_is_mirrored_by_itself():
    batch = np.stack([NUMBERED] * 40)
    found = tf.image.stateless_random_flip_up_down(batch, seed=(1, 2))
    assert {corner(image) for image in found} == {0, 90}


def test_a_seed_repeats_its_sequence():
    def drawn():
        tf.random.set_seed(3)
        return [corner(tf.image.random_crop(NUMBERED, [2, 2, 1], seed=5)) for _ in range(5)]

    first = drawn()
    assert drawn() == first
    assert len(set(first)) > 1


def crop_and_flip(image):
    image = tf.image.random_crop(image, [4, 4, 1], seed=9)
    return tf.image.random_flip_left_right(image)


@pytest.fixture
def images():
    return tf.data.Dataset.from_tensors(NUMBERED).repeat(30)


def drawn(dataset):
    return [image.tolist() for image in dataset]


def test_draws_in_map_follow_from_positions(images):
    dataset = images.map(crop_and_flip)
    assert plan_of(dataset).function.is_vectorised
    first = drawn(dataset)
    assert len({str(image) for image in first}) > 20
    again = images.map(crop_and_flip)
    assert drawn(again.shard(3, 1)) == drawn(images.map(crop_and_flip))[1::3]


@pytest.mark.parametrize("how", [{"vectorize": False}, {"num_parallel_calls": 3}])
def test_draws_in_map_are_the_same_whatever_runs_it(images, how):
    assert drawn(images.map(crop_and_flip, **how)) == drawn(images.map(crop_and_flip))


def test_each_pass_draws_different_numbers(images):
    dataset = images.map(crop_and_flip)
    assert drawn(dataset) != drawn(dataset)


def test_a_restored_iterator_draws_on(images):
    dataset = images.map(crop_and_flip)
    iterator = iter(dataset)
    for _ in range(7):
        next(iterator)
    state, rest = iterator.get_state(), drawn(iterator)
    other = iter(dataset)
    other.set_state(state)
    assert drawn(other) == rest


def test_two_draws_in_one_function_differ(images):
    def twice(image):
        return tf.image.random_crop(image, [4, 4, 1]), tf.image.random_crop(image, [4, 4, 1])

    pairs = [(corner(one), corner(two)) for one, two in images.map(twice)]
    assert sum(one == two for one, two in pairs) < 10


def test_a_dict_and_a_tuple_keep_their_form():
    parts = tf.data.Dataset.from_tensors({"x": NUMBERED, "y": 3})
    found = next(iter(parts.map(lambda e: {"x": crop_and_flip(e["x"]), "y": e["y"]})))
    assert found["x"].shape == (4, 4, 1)
    assert int(found["y"]) == 3
    pairs = tf.data.Dataset.from_tensors((NUMBERED, 3))
    image, label = next(iter(pairs.map(lambda x, y: (crop_and_flip(x), y))))
    assert image.shape == (4, 4, 1)
    assert int(label) == 3


def test_seeds_may_be_parts_of_the_element():
    def cropped(number, image):
        return tf.image.stateless_random_crop(image, [3, 3, 1], seed=(number, number))

    numbers = tf.data.Dataset.range(8)
    dataset = tf.data.Dataset.zip(numbers, tf.data.Dataset.from_tensors(NUMBERED).repeat(8))
    found = [corner(image) for image in dataset.map(cropped)]
    direct = [
        corner(tf.image.stateless_random_crop(NUMBERED, [3, 3, 1], seed=(n, n))) for n in range(8)
    ]
    assert found == direct
    assert len(set(found)) > 3


def test_brightness_and_contrast_stay_in_their_bounds():
    image = np.full([2, 2, 3], 0.5, np.float32)
    image[0] = 0.25
    deltas = [corner(1000 * tf.image.random_brightness(image, 0.2)) for _ in range(50)]
    assert all(50 <= delta <= 450 for delta in deltas)
    assert len(set(deltas)) > 20
    lows = [float(np.asarray(tf.image.random_contrast(image, 0.5, 2.0)).min()) for _ in range(50)]
    assert all(0.125 - 1e-6 <= low <= 0.3125 + 1e-6 for low in lows)


def test_a_filter_may_draw_too():
    files = tf.data.Dataset.from_tensor_slices([jpeg(seed=n) for n in range(4)])

    def any_of_it(content):
        image = tf.image.random_crop(tf.io.decode_jpeg(content, channels=3), [2, 2, 3])
        return image.shape[0] == 2

    assert len(list(files.filter(any_of_it))) == 4


def test_a_crop_of_wrong_size_says_so():
    with pytest.raises(ValueError, match=r"got \(20, 24, 3\) and \(21, 3, 3\)"):
        tf.image.random_crop(pixels(), [21, 3, 3])


@pytest.mark.parametrize("seen", [0, 1 << 40])
@pytest.mark.parametrize("name", ["crop", "flip", "up or down", "stateless crop", "stateless flip"])
def test_pictures_of_many_shapes_are_drawn_for_as_one_by_one(monkeypatch, name, seen):
    call = {
        "crop": lambda x, _: tf.image.random_crop(x, [40, 50, 3], seed=4),
        "flip": lambda x, _: tf.image.random_flip_left_right(x, seed=4),
        "up or down": lambda x, _: tf.image.random_flip_up_down(x, seed=4),
        "stateless crop": lambda x, n: tf.image.stateless_random_crop(x, [40, 50, 3], seed=(n, 3)),
        "stateless flip": lambda x, n: tf.image.stateless_random_flip_left_right(x, seed=(n, 3)),
    }[name]
    rng = np.random.default_rng(1)
    shapes = [(90 + row % 3, 80 + row % 5, 3) for row in range(24)]
    files = [tf.io.encode_png(rng.integers(0, 256, shape, np.uint8)) for shape in shapes]

    def prepared(number, content):
        return call(tf.io.decode_png(content, channels=3), number)

    dataset = tf.data.Dataset.from_tensor_slices((np.arange(24), files))
    found = {}
    for vectorize in (True, False):
        monkeypatch.setattr(hot_loops.Seen, "values", seen)
        tf.random.set_seed(3)
        mapped = dataset.map(prepared, vectorize=vectorize)
        (found[vectorize],) = mapped.padded_batch(24, [None, None, 3])
    assert len(found[True]) == 24
    np.testing.assert_array_equal(found[True], found[False])


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "jpeg quality"])
@pytest.mark.parametrize("sizes", [1, 3])
def test_crops_change_their_colours_as_one_by_one(dtype, name, sizes):
    call = {
        "brightness": lambda x: tf.image.random_brightness(x, 0.3, seed=2),
        "contrast": lambda x: tf.image.random_contrast(x, 0.5, 1.5, seed=2),
        "saturation": lambda x: tf.image.random_saturation(x, 0.5, 1.5, seed=2),
        "jpeg quality": lambda x: tf.image.random_jpeg_quality(x, 60, 90, seed=2),
    }[name]
    rng = np.random.default_rng(1)
    shapes = [(90, 80 + row % sizes, 3) for row in range(6)]
    files = [tf.io.encode_png(rng.integers(0, 256, shape, np.uint8)) for shape in shapes]

    def prepared(content):
        image = tf.io.decode_png(content, channels=3)
        image = image if dtype == "uint8" else tf.cast(image, dtype) / 255
        if sizes == 1:
            image = tf.image.random_crop(image, [80, 70, 3], seed=5)
        return tf.image.random_contrast(call(image), 0.5, 1.5, seed=6)

    found = {}
    for vectorize in (True, False):
        tf.random.set_seed(3)
        mapped = tf.data.Dataset.from_tensor_slices(files).map(prepared, vectorize=vectorize)
        (found[vectorize],) = mapped.padded_batch(6, [None, None, 3])
    assert len(found[True]) == 6
    np.testing.assert_array_equal(found[True], found[False])
