"""Hints for AutoGraph, and when a profile starts and stops."""

import tempfile


def hints(tf, ask):
    autograph = tf.autograph

    @autograph.experimental.do_not_convert
    def double(x):
        return x * 2

    @autograph.experimental.do_not_convert()
    def triple(x):
        return x * 3

    def total(values):
        found = 0
        for value in values:
            autograph.experimental.set_loop_options(maximum_iterations=2)
            found += value
        return found

    return {
        "decorated": [double(3), triple(3), double.__name__],
        "in a map": [int(x) for x in tf.data.Dataset.range(3).map(double)],
        "a loop of Python": ask(total, [1, 2, 3]),
        "set_verbosity": ask(autograph.set_verbosity, 0),
        "trace": ask(autograph.trace),
    }


def profiles(tf, ask):
    profiler = tf.profiler.experimental
    with tempfile.TemporaryDirectory() as folder:
        answers = {
            "not started": ask(profiler.stop),
            "start": ask(profiler.start, folder),
            "start twice": ask(profiler.start, folder),
            "stop": ask(profiler.stop),
        }
        with profiler.Profile(folder, profiler.ProfilerOptions(host_tracer_level=1)) as found:
            answers["profile"] = found
            with profiler.Trace("train", step_num=1, _r=1) as trace:
                answers["metadata"] = trace.set_metadata(loss=2)
        answers["after the block"] = ask(profiler.stop)
    return answers | {"options": list(profiler.ProfilerOptions())}
