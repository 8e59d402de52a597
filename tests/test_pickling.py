"""A dataset is sent to another process, and is there what it is here."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests import sendable
from tests.plans import PLANS, is_read_by_one

from evenfeed.core.errors import EvenfeedError
from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime.fingerprint import fingerprint

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def begun(dataset):
    """Return a dataset as it is sent, with the state behind its third element, and what follows that."""
    sent = pickle.dumps(dataset)
    iterator = iter(dataset)
    for _ in range(3):
        try:
            next(iterator)
        except (StopIteration, ValueError, EvenfeedError):
            continue
    state = json.loads(json.dumps(iterator.get_state()))
    del iterator
    copy = pickle.loads(sent)
    return pickle.dumps((copy, state)), (
        fingerprint(plan_of(dataset)),
        sendable.read(pickle.loads(sent)),
        sendable.read(pickle.loads(sent), state),
    )


def told_by_another(folder, sent):
    """Return what a fresh process says of datasets."""
    (folder / "sent").write_bytes(pickle.dumps(sent))
    subprocess.run(
        [sys.executable, "-m", "tests.sendable", folder / "sent", folder / "told"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        timeout=110,
        check=True,
    )
    return pickle.loads((folder / "told").read_bytes())


def test_every_step_is_there_what_it_is_here(tmp_path):
    made = sendable.datasets(str(tmp_path / "saved"))
    sent, here = zip(*map(begun, made.values()), strict=True)
    for name, mine, theirs in zip(made, here, told_by_another(tmp_path, sent), strict=True):
        assert mine == theirs, name


# Each example starts a process: to find a smaller one that fails would take minutes.
@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    plans=st.tuples(*PLANS.values()).map(lambda some: [p for p in some if not is_read_by_one(p)])
)
def test_random_plans_are_there_what_they_are_here(tmp_path_factory, plans):
    sent, here = zip(*(begun(Dataset(plan)) for plan in plans), strict=True)
    told = told_by_another(tmp_path_factory.mktemp("sent"), sent)
    for plan, mine, theirs in zip(plans, here, told, strict=True):
        assert mine == theirs, plan


def test_what_a_cache_holds_is_not_sent():
    kept = Dataset.range(100_000).cache()
    for _ in kept:
        pass
    assert len(pickle.dumps(kept)) < 1000


def test_a_lambda_fails_with_pythons_own_words():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(Dataset.range(3).map(lambda x: x))
