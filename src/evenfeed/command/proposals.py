"""The features of Examples in record files, and a `feature_description` for them to paste."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from evenfeed.command.value_texts import Values
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.example.example_protos import parsed

_DTYPES: Final = {"bytes_list": "string", "float_list": "float32", "int64_list": "int64"}


@dataclass
class RecordFeature:
    """A feature of Examples: the kinds and counts of its values in the records that were looked at."""

    name: str
    kinds: set[str] = field(default_factory=set[str])
    counts: set[int] = field(default_factory=set[int])
    arrays: list[Any] = field(default_factory=list[Any])
    steps: bool = False  # a feature list of a SequenceExample

    def add(self, feature: Any) -> Any:
        """Count the values of one record, and return them."""
        kind = feature.WhichOneof("kind")
        values = list(getattr(feature, kind).value) if kind else []
        if kind:
            self.kinds.add(kind)
        self.counts.add(len(values))
        return self.keep(np.array(values, object if kind == "bytes_list" else None))

    def keep(self, array: Any) -> Any:
        """Keep the values of one record, and return them."""
        self.arrays.append(array)
        return array

    @property
    def dtype(self) -> str:
        """The dtype, or several if records disagree."""
        return " or ".join(sorted(_DTYPES[kind] for kind in self.kinds)) or "string"

    @property
    def shape(self) -> str:
        """The shape: of each step, if there are steps."""
        counts = sorted(self.counts)
        values = "()" if counts == [1] else f"({counts[0]},)" if len(counts) == 1 else "(None,)"
        return f"steps of {values}" if self.steps else values

    @property
    def values(self) -> Values:
        """The values in the records."""
        return Values(self.name, self.arrays)

    def proposal(self, records: int) -> str:
        """Return the code of the feature, with the number of records that were looked at."""
        counts, dtype = sorted(self.counts), f"tf.{self.dtype.split(' ')[0]}"
        if len(counts) > 1 or counts == [0] or (not self.steps and len(self.arrays) < records):
            return f"tf.io.VarLenFeature({dtype})"
        shape = "[]" if counts == [1] else f"[{counts[0]}]"
        class_ = "FixedLenSequenceFeature" if self.steps else "FixedLenFeature"
        return f"tf.io.{class_}({shape}, {dtype})"


@dataclass(frozen=True)
class Proposal:
    """What records hold, and how to parse them."""

    message: str
    features: Sequence[RecordFeature]
    rows: Sequence[dict[str, Any]]
    code: str
    parser: str


def proposed(records: Sequence[bytes]) -> Proposal | None:
    """Return the features of records that are Examples or SequenceExamples; None for other records."""
    messages = _parsed(records)
    if not messages:
        return None
    context, steps = _Features(), _Features()
    rows: list[dict[str, Any]] = []
    for message in messages:
        row = context.added(message.context.feature)
        rows.append(row | steps.added_steps(message.feature_lists.feature_list))
    if steps.found:
        code = f"context_features = {context.code(len(rows))}\nsequence_features = {steps.code(len(rows))}"
        parser = "lambda record: tf.io.parse_single_sequence_example(record, context_features, sequence_features)"
        return Proposal("tf.train.SequenceExample", [*context, *steps], rows, code, parser)
    code = f"feature_description = {context.code(len(rows))}"
    parser = "lambda record: tf.io.parse_single_example(record, feature_description)"
    return Proposal("tf.train.Example", list(context), rows, code, parser)


def _parsed(records: Sequence[bytes]) -> list[Any]:
    """Return records as SequenceExamples, which Examples are too, without feature lists; none if one is something else."""
    try:
        messages = [parsed("SequenceExample", record, row) for row, record in enumerate(records)]
    except InvalidArgumentError:
        return []
    named = all(
        message.context.feature or message.feature_lists.feature_list for message in messages
    )
    return messages if named else []


class _Features:
    """Features by name, as they are found."""

    def __init__(self) -> None:
        self.found: dict[str, RecordFeature] = {}

    def __iter__(self) -> Any:
        return iter(self.found[name] for name in sorted(self.found))

    def added(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """Add the features of an Example, and return its values."""
        return {name: self._of(name).add(features[name]) for name in sorted(features)}

    def added_steps(self, lists: Mapping[str, Any]) -> dict[str, Any]:
        """Add the feature lists of a SequenceExample, and return its values."""
        return {name: self._steps(name, lists[name].feature) for name in sorted(lists)}

    def _steps(self, name: str, steps: Iterable[Any]) -> Any:
        feature = self._of(name)
        feature.steps = True
        before = len(feature.arrays)
        for step in steps:
            feature.add(step)
        added = feature.arrays[before:]
        return np.concatenate(added) if added else np.zeros(0)

    def _of(self, name: str) -> RecordFeature:
        return self.found.setdefault(name, RecordFeature(name))

    def code(self, records: int) -> str:
        """Return the code of a dict with the features."""
        if not self.found:
            return "{}"
        lines = "".join(f"    {f.name!r}: {f.proposal(records)},\n" for f in self)
        return f"{{\n{lines}}}"
