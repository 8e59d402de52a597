"""Writes the table of README.md: some rows of what `make bench` measured, and where evenfeed is not first.

`make bench` runs it after the benchmarks; `python tools/readme_table.py` alone takes what benchmarks/README.md holds.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
MEASURED = ROOT / "benchmarks" / "README.md"
START, END = "<!-- made by tools/readme_table.py -->\n", "<!-- end -->"

# The jobs to show, and what the README calls them.
SHOWN = {
    "200k rows of 32 floats: shuffle, map, batch 1024, repeat, prefetch 2": "rows of 32 floats: shuffle, map, batch",
    "from_generator of small tuples: batch 256": "a Python generator: batch",
    "the same: parse_single_example, shuffle 10 000, batch 1024": "TFRecord files: parse, shuffle, batch",
    "JPEG files of 320 x 256: decode, crop, flip, normalise, batch 32, 2 threads": "JPEG files: decode, augment, batch",
}
COLUMNS = ("evenfeed", "tf.data", "Grain", "torch", "limit")


def measured() -> tuple[str, dict[str, dict[str, str]]]:
    """Return where and when it was measured, and the cells of each job by the name of their column."""
    text = MEASURED.read_text().partition("<!-- made by run.py -->")[2].partition("<!-- end -->")[0]
    where, table = text.strip().split("\n\n")[:2]
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]
    return where, {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


def table() -> str:
    """Return the text between the markers."""
    where, jobs = measured()
    head = f"| rows/s | {' | '.join(COLUMNS[:-1])} | NumPy by hand |"
    rows = [_row(label, jobs[job]) for job, label in SHOWN.items()]
    text = f"{where.partition(', load')[0]}; [all jobs](benchmarks/README.md). {_not_first(jobs)}"
    return "\n".join(["", head, "|---" * (len(COLUMNS) + 1) + "|", *rows, "", text, "", ""])


def _row(label: str, cells: dict[str, str]) -> str:
    # A torch user gets the better rate, if need be by fetching whole batches.
    cells = cells | ({} if cells["torch by hand"] == "-" else {"torch": cells["torch by hand"]})
    return f"| {label} | {' | '.join(_rate(cells[column]) for column in COLUMNS)} |"


def _rate(cell: str) -> str:
    return cell.partition(" (")[0]


def _not_first(jobs: dict[str, dict[str, str]]) -> str:
    """Return where a peer is faster, and where a loop by hand is fastest of all beside evenfeed."""
    ahead = [
        f"{job}: {peer} {_rate(cell)}, evenfeed {cells['evenfeed']}"
        for job, cells in jobs.items()
        for peer, cell in cells.items()
        if (ratio := re.search(r"\(([\d.]+) x\)", cell)) and float(ratio[1]) < 1
    ]
    least = min(jobs, key=lambda job: float(jobs[job]["of the limit"]))
    hand = f"A loop by hand in NumPy is up to {1 / float(jobs[least]['of the limit']):.0f} times as fast ({least})."
    return f"**Not first:** {'; '.join(ahead) or 'no peer is ahead'}. {hand}"


def page() -> str:
    """Return README.md with the table of now."""
    before, _, rest = README.read_text().partition(START)
    return f"{before}{START}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    README.write_text(page())
