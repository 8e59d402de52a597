"""Modules that are imported at first use, so that `import evenfeed` is fast.

They are standard library modules that few programs need, and libraries for file formats. JAX has its own module,
`lazy_jax`, which only some rooms may import.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

from evenfeed.core.errors import described

__all__ = [
    "LazyModule",
    "array_record",
    "cloudpickle",
    "ctypes",
    "descriptor_pb2",
    "descriptor_pool",
    "difflib",
    "dis",
    "fcntl",
    "glob",
    "google_crc32c",
    "hashlib",
    "installed",
    "json_format",
    "logging",
    "message_factory",
    "multiprocessing_spawn",
    "orbax_checkpoint",
    "pil_image",
    "pprint",
    "random",
    "resource",
    "shtab",
    "shutil",
    "simplejpeg",
    "socket",
    "sqlite3",
    "subprocess",
    "tarfile",
    "when_imported",
]


class LazyModule(ModuleType):
    """A module that is imported at the first attribute access."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        if callable(value) or isinstance(value, ModuleType):  # these do not change; settings may
            self.__dict__[name] = value
        return value


@final
class _ImportHook:
    """Calls functions before and after the program imports a module. It finds no modules itself."""

    def __init__(
        self, name: str, before: Callable[[], object] | None, after: Callable[[], object]
    ) -> None:
        self._name = name
        self._before = before
        self._after = after

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Let the other finders find the module, and wait until it is loaded."""
        del path, target
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        if self._before is not None:
            self._before()
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def loaded(module: Any) -> None:
            load(module)
            self._after()

        spec.loader.exec_module = loaded
        return spec


def when_imported(
    name: str, after: Callable[[], object], before: Callable[[], object] | None = None
) -> None:
    """Call `after` once the program has imported a module, and `before` just before that; `after` now if it has."""
    if name in sys.modules:
        after()
    else:
        sys.meta_path.insert(0, _ImportHook(name, before, after))


def installed(module: ModuleType, what: str, fix: str) -> Any:
    """Import a lazy module and return it. If it is not installed, an ImportError says what needs it, and the fix."""
    try:
        importlib.import_module(module.__name__)
    except ImportError as error:
        raise ImportError(described(what, fix=fix)) from error
    return module


if TYPE_CHECKING:
    import ctypes
    import difflib
    import dis
    import fcntl
    import glob
    import hashlib
    import logging
    import pprint
    import random
    import resource
    import shutil
    import socket
    import sqlite3
    import subprocess
    import tarfile
    from multiprocessing import spawn as multiprocessing_spawn

    import array_record.python.array_record_module as array_record  # pyright: ignore
    import cloudpickle  # pyright: ignore
    import google_crc32c
    import orbax.checkpoint as orbax_checkpoint  # pyright: ignore
    import shtab
    import simplejpeg  # pyright: ignore[reportMissingTypeStubs]
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
    from PIL import Image as pil_image  # noqa: N813 - a module
else:
    array_record = LazyModule("array_record.python.array_record_module")
    cloudpickle = LazyModule("cloudpickle")
    ctypes = LazyModule("ctypes")
    descriptor_pb2 = LazyModule("google.protobuf.descriptor_pb2")
    descriptor_pool = LazyModule("google.protobuf.descriptor_pool")
    difflib = LazyModule("difflib")
    dis = LazyModule("dis")
    fcntl = LazyModule("fcntl")
    glob = LazyModule("glob")
    google_crc32c = LazyModule("google_crc32c")
    hashlib = LazyModule("hashlib")
    json_format = LazyModule("google.protobuf.json_format")
    logging = LazyModule("logging")
    message_factory = LazyModule("google.protobuf.message_factory")
    multiprocessing_spawn = LazyModule("multiprocessing.spawn")
    orbax_checkpoint = LazyModule("orbax.checkpoint")
    pil_image = LazyModule("PIL.Image")
    pprint = LazyModule("pprint")
    random = LazyModule("random")
    resource = LazyModule("resource")
    shtab = LazyModule("shtab")
    shutil = LazyModule("shutil")
    simplejpeg = LazyModule("simplejpeg")
    socket = LazyModule("socket")
    sqlite3 = LazyModule("sqlite3")
    subprocess = LazyModule("subprocess")
    tarfile = LazyModule("tarfile")
