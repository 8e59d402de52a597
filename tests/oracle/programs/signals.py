"""Functions of `signal`: Fourier and cosine transforms, windows, frames and spectrograms."""

import numpy as np

_COMPLEX = "fft ifft fft2d ifft2d fft3d ifft3d irfft irfft2d irfft3d"


def fourier(tf, ask):
    signal = tf.signal
    wave = np.sin(np.arange(24.0)).reshape(2, 3, 4)
    real, narrow = tf.constant(wave), tf.constant(wave, tf.float32)
    numbers = tf.complex(real, real[::-1])
    answers = {name: _rounded(ask, getattr(signal, name), numbers) for name in _COMPLEX.split()} | {
        name: _rounded(ask, getattr(signal, name), real) for name in ("rfft", "rfft2d", "rfft3d")
    }
    return answers | {
        "float32": _rounded(ask, signal.rfft, narrow, digits=4),
        "complex64": _rounded(ask, signal.fft, tf.cast(numbers, tf.complex64), digits=4),
        "rfft shorter": _rounded(ask, signal.rfft, real, [3]),
        "rfft longer": _rounded(ask, signal.rfft, real, [6]),
        "irfft odd": _rounded(ask, signal.irfft, numbers, [5]),
        "irfft longer": _rounded(ask, signal.irfft, numbers, [10]),
        "rfft2d lengths": _rounded(ask, signal.rfft2d, real, [2, 8]),
        "irfft2d lengths": _rounded(ask, signal.irfft2d, numbers, [4, 5]),
        "a list of floats": _rounded(ask, signal.fft, [1.0, 2.0, 4.0], digits=4),
        "an array": _rounded(ask, signal.rfft, np.arange(4.0), digits=4),
        "whole numbers": _rounded(ask, signal.rfft, [1, 2, 4], digits=4),
        "fft of floats": ask(signal.fft, narrow),
        "irfft of floats": ask(signal.irfft, narrow),
        "fft of a scalar": ask(signal.fft, tf.constant(1 + 2j)),
        "fft2d of a vector": ask(signal.fft2d, tf.constant([1 + 2j])),
        "wrong lengths": ask(signal.rfft2d, real, [2]),
        "a negative length": ask(signal.rfft, real, [-1]),
        "rfft of halves": ask(signal.rfft, tf.cast(real, tf.float16)),
        "shift": ask(signal.fftshift, [[1, 2, 3], [4, 5, 6]]),
        "shift one axis": ask(signal.fftshift, [[1, 2, 3], [4, 5, 6]], 1),
        "shift back": ask(signal.ifftshift, [[1, 2, 3], [4, 5, 6]], [0, 1]),
        "shift text": ask(signal.fftshift, ["a", "b", "c"]),
        "shift no axis": ask(signal.fftshift, [1, 2], 3),
    }


def cosines(tf, ask):
    signal = tf.signal
    wave = tf.constant(np.sin(np.arange(32.0)).reshape(2, 16))
    answers = {}
    for kind in (1, 2, 3, 4):
        for name in ("dct", "idct"):
            function = getattr(signal, name)
            answers |= {
                f"{name} {kind}": _rounded(ask, function, wave, kind),
                f"{name} {kind} ortho": _rounded(ask, function, wave, kind, norm="ortho"),
                f"{name} {kind} shorter": _rounded(ask, function, wave, kind, n=5),
                f"{name} {kind} longer": _rounded(ask, function, wave, kind, n=20),
            }
    return answers | {
        "float32": _rounded(ask, signal.dct, tf.cast(wave, tf.float32), digits=3),
        "unknown type": ask(signal.dct, wave, 5),
        "another axis": ask(signal.dct, wave, axis=0),
        "unknown norm": ask(signal.dct, wave, norm="x"),
        "whole numbers": ask(signal.dct, [1, 2]),
        "one value": ask(signal.dct, wave[:, :1], 1),
        "no values": ask(signal.dct, wave, n=0),
        "mdct": _rounded(ask, signal.mdct, wave, 8),
        "mdct padded": _rounded(ask, signal.mdct, wave, 12, pad_end=True),
        "mdct ortho": _rounded(ask, signal.mdct, wave, 8, None, norm="ortho"),
        "mdct of 6": ask(signal.mdct, wave, 6),
        "inverse_mdct": _rounded(ask, signal.inverse_mdct, tf.reshape(wave, [2, 4, 4])),
        "inverse_mdct ortho": _rounded(
            ask, signal.inverse_mdct, tf.reshape(wave, [8, 4]), None, "ortho"
        ),
        "inverse_mdct odd": ask(signal.inverse_mdct, wave[:, :3]),
    }


def windows(tf, ask):
    signal = tf.signal
    answers = {
        f"{name} {length}": _rounded(ask, getattr(signal, name), length, digits=5)
        for name in ("hann_window", "hamming_window", "vorbis_window", "kaiser_window")
        for length in (1, 4, 5)
    }
    return answers | {
        "derived 6": _rounded(ask, signal.kaiser_bessel_derived_window, 6, digits=5),
        "derived 5": _rounded(ask, signal.kaiser_bessel_derived_window, 5, beta=2.0, digits=5),
        "beta": _rounded(ask, signal.kaiser_window, 5, beta=3.0, digits=5),
        "symmetric": _rounded(ask, signal.hann_window, 4, periodic=False, digits=5),
        "empty": ask(signal.hann_window, 0),
        "empty kaiser": ask(signal.kaiser_window, 0),
        "float64": _rounded(ask, signal.hann_window, 7, dtype=tf.float64),
        "float16": _rounded(ask, signal.hann_window, 4, dtype=tf.float16, digits=2),
        "int32": ask(signal.hann_window, 4, dtype=tf.int32),
        "a list": ask(signal.hann_window, [4, 4]),
        "negative": ask(signal.hann_window, -1),
        "inverse": _rounded(ask, signal.inverse_stft_window_fn(2), 6, dtype=tf.float64),
        "inverse, rounded": _rounded(ask, signal.inverse_stft_window_fn(4), 6, dtype=tf.float64),
    }


def frames(tf, ask):
    frame, add = tf.signal.frame, tf.signal.overlap_and_add
    numbers, grid = [1, 2, 3, 4, 5], [[1, 2], [3, 4], [5, 6]]
    return {
        "frames": ask(frame, numbers, 2, 2),
        "overlapping": ask(frame, numbers, 3, 1),
        "gaps": ask(frame, numbers, 1, 3),
        "padded": ask(frame, numbers, 2, 2, pad_end=True),
        "padded with": ask(frame, numbers, 4, 3, True, 7),
        "padded gaps": ask(frame, numbers, 2, 3, True),
        "too long": ask(frame, numbers, 9, 2),
        "too long, padded": ask(frame, numbers, 9, 2, True),
        "empty": ask(frame, numbers, 0, 1),
        "text": ask(frame, ["a", "b", "c"], 2, 1),
        "first axis": ask(frame, grid, 2, 1, axis=0),
        "last axis": ask(frame, grid, 1, 1),
        "no step": ask(frame, numbers, 2, 0),
        "a scalar": ask(frame, 3, 2, 1),
        "lengths": ask(frame, numbers, [2, 3], 1),
        "add": ask(add, [[1, 2, 3], [4, 5, 6]], 2),
        "add apart": ask(add, [[1.0, 2.0], [4.0, 5.0]], 3),
        "add in batches": ask(add, [[[1.0, 2.0], [4.0, 5.0]], [[0.0, 1.0], [1.0, 0.0]]], 1),
        "add a vector": ask(add, [1.0, 2.0], 1),
        "add at no step": ask(add, [[1.0, 2.0]], 0),
        "add at half steps": ask(add, [[1.0, 2.0], [3.0, 4.0]], 1.5),
    }


def spectrograms(tf, ask):
    signal = tf.signal
    wave = tf.constant(np.sin(np.arange(40.0)).reshape(2, 20))
    spectrum = signal.stft(wave, 6, 3)
    weights = signal.linear_to_mel_weight_matrix
    return {
        "stft": _rounded(ask, signal.stft, wave, 6, 3),
        "stft float32": _rounded(ask, signal.stft, tf.cast(wave, tf.float32), 5, 3, digits=4),
        "stft padded": _rounded(ask, signal.stft, wave, 6, 4, pad_end=True),
        "stft longer": _rounded(ask, signal.stft, wave, 6, 3, fft_length=10),
        "stft shorter": _rounded(ask, signal.stft, wave, 6, 3, fft_length=4),
        "stft bare": _rounded(ask, signal.stft, wave, 4, 3, window_fn=None),
        "stft hamming": _rounded(ask, signal.stft, wave, 4, 2, window_fn=signal.hamming_window),
        "stft of whole numbers": ask(signal.stft, [1, 2, 3], 2, 1),
        "stft of a scalar": ask(signal.stft, 1.0, 2, 1),
        "inverse": _rounded(ask, signal.inverse_stft, spectrum, 6, 3),
        "inverse window": _rounded(
            ask, signal.inverse_stft, spectrum, 6, 3, window_fn=signal.inverse_stft_window_fn(3)
        ),
        "inverse longer": _rounded(ask, signal.inverse_stft, spectrum, 10, 3, 8),
        "inverse bare": _rounded(ask, signal.inverse_stft, spectrum, 8, 3, None, None),
        "inverse of floats": ask(signal.inverse_stft, wave, 6, 3),
        "inverse of a vector": ask(signal.inverse_stft, spectrum[0, 0], 6, 3),
        "mel": _rounded(ask, weights, 3, 9, dtype=tf.float64),
        "mel float32": _rounded(ask, weights, 4, 33, 16000, 20.0, 7000.0, digits=4),
        "mel of nothing": ask(weights, 0),
        "mel edges": ask(weights, 3, 5, 8000, 4000.0, 3800.0),
        "mel above": ask(weights, 3, 5, 8000, 125.0, 5800.0),
        "mel rate": ask(weights, 3, 5, -1),
        "mel below 0": ask(weights, 3, 5, 8000, -1.0),
        "mel int32": ask(weights, dtype=tf.int32),
        "mfccs": _rounded(ask, signal.mfccs_from_log_mel_spectrograms, wave),
        "mfccs of whole numbers": ask(signal.mfccs_from_log_mel_spectrograms, [1, 2]),
    }


def _rounded(ask, function, *args, digits=9, **kwargs):
    """Ask for a result that has rounding errors."""
    return ask(lambda: np.round(np.asarray(function(*args, **kwargs)), digits) + 0)
