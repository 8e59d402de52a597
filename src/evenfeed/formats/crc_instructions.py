"""The processor's own instructions for CRC32C, for loops that Numba compiles: x86 has had them since 2008."""

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

# The libraries say nothing of their types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

# A checksum, and the next bytes as a number: the checksum with these.
Added: TypeAlias = Callable[[Any, Any], Any]


def has_instructions() -> bool:
    """Tell whether this processor has them."""
    features: Any = importlib.import_module("llvmlite.binding").get_host_cpu_features()
    return bool(features.get("sse4.2"))


def adding(size: int) -> Added:
    """Return what adds `size` bytes, 8 or 1, to a checksum: only compiled code can call it."""
    numba: Any = importlib.import_module("numba")
    extending: Any = importlib.import_module("numba.extending")
    ir: Any = importlib.import_module("llvmlite.ir")
    wide, word = ir.IntType(64 if size == 8 else 32), ir.IntType(8 * size)
    name = f"llvm.x86.sse42.crc32.{wide.width}.{word.width}"

    def added(typing: Any, crc: Any, data: Any) -> Any:
        del typing, crc, data
        number = numba.types.uint64

        def written(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            del context, signature
            module = builder.module
            kind = ir.FunctionType(wide, [wide, word])
            called = module.globals.get(name) or ir.Function(module, kind, name)
            narrow = [builder.trunc(given[0], wide), builder.trunc(given[1], word)]
            return builder.zext(builder.call(called, narrow), ir.IntType(64))

        return number(number, number), written

    return extending.intrinsic(added)
