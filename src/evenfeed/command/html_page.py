"""A page with what is in files: tables of features and rows, with their pictures."""

import io
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from evenfeed.command.looking import Report
from evenfeed.command.value_texts import array_of, as_bytes, picture_in, shown_value
from evenfeed.core.lazy import pil_image

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem; color: #222; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
td, th { border: 1px solid #ccc; padding: .3rem .6rem; text-align: left; vertical-align: top; max-width: 30rem; }
th { background: #f3f3f3; } img { max-width: 16rem; image-rendering: auto; } pre { background: #f6f6f6; padding: .8rem; }
"""
_TYPES: Final = {b"\xff\xd8": "jpeg", b"\x89P": "png", b"GI": "gif", b"BM": "bmp", b"RI": "webp"}


def page_of(reports: Sequence[Report]) -> str:
    """Return the page, which needs no other file."""
    body = "".join(map(_section, reports))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>evenfeed inspect</title>'
        f"<style>{_STYLE}</style><body>{body}</body></html>\n"
    )


def _section(report: Report) -> str:
    rows = "not counted" if report.rows is None else f"{report.rows:,}"
    features = [(f.name or "row", f.dtype, f.shape, f.values) for f in report.features]
    names = list(dict.fromkeys(name for row in report.sample for name in row))
    return (
        f"<h2>{escape(', '.join(report.paths[:3]))}{' …' if len(report.paths) > 3 else ''}</h2>"
        f"<p>{escape(str(report.kind))}, rows: {rows}, bytes: {report.bytes:,}</p>"
        + "".join(f"<p>{escape(note)}</p>" for note in report.notes)
        + _table(("feature", "type", "shape", "values"), (map(escape, row) for row in features))
        + _table(
            [name or "row" for name in names],
            ([_cell(row.get(name)) for name in names] for row in report.sample),
        )
        + f"<pre>{escape(report.code)}</pre>"
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    array = array_of(value)
    if array.dtype.kind in "OSU" and array.size:
        content = as_bytes(array.ravel()[0])
        if picture_in(content):
            return _image(content, _TYPES[content[:2]])
    if array.dtype == np.uint8 and array.ndim == 3 and array.shape[-1] in {1, 3, 4} and array.size:
        return _image(_png(array), "png")
    return escape(shown_value(value))


def _image(content: bytes, kind: str) -> str:
    return f'<img alt="" src="data:image/{kind};base64,{b64encode(content).decode()}">'


def _png(pixels: Any) -> bytes:
    file = io.BytesIO()
    pil_image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, "PNG")
    return file.getvalue()
