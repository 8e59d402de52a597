"""Local and remote files and directories: TensorFlow's `tf.io.gfile`."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from evenfeed.core.concurrency.progress import LongWork
from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from evenfeed.core.publish import publish, refusal
from evenfeed.formats.bytes import filesystems
from evenfeed.formats.bytes.filesystems import GFile, matching_paths, naming, path_in

__all__ = [
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


class FileStatistics(NamedTuple):
    """The result of `stat`."""

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: Any) -> bool:
    """Return True if a path is an existing file or directory.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.gfile.exists("no-such-file")
        False
    """
    filesystem, inner = _found(path)
    return filesystem.exists(inner)


def isdir(path: Any) -> bool:
    """Return True if a path is an existing directory.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.gfile.isdir(".")
        True
    """
    filesystem, inner = _found(path)
    return filesystem.isdir(inner)


def listdir(path: Any) -> list[str]:
    """Return the sorted names of the entries of a directory.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.gfile.makedirs(folder.name + "/b/c")
        >>> tf.io.gfile.listdir(folder.name)
        ['b']
        >>> folder.cleanup()
    """
    filesystem, inner = _found(path)
    if not filesystem.isdir(inner):
        raise NotFoundError(f"Could not find directory {path}.", fix="check the path.")
    with naming(str(path)):
        return sorted(
            os.path.basename(name.rstrip("/")) for name in filesystem.ls(inner, detail=False)
        )


def get_registered_schemes() -> list[str]:
    """Return the schemes that paths may begin with: "" and "file" for local files, and those that fsspec knows.

    Some of them need a package of their own, which the error names if it is missing.

    Examples:
        >>> import evenfeed as tf
        >>> "" in tf.io.gfile.get_registered_schemes()
        True
    """
    return ["", *sorted({"file", *filesystems.remote_schemes()})]


def glob(pattern: Any) -> list[str]:
    """Return the sorted names of all files that match one or more patterns with `*`, `?` and `[...]`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.gfile.glob("no-such-folder/*")
        []
    """
    is_one = is_tensor(pattern) or isinstance(pattern, (str, bytes, os.PathLike, list, tuple))
    several = isinstance(pattern, Iterable) and not is_one
    return matching_paths(list(cast("Iterable[Any]", pattern)) if several else pattern, "pattern")


def mkdir(path: Any) -> None:
    """Create a directory, whose parent must exist. Does nothing if it exists already.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.gfile.mkdir(folder.name + "/a")
        >>> tf.io.gfile.isdir(folder.name + "/a")
        True
        >>> folder.cleanup()
    """
    if not exists(path):
        filesystem, inner = _found(path)
        with naming(str(path)):
            filesystem.mkdir(inner, create_parents=False)


def makedirs(path: Any) -> None:
    """Create a directory and its missing parents. Does nothing if it exists already.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.gfile.makedirs(folder.name + "/a/b")
        >>> tf.io.gfile.isdir(folder.name + "/a/b")
        True
        >>> folder.cleanup()
    """
    filesystem, inner = _found(path)
    if filesystem.exists(inner) and not filesystem.isdir(inner):
        raise FailedPreconditionError(f"{path} is not a directory.", fix="choose another path.")
    with naming(str(path)):
        filesystem.makedirs(inner, exist_ok=True)


def remove(path: Any) -> None:
    """Remove a file.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/a", "")
        >>> tf.io.gfile.remove(folder.name + "/a")
        >>> tf.io.gfile.listdir(folder.name)
        []
        >>> folder.cleanup()
    """
    filesystem, inner = _found(path)
    with naming(str(path)):
        if filesystem.isdir(inner):
            raise IsADirectoryError(inner)
        filesystem.rm_file(inner)


def rmtree(path: Any) -> None:
    """Remove a directory and everything in it.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/a/b", "")
        >>> tf.io.gfile.rmtree(folder.name + "/a")
        >>> tf.io.gfile.listdir(folder.name)
        []
        >>> folder.cleanup()
    """
    filesystem, inner = _found(path)
    with naming(str(path)):
        filesystem.rm(inner, recursive=True)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Rename a file or a directory, within the same filesystem.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/a", "")
        >>> tf.io.gfile.rename(folder.name + "/a", folder.name + "/b")
        >>> tf.io.gfile.listdir(folder.name)
        ['b']
        >>> folder.cleanup()
    """
    _check_free(dst, overwrite=overwrite)
    filesystem, inner = _found(src)
    with naming(str(src)):
        filesystem.mv(inner, _found(dst)[1])


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file, also between different filesystems.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/a", "text")
        >>> tf.io.gfile.copy(folder.name + "/a", folder.name + "/b")
        >>> tf.io.read_file(folder.name + "/b").item()
        b'text'
        >>> folder.cleanup()
    """
    _check_free(dst, overwrite=overwrite)
    source, target = path_in(src, "src"), path_in(dst, "dst")
    with (
        filesystems.naming(target),
        filesystems.open_file(source) as read,
        filesystems.open_file(target, "wb") as written,
        LongWork(f"Copying {source}", _size(read)) as progress,
    ):
        while part := read.read(1 << 20):
            written.write(part)
            progress.add(len(part))


def _size(file: Any) -> int | None:
    """Return the size of an open file; None if its storage does not say it."""
    if not file.seekable():
        return None
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def stat(path: Any) -> FileStatistics:
    """Return the length and the modification time of a file or a directory.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/a", "text")
        >>> tf.io.gfile.stat(folder.name + "/a").length
        4
        >>> folder.cleanup()
    """
    filesystem, inner = _found(path)
    with naming(str(path)):
        info = filesystem.info(inner)
    written = int(float(info.get("mtime") or 0) * 1e9)
    return FileStatistics(int(info["size"] or 0), written, info["type"] == "directory")


def walk(
    top: Any, topdown: bool = True, onerror: Any = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each directory of a tree, with the names of its directories and of its files.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/a/b", "")
        >>> [(folders, files) for _, folders, files in tf.io.gfile.walk(folder.name)]
        [(['a'], []), ([], ['b'])]
        >>> folder.cleanup()
    """
    try:
        names = listdir(top)
    except NotFoundError as error:
        if onerror is not None:
            onerror(error)
        return
    here = path_in(top, "top")
    folders = [name for name in names if isdir(join(here, name))]
    found = here, folders, [name for name in names if name not in folders]
    if topdown:
        yield found
    for name in folders:
        yield from walk(join(here, name), topdown, onerror)
    if not topdown:
        yield found


def join(path: Any, *paths: Any) -> str:
    """Join the parts of a path. A part that starts with a slash discards the parts before it.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.gfile.join("gs://bucket", "folder", "file")
        'gs://bucket/folder/file'
    """
    return os.path.join(path_in(path, "path"), *(path_in(part, "paths") for part in paths))


def _found(path: Any) -> tuple[Any, str]:
    return filesystems.filesystem(path_in(path, "path"))


def _check_free(path: Any, *, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise AlreadyExistsError(f"{path} already exists.", fix="pass overwrite=True.")


publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
