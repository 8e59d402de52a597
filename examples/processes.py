"""A function of pure Python, run in two processes: threads would take turns instead of sharing the work."""

import evenfeed as tf


def collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


numbers = tf.data.Dataset.range(1, 10_001)
steps = numbers.map(collatz, num_parallel_calls=2, processes=True)
longest = max(enumerate(steps.as_numpy_iterator(), start=1), key=lambda found: found[1])
print(f"{longest[0]} takes the most steps: {longest[1]}")
assert longest == (6171, 261)
