"""What to write instead of the names of TensorFlow that evenfeed leaves out. Read when such a name is used."""

from fnmatch import fnmatchcase
from typing import Final

from evenfeed.core.names.left_out import LEFT_OUT
from evenfeed.core.names.tf1_names import TF1_NAMES

_GRADIENTS: Final = "Record with evenfeed.GradientTape() as tape, and call tape.gradient(ys, xs)."
_SAVING: Final = "Use evenfeed.train.Checkpoint(model=model).save(path)."
_NO_GRAPH: Final = (
    "There are no graphs: write a Python function, and compile it with evenfeed.function."
)
_PROFILE: Final = "Record a profile: with evenfeed.profiler.experimental.Profile(logdir): ..."
_AUTOGRAPH: Final = "Python code is not rewritten: write branches and loops on tensors with evenfeed.cond and evenfeed.while_loop."
_MIRRORED: Final = "Use evenfeed.distribute.MirroredStrategy()"
_NO_PARAMETER_SERVERS: Final = (
    "Training is synchronous: use evenfeed.distribute.MultiWorkerMirroredStrategy()."
)

# By the name after `evenfeed.`.
USE_INSTEAD: Final[dict[str, str]] = {
    "Graph": _NO_GRAPH,
    "Operation": _NO_GRAPH,
    "import_graph_def": _NO_GRAPH,
    "graph_util": _NO_GRAPH,
    "autograph.to_code": _AUTOGRAPH,
    "autograph.to_graph": _AUTOGRAPH,
    "autograph.experimental.Feature": _AUTOGRAPH,
    "gradients": _GRADIENTS,
    "hessians": "Use jax.hessian(loss)(x).",
    "data.DataLoader": "Use batch, shuffle and map of an evenfeed.data.Dataset: see docs/from_pytorch.md.",
    "data.IterDataset": "Use evenfeed.data.Dataset: see docs/from_grain.md.",
    "data.MapDataset": "Use evenfeed.data.Dataset: see docs/from_grain.md.",
    "data.ImageFolder": "Use evenfeed.keras.utils.image_dataset_from_directory(folder).",
    "estimator": "Write the training loop with evenfeed.distribute.MirroredStrategy(): see docs/training.md.",
    "saved_model": "Save a Keras model with model.save(path), or export it with model.export(path), which needs "
    "TensorFlow. Export a function "
    "with jax.export.export(jax.jit(function))(*arguments).serialize().",
    "lite": "Export a function with jax.export, and convert that with ai-edge-torch or a similar tool.",
    "raw_ops": "Use the function of the same name in evenfeed, evenfeed.math or evenfeed.nn, or jax.lax.",
    "summary.trace_on": _PROFILE,
    "summary.trace_off": _PROFILE,
    "summary.trace_export": _PROFILE,
    "summary.graph": "There are no graphs: show a program with jax.jit(function).lower(*arguments).as_text().",
    "profiler.experimental.client": "Use the button of TensorBoard, or evenfeed.profiler.experimental.start(logdir) in the program.",
    "quantization": "Use a library for quantized JAX models, such as qwix.",
    "xla": "Every evenfeed.function is compiled with XLA.",
    "mlir": "Use jax.jit(function).lower(*arguments).as_text().",
    "queue": "Use an evenfeed.data.Dataset.",
    "sets": "Use numpy.intersect1d, union1d and setdiff1d in evenfeed.numpy_function.",
    "strings.unicode_script": "Use a package with Unicode scripts: fontTools.unicodedata.script(char).",
    "random.stateless_parameterized_truncated_normal": "Use jax.random.truncated_normal(key, lower, upper, shape).",
    "get_variable": "Use evenfeed.Variable(initial_value, name=name).",
    "Session": _NO_GRAPH,
    "placeholder": "Make it an argument of a function.",
    "global_variables_initializer": "Variables have their values once they are created.",
    "distribute.ParameterServerStrategy": _NO_PARAMETER_SERVERS,
    "distribute.experimental.ParameterServerStrategy": _NO_PARAMETER_SERVERS,
    "distribute.coordinator": _NO_PARAMETER_SERVERS,
    "distribute.experimental.coordinator": _NO_PARAMETER_SERVERS,
    "distribute.CentralStorageStrategy": f"{_MIRRORED}: each device has a copy of the variables.",
    "distribute.experimental.CentralStorageStrategy": f"{_MIRRORED}: each device has a copy of the variables.",
    "train.Saver": _SAVING,
    "train.Optimizer": "Use an optimizer of optax, for example optax.sgd(0.1).",
    "compat.v1.Session": _NO_GRAPH,
    "compat.v1.Graph": _NO_GRAPH,
    "compat.v1.placeholder": "Make it an argument of a function.",
    "compat.v1.global_variables_initializer": "Variables have their values once they are created.",
    "compat.v1.disable_v2_behavior": "There is no graph mode: use evenfeed.function.",
    "compat.v1.disable_eager_execution": "There is no graph mode: use evenfeed.function.",
    "nn.ctc_beam_search_decoder": "Use evenfeed.nn.ctc_greedy_decoder(inputs, sequence_length), or evenfeed.keras.ops.ctc_decode(evenfeed.transpose(inputs, [1, 0, 2]), sequence_length, strategy='beam_search', mask_index=num_classes - 1), or a package with a language model, such as pyctcdecode.",
    "nn.dilation2d": "Use the largest of shifted images plus the filter, with jax.numpy.max.",
    "nn.erosion2d": "Use the smallest of shifted images minus the filter, with jax.numpy.min.",
    "nn.fractional_max_pool": "Use evenfeed.nn.max_pool, or resize the result with evenfeed.image.resize.",
    "nn.fractional_avg_pool": "Use evenfeed.nn.avg_pool, or resize the result with evenfeed.image.resize.",
    "nn.isotonic_regression": "Use sklearn.isotonic.isotonic_regression in evenfeed.numpy_function.",
    "linalg.logm": "Use scipy.linalg.logm in evenfeed.numpy_function.",
    "linalg.eigh_tridiagonal": "Use jax.scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal).",
    "linalg.banded_triangular_solve": "Use evenfeed.linalg.triangular_solve on the whole matrix.",
    "sparse.sampled_addmm": "Multiply dense matrices, and keep entries with evenfeed.gather_nd.",
    "math.approx_max_k": "Use evenfeed.math.top_k, or jax.lax.approx_max_k.",
    "math.approx_min_k": "Use evenfeed.math.top_k(-x, k), or jax.lax.approx_min_k.",
    "random.learned_unigram_candidate_sampler": "Draw classes with evenfeed.random.categorical([log_probabilities], count).",
    "random.fixed_unigram_candidate_sampler": "Draw classes with evenfeed.random.categorical([log_probabilities], count).",
    "random.experimental.index_shuffle": "Use evenfeed.random.experimental.stateless_shuffle(evenfeed.range(n), seed)[index].",
    "parallel_stack": "Use evenfeed.stack.",
    "tuple": "Use a Python tuple: nothing waits for its parts.",
    "timestamp": "Use time.time(), outside of compiled functions.",
    "make_tensor_proto": "Use evenfeed.io.serialize_tensor(x).",
    "make_ndarray": "Use evenfeed.io.parse_tensor(data, dtype).",
    "DeviceSpec": "Write the name of a device as text, such as 'GPU:0'.",
    "AggregationMethod": "JAX adds gradients up by itself.",
    "compat.v1.trainable_variables": "Keep variables yourself, for example in an evenfeed.Module: module.trainable_variables.",
    "compat.v1.global_variables": "Keep variables yourself, for example in an evenfeed.Module: module.variables.",
    "nn.RNNCellDropoutWrapper": "Use the cells of flax.nnx.",
    "math.sobol_sample": "Use scipy.stats.qmc.Sobol.",
    "linalg.LinearOperator": "Multiply matrices with evenfeed.linalg.matmul.",
    "debugging.experimental": 'Use jax.config.update("jax_debug_nans", True).',
    **TF1_NAMES,
}

# The page of the docs that tells more, by the namespace.
_PAGES: Final = {
    "config": "docs/strategies.md",
    "data": "docs/datasets.md",
    "distribute": "docs/strategies.md",
    "image": "docs/images.md",
    "io": "docs/files.md",
    "keras": "docs/training.md",
    "lookup": "docs/text.md",
    "random": "docs/training.md",
    "ragged": "docs/text.md",
    "strings": "docs/text.md",
    "summary": "docs/training.md",
    "train": "docs/resume.md",
    **dict.fromkeys(("dtypes", "linalg", "math", "nn", "signal", "sparse"), "docs/tensors.md"),
}


def page_for(name: str) -> str:
    """Return the page of the docs that tells more about the namespace of a name."""
    return _PAGES.get(name.partition(".")[0], "docs/from_tensorflow.md")


def advice_for(name: str) -> str | None:
    """Return what to write instead of a name, or instead of the namespace that it is in.

    Args:
        name: The name after `evenfeed.`.
    """
    if name in USE_INSTEAD:
        return USE_INSTEAD[name]
    fitting = (text for pattern, text in LEFT_OUT.items() if fnmatchcase(name, pattern))
    outer = name.rpartition(".")[0]
    return next(fitting, None) or (advice_for(outer) if outer else None)
