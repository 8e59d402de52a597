import gc

import evenfeed as tf
from evenfeed.live import sampling
from evenfeed.live.sampling import Sampler
from evenfeed.live.watching import watching


def test_recent_figures_and_curves_are_differences(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(sampling, "perf_counter", lambda: clock[0])
    gc.collect()
    watching.forget()
    tf.experimental.enable_stats()
    iterator = iter(tf.data.Dataset.range(100).batch(2))
    tf.experimental.enable_stats(False)
    sampler = Sampler(watching)
    for _ in range(10):
        next(iterator)
        sampler.look()
        sampler.look()  # too soon, so it counts for nothing
        clock[0] += 1
    (found,) = [one for one in sampler.report()["iterators"] if one["is_alive"]]
    assert len(found["history"]) == 10
    ages, rates, waits = zip(*found["history"], strict=True)
    assert ages[0] == 9
    assert sum(rates) == found["total"]["elements"] - 1  # after the first look
    assert all(0 <= wait <= 1 for wait in waits)
    assert found["recent"]["seconds"] < found["total"]["seconds"]
    del iterator
    gc.collect()
    assert [one["is_alive"] for one in sampler.report()["iterators"]] == [False]
    watching.forget()
