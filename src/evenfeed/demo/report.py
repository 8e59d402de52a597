"""A page about a training run: what each replica got, the loss, the rows per second, and where time went."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1.5rem; }
div { overflow-x: auto; } table { border-collapse: collapse; white-space: nowrap; }
td, th { border: 1px solid #8886; padding: .2rem .6rem; text-align: right; } th { background: #8882; }
svg { background: #8881; border: 1px solid #8884; box-sizing: border-box; }
"""
WIDTH, HEIGHT = 900, 200
COLOURS = ("#1668b8", "#b8541c", "#2b8a3e", "#7a3fb0")


@dataclass
class Taken:
    """A step of all workers of a start. `seconds` has the time that it `waited` for input."""

    number: int
    workers: int
    rows: list[list[int]]  # of each replica
    loss: float
    waited: float
    seconds: float


@dataclass
class Start:
    """The steps from a start of the program to its end."""

    number: int
    steps: list[Taken]


def page_of(starts: Sequence[Start], batch: int, accuracy: float) -> str:
    """Return the page, which needs no other file."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>evenfeed demo</title>'
        f"<style>{STYLE}</style><body><h1>Training on several workers</h1>"
        f"<p>{len(starts)} starts, batches of {batch} rows, test accuracy {accuracy:.1%}. "
        f"The devices waited for input {waiting(starts):.1%} of the time, without the first step of each start, "
        "which compiles.</p>"
        f"{''.join(map(said, starts))}"
        f"<h2>Loss</h2>{chart(starts, lambda step: step.loss)}"
        f"<h2>Rows per second</h2>{chart(starts, rate)}"
        f"<h2>What each replica got</h2>{table(starts)}</body></html>\n"
    )


def waiting(starts: Sequence[Start]) -> float:
    """Return the part of the time in which the devices waited for input. The first step of a start compiles."""
    steps = [step for start in starts for step in start.steps[1:]]
    return sum(step.waited for step in steps) / (sum(step.seconds for step in steps) or 1)


def rate(step: Taken) -> float:
    """Return the rows per second of a step."""
    return sum(map(len, step.rows)) / step.seconds


def said(start: Start) -> str:
    """Say in a sentence what a start did."""
    if not start.steps:
        return f"<p>Start {start.number} ended before its first step.</p>"
    first, last = start.steps[0], start.steps[-1]
    workers = "1 worker" if first.workers == 1 else f"{first.workers} workers"
    return f"<p>Start {start.number}: {workers}, steps {first.number} to {last.number}.</p>"


def chart(starts: Sequence[Start], value) -> str:
    """Draw a value over the steps, in a colour for each start. The first step of a start compiles, and is left out."""
    drawn = [(start, start.steps[1:]) for start in starts]
    most = max((value(step) for _, steps in drawn for step in steps), default=1)
    last = max((step.number for _, steps in drawn for step in steps), default=1)
    lines = []
    for number, (start, steps) in enumerate(drawn):
        points = " ".join(
            f"{step.number / last * WIDTH:.1f},{HEIGHT - value(step) / most * (HEIGHT - 10):.1f}"
            for step in steps
        )
        colour = COLOURS[number % len(COLOURS)]
        lines.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}">'
            f"<title>start {start.number}</title></polyline>"
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" role="img">{"".join(lines)}</svg>'
        f"<p>Steps 1 to {last}, from 0 to {f'{most:,.0f}' if most >= 100 else f'{most:.3g}'}.</p>"
    )


def table(starts: Sequence[Start]) -> str:
    """List the rows of each replica at the first and the last step of each start."""
    lines = []
    for start in starts:
        for step in dict.fromkeys([*range(min(3, len(start.steps))), len(start.steps) - 1]):
            if step < 0:
                continue
            taken = start.steps[step]
            parts = "".join(
                f"<td>{len(rows)} rows: {escape(', '.join(map(str, rows[:5])))}{' …' if len(rows) > 5 else ''}</td>"
                for rows in taken.rows
            )
            lines.append(f"<tr><td>{start.number}</td><td>{taken.number}</td>{parts}</tr>")
    most = max((len(step.rows) for start in starts for step in start.steps), default=0)
    heads = "".join(f"<th>replica {replica}</th>" for replica in range(most))
    return f"<div><table><tr><th>start</th><th>step</th>{heads}</tr>{''.join(lines)}</table></div>"
