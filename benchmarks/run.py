"""Runs the jobs with evenfeed, with what NumPy alone can do, and with the peers, and writes README.md's table.

Every variant runs in a fresh process; they take turns, so that all meet the same machine, and the best
run of each counts. `--quick` only shows that the jobs run: one short round, without peers, nothing written.
`run.py map_chain padded` measures these jobs, and writes their rows into the table beside the others.
"""

import argparse
import json
import os
import platform
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
README = HERE / "README.md"
BEGIN, END = "<!-- made by run.py -->\n", "<!-- end -->\n"
LATER = "Measured alone on"  # begins the line about jobs that were measured later than the table

# What each job must reach: times the limit, times tf.data. No other peer may be faster.
JOBS = {
    "tabular": ("200k rows of 32 floats: shuffle, map, batch 1024, repeat, prefetch 2", 0.8, 100),
    "filtering": ("range(10⁸): map, filter, batch 1024", 0.7, None),
    "selective": ("range(10⁹): a filter that keeps one row in 20 000", 0.15, 10),
    "many_filters": ("sample_from_datasets of 100 filtered ranges", None, 1),
    "filter_chain": ("thirty filters in a row: batch 1024 (limit: as one filter)", 0.3, 10),
    "map_chain": ("thirty maps in a row: batch 1024 (limit: as one map)", 0.3, 10),
    "batches": ("range: batch 64, plain loop", None, 10),
    "many_columns": ("rows of 500 columns: batch 1024", None, 10),
    "wide_zip": ("zip of 200 ranges: batch 256", None, 10),
    "short_rounds": ("five rows: filter, map, repeat, batch 64", None, 10),
    "one_row": ("one row: shuffle 10, repeat, plain loop", None, 10),
    "scanning": ("scan with a state of two floats: batch 32", None, 2),
    "padded": ("sequences in a cache: shuffle 1000, padded_batch 32", None, 1),
    "bucketing": ("sequences in a cache: bucket_by_sequence_length", None, 1),
    "cached_rounds": (
        "rows of a generator in a cache: shuffle 1000, sine, batch 32, repeat",
        None,
        5,
    ),
    "grouping": ("numbers of ten labels: group_by_window to batches of 32", None, 1),
    "unbatching": ("range: batch 32 and unbatch, four times, batch 1024", None, 10),
    "inner_datasets": ("rows of 10 numbers: flat_map to their elements, batch 100", None, 5),
    "interleaving": ("the same: interleave, four rows at a time, batch 100", None, 5),
    "long_interleaving": ("eight long ranges: interleave their numbers, batch 32", None, 5),
    "inner_shuffles": ("rows of 10 numbers: flat_map to their elements, shuffled", None, 5),
    "computed_datasets": ("range: flat_map to ranges of computed bounds, batch 100", None, 5),
    "ended_parts": ("sample_from_datasets of a short and a long range, batch 100", None, 5),
    "nested_datasets": ("pictures of 5 x 2 numbers: flat_map in flat_map, batch 100", None, 5),
    "windows": ("range: windows of 10 at each element, as batches; batch 32", None, 5),
    "inner_windows": ("range: windows of 6, each as windows of 3; batch 32", None, 5),
    "numbered_windows": ("range: numbered windows of 5, plus their number; batch 32", None, 5),
    "random_maps": ("range: map with tf.random.normal([8], seed), batch 256", None, 20),
    "generator": ("from_generator of small tuples: batch 256", 0.7, 5),
    "lines": ("lines of text: batch 1024", None, 5),
    "words": ("lines of words: batch 1024, lower, split, look up ids", None, 5),
    "word_rows": ("the same line by line: lower, split, look up ids, ragged_batch 1024", None, 100),
    "hashed_words": ("lines of words: batch 1024, split, to_hash_bucket_fast", None, 5),
    "number_lines": (
        "lines of numbers in tags: batch 1024, regex_replace, split, to_number",
        None,
        5,
    ),
    "ragged_rows": ("200k rows of 0 to 19 numbers: shuffle 10 000, batch 1024, to_tensor", 0.2, 5),
    "tokens": (
        "tokens/s: lines, a Python tokenizer, unbatch, batch 1024, shuffle 100, batch 8",
        0.8,
        1,
    ),
    "token_processes": (
        "tokens/s: the same, the tokenizer in two processes (limit: plain Python in one)",
        1.5,
        None,
    ),
    "packing": ("tokens/s: 20k rows of about 400 tokens, packed into 2048, first fit", None, None),
    "records": ("100k examples in TFRecord files: batch 1024, parse_example", None, 8),
    "shuffled_records": ("the same: parse_single_example, shuffle 10 000, batch 1024", None, 80),
    "mixed_records": ("examples of many lengths: batch 1024, parse_example", None, 4),
    "small_records": ("2,000 TFRecord files of ten records: batch 128", 0.2, 2),
    "small_shuffled": ("the same: shuffle 10 000, batch 128", None, 2),
    "small_interleaved": ("the same: interleave, four files at a time, batch 128", None, 2),
    "csv_records": ("CSV files of five columns: batch 1024", None, 1),
    "wide_csv": ("a CSV file of 40 columns: batch 1024", 0.6, 5),
    "json_rows": ("a JSON Lines file: batch 1024", 0.6, None),
    "parquet": ("Parquet files: batch 1024", 0.5, None),
    "small_parquet": ("2,000 Parquet files of ten rows: batch 128", 0.5, None),
    "small_parquet_shuffled": ("2,000 Parquet files of ten rows: shuffle 10 000", 0.15, None),
    "arrow_files": ("Arrow files: batch 1024", 0.5, None),
    "images": (
        "JPEG files of 320 x 256: decode, crop, flip, normalise, batch 32, 2 threads",
        0.8,
        1.2,
    ),
    "heavy_maps": ("rows of 256 floats: sort, sin, exp, AUTOTUNE, batch 128", 0.6, 1),
    "sleeping": ("map that waits 5 ms, 16 at a time", 0.9, None),
    "python_calls": ("Python code for each row, num_parallel_calls=AUTOTUNE: batch 64", 0.7, 1),
    "python_processes": ("the same in two processes (limit: a loop in one)", None, None),
    "numpy_calls": ("numpy_function for each row, 2 threads: batch 64", None, 1),
}
OURS = ("evenfeed", "limit")
THEIRS = ("tf.data", "Grain", "torch", "torch by hand")
PACKAGES = ("tensorflow-cpu", "grain", "torch")
FIRST = "first_element"
NEEDS = {
    "tabular": THEIRS,
    "filtering": THEIRS[:2],
    "selective": THEIRS[:1],
    "many_filters": THEIRS[:1],
    "filter_chain": THEIRS[:1],
    "map_chain": THEIRS[:1],
    "wide_zip": THEIRS[:1],
    "short_rounds": THEIRS[:1],
    "padded": THEIRS[:1],
    "batches": THEIRS[:3],
    "many_columns": THEIRS[:1],
    "one_row": THEIRS[:1],
    "scanning": THEIRS[:1],
    "bucketing": THEIRS[:1],
    "cached_rounds": THEIRS[:1],
    "grouping": THEIRS[:1],
    "unbatching": THEIRS[:1],
    "inner_datasets": THEIRS[:1],
    "inner_shuffles": THEIRS[:1],
    "long_interleaving": THEIRS[:1],
    "computed_datasets": THEIRS[:1],
    "ended_parts": THEIRS[:1],
    "nested_datasets": THEIRS[:1],
    "interleaving": THEIRS[:1],
    "windows": THEIRS[:1],
    "inner_windows": THEIRS[:1],
    "numbered_windows": THEIRS[:1],
    "random_maps": THEIRS[:1],
    "generator": ("tf.data", "torch"),
    "lines": THEIRS[:1],
    "words": THEIRS[:1],
    "word_rows": THEIRS[:1],
    "hashed_words": THEIRS[:1],
    "number_lines": THEIRS[:1],
    "ragged_rows": THEIRS[:1],
    "tokens": THEIRS[:1],
    "token_processes": ("torch",),
    "packing": THEIRS[1:2],
    "records": THEIRS[:1],
    "shuffled_records": THEIRS[:1],
    "mixed_records": THEIRS[:1],
    "small_records": THEIRS[:1],
    "small_shuffled": THEIRS[:1],
    "small_interleaved": THEIRS[:1],
    "csv_records": THEIRS[:1],
    "wide_csv": THEIRS[:1],
    "json_rows": (),
    "parquet": (),
    "small_parquet": (),
    "small_parquet_shuffled": (),
    "arrow_files": (),
    "images": ("tf.data", "torch"),
    "heavy_maps": THEIRS[:1],
    "sleeping": THEIRS[:2],
    "python_calls": THEIRS[:3],
    "python_processes": ("Grain", "torch"),
    "numpy_calls": THEIRS[:1],
    FIRST: THEIRS[:2],
}

Figures = dict[tuple[str, str], dict[str, float]]


def main() -> int:
    """Run all jobs; return 1 where a figure is below what it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round without peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("jobs", nargs="*", help="jobs whose rows to write; all if none is named")
    asked = parser.parse_args()
    if asked.quick:
        sys.path.insert(0, str(HERE / "jobs"))
        print(rates(measured(1, 0.02, with_peers=False, run=run_here)))
        return 0
    if not PEERS.exists():
        sys.exit("the peers are not installed: run `make bench`")
    if asked.jobs:
        figures = measured(asked.rounds, asked.seconds, with_peers=True, jobs=asked.jobs)
        write(with_rows(written(BEGIN, END), rates(figures)), BEGIN, END)
        return 0
    figures = measured(asked.rounds, asked.seconds, with_peers=True)
    text = f"{machine(*PACKAGES)}\n{rates(figures)}\n{first_elements(figures)}"
    print(text)
    write(text, BEGIN, END)
    return report(figures)


def write(text: str, begin: str, end: str) -> None:
    """Put a text between two lines of the README."""
    page = README.read_text()
    before, after = page.split(begin)[0], page.split(end)[1]
    README.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def written(begin: str, end: str) -> str:
    """Return the text between two lines of the README."""
    return README.read_text().split(begin)[1].split(end)[0].strip("\n") + "\n"


def with_rows(text: str, table: str) -> str:
    """Return the README's text with the rows of a table of some jobs, and a line that says when they were measured."""
    lines = [line for line in text.splitlines() if not line.startswith(LATER)]
    old, new = rows_in(text), rows_in(table)
    head = next(number for number, line in enumerate(lines) if line.startswith("|---")) + 1
    after = [line for line in lines[head:] if line not in old.values()]
    while after[:1] == [""]:
        del after[0]
    merged = [(old | new)[title] for title, _, _ in JOBS.values() if title in old | new]
    load = f"{datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[1]:.1f}"
    when = [f"{LATER} {load}: {'; '.join(new)}.", *_measured_before(text, new)]
    notes = [line for note in when for line in ("", note)]
    return "\n".join([*lines[:head], *merged, *notes, "", *after]) + "\n"


def _measured_before(text: str, again: Iterable[str]) -> list[str]:
    """Return the lines that say which rows were measured alone earlier, without those measured again."""
    lines = [line for line in text.splitlines() if line.startswith(LATER)]
    for title in again:
        lines = [line.replace(f"{title}; ", "").replace(f"; {title}.", ".") for line in lines]
        lines = [line for line in lines if not line.endswith(f": {title}.")]
    return lines


def rows_in(text: str) -> dict[str, str]:
    """Return the rows of jobs in a table, by their titles."""
    titles = [title for title, _, _ in JOBS.values()]
    pairs = [(line.strip("|").partition("|")[0].strip(), line) for line in text.splitlines()]
    return {title: line for title, line in pairs if title in titles}


def run(job: str, variant: str, seconds: float, *more: str) -> dict[str, float]:
    """Run one variant in a fresh process, with further arguments for the job."""
    python = str(PEERS) if variant in (*THEIRS, "tensorflow") else sys.executable
    command = [python, str(HERE / "jobs" / f"{job}.py"), variant, str(seconds), *more]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run_here(job: str, variant: str, seconds: float) -> dict[str, float]:
    """Run one variant in this process, which is quicker than to start one for each."""
    return runpy.run_path(str(HERE / "jobs" / f"{job}.py"))["VARIANTS"][variant](seconds)


def measured(
    rounds: int,
    seconds: float,
    *,
    with_peers: bool,
    run: Callable[..., dict[str, float]] = run,
    jobs: Sequence[str] = (),
) -> Figures:
    """Run every variant of every job, or of some jobs, in turns, and return the best figures of each."""
    figures: Figures = {}
    for _ in range(rounds):
        for job in jobs or (*JOBS, FIRST):
            ours = OURS[:1] if job == FIRST else OURS
            for variant in ours + (NEEDS[job] if with_peers else ()):
                found = run(job, variant, seconds)
                print(job, variant, found, file=sys.stderr)
                figures[job, variant] = better(figures.get((job, variant), found), found)
    return figures


def better(one: dict[str, float], two: dict[str, float]) -> dict[str, float]:
    """Return the higher rates, and the lower times and sizes."""
    return {
        key: max(one[key], two[key]) if key == "rate" else min(one[key], two[key]) for key in one
    }


def rates(figures: Figures) -> str:
    """Return the table of rows per second."""
    head = "| job, rows/s | evenfeed | limit | of the limit | " + " | ".join(THEIRS) + " |"
    lines = [head, "|---" * (4 + len(THEIRS)) + "|"]
    for job, (title, _, _) in JOBS.items():
        if (job, OURS[0]) not in figures:
            continue
        mine, limit = (figures[job, variant]["rate"] for variant in OURS)
        cells = [title, number(mine), number(limit), f"{mine / limit:.2f}"]
        cells += [compared(mine, figures.get((job, peer))) for peer in THEIRS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def compared(mine: float, found: dict[str, float] | None) -> str:
    """Return a peer's figure, and how many times of it evenfeed reaches."""
    return "-" if found is None else f"{number(found['rate'])} ({number(mine / found['rate'])} x)"


def first_elements(figures: Figures) -> str:
    """Return the table of the first element of 10⁹ shuffled rows."""
    lines = ["| first element of 10⁹ shuffled rows | time | memory |", "|---|---|---|"]
    for variant in ("evenfeed", *NEEDS[FIRST]):
        found = figures[FIRST, variant]
        name = f"{variant}, with a buffer of 10⁶ only" if variant == "tf.data" else variant
        lines.append(
            f"| {name} | {1000 * found['seconds']:.1f} ms | {found['bytes'] / 2**20:.1f} MiB |"
        )
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Return a number of rows in three digits."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def machine(*peers: str) -> str:
    """Return what the figures hang on, the versions of these peers among it."""
    ours = versions(sys.executable, "numpy", "jax")
    theirs = f", {versions(str(PEERS), *peers)}" if peers else ""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores ({processor()}), {platform.system()}, "
        f"load {os.getloadavg()[1]:.1f}, "
        f"Python {platform.python_version()}, {ours}{theirs}.\n"
    )


def processor() -> str:
    """Return the name of the processor, where Linux says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions(python: str, *packages: str) -> str:
    """Return the versions of packages in an environment."""
    program = "import sys; from importlib.metadata import version\n"
    program += "print(*(f'{name} {version(name)}' for name in sys.argv[1:]), sep=', ')"
    command = [python, "-c", program, *packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def report(figures: Figures) -> int:
    """Say what is below its mark; return whether anything is."""
    low: list[str] = []
    for job, (_, of_limit, of_tensorflow) in JOBS.items():
        mine = figures[job, "evenfeed"]["rate"]
        others = [(peer, 1) for peer in NEEDS[job] if peer != "tf.data"]
        for peer, least in [("limit", of_limit), ("tf.data", of_tensorflow), *others]:
            if least is None:
                continue
            reached = mine / figures[job, peer]["rate"]
            if reached < least:
                low.append(f"{job}: {reached:.2f} of {peer}, must be {least}")
    first = figures[FIRST, "evenfeed"]
    if first["seconds"] > 0.05 or first["bytes"] > 200 * 2**20:
        low.append(f"{FIRST}: {first}, must be 50 ms and 200 MiB at most")
    print("\n".join(low) or "every figure is what it must be, or better")
    return int(bool(low))


if __name__ == "__main__":
    sys.exit(main())
