"""The `columns` and `fill_null` arguments of table readers, checked against the schemas of the files."""

from collections.abc import Sequence
from typing import Any, cast, final

from evenfeed.core.conversion import shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy import difflib
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.tables.arrow_columns import spec_of
from evenfeed.formats.tables.table_parts import RowFilter, Wanted


@final
class Choice:
    """The columns to read from several files. The first file defines their types; the others must match.

    Attributes:
        specs: The spec of each column by name, in the requested order.
    """

    def __init__(self, columns: Any, fill_null: Any, row_filter: RowFilter | None = None) -> None:
        self._columns = columns
        self._fill_null = fill_null
        self._filter = row_filter
        self._first: tuple[str, Any, Wanted] | None = None
        self.specs: dict[str, Any] = {}

    def of(self, path: str, schema: Any) -> Wanted:
        """Return what to read from a file with this schema."""
        if self._first is None:
            names = _names(self._columns, path, schema)
            self.specs = {name: _spec_in(path, schema, name) for name in names}
            fills = _checked_fills(self._fill_null, self.specs, path)
            wanted = Wanted(tuple(sorted(self.specs)), self._filter, fills)
            self._first = path, schema, wanted
        else:
            first_path, first, wanted = self._first
            _check_alike(path, schema, first_path, first, wanted.columns)
        return wanted


def _names(columns: Any, path: str, schema: Any) -> list[str]:
    if columns is None:
        columns = list(schema.names)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(
            described(
                f"columns must be a list of names, but got {shortened(columns)}.",
                fix="pass columns=['name', ...], or None for all.",
            )
        )
    names = list(cast("Sequence[str]", columns))
    for name in names:
        if name not in schema.names:
            raise _no_column(path, name, schema.names)
        if schema.names.count(name) > 1:
            raise InvalidArgumentError(
                f"{path} has more than one column {name!r}.", fix="leave it out with columns=[...]."
            ).in_file(path)
    return names


def _spec_in(path: str, schema: Any, name: str) -> Any:
    try:
        return spec_of(schema.field(name).type, name)
    except InvalidArgumentError as error:
        what = f"{path} cannot be read: {error.message}"
        raise InvalidArgumentError(what, fix=error.fix).in_file(path) from error


def _no_column(path: str, name: Any, names: list[str]) -> InvalidArgumentError:
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InvalidArgumentError(
        f"{path} has no column {name!r}.", fix=f"{hint}its columns are {names}."
    ).in_file(path)


def _check_alike(
    path: str, schema: Any, first_path: str, first: Any, names: tuple[str, ...]
) -> None:
    for name in names:
        if name not in schema.names:
            raise _no_column(path, name, schema.names)
        one, other = first.field(name).type, schema.field(name).type
        if _spec_in(first_path, first, name) != _spec_in(path, schema, name):
            raise InvalidArgumentError(
                f"Column {name!r} has type {other} in {path}, but {one} in {first_path}.",
                fix="pass files whose columns have the same types.",
            ).in_file(path)


def _checked_fills(fill_null: Any, specs: dict[str, Any], path: str) -> tuple[tuple[str, Any], ...]:
    fills = tuple(sorted(dict(fill_null).items())) if fill_null is not None else ()
    for name, value in fills:
        spec = _spec_at(specs, name.split("."))
        if not isinstance(spec, TensorSpec):
            raise _no_column(path, name, list(specs))
        try:
            fits = not spec.shape.rank and to_array(value, spec.dtype).ndim == 0
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidArgumentError(
                f"fill_null has {value!r} for column {name!r}, whose spec is {spec}.",
                fix="pass a scalar of the column's dtype; nulls in lists cannot be filled.",
            )
    return fills


def _spec_at(specs: Any, names: list[str]) -> Any:
    for name in names:
        specs = cast("dict[str, Any]", specs).get(name) if isinstance(specs, dict) else None
    return specs
