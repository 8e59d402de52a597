"""The functions of `tf.keras.utils` that make datasets of files and arrays, and split them.

Files are shuffled by NumPy, so their order for a seed is the same. A second shuffle, of the elements, is not.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def _folder(tf: Any) -> str:
    """Return a folder with files of three classes: texts, sounds and images of different sizes."""
    folder = Path(tempfile.mkdtemp())
    random = np.random.default_rng(5)
    for place, name in enumerate(("ant", "bee", "cow")):
        (folder / name / "deeper").mkdir(parents=True)
        for number in range(3 + place):
            where = folder / name / ("deeper" if number == 2 else "")
            (where / f"{number}.txt").write_bytes(f"the {name}, {number} times\n".encode())
            pixels = random.integers(0, 256, (9 + place, 7 + 3 * number, 3)).astype(np.uint8)
            (where / f"{number}.png").write_bytes(bytes(tf.io.encode_png(pixels).numpy()))
            wave = random.uniform(-1, 1, (20 + number, 1)).astype(np.float32)
            sound = tf.audio.encode_wav(wave, sample_rate=8000)
            (where / f"{number}.wav").write_bytes(bytes(sound.numpy()))
    return str(folder)


def _made(folder: str, dataset: Any) -> Any:
    if isinstance(dataset, (list, tuple)):
        return [_made(folder, each) for each in dataset]
    names = getattr(dataset, "class_names", None)
    paths = getattr(dataset, "file_paths", None)
    found = None if paths is None else [os.path.relpath(path, folder) for path in paths]
    return [names, found, repr(dataset.element_spec), _elements(dataset)]


def _elements(dataset: Any) -> Any:
    return [_plain(element) for element in dataset]


def _plain(element: Any) -> Any:
    if isinstance(element, tuple):
        return [_plain(part) for part in element]
    rows = element.to_list() if hasattr(element, "to_list") else np.asarray(element).tolist()
    return _rounded(rows)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 2) if isinstance(value, float) else value


def _order(folder: str, dataset: Any) -> Any:
    """Return what does not depend on how the elements are shuffled."""
    elements = sorted(repr(_plain(element)) for element in dataset.unbatch())
    return [[os.path.relpath(path, folder) for path in dataset.file_paths], elements]


def texts(tf: Any, ask: Any) -> dict[str, Any]:
    folder, make = _folder(tf), tf.keras.utils.text_dataset_from_directory
    split = {"validation_split": 0.3, "seed": 4, "shuffle": False, "verbose": False}

    def made(**options: Any) -> Any:
        options = {"batch_size": 4, "shuffle": False, "verbose": False, **options}
        return ask(lambda: _made(folder, make(folder, **options)))

    two = ["cow", "ant"]
    return {
        "in order": made(),
        "one hot": made(label_mode="categorical", batch_size=5),
        "no labels": made(label_mode=None),
        "labels of one's own": made(labels=list(range(12)), batch_size=None),
        "some classes": made(class_names=two),
        "two classes": made(class_names=two, label_mode="binary", max_length=6),
        "three classes are not binary": made(label_mode="binary"),
        "unknown classes": made(class_names=["dog", "ant"]),
        "both halves": made(**split, subset="both"),
        "training": made(**split, subset="training"),
        "validation": made(**split, subset="validation"),
        "a subset without a split": made(subset="training"),
        "a split without a subset": made(validation_split=0.3),
        "shuffled": ask(
            lambda: _order(folder, make(folder, seed=3, validation_split=0.5, subset="training"))
        ),
        "shuffled by another seed": ask(lambda: _order(folder, make(folder, seed=8))),
        "no files": ask(lambda: make(tempfile.mkdtemp(), labels=None)),
    }


def images(tf: Any, ask: Any) -> dict[str, Any]:
    folder, make = _folder(tf), tf.keras.utils.image_dataset_from_directory

    def made(**options: Any) -> Any:
        options = {"image_size": (5, 6), "shuffle": False, "class_names": ["cow"], **options}
        return ask(lambda: _made(folder, make(folder, **options)))

    return {
        "in order": made(batch_size=7),
        "gray": made(color_mode="grayscale", interpolation="nearest"),
        "with alpha": made(color_mode="rgba", interpolation="bicubic", batch_size=None),
        "cropped": made(crop_to_aspect_ratio=True),
        "padded": made(pad_to_aspect_ratio=True),
        "channels first": made(data_format="channels_first"),
        "cropped, channels first": made(data_format="channels_first", crop_to_aspect_ratio=True),
        "cropped and padded": made(pad_to_aspect_ratio=True, crop_to_aspect_ratio=True),
        "an unknown interpolation": made(interpolation="none"),
        "an unknown colour mode": made(color_mode="cmyk"),
    }


def sounds(tf: Any, ask: Any) -> dict[str, Any]:
    folder, make = _folder(tf), tf.keras.utils.audio_dataset_from_directory

    def made(**options: Any) -> Any:
        options = {"shuffle": False, "verbose": False, "batch_size": 5, **options}
        return ask(lambda: _made(folder, make(folder, **options)))

    return {
        "of one length": made(output_sequence_length=21),
        "ragged": made(ragged=True, label_mode=None),
        "ragged and of one length": made(ragged=True, output_sequence_length=21),
    }


def windows(tf: Any, ask: Any) -> dict[str, Any]:
    make = tf.keras.utils.timeseries_dataset_from_array
    series = np.arange(26, dtype=np.float32).reshape(13, 2)
    targets = 10 * np.arange(13)

    def made(*args: Any, **options: Any) -> Any:
        return ask(lambda: _elements(make(*args, **options)))

    return {
        "all": made(series, None, 4),
        "with targets": made(series[:-3], targets[3:], 3, batch_size=4),
        "with steps": made(series, targets, 3, sequence_stride=2, sampling_rate=3, batch_size=2),
        "of a part": made(series, targets, 2, start_index=3, end_index=9, batch_size=None),
        "fewer targets": made(series, targets[:5], 3),
        "of integers": made(targets, None, 5, sampling_rate=2),
        "of a list": made([1, 2, 3, 4], [0.5, 1.5, 2.5], 2),
        "too long": made(series, None, 14),
        "no length": made(series, None, 0),
        "a rate that is too high": made(series, None, 3, sampling_rate=20),
        "a start outside": made(series, None, 3, start_index=20),
        "shuffled": ask(
            lambda: sorted(
                map(repr, _elements(make(series, targets, 3, shuffle=True, seed=2).unbatch()))
            )
        ),
    }


def splits(tf: Any, ask: Any) -> dict[str, Any]:
    split, numbers = tf.keras.utils.split_dataset, np.arange(10, dtype=np.int64)
    data = tf.data.Dataset.from_tensor_slices((numbers, numbers / 2))

    def made(dataset: Any, **options: Any) -> Any:
        return ask(lambda: [_elements(half) for half in split(dataset, **options)])

    return {
        "an array": made(numbers, left_size=0.3),
        "shuffled": made(numbers, left_size=4, shuffle=True, seed=3),
        "arrays": made((numbers, numbers * 2), right_size=3),
        "a list of arrays": made([numbers, numbers * 2], right_size=3, left_size=2),
        "a dataset": made(data, left_size=0.55),
        "a batched dataset": made(data.batch(4), left_size=6),
        "batches behind another step": made(data.batch(5).prefetch(1), left_size=1),
        "no sizes": made(data),
        "sizes that are too large": made(data, left_size=8, right_size=3),
        "an empty half": made(data, left_size=0.999),
        "another type": made("text", left_size=1),
    }
