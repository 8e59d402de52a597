"""Draws lines over two logarithmic axes as SVG: text, so that a change of a picture shows what has changed."""

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10

Lines = dict[str, list[tuple[float, float]]]

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 20, 50  # the margins; names are at the right
_COLOURS = {"evenfeed": "#d62728", "tf.data": "#1f77b4", "Grain": "#2ca02c", "torch": "#9467bd"}
_OTHER_COLOUR = "#555555"
_NAME_HEIGHT = 14


def picture(lines: Lines, *, axis: str, unit: str, places: Sequence[int]) -> str:
    """Return the picture of some lines.

    Args:
        lines: The points of each line, by its name. The line of evenfeed is thick; "by hand" at the end means dashed.
        axis: What the horizontal axis counts.
        unit: What the vertical axis counts.
        places: The places to mark on the horizontal axis.
    """
    rates = [rate for points in lines.values() for _, rate in points]
    scale = _Scale(places, rates)
    parts = [*_frame(scale, places, axis, unit)]
    names: list[tuple[float, str, str]] = []
    for name, points in lines.items():
        colour = _COLOURS.get(name.removesuffix(" by hand"), _OTHER_COLOUR)
        path = " ".join(f"{scale.x(place):.1f},{scale.y(rate):.1f}" for place, rate in points)
        dashed = ' stroke-dasharray="5 4"' if name.endswith("by hand") else ""
        width = 3.5 if name == "evenfeed" else 1.8
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'
        )
        parts += [
            f'<circle cx="{scale.x(place):.1f}" cy="{scale.y(rate):.1f}" r="3" fill="{colour}"/>'
            for place, rate in points
        ]
        names.append((scale.y(points[-1][1]), name, colour))
    for height, name, colour in _apart(names):
        parts.append(_text(_WIDTH - _RIGHT + 12, height + 4, name, colour=colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">'
    background = f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    return "\n".join([head, background, *parts, "</svg>", ""])


class _Scale:
    """Where numbers are in the picture."""

    def __init__(self, places: Sequence[float], rates: Sequence[float]) -> None:
        self._first, self._last = log10(min(places)), log10(max(places))
        self.low, self.high = floor(log10(min(rates))), ceil(log10(max(rates)))
        self.high = max(self.high, self.low + 1)

    def x(self, place: float) -> float:
        """Return how far to the right a place is."""
        span = max(self._last - self._first, 0.1)
        return _LEFT + (log10(place) - self._first) / span * (_WIDTH - _LEFT - _RIGHT)

    def y(self, rate: float) -> float:
        """Return how far down a rate is."""
        part = (log10(rate) - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def _frame(scale: _Scale, places: Sequence[int], axis: str, unit: str) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for power in range(scale.low, scale.high + 1):
        height = scale.y(10.0**power)
        yield f'<path d="M{_LEFT} {height:.1f}H{right}" stroke="#dddddd"/>'
        yield _text(_LEFT - 8, height + 4, short(10.0**power), anchor="end")
    for place in places:
        across = scale.x(place)
        yield f'<path d="M{across:.1f} {_TOP}V{bottom}" stroke="#eeeeee"/>'
        yield _text(across, bottom + 18, short(place), anchor="middle")
    yield _text((_LEFT + right) / 2, _HEIGHT - 12, axis, anchor="middle")
    yield _text(_LEFT - 8, 12, unit, anchor="end")


def _apart(names: Sequence[tuple[float, str, str]]) -> Iterator[tuple[float, str, str]]:
    """Yield names from top to bottom, so far apart that they can be read and as close to their lines as possible."""
    ordered = sorted(names)
    last = -1e9
    room = _HEIGHT - _BOTTOM - _NAME_HEIGHT * (len(ordered) - 1)
    for number, (height, name, colour) in enumerate(ordered):
        last = max(last + _NAME_HEIGHT, min(height, room + _NAME_HEIGHT * number))
        yield last, name, colour


def short(value: float) -> str:
    """Return a number with its unit: 10 k, 100 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
