"""The figures of a stage in words, for explain()."""

from evenfeed.runtime.explain_text import counted, rate_text
from evenfeed.runtime.measuring.pipeline_stats import PipelineStats
from evenfeed.runtime.measuring.stage_stats import StageStats


def stage_text(stage: StageStats, whole: PipelineStats) -> str:
    """Return the figures of a stage: `2,000 elements, 3.65 k elements/s, 16 kB; busy 2%, waiting for input 90%`."""
    rate = rate_text(stage.elements_per_second, "elements")
    text = f"measured: {counted(stage.elements, 'element')}, {rate}, {bytes_text(stage.bytes)}"
    times = [
        ("busy", stage.busy_seconds),
        ("waiting for input", stage.input_wait_seconds),
        ("waiting for room", stage.room_wait_seconds),
    ]
    shares = [f"{what} {seconds / whole.seconds:.0%}" for what, seconds in times if seconds]
    if stage.cpu_seconds is not None and stage.busy_seconds:
        shares[0] += f" (computing {stage.cpu_seconds / whole.seconds:.0%})"
    if shares and whole.seconds:
        text += f"; {', '.join(shares)}"
    if stage.buffered is not None:
        text += f"; buffer {stage.buffered:.3g} of {stage.buffer_size:,}"
    return text + ("  <- everything waits for this" if stage.number == whole.bottleneck else "")


def bytes_text(count: int) -> str:
    """Return a number of bytes with two or three digits: `16 kB`."""
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= 0.9995 * limit:
            return f"{count / limit:.3g} {unit}"
    return f"{count} B"
