"""Formats tensors like TensorFlow: `print`, and the str and repr of a tensor."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import io
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor, shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy import logging, pprint
from evenfeed.core.lazy_jax import jax
from evenfeed.core.structure import NEST, map_structure
from evenfeed.tensors.creation import is_on_device, read
from evenfeed.tensors.host_calls import is_traced_tensor, when_known


@runtime_checkable
class Writable(Protocol):
    """An object with a `write` method for text."""

    def write(self, text: str, /) -> object:
        """Write the text."""
        ...


Log: TypeAlias = Callable[[str], object]
Stream: TypeAlias = "Writable | Log | str | int | None"


def print_(
    *inputs: object,
    output_stream: Stream = None,
    summarize: int | None = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> None:
    """Print values and tensors. In a compiled function, prints each time it runs.

    Args:
        inputs: Tensors, Python values, and lists, tuples and dicts of them.
        output_stream: Standard error by default; or any stream, `"file://path"` to append to a file, a
            level of `logging`, or a logging function.
        summarize: The number of values to show at each end of an axis; -1 shows all.
        sep: The text between the inputs.
        end: The text after the last input.
        name: Accepted for compatibility.

    Examples:
        >>> import sys
        >>> import evenfeed as tf
        >>> tf.print("step", tf.range(10), output_stream=sys.stdout)
        step [0 1 2 ... 7 8 9]
        >>> tf.print({"loss": tf.constant(0.5)}, [1, "a"], output_stream=sys.stdout)
        {'loss': 0.5} [1, 'a']
    """
    _check_stream(output_stream)
    tensors: list[Any] = []
    alone = len(inputs) == 1
    template = sep.join([_template(value, tensors, alone=alone) for value in inputs])
    shown = 3 if summarize is None else summarize
    write = partial(_write, template, shown, output_stream, end)
    when_known(write, tensors)


print_.__name__ = print_.__qualname__ = "print"


def tensor_text(value: Any) -> str:
    """Return TensorFlow's `str` of a tensor: values, shape and dtype. A tracer gets JAX's own."""
    if not is_tensor(value) or is_traced_tensor(value) or _is_key(value):
        return str(value)
    text = str(_on_host(value))
    broken = "\n" + text if "\n" in text else text
    return f"tf.Tensor({broken}, {_described(value)})"


def tensor_repr(value: Any) -> str:
    """Return TensorFlow's `repr` of a tensor: shape, dtype and the repr of the values."""
    if not is_tensor(value) or is_traced_tensor(value) or _is_key(value):
        return repr(value)
    array = _on_host(value)
    text = repr(array if array.ndim else array.item())
    broken = "\n" + text if "\n" in text else text
    return f"<tf.Tensor: {_described(value)}, numpy={broken}>"


def summary(array: Array, summarize: int = 3, *, quoted: bool = False) -> str:
    """Format the values of `array`: the first and last `summarize` along each axis.

    Bytes that are not UTF-8 are surrogates in the result, as `surrogateescape` makes them.
    """
    if array.ndim == 0:
        return _element(array[()], quoted=quoted)
    shown = array.size if summarize < 0 else min(summarize, array.size)
    return _axis_text(array, shown, depth=0, rank=array.ndim)


def _is_key(value: Any) -> bool:
    """Return True for a PRNG key, which NumPy cannot read."""
    return not isinstance(getattr(value, "dtype", np.dtype(int)), np.dtype)


def _on_host(value: Any) -> Array:
    return np.asarray(value)


def _described(value: Any) -> str:
    return f"shape={tuple(value.shape)}, dtype={dtypes.name_of(value.dtype)}"


def _axis_text(array: Any, shown: int, *, depth: int, rank: int) -> str:
    if depth == rank:
        return _element(array, quoted=True)
    length = len(array)
    rows = partial(_axis_text, shown=shown, depth=depth + 1, rank=rank)
    texts = [rows(row) for row in array[:shown]]
    space = _between(depth, rank)
    if length > 2 * shown:
        # TensorFlow writes the space before the dots even if nothing comes before it.
        texts.append("..." if texts else space + "...")
    texts += [rows(row) for row in array[max(shown, length - shown) :]]
    return f"[{space.join(texts)}]"


def _between(depth: int, rank: int) -> str:
    return " " if depth == rank - 1 else "\n" * (rank - depth - 1) + " " * (depth + 1)


def _element(value: Any, *, quoted: bool) -> str:
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode(errors="surrogateescape")
        return f'"{_escaped(text)}"' if quoted else text
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (complex, np.complexfloating)):
        return str(complex(value))
    return _float_text(value)


def _float_text(value: Any) -> str:
    """Use the fewest digits that round-trip: 6 or 9 for a float32, 15 or 17 for a float64."""
    if isinstance(value, float):  # also np.float64
        short = f"{value:.15g}"
        return short if float(short) == value else f"{value:.17g}"
    number = np.float32(value)
    short = f"{number:.6g}"
    return short if np.float32(short) == number else f"{number:.9g}"


_ESCAPES: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "'": r"\'", "\\": r"\\"}


def _escaped(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f\"'\\]", _escape, text)


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0], f"\\{ord(found[0]):03o}")


# The slot for a tensor in a template: four characters from private Unicode planes that no text uses. It is as
# wide as TensorFlow's placeholder, which decides where long lines break.
_BASE: Final = 4096
_PLANE: Final = 0xF0000
_BARE: Final = "\U0010fffd"  # the only input, whose text is not quoted
_QUOTED: Final = "\U0010fffc"
_SLOT: Final = re.compile(
    f"([{_BARE}{_QUOTED}])([\U000f0000-\U000f0fff])([\U000f0000-\U000f0fff]){_BARE}"
)


class _Slot:
    """The slot for the tensor with a given index."""

    def __init__(self, index: int, *, bare: bool) -> None:
        high, low = (chr(_PLANE + digit) for digit in divmod(index, _BASE))
        self.text = f"{_BARE if bare else _QUOTED}{high}{low}{_BARE}"

    def __repr__(self) -> str:
        return self.text


def _template(value: object, tensors: list[Any], *, alone: bool) -> str:
    """Format `value` with slots for its tensors, and append the tensors to `tensors`."""
    if isinstance(value, str):
        return value

    def with_slot(leaf: object) -> object:
        if not _is_printed_as_tensor(leaf):
            return leaf
        tensors.append(read(leaf) if is_on_device(leaf) else leaf)
        return _Slot(len(tensors) - 1, bare=alone and leaf is value)

    return pprint.pformat(map_structure(with_slot, value, rules=NEST))


def _is_printed_as_tensor(leaf: object) -> bool:
    if is_on_device(leaf):
        # PRNG keys have a special dtype, and no values to show.
        return not isinstance(leaf, jax.Array) or isinstance(leaf.dtype, np.dtype)  # pyright: ignore[reportUnnecessaryIsInstance]
    return is_tensor(leaf)


def _write(template: str, summarize: int, stream: Stream, end: str, tensors: list[Any]) -> None:
    def text_of(found: re.Match[str]) -> str:
        place, *digits = found.groups()
        high, low = (ord(digit) - _PLANE for digit in digits)
        array = _on_host(tensors[high * _BASE + low])
        text = summary(array, summarize, quoted=place == _QUOTED)
        return text.encode(errors="surrogateescape").decode(errors="backslashreplace")

    _send(_SLOT.sub(text_of, template), stream, end)


def _check_stream(stream: Stream) -> None:
    if stream is None or callable(stream) or isinstance(stream, (int, Writable)):
        return
    if not str(stream).startswith("file://"):
        raise ValueError(
            described(
                f"print cannot write to {shortened(stream)}.",
                fix='pass sys.stdout, sys.stderr, another stream, or "file:///path/to/file".',
            )
        )
    if stream == "file://":
        raise InvalidArgumentError(
            "print needs a path after file://.", fix='pass "file:///path/to/file".'
        )


def _send(text: str, stream: Stream, end: str) -> None:
    if isinstance(stream, int):
        logging.getLogger("evenfeed").log(stream, "%s", text)
    elif isinstance(stream, str):
        with open(stream.removeprefix("file://"), "a", encoding="utf-8", newline="") as file:
            file.write(text + end)
    elif stream is None or isinstance(stream, Writable):
        _write_out(text + end, sys.stderr if stream is None else stream)
    else:
        stream(text)


def _write_out(text: str, stream: Writable | None) -> None:
    if (
        stream is None
    ):  # a program without stderr, such as a daemon: `print` of Python writes nothing, too
        return
    stream.write(text)  # in one call, so that lines of several threads do not mix
    if isinstance(stream, io.IOBase):
        stream.flush()
