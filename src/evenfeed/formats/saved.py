"""Saved datasets: a folder with files of pages, one for each shard, and one of JSON that says which.

The JSON file is written last, and under another name first. So a folder without it was not finished, and
one with it is whole. Saving again writes new files beside the old ones, which go when the new are there.
"""

import json
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from evenfeed.core.errors import DataLossError, InvalidArgumentError, NotFoundError
from evenfeed.core.spec_json import (
    part_from_json,
    structure_from_json,
    structure_to_json,
)
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.formats.filesystems import naming
from evenfeed.formats.page_files import Written
from evenfeed.formats.page_reader import PageFile

_FORMAT: Final = "evenfeed dataset 1"
_INDEX: Final = "dataset.json"
_BETWEEN_LOOKS: Final = 0.2  # seconds


@final
@dataclass(frozen=True)
class Saved:
    """A folder that holds a whole dataset.

    Attributes:
        path: The folder.
        content: What its JSON file says, checked to be what was written.
    """

    path: str
    content: Mapping[str, Any]

    @property
    def run(self) -> str:
        """Which of all savings into the folder it is."""
        return self.content["run"]

    @property
    def origin(self) -> Any:
        """Which pass over the dataset it holds, where its writer said so."""
        return self.content.get("pass", self.run)

    @property
    def files(self) -> tuple[PageFile, ...]:
        """The files, in the order of their shards."""
        return tuple(
            PageFile(os.path.join(self.path, name), Written(*written))
            for name, *written in self.content["files"]
        )

    @property
    def element_spec(self) -> Any:
        """The specs of the dataset that was saved."""
        parts = list(map(part_from_json, self.content["parts"]))
        return structure_from_json(self.content["structure"], parts)

    def spec_like(self, asked: Any) -> Any:
        """Return the specs that a user asks for, unless the elements are others."""
        if structure_to_json(asked) != self.content["structure"]:
            raise self._unlike(asked, "they are nested otherwise")
        leaves = flatten(asked, DATA)
        for mine, part, found in zip(
            leaves, self.content["parts"], self.content["found"], strict=True
        ):
            if not _fits(mine, part_from_json(part), found):
                raise self._unlike(asked, f"where it says {mine}, they have {found or part}")
        return asked

    def _unlike(self, asked: Any, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"The elements in {self.path} do not have the element_spec {asked}: {why}.",
            fix="leave element_spec out: the folder knows it.",
        )


def _fits(asked: Any, part: TypeSpec, found: Any) -> bool:
    """Tell whether all values of a part have the spec asked for; none were found in an empty dataset."""
    if not isinstance(asked, TypeSpec):
        return False
    return (
        asked.is_compatible_with(part)
        if found is None
        else part_from_json(found).is_subtype_of(asked)
    )


def find_saved(path: str) -> Saved | None:
    """Return what a folder holds; None where no dataset was saved there to its end."""
    file = Path(path, _INDEX)
    try:
        text = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        said = json.loads(text)
        if said["format"] != _FORMAT:
            raise DataLossError(
                f"{file} says {said['format']!r}, but this evenfeed reads {_FORMAT!r}.",
                fix="read it with the evenfeed that wrote it, or save the dataset again.",
            )
        if said["crc"] == _checksum(said["content"]):
            return Saved(path, said["content"])
    except (ValueError, KeyError, TypeError):
        pass
    raise DataLossError(f"{file} is damaged.", fix="save the dataset again.")


def load_saved(path: str, *, wait: bool = False) -> Saved:
    """Return what a folder holds; a NotFoundError that says why where there is no whole dataset.

    Args:
        path: The folder.
        wait: Wait until there is one.
    """
    while (found := find_saved(path)) is None and wait:
        time.sleep(_BETWEEN_LOOKS)
    if found is not None:
        return found
    if any(Path(path).glob("*/*.pages")):
        raise NotFoundError(
            f"The dataset in {path} is not complete: it is being saved, or its writer was stopped.",
            fix="save it again, or wait for it: load(path, wait=True).",
        )
    raise NotFoundError(
        f"There is no saved dataset in {path}: no file {os.path.join(path, _INDEX)}.",
        fix="save one first: dataset.save(path).",
    )


def write_index(path: str, content: dict[str, Any]) -> None:
    """Make a folder one that holds a whole dataset, at one blow."""
    index = Path(path, _INDEX)
    written = index.with_name(f"{_INDEX}.{content['run']}")
    said = {"format": _FORMAT, "crc": _checksum(content), "content": content}
    try:
        with naming(str(index)):
            with written.open("x") as file:
                json.dump(said, file)
                file.flush()
                os.fsync(file.fileno())
            written.replace(index)
    finally:
        written.unlink(missing_ok=True)


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
