"""Modules that are loaded when something of theirs is first used, so that `import evenfeed` is quick.

The modules of Python's own that few programs need stand here, and the libraries that read formats; JAX
has a door of its own, which only the layers that compute may open (`jax_door`).
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = [
    "Door",
    "array_record",
    "ctypes",
    "descriptor_pb2",
    "descriptor_pool",
    "difflib",
    "dis",
    "glob",
    "google_crc32c",
    "hashlib",
    "logging",
    "message_factory",
    "multiprocessing_spawn",
    "pil_image",
    "pprint",
    "random",
    "resource",
    "shutil",
    "simplejpeg",
    "socket",
    "subprocess",
    "tarfile",
]


class Door(ModuleType):
    """A module that is imported at its first attribute."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        if callable(value):  # functions stay what they are; settings may change
            self.__dict__[name] = value
        return value


if TYPE_CHECKING:
    import ctypes
    import difflib
    import dis
    import glob
    import hashlib
    import logging
    import pprint
    import random
    import resource
    import shutil
    import socket
    import subprocess
    import tarfile
    from multiprocessing import spawn as multiprocessing_spawn

    import array_record.python.array_record_module as array_record  # pyright: ignore
    import google_crc32c
    import simplejpeg  # pyright: ignore[reportMissingTypeStubs]
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from PIL import Image as pil_image  # noqa: N813 - a module
else:
    array_record = Door("array_record.python.array_record_module")
    ctypes = Door("ctypes")
    descriptor_pb2 = Door("google.protobuf.descriptor_pb2")
    descriptor_pool = Door("google.protobuf.descriptor_pool")
    difflib = Door("difflib")
    dis = Door("dis")
    glob = Door("glob")
    google_crc32c = Door("google_crc32c")
    hashlib = Door("hashlib")
    logging = Door("logging")
    message_factory = Door("google.protobuf.message_factory")
    multiprocessing_spawn = Door("multiprocessing.spawn")
    pil_image = Door("PIL.Image")
    pprint = Door("pprint")
    random = Door("random")
    resource = Door("resource")
    shutil = Door("shutil")
    simplejpeg = Door("simplejpeg")
    socket = Door("socket")
    subprocess = Door("subprocess")
    tarfile = Door("tarfile")
