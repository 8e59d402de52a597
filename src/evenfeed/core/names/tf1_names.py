"""What to write instead of names that TensorFlow 1 had and TensorFlow 2 renamed. Read when such a name is used."""

from typing import Final

# After `evenfeed.`, for names of `compat.v1` that another name or call replaces.
_RENAMED: Final = {
    "Print": "print",
    "SparseTensorValue": "SparseTensor",
    "add_check_numerics_ops": "debugging.check_numerics(x, message)",
    "arg_max": "argmax",
    "arg_min": "argmin",
    "batch_gather": "gather(params, indices, batch_dims=n)",
    "div": "math.floordiv, or evenfeed.math.divide",
    "div_no_nan": "math.divide_no_nan",
    "extract_image_patches": "image.extract_patches",
    "floor_div": "math.floordiv",
    "layers": "keras.layers",
    "lin_space": "linspace",
    "matrix_band_part": "linalg.band_part",
    "matrix_determinant": "linalg.det",
    "matrix_diag": "linalg.diag",
    "matrix_diag_part": "linalg.diag_part",
    "matrix_inverse": "linalg.inv",
    "matrix_set_diag": "linalg.set_diag",
    "matrix_solve": "linalg.solve",
    "matrix_solve_ls": "linalg.lstsq",
    "matrix_triangular_solve": "linalg.triangular_solve",
    "mixed_precision": "keras.mixed_precision",
    "multinomial": "random.categorical",
    "py_func": "numpy_function",
    "python_io": "io.TFRecordWriter, and read with evenfeed.data.TFRecordDataset",
    "random_gamma": "random.gamma",
    "random_normal": "random.normal",
    "random_poisson": "random.poisson",
    "random_shuffle": "random.shuffle",
    "random_uniform": "random.uniform",
    "reverse_v2": "reverse",
    "self_adjoint_eig": "linalg.eigh",
    "self_adjoint_eigvals": "linalg.eigvalsh",
    "setdiff1d": "numpy_function with numpy.setdiff1d",
    "sparse_tensor_dense_matmul": "sparse.sparse_dense_matmul",
    "sparse_tensor_to_dense": "sparse.to_dense",
    "sparse_to_dense": "sparse.to_dense(evenfeed.SparseTensor(indices, values, shape))",
    "string_join": "strings.join",
    "string_split": "strings.split, which returns a RaggedTensor",
    "string_strip": "strings.strip",
    "string_to_hash_bucket": "strings.to_hash_bucket",
    "string_to_hash_bucket_fast": "strings.to_hash_bucket_fast",
    "string_to_hash_bucket_strong": "strings.to_hash_bucket_strong",
    "string_to_number": "strings.to_number",
    "tensor_scatter_add": "tensor_scatter_nd_add",
    "tensor_scatter_sub": "tensor_scatter_nd_sub",
    "tensor_scatter_update": "tensor_scatter_nd_update",
    "to_bfloat16": "cast(x, evenfeed.bfloat16)",
    "to_complex64": "cast(x, evenfeed.complex64)",
    "to_complex128": "cast(x, evenfeed.complex128)",
    "to_double": "cast(x, evenfeed.float64)",
    "to_float": "cast(x, evenfeed.float32)",
    "to_int32": "cast(x, evenfeed.int32)",
    "to_int64": "cast(x, evenfeed.int64)",
    "verify_tensor_all_finite": "debugging.assert_all_finite",
    "where_v2": "where",
    "wrap_function": "function",
}
_OPTIMIZERS: Final = {
    "AdadeltaOptimizer": "Adadelta",
    "AdagradOptimizer": "Adagrad",
    "AdamOptimizer": "Adam",
    "FtrlOptimizer": "Ftrl",
    "GradientDescentOptimizer": "SGD",
    "MomentumOptimizer": "SGD",
    "RMSPropOptimizer": "RMSprop",
}
_METHODS: Final = """
    assign assign_add assign_sub scatter_add scatter_sub scatter_update scatter_nd_update
"""
_LEAVE_OUT: Final = """
    reset_default_graph local_variables_initializer tables_initializer variables_initializer initialize_all_variables
    initialize_all_tables add_to_collection get_collection
"""
_NO_GRAPH: Final = """
    InteractiveSession GraphDef GraphKeys RunOptions get_default_graph get_default_session placeholder_with_default
    sparse_placeholder disable_control_flow_v2 disable_resource_variables disable_tensor_equality
    disable_v2_tensorshape
"""


def _advice() -> dict[str, str]:
    found = {name: f"Use evenfeed.{text}." for name, text in _RENAMED.items()}
    found |= {name: f"Use the method of the variable: v.{name}(...)." for name in _METHODS.split()}
    found |= dict.fromkeys(
        _LEAVE_OUT.split(), "There are no graphs and no collections: leave it out."
    )
    found |= dict.fromkeys(
        _NO_GRAPH.split(),
        "There are no graphs: write a Python function, and compile it with evenfeed.function.",
    )
    found["flags"] = "Use absl.flags or argparse."
    found["app"] = "Use absl.app.run(main), or call main()."
    found["data.make_initializable_iterator"] = "Use iter(dataset)."
    found["resource_loader"] = "Use importlib.resources."
    return found


# By the name after `evenfeed.`.
TF1_NAMES: Final = {f"compat.v1.{name}": text for name, text in _advice().items()} | {
    f"train.{old}": f"Use evenfeed.keras.optimizers.{new}, or an optimizer of optax."
    for old, new in _OPTIMIZERS.items()
}
TF1_NAMES["train.get_or_create_global_step"] = "Keep the step in a variable: evenfeed.Variable(0)."
