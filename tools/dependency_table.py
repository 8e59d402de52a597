"""Writes the table of docs/decisions/dependencies.md: what each dependency is for, its size and the time of its import.

`python tools/dependency_table.py` measures what is installed. A size includes the packages that only this dependency
brings, such as jaxlib and SciPy for JAX. The time is processor time, the least of five fresh interpreters, and
does not count what is imported before it (`BEFORE`).
"""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

PAGE = Path(__file__).parent.parent / "docs" / "decisions" / "dependencies.md"
START, END = "<!-- made by tools/dependency_table.py -->\n", "<!-- end -->"


class Dependency(NamedTuple):
    """A package, what installs it, the module that evenfeed imports, and why evenfeed has it."""

    package: str
    extras: str
    module: str
    reason: str


DEPENDENCIES = [
    Dependency("numpy", "", "numpy", "columns of Blocks, dtypes"),
    Dependency("ml-dtypes", "", "ml_dtypes", "bfloat16 and other small dtypes; JAX needs it too"),
    Dependency("jax", "", "jax", "computes on CPU, GPU and TPU"),
    Dependency("google-crc32c", "", "google_crc32c", "checksums of TFRecord files, in C"),
    Dependency("protobuf", "", "google.protobuf.message", "the messages of `tf.train`"),
    Dependency("cloudpickle", "", "cloudpickle", "lambdas in `map(..., processes=True)`"),
    Dependency("pyarrow", "text, parquet", "pyarrow", "RE2; Parquet, Arrow, CSV and JSON files"),
    Dependency("numba", "records, images", "numba", "compiled loops over records and pixels"),
    Dependency("simplejpeg", "images", "simplejpeg", "JPEG files, with TensorFlow's pixels"),
    Dependency("pillow", "images", "PIL.Image", "the other formats of images"),
    Dependency("isal", "images", "isal.isal_zlib", "unpacks PNG files without the GIL"),
    Dependency("fsspec", "remote", "fsspec", "paths such as `gs://` and `s3://`"),
    Dependency(
        "array-record",
        "array-record",
        "array_record.python.array_record_module",
        "ArrayRecord files, by the library that defines them",
    ),
    Dependency("keras", "keras", "keras", "`tf.keras`"),
    Dependency("orbax-checkpoint", "checkpoint", "orbax.checkpoint", "files of `train.Checkpoint`"),
    Dependency("optax", "demo", "optax", "the optimizer of the demo"),
    Dependency("tqdm", "demo", "tqdm", "the progress bar of the demo"),
    Dependency("shtab", "completion", "shtab", "completion for shells"),
]

# What a program that imports the dependency has imported already.
BEFORE = {
    "numpy": "",
    "keras": "import os, jax; os.environ['KERAS_BACKEND'] = 'jax'",
    "orbax-checkpoint": "import jax",
    "optax": "import jax",
}


def main() -> None:
    """Measure all dependencies, write the table and print it."""
    before, _, rest = PAGE.read_text().partition(START)
    table = "\n".join(rows())
    PAGE.write_text(f"{before}{START}\n{table}\n\n{END}{rest.partition(END)[2]}")
    print(table)


def rows() -> Iterator[str]:
    """Return the lines of the table."""
    yield "| package | extra | why | MB | import, ms | measured |"
    yield "|---|---|---|---|---|---|"
    needed, listed = brought("evenfeed"), {dependency.package for dependency in DEPENDENCIES}
    for package, extras, module, reason in DEPENDENCIES:
        own = brought(package) - (needed if extras else listed - {package})
        milliseconds = 1000 * seconds(module, BEFORE.get(package, "import numpy"))
        cells = (
            package,
            extras or "required",
            reason,
            number(sum(map(size, own)) / 1e6),
            f"{milliseconds:.0f}",
            version(package),
        )
        yield f"| {' | '.join(cells)} |"


def brought(package: str) -> set[str]:
    """Return the names of all packages that one installs, with itself."""
    found: set[str] = set()
    open_names = [package]
    while open_names:
        name = open_names.pop()
        if name in found:
            continue
        found.add(name)
        for line in distribution(name).requires or []:
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                open_names.append(wanted.name.lower().replace("_", "-"))
    return found


def size(package: str) -> int:
    """Return the bytes of a package's files, without those that Python compiles."""
    paths = [Path(str(path.locate())) for path in distribution(package).files or []]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.exists())


def seconds(module: str, before: str) -> float:
    """Return the processor time of an import in a fresh interpreter, the least of five."""
    program = f"{before}\nimport time\nstart = time.process_time()\nimport {module}\nprint(time.process_time() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    return min(float(run.stdout.split()[-1]) for run in runs)


def number(megabytes: float) -> str:
    """Return a size in a few digits."""
    return f"{megabytes:.1f}" if megabytes < 10 else f"{megabytes:.0f}"


if __name__ == "__main__":
    main()
