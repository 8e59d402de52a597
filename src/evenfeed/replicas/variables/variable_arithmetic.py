"""Python operators for variables and mirrored values. They operate on the value."""

# Python's operators have no precise types.
import operator
from typing import Any

import numpy as np

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.creation import convert_together


def _binary(compute: Any) -> Any:
    def method(self: Any, other: Any) -> Any:
        left, right = convert_together([self, other])
        return compute(left, right)

    return method


def _reflected(compute: Any) -> Any:
    def method(self: Any, other: Any) -> Any:
        right, left = convert_together([self, other])
        return compute(left, right)

    return method


def _compared(compare: Any, *, otherwise: bool) -> Any:
    """Return a comparison that returns `otherwise` for tensors that cannot be broadcast."""

    def method(self: Any, other: Any) -> Any:
        left, right = convert_together([self, other])
        try:
            np.broadcast_shapes(left.shape, right.shape)
        except ValueError:
            return jnp.asarray(otherwise)
        return compare(left, right)

    return method


def _in_place(sign: str, method: str | None) -> Any:
    def reject(self: Any, other: Any) -> Any:
        del other
        instead = f"write variable.{method}(value)" if method else "write variable.assign(...)"
        raise RuntimeError(
            described(
                f"variable {sign}= value would replace the variable {self.name!r} with a tensor.",
                fix=f"{instead} to change it, or variable = variable {sign} value for a new tensor.",
            )
        )

    return reject


_operator: Any = operator  # some of its functions have no types


class Operators:
    """Python operators for classes with a `value()`. Objects compare equal only to themselves."""

    # NumPy arrays defer to this class in binary operations.
    __array_priority__ = 100

    def value(self) -> Any:
        """Return the tensor."""
        raise NotImplementedError

    __add__ = _binary(_operator.add)
    __radd__ = _reflected(_operator.add)
    __sub__ = _binary(_operator.sub)
    __rsub__ = _reflected(_operator.sub)
    __mul__ = _binary(_operator.mul)
    __rmul__ = _reflected(_operator.mul)
    __truediv__ = _binary(_operator.truediv)
    __rtruediv__ = _reflected(_operator.truediv)
    __floordiv__ = _binary(_operator.floordiv)
    __rfloordiv__ = _reflected(_operator.floordiv)
    __mod__ = _binary(_operator.mod)
    __rmod__ = _reflected(_operator.mod)
    __pow__ = _binary(_operator.pow)
    __rpow__ = _reflected(_operator.pow)
    __matmul__ = _binary(_operator.matmul)
    __rmatmul__ = _reflected(_operator.matmul)
    __and__ = _binary(_operator.and_)
    __rand__ = _reflected(_operator.and_)
    __or__ = _binary(_operator.or_)
    __ror__ = _reflected(_operator.or_)
    __xor__ = _binary(_operator.xor)
    __rxor__ = _reflected(_operator.xor)
    __lt__ = _binary(_operator.lt)
    __le__ = _binary(_operator.le)
    __gt__ = _binary(_operator.gt)
    __ge__ = _binary(_operator.ge)

    def __neg__(self) -> Any:
        return -self.value()

    def __abs__(self) -> Any:
        return jnp.abs(self.value())

    def __invert__(self) -> Any:
        return ~self.value()

    def __getitem__(self, key: Any) -> Any:
        return self.value()[key.value() if isinstance(key, Operators) else key]

    def __len__(self) -> int:
        return len(self.value())

    def __iter__(self) -> Any:
        return iter(self.value())

    def __bool__(self) -> bool:
        return bool(self.value())

    def __int__(self) -> int:
        return int(self.value())

    def __float__(self) -> float:
        return float(self.value())

    def __index__(self) -> int:
        return operator.index(self.value())

    def __complex__(self) -> complex:
        return complex(self.value())


class OperatorMethods(Operators):
    """Operators of a variable: `==` compares values, and `+=` raises."""

    __iadd__ = _in_place("+", "assign_add")
    __isub__ = _in_place("-", "assign_sub")
    __imul__ = _in_place("*", None)
    __itruediv__ = _in_place("/", None)
    __ifloordiv__ = _in_place("//", None)
    __imod__ = _in_place("%", None)
    __ipow__ = _in_place("**", None)
    __imatmul__ = _in_place("@", None)
    __eq__ = _compared(_operator.eq, otherwise=False)
    __ne__ = _compared(_operator.ne, otherwise=True)

    def __hash__(self) -> int:
        return id(self)
