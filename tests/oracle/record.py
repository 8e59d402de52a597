"""Records TensorFlow's answers to all programs: `make oracle`.

Words choose subjects: `.venv-oracle/bin/python tests/oracle/record.py datasets shapes`. The answers are kept with the project, so that everybody can compare evenfeed with TensorFlow without
installing it.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REPLICAS = 4


def main(chosen: list[str]) -> None:
    """Run the programs under TensorFlow and write one file of answers for each subject."""
    sys.path.insert(0, str(ROOT))  # this file is run as a script
    from tests.oracle.asking import ANSWERS, SUBJECTS

    tf = _tensorflow()
    if unknown := set(chosen) - set(SUBJECTS):
        sys.exit(f"No such subject: {', '.join(sorted(unknown))}. There are: {', '.join(SUBJECTS)}")
    version = {"tensorflow": tf.__version__}
    texts = {subject: _laid_out(version | _answers(tf, subject)) for subject in chosen or SUBJECTS}
    ANSWERS.mkdir(exist_ok=True)
    for old in ANSWERS.glob("*.json"):  # only now: a run that fails leaves the old answers
        if old.stem not in SUBJECTS:
            old.unlink()
    for subject, text in texts.items():
        (ANSWERS / f"{subject}.json").write_text(text + "\n")


def _answers(tf: Any, subject: str) -> dict[str, Any]:
    from tests.oracle.asking import ask, programs
    from tests.oracle.plain import plain

    return {
        name: {label: plain(value) for label, value in program(tf, ask).items()}
        for name, program in programs(subject).items()
    }


def _laid_out(value: Any, depth: int = 0) -> str:
    """Return sorted JSON with one line for every answer, so that a diff shows what changed."""
    if depth == 2 or not isinstance(value, dict):
        return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)
    indent = "  " * (depth + 1)
    lines = [
        f"{indent}{json.dumps(key, ensure_ascii=False)}: {_laid_out(value[key], depth + 1)}"
        for key in sorted(value)
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent[2:]}}}"


def _tensorflow() -> Any:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    each = [tf.config.LogicalDeviceConfiguration()] * REPLICAS
    tf.config.set_logical_device_configuration(cpu, each)
    return tf


if __name__ == "__main__":
    main(sys.argv[1:])
