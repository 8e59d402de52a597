"""Modules that are imported at first use, so that `import evenfeed` is fast.

They are standard library modules that few programs need, and libraries for file formats. JAX has its own module,
`lazy_jax`, which only some rooms may import.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from evenfeed.core.errors import described

__all__ = [
    "LazyModule",
    "array_record",
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
]


class LazyModule(ModuleType):
    """A module that is imported at the first attribute access."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        if callable(value) or isinstance(value, ModuleType):  # these do not change; settings may
            self.__dict__[name] = value
        return value


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
    import google_crc32c
    import orbax.checkpoint as orbax_checkpoint  # pyright: ignore
    import shtab
    import simplejpeg  # pyright: ignore[reportMissingTypeStubs]
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
    from PIL import Image as pil_image  # noqa: N813 - a module
else:
    array_record = LazyModule("array_record.python.array_record_module")
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
