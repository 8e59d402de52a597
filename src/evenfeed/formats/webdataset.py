"""WebDataset shards: tar files in which adjacent members form a sample if their names agree up to the first dot."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any, ClassVar, Final, NamedTuple, final

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Positions
from evenfeed.core.errors import DataLossError, EvenfeedError, InvalidArgumentError
from evenfeed.core.lazy import tarfile
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.bytes.byte_windows import ByteFile, written
from evenfeed.formats.bytes.filesystems import is_remote
from evenfeed.formats.bytes.same_files import SameFileOpener
from evenfeed.formats.reader import Reader, bytes_column

KEY: Final = "__key__"


@final
@dataclass(frozen=True)
class TarSample:
    """The members of a tar file that form one sample.

    Attributes:
        key: The common part of their names.
        places: The first byte and length of each member, by extension.
    """

    key: str
    places: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@final
@dataclass(frozen=True)
class TarShard(ByteFile):
    """A tar file, and the parts to read of each sample."""

    read_by: ClassVar[str] = "from_webdataset"

    parts: tuple[str, ...] = ()

    @property
    def rows(self) -> int | None:
        """The number of samples; None if the file is damaged, which raises when the file is read."""
        try:
            return len(samples_in(self.path).samples)
        except EvenfeedError:
            return None

    @property
    def extent(self) -> tuple[int, int]:
        return 0, self.bytes

    @property
    def _kind(self) -> str:
        return f"{super()._kind} {self.parts}"

    def open(self) -> "TarReader":
        return TarReader(self)


@final
class TarReader(Reader):
    """Reads samples by number. The file is open only during a read."""

    def __init__(self, shard: TarShard) -> None:
        self.path = shard.path
        self._parts = shard.parts
        scanned = samples_in(shard.path)
        self._samples, self._file = scanned.samples, scanned.file

    @property
    def goes_on(self) -> bool:
        return True

    def read(self, start: int, count: int) -> Block | None:
        """Return samples from `start` on, up to the first that lacks a part."""
        rows: list[list[bytes]] = []
        with self._file.open() as file:
            for sample in self._samples[start : start + count]:
                if rows and any(part not in sample.places for part in self._parts):
                    break  # the samples before it come first; the next read raises
                rows.append(self._row(file, sample))
            self._file.check(file)
        return _block(rows) if rows else None

    def fetch(self, positions: Positions) -> Block:
        with self._file.open() as file:
            rows = [self._row(file, self._samples[int(at)]) for at in positions]
            self._file.check(file)
        return _block(rows)

    def byte_of(self, row: int) -> int | None:
        """Return the byte at which the first member of the sample starts."""
        return _first_byte(self._samples[row])

    def _row(self, file: IO[bytes], sample: TarSample) -> list[bytes]:
        # Restores the original bytes, even if they are not UTF-8.
        key = sample.key.encode(errors="surrogateescape")
        return [key, *(self._part(file, sample, part) for part in self._parts)]

    def _part(self, file: IO[bytes], sample: TarSample, part: str) -> bytes:
        if part not in sample.places:
            raise InvalidArgumentError(
                f"{self.path}: sample {sample.key!r} has no {part!r}, only {sorted(sample.places)}.",
                fix="pass only parts that every sample has: from_webdataset(paths, parts=[…]).",
            ).in_file(self.path, _first_byte(sample))
        start, length = sample.places[part]
        file.seek(start)
        content = file.read(length)
        if len(content) < length:
            raise DataLossError(
                f"{self.path} ends at byte {start + len(content)}, in the middle of {sample.key}.{part}.",
                fix="write the file again.",
            ).in_file(self.path, start + len(content))
        return content


def shards(paths: list[str], parts: Any) -> tuple[Any, tuple[TarShard, ...]]:
    """Return the element spec and the shards. Without `parts`, the first sample defines them."""
    if any(map(is_remote, paths)):  # the cache key does not tell whether they were rewritten
        _samples.cache_clear()
    wanted = sorted(map(str, parts)) if parts is not None else _first_parts(paths)
    text = TensorSpec([], dtypes.string)
    spec = dict.fromkeys([KEY, *wanted], text)
    return spec, tuple(TarShard(path, parts=tuple(wanted)) for path in paths)


def _first_parts(paths: list[str]) -> list[str]:
    for path in paths:
        for sample in samples_in(path).samples:
            return sorted(sample.places)
    raise InvalidArgumentError(
        "The files have no sample to infer the parts from.",
        fix='pass them: from_webdataset(paths, parts=["jpg", "cls"]).',
    )


class ScannedTar(NamedTuple):
    """The samples of a tar file, and the file in which they were found."""

    samples: list[TarSample]
    file: SameFileOpener


def samples_in(path: str) -> ScannedTar:
    """Return the samples of a tar file and their places, from its headers."""
    return _samples(path, written(path))


@lru_cache(maxsize=1024)
def _samples(path: str, _: str) -> ScannedTar:
    found: list[TarSample] = []
    opener = SameFileOpener(path)
    try:
        with opener.open() as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                if member.isfile():
                    _add(found, member)
            _check_end(file, tar.offset, path)
    except tarfile.TarError as error:
        raise DataLossError(
            f"{path} is not a complete tar file: {error}",
            fix="decompress the file first, or write it again.",
        ).in_file(path) from error
    return ScannedTar(found, opener)


def _check_end(file: IO[bytes], offset: int, path: str) -> None:
    """Raise unless the headers end with a block of zeros. `tarfile` stops silently at a damaged header, too."""
    file.seek(offset)
    block = file.read(tarfile.BLOCKSIZE)
    if len(block) == tarfile.BLOCKSIZE and not any(block):
        return
    why = "the header is damaged" if len(block) == tarfile.BLOCKSIZE else "the file is cut off"
    raise DataLossError(
        f"{path} is not a complete tar file: {why} at byte {offset}.", fix="write the file again."
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
