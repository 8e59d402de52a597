"""`signal` where TensorFlow has no answer: transforms along any axes, maps of sound, gradients, and errors."""

# pyright: basic

import jax
import numpy as np
import pytest

import evenfeed as tf

WAVE = np.sin(np.arange(24.0)).reshape(2, 3, 4).astype(np.float32)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(
    ("lengths", "axes"), [(None, None), (None, [1]), ([5], [0]), ([2, 6], [1, 2])]
)
def test_transforms_along_any_axes_are_those_of_numpy(lengths, axes, norm):
    numbers = tf.constant(WAVE + 1j * WAVE[::-1], tf.complex64)
    for name in ("fft", "ifft", "rfft", "irfft"):
        values = WAVE if name == "rfft" else numbers
        found = getattr(tf.signal, f"{name}nd")(tf.constant(values), lengths, axes, norm)
        expected = getattr(np.fft, f"{name}n")(np.asarray(values), lengths, axes, norm)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_map_of_sound_makes_spectrograms_in_one_program():
    sounds = np.random.default_rng(0).normal(size=(6, 400)).astype(np.float32)

    def spectrogram(sound):
        found = tf.abs(tf.signal.stft(sound, frame_length=64, frame_step=32))
        bands = tf.matmul(found, tf.signal.linear_to_mel_weight_matrix(8, 33))
        return tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(bands + 1e-6))

    mapped = tf.data.Dataset.from_tensor_slices(sounds).map(spectrogram)
    assert "it traces" in str(mapped.explain())
    assert mapped.element_spec == tf.TensorSpec([11, 8], tf.float32)
    one_by_one = np.stack([spectrogram(sound) for sound in sounds])
    np.testing.assert_allclose(np.stack(list(mapped)), one_by_one, rtol=1e-3, atol=1e-3)


def test_the_inverse_returns_the_signal():
    sound = np.random.default_rng(1).normal(size=64).astype(np.float32)
    spectrum = tf.signal.stft(sound, 16, 4)
    window_fn = tf.signal.inverse_stft_window_fn(4)
    found = tf.signal.inverse_stft(spectrum, 16, 4, window_fn=window_fn)
    np.testing.assert_allclose(found[16:48], sound[16:48], rtol=1e-3, atol=1e-4)


def test_gradients_go_through_a_spectrogram():
    def energy(sound):
        return tf.reduce_sum(tf.square(tf.abs(tf.signal.stft(sound, 4, 2, window_fn=None))))

    sound = np.arange(1.0, 9.0, dtype=np.float32)
    gradient = jax.grad(energy)(sound)
    step = np.zeros(8, np.float32)
    step[3] = 0.01
    slope = (energy(sound + step) - energy(sound - step)) / 0.02
    np.testing.assert_allclose(gradient[3], slope, rtol=1e-2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tf.signal.fft(tf.constant([1.0])), "fft needs complex numbers, but got float32"),
        (lambda: tf.signal.rfft([1.0], [0]), "lengths of at least 1, but got fft_length"),
        (lambda: tf.signal.rfft([1.0], 4), "fft_length as a list of 1 lengths, but got 4"),
        (lambda: tf.signal.fftnd(tf.constant([1j]), norm="x"), "norm must be None, backward"),
        (lambda: tf.signal.frame([1, 2], 2, 0), "frame_step must be at least 1, but got 0"),
        (lambda: tf.signal.frame([1, 2], -2, 1), "frame_length must be at least 0, but got -2"),
        (lambda: tf.signal.stft([1], 1, 1), "stft needs float32 or float64, but got int32"),
        (lambda: tf.signal.kaiser_window(0), "window_length must be at least 1, but got 0"),
        (lambda: tf.signal.dct([1.0], axis=0), "transforms the last axis only"),
    ],
)
def test_errors_say_what_is_wrong(call, said):
    with pytest.raises((ValueError, NotImplementedError), match=said):
        call()
