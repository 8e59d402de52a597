"""`config`, `debugging` and `test`: settings of memory, precision and execution, and test cases."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.strategy.device_names import PhysicalDevice

GPU = PhysicalDevice("/physical_device:GPU:0", "GPU")
CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


def test_memory_growth_is_set_before_jax_starts(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    monkeypatch.setattr("evenfeed.strategy.execution_settings.backend_started", lambda: False)
    tf.config.experimental.set_memory_growth(GPU, True)
    assert tf.config.experimental.get_memory_growth(GPU)
    monkeypatch.setattr("evenfeed.strategy.execution_settings.backend_started", lambda: True)
    tf.config.experimental.set_memory_growth(GPU, True)
    with pytest.raises(RuntimeError, match="XLA_PYTHON_CLIENT_PREALLOCATE=true"):
        tf.config.experimental.set_memory_growth(GPU, False)
    with pytest.raises(ValueError, match="setting of GPUs"):
        tf.config.experimental.set_memory_growth(CPU, True)


def test_determinism_is_a_flag_of_xla(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--a=1")
    monkeypatch.setattr("evenfeed.strategy.execution_settings.backend_started", lambda: False)
    for _ in range(2):
        tf.config.experimental.enable_op_determinism()
    assert __import__("os").environ["XLA_FLAGS"] == "--a=1 --xla_gpu_deterministic_ops=true"


def test_tensor_float_32_is_a_precision_of_jax():
    tf.config.experimental.enable_tensor_float_32_execution(False)
    assert jax.config.jax_default_matmul_precision == "highest"
    assert not tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(True)
    assert tf.config.experimental.tensor_float_32_execution_enabled()


def test_what_cannot_be_set_says_so():
    with pytest.raises(ValueError, match=r"with evenfeed.device\(\"GPU:0\"\)"):
        tf.config.set_soft_device_placement(False)
    with pytest.raises(ValueError, match="does not count the memory"):
        tf.config.experimental.get_memory_info("CPU:0")
    with pytest.raises(ValueError, match="Unknown setting"):
        tf.config.optimizer.set_jit("fast")


def test_numerics_are_checked_until_it_is_disabled():
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(FloatingPointError):
            jax.jit(jnp.log)(-1.0)
        with pytest.raises(FloatingPointError):
            tf.math.divide(1.0, 0.0)
    finally:
        tf.debugging.disable_check_numerics()
    assert np.isnan(tf.math.log(-1.0))


def test_filtering_of_tracebacks_is_jax_s():
    tf.debugging.disable_traceback_filtering()
    assert jax.config.jax_traceback_filtering == "off"
    tf.debugging.enable_traceback_filtering()
    assert tf.debugging.is_traceback_filtering_enabled()


def test_code_in_an_init_scope_runs_at_once_in_a_function():
    seen = []

    @tf.function
    def double(x):
        seen.append(tf.inside_function())
        with tf.init_scope():
            seen.append(int(tf.reduce_sum(tf.constant([1, 1]))))
        return seen[-1] * x

    assert int(double(tf.constant(4))) == 8
    assert seen[:2] == [True, 2]


PASSING = {
    "assertAllEqual": ([1, np.nan], np.array([1, np.nan])),
    "assertNotAllEqual": ([1, 2], [1, 3]),
    "assertAllClose": ({"a": [1.0, [2.0, 3.0]]}, {"a": [1.0, [2.0, 3.0 + 1e-7]]}),
    "assertNotAllClose": ([1.0], [1.1]),
    "assertAllCloseAccordingToType": (np.float16([1.0]), np.float16([1.001])),
    "assertAllGreater": ([1, 2], 0),
    "assertAllGreaterEqual": ([1, 2], 1),
    "assertAllLess": ([1, 2], 3),
    "assertAllLessEqual": ([1, 2], 2),
    "assertAllInRange": ([1, 2], 1, 2),
    "assertAllInSet": ([1, 2], {1, 2}),
    "assertShapeEqual": ([1], [2]),
    "assertDTypeEqual": (np.float32(1), tf.float32),
    "assertNear": (1.0, 1.1, 0.2),
    "assertArrayNear": ([1.0], [1.1], 0.2),
    "assertNDArrayNear": ([1.0], [1.1], 0.2),
    "assertEmpty": ([],),
    "assertNotEmpty": ([1],),
    "assertLen": ([1], 1),
    "assertStartsWith": ("ab", "a"),
}
FAILING = {
    "assertAllEqual": ([1, 2], [[1, 2]]),
    "assertNotAllEqual": ([1, 2], [1, 2]),
    "assertAllClose": ({"a": [1.0, [2.0, 3.0]]}, {"a": [1.0, [2.0, 3.1]]}),
    "assertNotAllClose": ([1.0], [1.0]),
    "assertAllCloseAccordingToType": (np.float32([1.0]), np.float32([1.001])),
    "assertAllGreater": ([1, 2], 1),
    "assertAllGreaterEqual": ([1, 2], 2),
    "assertAllLess": ([1, 2], 2),
    "assertAllLessEqual": ([1, 2], 1),
    "assertAllInRange": ([1, 2], 1, 2, True),
    "assertAllInSet": ([1, 3], {1, 2}),
    "assertShapeEqual": ([1], [[2]]),
    "assertDTypeEqual": (np.float32(1), tf.float64),
    "assertNear": (1.0, 1.3, 0.2),
    "assertArrayNear": ([1.0], [1.3], 0.2),
    "assertNDArrayNear": ([1.0], [1.3], 0.2),
    "assertEmpty": ([1],),
    "assertNotEmpty": ([],),
    "assertLen": ([1], 2),
    "assertStartsWith": ("ab", "b"),
}


@pytest.mark.parametrize("name", PASSING)
def test_an_assertion_passes_and_fails(name):
    case = tf.test.TestCase()
    getattr(case, name)(*PASSING[name])
    with pytest.raises(AssertionError):
        getattr(case, name)(*FAILING[name])


def test_a_test_case_checks_errors_and_cleans_up():
    class Program(tf.test.TestCase):
        def test_errors(self):
            with self.assertRaisesOpError("needs numbers|needs real"):
                tf.math.add("a", True)
            with self.assertRaisesWithPredicateMatch(ValueError, lambda error: "x" in str(error)):
                raise ValueError("x")
            folders.append(self.get_temp_dir())

        def test_no_error(self):
            with self.assertRaisesOpError("a"):
                pass

        def test_another_error(self):
            with self.assertRaisesOpError("a"):
                raise ValueError("b")

    folders: list[str] = []
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Program).run(result)
    assert (result.testsRun, len(result.failures), len(result.errors)) == (3, 2, 0), result
    assert not tf.io.gfile.exists(folders[0])
    assert tf.test.TestCase().evaluate({"a": tf.constant(1)}) == {"a": 1}
