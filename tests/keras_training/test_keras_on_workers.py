"""Keras on workers in real processes gives the results of one device, and every worker has them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow
PROGRAM = str(Path(__file__).parent / "programs" / "keras_workers.py")


def assert_alike(found: Any, expected: Any, where: str) -> None:
    """Compare nested results, with numbers to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_alike(found[name], value, f"{where} {name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for number, value in enumerate(expected):
            assert_alike(found[number], value, f"{where} {number}")
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6, err_msg=where)


def test_two_workers_train_predict_and_save_as_one_device(tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("alone", "several")]
    for folder in folders:
        Path(folder).mkdir()
    alone = seen_by_workers(PROGRAM, 1, 1, folders[0])[0]["same"]
    several = seen_by_workers(PROGRAM, 2, 2, folders[1])
    for worker in (0, 1):
        assert_alike(several[worker]["same"], alone, f"worker {worker}")
        assert several[worker]["same"]["checkpoint"] == [True] * 3
    assert several[0]["own"] == several[1]["own"]  # without a seed, too
    first = several[0]["own"]["shuffled"]["loss"][0]
    assert first == pytest.approx(float(np.mean(losses())), rel=1e-4)
    assert "Several workers can share a Dataset or arrays" in several[0]["own"]["refused"]
    assert alone["saved"] == alone["loaded"]
    assert alone["resumed epochs"] == [2]
    assert several[0]["own"][
        "files"
    ] == [  # what the chief wrote, and the model of the other worker
        *("first", "first_0.weights.h5", "logs_0", "model.keras", "second_0.weights.h5"),
        *("temporary_1.keras", "Only workers [0]"),
    ]


def losses() -> Any:
    """Return the squared error of each row before training."""
    random = np.random.default_rng(0)
    x = random.normal(size=(43, 3)).astype(np.float32)
    return (x @ random.normal(size=(3, 1)).astype(np.float32) - x.sum(1, keepdims=True)) ** 2
