"""Global arrays on eight devices in two and four real processes."""

import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("workers", [2, 4])
def test_every_partition_spec_puts_each_row_where_it_belongs(workers):
    seen = seen_by_workers("mesh_workers.py", workers, 8 // workers)
    assert len(seen) == workers
    one = seen[0]
    assert all(own["state"] == one["state"] for own in seen.values())
    assert all(own["lanes"] == one["lanes"] for own in seen.values())
    assert (len(one["lanes"][0]), one["lanes"][1]) == (4, sum(range(20)))
    assert {own["total"] for own in seen.values()} == {sum(range(32))}
    assert [own["specs"] for own in seen.values()] == [[49, 11]] * workers
    for process, own in seen.items():
        total = workers * 6 + 4 * 100 * sum(range(workers))
        assert own["apart"] == [[[workers, process]], [4 * workers], total]
        assert own["alike"] == [[[1, 0]], [4], 6]
        (line,) = own["explained"]
        assert line.startswith(f"this process reads {8 // workers} of {8 // workers} shards")
        others = ", ".join(str(other) for other in sorted(seen) if other != process)
        assert line.endswith(others)
