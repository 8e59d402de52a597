"""Image functions inside `map`."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.images.pictures import jpeg, pixels

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of

SIZES = [(20 + number % 5, 24 + number % 7) for number in range(20)]
FILES = [jpeg(*size, seed=number) for number, size in enumerate(SIZES)]
MEAN = np.array([0.4, 0.5, 0.6], np.float32)


@pytest.fixture
def files():
    return tf.data.Dataset.from_tensor_slices(FILES)


def is_vectorised(dataset):
    return plan_of(dataset).function.is_vectorised


def middle(content):
    image = tf.io.decode_jpeg(content, channels=3)
    image = tf.image.resize_with_crop_or_pad(image, 16, 16)
    return tf.image.flip_left_right(image)


def normalised(content):
    return (tf.cast(middle(content), tf.float32) / 255.0 - MEAN) / MEAN


@pytest.mark.parametrize("calls", [None, 1, 2, 3, 64, tf.data.AUTOTUNE])
def test_images_are_the_same_in_any_number_of_threads(files, calls):
    dataset = files.map(middle, num_parallel_calls=calls)
    assert is_vectorised(dataset)
    assert dataset.element_spec == tf.TensorSpec([16, 16, 3], tf.uint8)
    np.testing.assert_array_equal(list(dataset), [middle(content) for content in FILES])
    np.testing.assert_array_equal(
        next(iter(dataset.batch(20))), [middle(content) for content in FILES]
    )


def test_what_follows_is_computed_on_blocks(files):
    dataset = files.map(normalised, num_parallel_calls=2)
    assert is_vectorised(dataset)
    direct = [(middle(content).astype(np.float32) / 255 - MEAN) / MEAN for content in FILES]
    np.testing.assert_allclose(np.stack(list(dataset)), direct, rtol=1e-5, atol=1e-6)


def test_jax_can_use_images_of_known_shape(files):
    dataset = files.map(lambda content: jnp.mean(middle(content), axis=(0, 1)))
    assert is_vectorised(dataset)
    np.testing.assert_allclose(
        np.stack(list(dataset)), [middle(c).mean((0, 1)) for c in FILES], rtol=1e-5
    )


def test_an_image_and_what_was_made_of_it_can_both_be_returned(files):
    def both(content):
        image = middle(content)
        return image, tf.cast(image, tf.float32) * 2.0, content

    dataset = files.map(both, num_parallel_calls=2)
    assert is_vectorised(dataset)
    for content, (image, double, same) in zip(FILES, dataset, strict=True):
        np.testing.assert_array_equal(image, middle(content))
        np.testing.assert_array_equal(double, 2.0 * image)
        assert same.item() == content


def test_images_of_different_sizes_come_one_by_one(files):
    dataset = files.map(lambda content: tf.io.decode_jpeg(content, channels=3))
    assert dataset.element_spec == tf.TensorSpec([None, None, 3], tf.uint8)
    assert [image.shape[:2] for image in dataset] == SIZES
    cropped = dataset.map(lambda image: tf.image.central_crop(image, 0.5), num_parallel_calls=2)
    assert is_vectorised(cropped)
    for content, image in zip(FILES, cropped, strict=True):
        np.testing.assert_array_equal(image, tf.image.central_crop(tf.io.decode_jpeg(content), 0.5))


def test_a_function_that_needs_the_size_runs_one_by_one(files):
    def square(content):
        image = tf.io.decode_jpeg(content, channels=3)
        side = min(image.shape[:2])
        return tf.image.resize(tf.image.resize_with_crop_or_pad(image, side, side), [8, 8])

    dataset = files.map(square, num_parallel_calls=2)
    assert not is_vectorised(dataset)
    assert [image.shape for image in dataset] == [(8, 8, 3)] * len(FILES)


def test_numbers_that_no_kernel_touches_stay_as_they_are(files):
    numbered = tf.data.Dataset.zip(tf.data.Dataset.range(2**40, 2**40 + 20), files)
    dataset = numbered.map(lambda number, content: (number + 1, middle(content)))
    assert [int(number) for number, _ in dataset] == [2**40 + 1 + n for n in range(20)]


def test_arrays_in_memory_are_images_too():
    images = np.stack([pixels(seed=n) for n in range(5)])
    dataset = tf.data.Dataset.from_tensor_slices(images).map(
        lambda image: tf.image.resize(tf.image.flip_up_down(image), [10, 12])
    )
    assert is_vectorised(dataset)
    np.testing.assert_array_equal(
        list(dataset), [tf.image.resize(image[::-1], [10, 12]) for image in images]
    )


def test_files_are_read_where_they_are_decoded(tmp_path):
    for number, content in enumerate(FILES[:4]):
        (tmp_path / f"{number}.jpg").write_bytes(content)
    names = tf.data.Dataset.list_files(str(tmp_path / "*.jpg"), shuffle=False)
    dataset = names.map(lambda name: middle(tf.io.read_file(name)), num_parallel_calls=2)
    assert is_vectorised(dataset)
    np.testing.assert_array_equal(list(dataset), [middle(content) for content in FILES[:4]])


@pytest.mark.parametrize("calls", [None, 2])
def test_a_bad_image_fails_alone(calls):
    contents = [*FILES[:6], FILES[6][:-60], b"no image", *FILES[8:]]
    dataset = tf.data.Dataset.from_tensor_slices(contents).map(middle, num_parallel_calls=calls)
    reading = iter(dataset)
    for content in FILES[:6]:
        np.testing.assert_array_equal(next(reading), middle(content))
    for which, text in (("6", "is truncated"), ("7 (no image)", "Unknown image file format")):
        with pytest.raises(InvalidArgumentError, match=text) as caught:
            next(reading)
        assert any(f"mapping element {which} with middle" in n for n in caught.value.__notes__)
    assert len(list(reading)) == len(FILES) - 8
    assert len(list(dataset.ignore_errors())) == len(FILES) - 2


def test_no_elements_and_one():
    none = tf.data.Dataset.from_tensor_slices(np.array([], object)).map(
        middle, num_parallel_calls=2
    )
    assert none.element_spec.shape == (16, 16, 3)
    assert list(none) == []
    one = tf.data.Dataset.from_tensors(FILES[0]).map(middle, num_parallel_calls=2)
    assert len(list(one)) == 1


def test_two_iterators_share_the_threads(files):
    dataset = files.map(middle, num_parallel_calls=2).batch(3)
    for one, two in zip(dataset, dataset, strict=True):
        np.testing.assert_array_equal(one, two)


def test_bytes_become_numbers_on_blocks():
    records = [bytes(range(n, n + 12)) for n in range(9)]
    dataset = tf.data.Dataset.from_tensor_slices(records).map(
        lambda record: tf.io.decode_raw(record, tf.uint8, fixed_length=12) + 1
    )
    assert is_vectorised(dataset)
    np.testing.assert_array_equal(
        list(dataset), [np.frombuffer(record, np.uint8) + 1 for record in records]
    )


def test_images_are_encoded_in_map():
    images = np.stack([pixels(seed=n) for n in range(3)])
    dataset = tf.data.Dataset.from_tensor_slices(images).map(tf.io.encode_png)
    assert dataset.element_spec == tf.TensorSpec([], tf.string)
    again = dataset.map(tf.io.decode_png)
    np.testing.assert_array_equal(list(again), images)


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("threads", [None, 2])
def test_results_of_kernels_share_no_memory(count, threads):
    images = np.stack([pixels(8, 6, seed=seed) for seed in range(count)])

    def same(image):
        turned = tf.image.rot90(image)
        cut = tf.image.crop_to_bounding_box(turned, 0, 0, 3, 3)
        return turned, tf.image.resize(turned, [6, 8], "nearest"), cut, image

    dataset = tf.data.Dataset.from_tensor_slices(images).map(same, num_parallel_calls=threads)
    for image, results in zip(images, dataset.as_numpy_iterator(), strict=True):
        before = [result.copy() for result in results]
        np.testing.assert_array_equal(results[3], image)
        for written in results[:3]:
            written[...] = 255 - written
            before = [
                255 - kept if written is one else kept
                for one, kept in zip(results, before, strict=True)
            ]
            for one, kept in zip(results, before, strict=True):
                np.testing.assert_array_equal(one, kept)
    np.testing.assert_array_equal(
        images, np.stack([pixels(8, 6, seed=seed) for seed in range(count)])
    )


@pytest.mark.parametrize("width", [6, 8])
def test_a_random_number_of_turns_runs_on_blocks(width):
    images = np.stack([pixels(8, width, seed=seed) for seed in range(40)])

    def turned(image):
        turns = tf.random.uniform([], 0, 4, tf.int32)
        return image, turns, tf.image.rot90(image, turns)

    dataset = tf.data.Dataset.from_tensor_slices(images).map(turned)
    assert is_vectorised(dataset)
    lengths = [8, 8, 3] if width == 8 else [None, None, 3]
    assert dataset.element_spec[2] == tf.TensorSpec(lengths, tf.uint8)
    seen = set()
    for image, turns, found in dataset.as_numpy_iterator():
        np.testing.assert_array_equal(found, np.rot90(image, turns))
        seen.add(int(turns))
    assert seen == {0, 1, 2, 3}


def test_turns_that_are_no_whole_numbers_raise():
    images = tf.data.Dataset.from_tensor_slices((np.zeros([3, 4, 4, 1], np.uint8), [0.5] * 3))
    with pytest.raises(TypeError, match="k must be a whole number"):
        list(images.map(tf.image.rot90))


@pytest.mark.parametrize("pair", [lambda n: (n, 7), lambda n: (7, n)], ids=["first", "second"])
def test_seeds_that_are_part_of_the_element_and_fixed_run_on_blocks(pair):
    images = np.stack([pixels(8, 6, seed=seed) for seed in range(40)])

    def cropped(image, number):
        image = tf.image.stateless_random_crop(image, [5, 5, 3], pair(number))
        return tf.image.stateless_random_contrast(image, 0.5, 1.5, pair(number))

    dataset = tf.data.Dataset.from_tensor_slices((images, np.arange(-20, 20))).map(cropped)
    assert is_vectorised(dataset)
    wanted = [cropped(image, number) for number, image in enumerate(images, -20)]
    np.testing.assert_array_equal(list(dataset), wanted)
