"""WebDataset shards: tar files in which neighbours with one name, up to its first dot, are a sample."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any, ClassVar, Final, final

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Positions
from evenfeed.core.errors import DataLossError, EvenfeedError, InvalidArgumentError
from evenfeed.core.lazy import tarfile
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.bytes.byte_windows import ByteFile, written
from evenfeed.formats.bytes.filesystems import open_file
from evenfeed.formats.chunks import bytes_column
from evenfeed.formats.reader import Reader

KEY: Final = "__key__"


@final
@dataclass(frozen=True)
class TarSample:
    """The files of a tar file that belong together.

    Attributes:
        key: What their names have in common.
        places: By the ends of their names, the first byte and the length of each.
    """

    key: str
    places: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@final
@dataclass(frozen=True)
class TarShard(ByteFile):
    """A tar file, of whose samples some parts are wanted."""

    read_by: ClassVar[str] = "from_webdataset"

    parts: tuple[str, ...] = ()

    @property
    def rows(self) -> int | None:
        """How many samples; None where the file is no good, which is said when its turn comes."""
        try:
            return len(samples_in(self.path))
        except EvenfeedError:
            return None

    @property
    def extent(self) -> tuple[int, int]:
        """The whole file."""
        return 0, self.bytes

    @property
    def _kind(self) -> str:
        return f"{super()._kind} {self.parts}"

    def open(self) -> "TarReader":
        """Open it."""
        return TarReader(self)


@final
class TarReader(Reader):
    """Reads samples by their numbers; the file is open only while it is read."""

    def __init__(self, shard: TarShard) -> None:
        self.path = shard.path
        self._parts = shard.parts
        self._samples = samples_in(shard.path)

    @property
    def goes_on(self) -> bool:
        """Each sample has a place of its own."""
        return True

    def read(self, start: int, count: int) -> Block | None:
        """Return samples from `start` on, up to one that lacks a part."""
        rows: list[list[bytes]] = []
        with open_file(self.path) as file:
            for sample in self._samples[start : start + count]:
                if rows and any(part not in sample.places for part in self._parts):
                    break  # those before it come first
                rows.append(self._row(file, sample))
        return _block(rows) if rows else None

    def fetch(self, positions: Positions) -> Block:
        """Return the samples at `positions`, in that order."""
        with open_file(self.path) as file:
            return _block([self._row(file, self._samples[int(at)]) for at in positions])

    def byte_of(self, row: int) -> int | None:
        """Return where the first of its files begins."""
        return _first_byte(self._samples[row])

    def _row(self, file: IO[bytes], sample: TarSample) -> list[bytes]:
        key = sample.key.encode(errors="surrogateescape")  # the bytes of the file, UTF-8 or not
        return [key, *(self._part(file, sample, part) for part in self._parts)]

    def _part(self, file: IO[bytes], sample: TarSample, part: str) -> bytes:
        if part not in sample.places:
            raise InvalidArgumentError(
                f"{self.path}: sample {sample.key!r} has no {part!r}, only {sorted(sample.places)}.",
                fix="name the parts that all samples have: from_webdataset(paths, parts=[…]).",
            ).in_file(self.path, _first_byte(sample))
        start, length = sample.places[part]
        file.seek(start)
        content = file.read(length)
        if len(content) < length:
            raise DataLossError(
                f"{self.path} ends at byte {start + len(content)}, in {sample.key}.{part}."
            ).in_file(self.path, start + len(content))
        return content


def shards(paths: list[str], parts: Any) -> tuple[Any, tuple[TarShard, ...]]:
    """Return the spec of the samples in files, and the files; the first sample says what the parts are."""
    wanted = sorted(map(str, parts)) if parts is not None else _first_parts(paths)
    text = TensorSpec([], dtypes.string)
    spec = dict.fromkeys([KEY, *wanted], text)
    return spec, tuple(TarShard(path, parts=tuple(wanted)) for path in paths)


def _first_parts(paths: list[str]) -> list[str]:
    for path in paths:
        for sample in samples_in(path):
            return sorted(sample.places)
    raise InvalidArgumentError(
        "No sample tells what its parts are.",
        fix='say it: from_webdataset(paths, parts=["jpg", "cls"]).',
    )


def samples_in(path: str) -> list[TarSample]:
    """Return where the samples of a tar file are, by a look at the names in it."""
    return _samples(path, written(path))


@lru_cache(maxsize=1024)
def _samples(path: str, _: str) -> list[TarSample]:
    found: list[TarSample] = []
    try:
        with open_file(path) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                if member.isfile():
                    _add(found, member)
            _check_end(file, tar.offset, path)
    except tarfile.TarError as error:
        raise DataLossError(
            f"{path} is no whole tar file: {error}", fix="unpack compressed files before."
        ) from error
    return found


def _check_end(file: IO[bytes], offset: int, path: str) -> None:
    """Raise unless blocks of zeros stand where the headers end: Python's library stops at any other block too."""
    file.seek(offset)
    block = file.read(tarfile.BLOCKSIZE)
    if len(block) == tarfile.BLOCKSIZE and not any(block):
        return
    why = "a header there is damaged" if len(block) == tarfile.BLOCKSIZE else "it is cut off there"
    raise DataLossError(
        f"{path} is no whole tar file from byte {offset} on: {why}.", fix="write it again."
    ).in_file(path, offset)


def _add(found: list[TarSample], member: "tarfile.TarInfo") -> None:
    folder, slash, name = member.name.rpartition("/")
    stem, _, end = name.partition(".")
    key = folder + slash + stem
    if not found or found[-1].key != key:
        found.append(TarSample(key))
    found[-1].places[end] = member.offset_data, member.size


def _first_byte(sample: TarSample) -> int:
    return min(start for start, _ in sample.places.values())


def _block(rows: list[list[bytes]]) -> Block:
    return Block(tuple(bytes_column(list(parts)) for parts in zip(*rows, strict=True)), len(rows))
