"""Assertions for tests of tensors: `tf.test.TestCase`."""

# ruff: noqa: N802, PT009, PT027 - the names and assertions of unittest
# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import re
import tempfile
import unittest
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.structure import NEST, map_structure
from evenfeed.tensors.creation import convert_to_tensor

_LOOSE = {dtypes.float16: 1e-3, dtypes.bfloat16: 1e-2}


class TestCase(unittest.TestCase):
    """A test case with assertions for tensors, arrays, variables and nested structures of them.

    Examples:
        >>> import evenfeed as tf
        >>> class SumTest(tf.test.TestCase):
        ...     def test_sum(self):
        ...         self.assertAllEqual(tf.reduce_sum([[1, 2], [3, 4]], axis=0), [4, 6])
        >>> SumTest("test_sum").run().wasSuccessful()
        True
    """

    def evaluate(self, tensors: Any) -> Any:
        """Return tensors, or a structure of them, as NumPy arrays."""
        return map_structure(_array, tensors, rules=NEST)

    def get_temp_dir(self) -> str:
        """Return a folder that is removed after the test."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Assert that two tensors have the same shape and values. NaNs are equal to each other."""
        one, other = _array(a), _array(b)
        self._check_shapes(one, other, msg)
        np.testing.assert_array_equal(one, other, err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Assert that two tensors differ."""
        with self.assertRaises(AssertionError, msg=msg or "The tensors are equal."):
            self.assertAllEqual(a, b)

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Assert that two tensors, or structures of tensors, are close. float16 is compared more loosely."""
        if isinstance(a, Mapping):
            self.assertCountEqual(a, b, msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
        elif isinstance(a, (list, tuple)) and _is_nested(a):
            self.assertEqual(len(a), len(b), msg)
            for one, other in zip(a, b, strict=True):
                self.assertAllClose(one, other, rtol, atol, msg)
        else:
            one, other = _array(a), _array(b)
            self._check_shapes(one, other, msg)
            loose = max(_LOOSE.get(one.dtype, 0), _LOOSE.get(other.dtype, 0))
            limits = max(rtol, loose), max(atol, loose)
            np.testing.assert_allclose(_wide(one), _wide(other), *limits, err_msg=msg or "")

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Assert that two tensors are not close."""
        with self.assertRaises(AssertionError, msg=msg or "The tensors are close."):
            self.assertAllClose(a, b, rtol, atol)

    def assertAllCloseAccordingToType(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Assert that two tensors are as close as the narrower of their dtypes allows."""
        limits = {
            dtypes.float32: (float_rtol, float_atol),
            dtypes.complex64: (float_rtol, float_atol),
            dtypes.float16: (half_rtol, half_atol),
            dtypes.bfloat16: (bfloat16_rtol, bfloat16_atol),
        }
        one, other = _array(a), _array(b)
        found = [limits.get(array.dtype, (rtol, atol)) for array in (one, other)]
        self._check_shapes(one, other, msg)
        wide = (_wide(one), _wide(other))
        most = [max(pair) for pair in zip((rtol, atol), *found, strict=True)]
        np.testing.assert_allclose(*wide, *most, err_msg=msg or "")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Assert that all values are above another value."""
        self._check_all(_array(a) > comparison_target, a, f"above {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Assert that no value is below another value."""
        self._check_all(_array(a) >= comparison_target, a, f"at least {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Assert that all values are below another value."""
        self._check_all(_array(a) < comparison_target, a, f"below {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Assert that no value is above another value."""
        self._check_all(_array(a) <= comparison_target, a, f"at most {comparison_target}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Assert that all values are between two bounds."""
        values = _array(target)
        above = values > lower_bound if open_lower_bound else values >= lower_bound
        below = values < upper_bound if open_upper_bound else values <= upper_bound
        self._check_all(above & below, target, f"between {lower_bound} and {upper_bound}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Assert that all values are members of a set."""
        self._check_all(np.isin(_array(target), list(expected_set)), target, f"in {expected_set}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Assert that two tensors have the same shape."""
        self._check_shapes(_array(input_a), _array(input_b), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Assert that a tensor has this dtype."""
        self.assertEqual(dtypes.as_dtype(target.dtype), dtypes.as_dtype(expected_dtype))

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Assert that two numbers differ by at most `err`."""
        self.assertTrue(
            f1 == f2 or abs(f1 - f2) <= err, msg or f"{f1} and {f2} differ by more than {err}."
        )

    def assertArrayNear(
        self, farray1: Any, farray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Assert that two vectors have the same length, and differ by at most `err`."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertNDArrayNear(
        self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Assert that the norm of the difference of two arrays is at most `err`."""
        distance = np.linalg.norm(_array(ndarray1) - _array(ndarray2))
        self.assertLessEqual(float(distance), err, msg)

    def assertRaisesWithPredicateMatch(
        self, exception_type: type[BaseException], expected_err_re_or_predicate: Any
    ) -> AbstractContextManager[Any]:
        """Return a context that asserts that a block raises an error that a pattern or a function accepts."""
        return _Raises(self, exception_type, expected_err_re_or_predicate)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> AbstractContextManager[Any]:
        """Return a context that asserts that a block raises an error of evenfeed that a pattern accepts."""
        return self.assertRaisesWithPredicateMatch(Exception, expected_err_re_or_predicate)

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:
        """Assert that a container has no members."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:
        """Assert that a container has members."""
        self.assertNotEqual(len(container), 0, msg)

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        """Assert that a container has this many members."""
        self.assertEqual(len(container), expected_len, msg)

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: str | None = None) -> None:
        """Assert that a text starts with another one."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} starts differently.")

    def _check_shapes(self, one: Array, other: Array, msg: str | None) -> None:
        self.assertEqual(one.shape, other.shape, msg or "The tensors have different shapes.")

    def _check_all(self, holds: Array, values: Any, what: str) -> None:
        wrong = _array(values)[~np.asarray(holds)]
        self.assertEqual(wrong.size, 0, f"These values are not {what}: {wrong[:10]}.")


class _Raises(AbstractContextManager["_Raises"]):
    """Checks the error of a block."""

    def __init__(self, case: unittest.TestCase, kind: type[BaseException], accepted: Any) -> None:
        self._case, self._kind = case, kind
        self._accepts: Callable[[BaseException], object] = (
            accepted if callable(accepted) else lambda error: re.search(accepted, str(error))
        )

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        if error is None:
            self._case.fail(f"{self._kind.__name__} was not raised.")
        if not isinstance(error, self._kind):
            return False
        self._case.assertTrue(self._accepts(error), f"Another error was raised: {error}")
        return True


def _array(value: Any) -> Array:
    tensor = convert_to_tensor(value) if not isinstance(value, np.ndarray) else value
    return to_array(np.asarray(tensor))


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype in _LOOSE else array


def _is_nested(values: Any) -> bool:
    """Return True for a list whose entries cannot be stacked into one array."""
    shapes = {np.shape(value) if not isinstance(value, Mapping) else None for value in values}
    return None in shapes or len(shapes) > 1
