"""Clusters: their specs, their resolvers, and what strategies make of them."""

import json
import os
from contextlib import contextmanager
from types import SimpleNamespace

_TWO = {"worker": ["a:1", "b:1"]}


@contextmanager
def _environment(**variables):
    about = ("TF_CONFIG", "SLURM_", "CUDA_VISIBLE_DEVICES")
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(about)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith(about)]:
            del os.environ[name]
        os.environ.update(kept)


def _tf_config(value):
    return _environment(TF_CONFIG=value if isinstance(value, str) else json.dumps(value))


def _spec_answers(spec, ask):
    return [
        ask(spec.as_dict),
        ask(lambda: spec.jobs),
        *(
            [ask(spec.num_tasks, job), ask(spec.task_indices, job), ask(spec.job_tasks, job)]
            for job in ("worker", "ps")
        ),
        bool(spec),
        repr(spec),
    ]


def specs(tf, ask):
    make = tf.train.ClusterSpec
    forms = {
        "lists": {"worker": ["a:1", "b:1"], "ps": ["c:1"]},
        "tuples": {"worker": ("a:1", "b:1")},
        "sparse": {"worker": {3: "d:1", 1: "b:1"}},
        "dense by index": {"worker": {1: "b:1", 0: "a:1"}},
        "indices as text": {"worker": {"1": "b:1", "0": "a:1"}},
        "nothing": {},
    }
    answers = {name: _spec_answers(make(form), ask) for name, form in forms.items()}
    spec = make(forms["lists"])
    wrong = {
        "None": None,
        "a list": ["a:1"],
        "text for tasks": {"worker": "a:1"},
        "numbers for addresses": {"worker": [1]},
        "a number for a job": {1: ["a:1"]},
        "a bad index": {"worker": {"x": "a:1"}},
        "None for an address": {"worker": [None]},
    }
    return answers | {
        "a copy": _spec_answers(make(spec), ask),
        "of a ClusterDef": _spec_answers(make(spec.as_cluster_def()), ask),
        "a job without tasks": ask(lambda: make({"worker": []}).as_dict()),
        "equal": [
            spec == make(spec),
            spec == make({}),
            spec != make({}),
            spec == {"worker": {0: "a:1", 1: "b:1"}, "ps": {0: "c:1"}},
            spec == forms["lists"],
        ],
        "hash": ask(lambda: hash(spec) is not None),
        "message": ask(lambda: str(spec.as_cluster_def())),
        "bytes of the message": ask(
            lambda: spec.as_cluster_def().SerializeToString(deterministic=True)
        ),
        "address": ask(spec.task_address, "worker", 1),
        "no such task": ask(spec.task_address, "worker", 2),
        "no such job": ask(spec.task_address, "chief", 0),
        **{f"of {name}": ask(lambda form=form: make(form) and 1) for name, form in wrong.items()},
    }


def _resolver_answers(resolver, ask):
    return [
        ask(lambda: resolver.cluster_spec().as_dict()),
        ask(lambda: resolver.task_type),
        ask(lambda: resolver.task_id),
        ask(lambda: resolver.rpc_layer),
        ask(lambda: resolver.environment),
        ask(resolver.master),
        ask(resolver.master, "worker", 1),
        ask(resolver.master, "worker"),
        ask(resolver.master, None, 0),
        ask(resolver.master, "worker", 0, "http"),
        ask(resolver.master, "worker", 9),
        ask(resolver.master, "ps", 0),
        ask(lambda: dict(resolver.num_accelerators())),
    ]


def tf_config(tf, ask):
    make = tf.distribute.cluster_resolver.TFConfigClusterResolver
    configs = {
        "two workers": {"cluster": _TWO, "task": {"type": "worker", "index": 1}},
        "index as text": {"cluster": _TWO, "task": {"type": "worker", "index": "1"}},
        "a layer": {"cluster": _TWO, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"},
        "a session master": {"cluster": _TWO, "session_master": "m:1"},
        "no task": {"cluster": _TWO},
        "no cluster": {"task": {"type": "worker", "index": 0}},
        "a lone worker": {
            "cluster": {"worker": ["a:1"]},
            "task": {"type": "worker", "index": 0},
        },
        "a chief and no workers": {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}},
        "index out of range": {"cluster": _TWO, "task": {"type": "worker", "index": 7}},
        "empty": {},
    }
    answers = {}
    for name, config in configs.items():
        with _tf_config(config):
            answers[name] = _resolver_answers(make(), ask)
            answers[f"{name}, with arguments"] = _resolver_answers(
                make("chief", 0, "http", "here"), ask
            )
    with _environment():
        answers["unset"] = _resolver_answers(make(), ask)
    for name, text in {"not JSON": "{", "empty text": ""}.items():
        with _tf_config(text):
            answers |= {
                f"{name}: cluster": ask(make().cluster_spec),
                f"{name}: task": ask(lambda: make().task_type),
                f"{name}: index": ask(lambda: make().task_id),
                f"{name}: layer": ask(lambda: make().rpc_layer),
                f"{name}: master": ask(make().master),
                f"{name}: accelerators": ask(make().num_accelerators),
                f"{name}: strategy": ask(tf.distribute.MultiWorkerMirroredStrategy),
            }
    return answers


def simple(tf, ask):
    resolvers = tf.distribute.cluster_resolver
    make, spec = resolvers.SimpleClusterResolver, tf.train.ClusterSpec(_TWO)
    changed = make(spec)
    changed.task_type, changed.task_id, changed.rpc_layer = "worker", 1, "grpc"
    return {
        "plain": _resolver_answers(make(spec), ask),
        "all given": _resolver_answers(
            make(spec, "m:1", "worker", 1, "here", {"GPU": 2}, "grpc"), ask
        ),
        "changed": _resolver_answers(changed, ask),
        "a dict": ask(make, _TWO),
        "a number for the master": ask(make, spec, 3),
        "is a ClusterResolver": isinstance(changed, resolvers.ClusterResolver),
        "the root": ask(resolvers.ClusterResolver),
    }


def union(tf, ask):
    resolvers, spec = tf.distribute.cluster_resolver, tf.train.ClusterSpec
    make, one = resolvers.UnionResolver, resolvers.SimpleClusterResolver
    first = one(spec(_TWO), "m:1", "worker", 1, "here", {"GPU": 2}, "grpc")
    second = one(spec({"worker": ["c:1"], "ps": ["d:1"]}), task_type="ps", task_id=0)
    sparse = one(spec({"worker": {5: "f:1"}}))
    clash = one(spec({"worker": {1: "g:1", 4: "h:1"}}))
    changed = make(first, second)
    changed.task_type, changed.task_id, changed.rpc_layer = "ps", 3, "http"
    return {
        "one": _resolver_answers(make(first), ask),
        "two": _resolver_answers(make(first, second), ask),
        "two, the other way": _resolver_answers(make(second, first), ask),
        "sparse": _resolver_answers(make(first, sparse), ask),
        "an index twice": ask(lambda: make(first, clash).cluster_spec()),
        "with arguments": _resolver_answers(
            make(first, second, rpc_layer="http", task_type="ps", task_id=3), ask
        ),
        "changed": _resolver_answers(changed, ask),
        "none": ask(make),
        "no resolver": ask(make, first, "worker"),
    }


_STEP = {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}
_NODES = {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}


def slurm(tf, ask):
    make = tf.distribute.cluster_resolver.SlurmClusterResolver
    whole = _STEP | _NODES | {"CUDA_VISIBLE_DEVICES": "0,1"}

    def seen(environment, **kwargs):
        with _environment(**environment):
            resolver = make(**kwargs)
            before = list(resolver.get_task_info())
            answers = _resolver_answers(resolver, ask)
            return [before, answers, os.environ.get("CUDA_VISIBLE_DEVICES")]

    odd = {"SLURM_STEP_NODELIST": "b[08-10],a1,c", "SLURM_STEP_TASKS_PER_NODE": "1(x3),2,1"}
    return {
        "plain": ask(seen, whole),
        "GPUs left alone": ask(seen, whole, auto_set_gpu=False),
        "jobs": ask(seen, whole, jobs={"worker": 3, "ps": 1}),
        "a port": ask(seen, whole, port_base=9000, rpc_layer="http"),
        "tasks of nodes": ask(seen, whole, tasks_per_node=2),
        "tasks by node": ask(seen, whole, tasks_per_node={"x": 2, "y": 2}),
        "GPUs": ask(seen, whole, gpus_per_node=8, gpus_per_task=3),
        "hosts": ask(
            seen,
            whole | odd | {"SLURM_STEP_NUM_TASKS": "6", "SLURM_PROCID": "5"},
        ),
        "too many GPUs": ask(seen, whole, gpus_per_node=1, gpus_per_task=2),
        "other numbers of tasks": ask(seen, whole, jobs={"worker": 3}),
        "a bad list of hosts": ask(seen, whole | {"SLURM_STEP_NODELIST": "n[1-2"}),
        "a bad list of tasks": ask(seen, whole | {"SLURM_STEP_TASKS_PER_NODE": "2x2"}),
        **{
            f"without {name}": ask(seen, {k: v for k, v in whole.items() if k != name})
            for name in whole
            if name.startswith("SLURM")
        },
    }


def _pods(label_selector):
    def pod(name, address, phase="Running"):
        return SimpleNamespace(
            metadata=SimpleNamespace(name=name),
            status=SimpleNamespace(phase=phase, host_ip=address),
        )

    found = {
        "job-name=tensorflow": [pod("p1", "10.0.0.2"), pod("p0", "10.0.0.1")],
        "job-name=ps": [pod("q", "10.0.0.9")],
        "job-name=waiting": [pod("r", None, "Pending")],
    }
    return SimpleNamespace(items=found.get(label_selector, []))


def kubernetes(tf, ask):
    resolvers = tf.distribute.cluster_resolver
    make = resolvers.KubernetesClusterResolver
    client = SimpleNamespace(list_pod_for_all_namespaces=_pods)
    own = make(override_client=client)
    own.task_type, own.task_id = "worker", 1
    jobs = {"worker": ["job-name=tensorflow", "job-name=ps"], "ps": ["job-name=ps"]}
    return {
        "plain": _resolver_answers(make(override_client=client), ask),
        "its own task": _resolver_answers(own, ask),
        "jobs": _resolver_answers(make(jobs, 99, "http", client), ask),
        "a pod that waits": ask(
            make({"worker": ["job-name=waiting"]}, override_client=client).cluster_spec
        ),
        "no pods": _resolver_answers(make({"worker": ["x=y"]}, override_client=client), ask),
        "locations": [place.name for place in resolvers.KubernetesExecutableLocation],
        "without the package": ask(make),
    }


def lone_workers(tf, ask):
    make = tf.distribute.MultiWorkerMirroredStrategy
    experimental = tf.distribute.experimental
    with _environment():
        strategy = make()
    others = {
        "a lone worker": {
            "cluster": {"worker": ["a:1"]},
            "task": {"type": "worker", "index": 1},
        },
        "a worker and a server, no task": {"cluster": {"worker": ["a:1"], "ps": ["b:1"]}},
        "a server": {
            "cluster": {"worker": ["a:1"], "ps": ["b:1"]},
            "task": {"type": "ps", "index": 0},
        },
        "a strange job": {
            "cluster": {"worker": ["a:1"], "cook": ["b:1"]},
            "task": {"type": "worker", "index": 0},
        },
        "two chiefs": {
            "cluster": {"chief": ["a:1", "b:1"]},
            "task": {"type": "chief", "index": 0},
        },
        "two evaluators": {
            "cluster": {"worker": ["a:1"], "evaluator": ["b:1", "c:1"]},
            "task": {"type": "worker", "index": 0},
        },
    }

    def made(config):
        with _tf_config(config):
            return make() and 1

    return {
        "is a Strategy": isinstance(strategy, tf.distribute.Strategy),
        "is a MirroredStrategy": isinstance(strategy, tf.distribute.MirroredStrategy),
        "the older class knows it": isinstance(strategy, experimental.MultiWorkerMirroredStrategy),
        "checkpoints": strategy.extended.should_checkpoint,
        "summaries": strategy.extended.should_save_summary,
        "clients of their own": strategy.extended.experimental_between_graph,
        "of a mirrored one": [
            tf.distribute.MirroredStrategy(["CPU:0"]).extended.should_checkpoint,
            tf.distribute.MirroredStrategy(["CPU:0"]).extended.should_save_summary,
            tf.distribute.MirroredStrategy(["CPU:0"]).extended.experimental_between_graph,
        ],
        "resolver": type(strategy.cluster_resolver).__name__,
        "a text for the resolver": ask(make, "worker"),
        "a text for the options": ask(make, None, "RING"),
        "the older form": ask(
            lambda: (
                experimental.MultiWorkerMirroredStrategy(experimental.CollectiveCommunication.RING)
                and 1
            )
        ),
        **{name: ask(made, config) for name, config in others.items()},
    }


def options(tf, ask):
    experimental = tf.distribute.experimental
    make, kinds = experimental.CommunicationOptions, experimental.CommunicationImplementation

    def held(*args, **kwargs):
        made = make(*args, **kwargs)
        return [made.bytes_per_pack, made.timeout_seconds, made.implementation.value]

    return {
        "kinds": [kind.value for kind in kinds],
        "default": ask(held),
        "all": ask(held, 3, 2.5, kinds.NCCL),
        "a name": ask(held, implementation="ring"),
        "no name": ask(held, implementation="fast"),
        "a number": ask(held, implementation=3),
        "less than nothing": ask(held, -1),
    }
