"""JAX in a fork: an error in place of a wait without end, and an exit that ends.

A fork does not have the threads of its parent. XLA compiles, copies and computes in threads, so a fork of a process in which
JAX's backend runs would wait for them forever: in the first program, and again when Python releases the backend at exit.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any, Final, NoReturn, final

from evenfeed.core.errors import FailedPreconditionError
from evenfeed.core.lazy import ctypes

_BRIDGE: Final = "jax._src.xla_bridge"  # the module that starts backends
_COMPILER: Final = "jax._src.compiler"


@final
class _Fork:
    """Whether this process is a fork of one in which JAX's backend runs.

    Attributes:
        of: The process whose backend it was; None in all other processes.
    """

    def __init__(self) -> None:
        self.of: int | None = None

    def check(self) -> None:
        """Raise if JAX cannot run a program here.

        Raises:
            FailedPreconditionError: This process is a fork of one in which JAX's backend runs.
        """
        if self.of is not None:
            self.refuse()

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise the error: JAX has no threads here."""
        raise FailedPreconditionError(
            f"This process is a fork of process {self.of}, which had started JAX: JAX cannot run programs in a "
            "fork, which does not have its threads.",
            fix="start processes with multiprocessing.get_context('spawn') or 'forkserver' (in torch's DataLoader: "
            "multiprocessing_context='spawn'), or fork before the first use of JAX.",
        )

    def after_fork(self) -> None:
        """Let the exit of a fork end, and new programs raise."""
        clients: Mapping[str, Any] = getattr(sys.modules.get(_BRIDGE), "_backends", {})
        if not clients or self.of is not None:
            return
        self.of = os.getppid()
        for client in clients.values():  # Python never releases them, which would join the threads
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
        compiler: Any = sys.modules.get(_COMPILER)
        if compiler is not None:
            compiler.compile_or_get_cached = self.refuse


fork: Final = _Fork()
os.register_at_fork(after_in_child=fork.after_fork)
