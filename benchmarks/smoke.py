"""Compares the ratio of each job to its limit with the one in README.md, and says which fell.

Times say nothing on another machine, or on a busy one; ratios do. Each job and its limit run once, for a short time. A
job that seems to have fallen runs again, for longer, as long as there is time. All ends within five minutes.
"""

import re
import sys
import time

from run import BEGIN, END, JOBS, OURS, README, run

SECONDS = (
    240.0  # after this time, no further job is started; the longest one takes less than a minute
)
SHORT, LONG = 0.3, 1.0
TRIES = 3
FALLEN = 0.75  # below this fraction of the last ratio


def main() -> int:
    """Compare all jobs, or those that the arguments name; return 1 if one has fallen."""
    end = time.monotonic() + SECONDS
    before = committed(README.read_text())
    jobs = [job for job in sys.argv[1:] or JOBS if JOBS[job][0] in before]
    ratios: dict[str, float] = {}
    for job in jobs:
        if time.monotonic() < end:
            ratios[job] = ratio(job, SHORT)
    for _ in range(TRIES - 1):
        for job in fallen(ratios, before):
            if time.monotonic() < end:
                ratios[job] = max(ratios[job], ratio(job, LONG))
    print(table(ratios, before))
    for job in [job for job in JOBS if JOBS[job][0] not in before]:
        print(f"{job}: not in README.md yet; run `make bench`")
    for job in [job for job in jobs if job not in ratios]:
        print(f"{job}: no time left")
    low = fallen(ratios, before)
    print(f"fell: {', '.join(low)}" if low else "no ratio fell")
    return int(bool(low))


def committed(readme: str) -> dict[str, float]:
    """Return the ratio of each job to its limit in README.md, by its title."""
    made = readme.partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| ([^|]*) \| [^|]* \| [^|]* \| ([\d.]+) \|", made, re.MULTILINE)
    return {title: float(found) for title, found in rows}


def ratio(job: str, seconds: float) -> float:
    """Run a job and its limit; return the ratio of their rates, or 0 if one fails."""
    try:
        mine, limit = (run(job, variant, seconds)["rate"] for variant in OURS)
    except SystemExit as failed:
        print(failed, file=sys.stderr)
        return 0.0
    return mine / limit


def fallen(ratios: dict[str, float], before: dict[str, float]) -> list[str]:
    """Return the jobs whose ratio is below a fraction of what it was."""
    return [job for job, now in ratios.items() if now < FALLEN * before[JOBS[job][0]]]


def table(ratios: dict[str, float], before: dict[str, float]) -> str:
    """Return the ratios, then and now."""
    head = ["| job, of the limit | committed | now |", "|---|---|---|"]
    rows = [f"| {job} | {before[JOBS[job][0]]:.2f} | {now:.2f} |" for job, now in ratios.items()]
    return "\n".join(head + rows)


if __name__ == "__main__":
    sys.exit(main())
