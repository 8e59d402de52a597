"""`evenfeed inspect`: shows what is in files, and the code that reads them."""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenfeed.command.file_kinds import by_kind
from evenfeed.command.html_page import page_of
from evenfeed.command.looking import SAMPLE, Report, reports_of
from evenfeed.command.value_texts import array_of, as_bytes, readable, shown_value


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    inspect = commands.add_parser(
        "inspect",
        help="show what is in files, and the code that reads them",
        description="Shows the rows, features, shapes and types in files of TFRecord, ArrayRecord, Parquet, Arrow, CSV, "
        "JSON Lines, text, WebDataset, NumPy, pictures and saved datasets, and the code that reads them.",
    )
    inspect.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, a directory, or a pattern"
    )
    inspect.add_argument(
        "--rows", type=_rows, default=3, help="number of rows to show (default: 3)"
    )
    inspect.add_argument("--json", action="store_true", help="print JSON")
    inspect.add_argument(
        "--html", metavar="FILE", help="write a page with the rows, and the pictures in them"
    )
    inspect.set_defaults(act=act)


def _rows(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be at least 0, but got {text}")
    return int(text)


def act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Look at the files, and print what is in them."""
    del parser
    reports: list[Report] = []
    kinds, failed = by_kind(given.paths)
    for kind, paths in kinds.items():
        found, unknown = reports_of(kind, paths, given.rows)
        reports += found
        failed += unknown
    if given.json:
        print(json.dumps([_as_json(report) for report in reports], indent=2))
    elif reports:
        print("\n\n".join(_as_text(report) for report in reports))
    if given.html:
        page = page_of(reports)
        Path(given.html).write_text(page, encoding="utf-8", errors="backslashreplace")
    for one in failed:
        print(f"evenfeed inspect: {one}", file=sys.stderr)
    return int(bool(failed))


def _as_text(report: Report) -> str:
    files = report.paths[0] if len(report.paths) == 1 else f"{len(report.paths):,} files"
    rows = (
        "rows not counted"
        if report.rows is None
        else f"{report.rows:,} row{'s' * (report.rows != 1)}"
    )
    lines = [f"{files}: {report.kind}, {rows}, {_size(report.bytes)}"]
    if report.holds != "a row":
        lines.append(f"Each row is a {report.holds}.")
    lines += report.notes
    if report.features:
        lines += ["", f"Features, in up to {SAMPLE} rows:", *_table(report)]
    if report.sample:
        lines += ["", "First rows:"]
    for row in report.sample:
        values = [f"{name or 'row'}: {shown_value(value)}" for name, value in row.items()]
        lines.append("  " + ", ".join(values))
    lines += ["", "To read it:", *(f"  {line}" for line in report.code.splitlines())]
    return "\n".join(lines)


def _table(report: Report) -> list[str]:
    cells = [(f.name or "row", f.dtype, f.shape, f.values) for f in report.features]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    return ["  " + "  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in cells]


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} bytes"
    power = min(int(math.log(count, 1000)), 4)
    return f"{count / 1000**power:.3g} {('KB', 'MB', 'GB', 'TB')[power - 1]}"


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "format": report.kind.format,
        "compression": report.kind.compression,
        "paths": list(report.paths),
        "bytes": report.bytes,
        "rows": report.rows,
        "holds": report.holds,
        "notes": list(report.notes),
        "problem": report.problem,
        "features": [dataclasses.asdict(feature) for feature in report.features],
        "sample": [{name: _plain(value) for name, value in row.items()} for row in report.sample],
        "code": report.code,
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes that are no text as their number."""
    array = array_of(value)
    if array.dtype.kind in "OSU":
        flat: Sequence[Any] = [_plain_text(as_bytes(part)) for part in array.ravel()]
        return np.array([*flat, None], object)[:-1].reshape(array.shape).tolist()
    return array.tolist() if array.dtype.kind != "c" else str(array.tolist())


def _plain_text(text: bytes) -> Any:
    decoded = readable(text)
    return {"bytes": len(text)} if decoded is None else decoded
