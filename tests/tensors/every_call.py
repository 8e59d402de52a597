"""How to call every tensor function in a map."""

# pyright: basic

from functools import partial
from types import ModuleType

import numpy as np

import evenfeed as tf
from evenfeed.tensors import top_level

NAMESPACES = {
    "": top_level,
    "bitwise": tf.bitwise,
    "linalg": tf.linalg,
    "math": tf.math,
    "nn": tf.nn,
    "signal": tf.signal,
}
FUNCTIONS = {
    f"{namespace}.{name}".lstrip("."): getattr(module, name)
    for namespace, module in NAMESPACES.items()
    for name in module.__all__
    if not isinstance(getattr(module, name), ModuleType)
}
ALIASES = {id(function): name for name, function in FUNCTIONS.items()}

ONE_FLOAT = """
    abs acos asin asinh atan atanh cos cosh exp floor negative round sigmoid sign sin sinh sqrt square tan tanh
    identity stop_gradient ones_like zeros_like norm argmax argmin sort argsort reduce_sum reduce_mean reduce_prod
    reduce_max reduce_min reduce_logsumexp transpose squeeze size rank shape cumsum
    math.angle math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.ceil math.conj math.count_nonzero
    math.cumprod math.cumulative_logsumexp math.digamma math.erf math.erfc math.erfcinv math.erfinv math.expm1
    math.imag math.is_finite math.is_inf math.is_nan math.is_non_decreasing math.is_strictly_increasing
    math.lbeta math.lgamma math.log math.log1p math.log_sigmoid math.ndtri math.real math.reciprocal
    math.reciprocal_no_nan math.reduce_euclidean_norm math.reduce_std math.reduce_variance math.rint math.rsqrt
    nn.elu nn.gelu nn.l2_loss nn.leaky_relu nn.log_softmax nn.relu nn.relu6 nn.selu nn.silu nn.softmax nn.softplus
    nn.softsign nn.top_k nn.zero_fraction nn.crelu nn.l2_normalize
    linalg.adjoint linalg.det linalg.diag linalg.diag_part linalg.expm linalg.inv linalg.matrix_rank
    linalg.matrix_transpose linalg.pinv linalg.qr linalg.slogdet linalg.tensor_diag linalg.tensor_diag_part linalg.trace
    linalg.lu
    signal.dct signal.idct signal.fftshift signal.ifftshift signal.rfft signal.rfft2d signal.rfftnd
    signal.mfccs_from_log_mel_spectrograms signal.inverse_mdct
"""
COMPLEX = "fft ifft fft2d ifft2d fft3d ifft3d fftnd ifftnd irfft irfft2d irfft3d irfftnd"
WINDOWS = "hamming hann kaiser kaiser_bessel_derived vorbis"
TWO_FLOATS = """
    add atan2 divide equal greater greater_equal less less_equal maximum minimum multiply not_equal pow realdiv
    subtract truediv truncatediv truncatemod complex matmul math.divide_no_nan math.floordiv math.floormod math.igamma
    math.igammac math.multiply_no_nan math.nextafter math.squared_difference math.xdivy math.xlog1py math.xlogy
    linalg.solve linalg.triangular_solve linalg.cholesky_solve
    nn.sigmoid_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits nn.log_poisson_loss
"""
IMAGE = np.linspace(0, 1, 32, dtype=np.float32).reshape(1, 4, 4, 2)
FILTER = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 2, 2, 2)

# How to call the others with an element: x floats of shape [2, 2], i integers of shape [3], b bools of shape [3].
SPARSE_IDS = tf.SparseTensor([[0, 0], [1, 0]], [1, 0], [3, 1])
OTHERS = {
    "acosh": lambda x, i, b: tf.acosh(x + 1),
    "add_n": lambda x, i, b: tf.add_n([x, x]),
    "bitcast": lambda x, i, b: tf.bitcast(tf.cast(i, tf.int32), tf.float32),
    "boolean_mask": lambda x, i, b: tf.boolean_mask(i, b),
    "broadcast_dynamic_shape": lambda x, i, b: tf.broadcast_dynamic_shape([2, 1], [3]),
    "broadcast_to": lambda x, i, b: tf.broadcast_to(x, [2, 2, 2]),
    "case": lambda x, i, b: tf.case([(b[0], lambda: x)], default=lambda: -x),
    "cast": lambda x, i, b: tf.cast(x, tf.int32),
    "clip_by_global_norm": lambda x, i, b: tf.clip_by_global_norm([x, x[0]], 0.5)[0][1],
    "clip_by_norm": lambda x, i, b: tf.clip_by_norm(x, 0.5),
    "clip_by_value": lambda x, i, b: tf.clip_by_value(i, 1, 2),
    "concat": lambda x, i, b: tf.concat([x, x], 0),
    "constant_initializer": lambda x, i, b: tf.constant_initializer(2)([3]) + i,
    "ones_initializer": lambda x, i, b: tf.ones_initializer()([2]) + x,
    "random_normal_initializer": lambda x, i, b: tf.random_normal_initializer(seed=1)([2]) + x,
    "random_uniform_initializer": lambda x, i, b: tf.random_uniform_initializer(seed=1)([2]) + x,
    "zeros_initializer": lambda x, i, b: tf.zeros_initializer()([2]) + x,
    "cond": lambda x, i, b: tf.cond(b[0], lambda: x, lambda: -x),
    "dynamic_partition": lambda x, i, b: tf.dynamic_partition(i, i, 3)[1],
    "dynamic_stitch": lambda x, i, b: tf.dynamic_stitch([[0], [1, 2]], [i[:1], i[1:]]),
    "einsum": lambda x, i, b: tf.einsum("ij,jk->ik", x, x),
    "ensure_shape": lambda x, i, b: tf.ensure_shape(x, [2, None]),
    "expand_dims": lambda x, i, b: tf.expand_dims(x, 1),
    "eye": lambda x, i, b: tf.eye(2),
    "fill": lambda x, i, b: tf.fill([2], x[0, 0]),
    "foldl": lambda x, i, b: tf.foldl(lambda a, y: a + y, x),
    "foldr": lambda x, i, b: tf.foldr(lambda a, y: a - y, x),
    "gather": lambda x, i, b: tf.gather(i, i),
    "gather_nd": lambda x, i, b: tf.gather_nd(i, i[:, None]),
    "histogram_fixed_width": lambda x, i, b: tf.histogram_fixed_width(x, [0.0, 1.0], 4),
    "histogram_fixed_width_bins": lambda x, i, b: tf.histogram_fixed_width_bins(x, [0.0, 1.0], 4),
    "identity_n": lambda x, i, b: tf.identity_n([x])[0],
    "linspace": lambda x, i, b: tf.linspace(x[0, 0], x[1, 1], 3),
    "logical_and": lambda x, i, b: tf.logical_and(b, b),
    "logical_not": lambda x, i, b: tf.logical_not(b),
    "logical_or": lambda x, i, b: tf.logical_or(b, b),
    "map_fn": lambda x, i, b: tf.map_fn(lambda y: y * 2, x),
    "meshgrid": lambda x, i, b: tf.meshgrid(i, i)[1],
    "one_hot": lambda x, i, b: tf.one_hot(i, 3),
    "pad": lambda x, i, b: tf.pad(x, [[1, 0], [0, 0]]),
    "reduce_all": lambda x, i, b: tf.reduce_all(b),
    "reduce_any": lambda x, i, b: tf.reduce_any(b),
    "repeat": lambda x, i, b: tf.repeat(x, 2),
    "reshape": lambda x, i, b: tf.reshape(x, [-1]),
    "reverse": lambda x, i, b: tf.reverse(i, [0]),
    "reverse_sequence": lambda x, i, b: tf.reverse_sequence(x, [1, 2], 1, 0),
    "roll": lambda x, i, b: tf.roll(i, 1, 0),
    "saturate_cast": lambda x, i, b: tf.saturate_cast(i * 200, tf.uint8),
    "scan": lambda x, i, b: tf.scan(lambda a, y: a + y, x),
    "scatter_nd": lambda x, i, b: tf.scatter_nd(i[:, None], i, [3]),
    "searchsorted": lambda x, i, b: tf.searchsorted(tf.sort(i), i),
    "sequence_mask": lambda x, i, b: tf.sequence_mask(i),
    "shape_n": lambda x, i, b: tf.shape_n([x])[0],
    "slice": lambda x, i, b: tf.slice(x, [0, 1], [2, 1]),
    "split": lambda x, i, b: tf.split(x, 2)[0],
    "stack": lambda x, i, b: tf.stack([x, x], 1),
    "strided_slice": lambda x, i, b: tf.strided_slice(i, [0], [3], [2]),
    "switch_case": lambda x, i, b: tf.switch_case(i[1], [lambda: x, lambda: -x, lambda: x * 2]),
    "tensor_scatter_nd_add": lambda x, i, b: tf.tensor_scatter_nd_add(i, [[0]], [5]),
    "tensor_scatter_nd_max": lambda x, i, b: tf.tensor_scatter_nd_max(i, [[0]], [5]),
    "tensor_scatter_nd_min": lambda x, i, b: tf.tensor_scatter_nd_min(i, [[0]], [-5]),
    "tensor_scatter_nd_sub": lambda x, i, b: tf.tensor_scatter_nd_sub(i, [[0]], [5]),
    "tensor_scatter_nd_update": lambda x, i, b: tf.tensor_scatter_nd_update(i, [[0]], [5]),
    "tensordot": lambda x, i, b: tf.tensordot(x, x, 1),
    "tile": lambda x, i, b: tf.tile(x, [1, 2]),
    "unique": lambda x, i, b: tf.unique(i).idx,
    "unique_with_counts": lambda x, i, b: tf.unique_with_counts(i).count,
    "unravel_index": lambda x, i, b: tf.unravel_index(i, [2, 3]),
    "unstack": lambda x, i, b: tf.unstack(x)[1],
    "vectorized_map": lambda x, i, b: tf.vectorized_map(lambda y: y * 2, x),
    "where": lambda x, i, b: tf.where(b, i, 0),
    "while_loop": lambda x, i, b: tf.while_loop(lambda y: y[0] < 9, lambda y: [y + 3], [i])[0],
    "bitwise.bitwise_and": lambda x, i, b: tf.bitwise.bitwise_and(i, 1),
    "bitwise.bitwise_or": lambda x, i, b: tf.bitwise.bitwise_or(i, 1),
    "bitwise.bitwise_xor": lambda x, i, b: tf.bitwise.bitwise_xor(i, 1),
    "bitwise.invert": lambda x, i, b: tf.bitwise.invert(i),
    "bitwise.left_shift": lambda x, i, b: tf.bitwise.left_shift(i, 1),
    "bitwise.right_shift": lambda x, i, b: tf.bitwise.right_shift(i, 1),
    "batch_to_space": lambda x, i, b: tf.batch_to_space(x, [2], [[0, 0]]),
    "space_to_batch": lambda x, i, b: tf.space_to_batch(x, [2], [[0, 0]]),
    "linalg.lu_matrix_inverse": lambda x, i, b: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(x)),
    "linalg.lu_reconstruct": lambda x, i, b: tf.linalg.lu_reconstruct(*tf.linalg.lu(x)),
    "linalg.lu_solve": lambda x, i, b: tf.linalg.lu_solve(*tf.linalg.lu(x), x),
    "linalg.sqrtm": lambda x, i, b: tf.linalg.sqrtm(tf.matmul(x, x)),
    "linalg.tridiagonal_matmul": lambda x, i, b: tf.linalg.tridiagonal_matmul(x, x, "matrix"),
    "linalg.tridiagonal_solve": lambda x, i, b: tf.linalg.tridiagonal_solve(x, x, "matrix"),
    "nn.conv1d_transpose": (
        lambda x, i, b: tf.nn.conv1d_transpose(x[None], FILTER[0], [1, 4, 2], 2)
    ),
    "nn.conv3d_transpose": lambda x, i, b: tf.nn.conv3d_transpose(
        IMAGE[None] * x[0, 0], FILTER[None], [1, 1, 8, 8, 2], [1, 1, 2, 2, 1]
    ),
    "nn.conv_transpose": lambda x, i, b: tf.nn.conv_transpose(x[None], FILTER[0], [1, 4, 2], 2),
    "nn.embedding_lookup_sparse": (
        lambda x, i, b: tf.nn.embedding_lookup_sparse(x, SPARSE_IDS, None, combiner="sum")
    ),
    "nn.safe_embedding_lookup_sparse": (
        lambda x, i, b: tf.nn.safe_embedding_lookup_sparse(x, SPARSE_IDS)
    ),
    "nn.pool": lambda x, i, b: tf.nn.pool(x[None], [2], "MAX"),
    "linalg.band_part": lambda x, i, b: tf.linalg.band_part(x, 0, 1),
    "linalg.cholesky": lambda x, i, b: tf.linalg.cholesky(tf.eye(2, dtype=x.dtype) + x * 0),
    "linalg.cross": lambda x, i, b: tf.linalg.cross(i, i + 1),
    "linalg.eig": lambda x, i, b: tf.abs(tf.linalg.eig(x)[0]),
    "linalg.eigh": lambda x, i, b: tf.linalg.eigh(x + tf.transpose(x))[0],
    "linalg.eigvals": lambda x, i, b: tf.abs(tf.linalg.eigvals(x)),
    "linalg.eigvalsh": lambda x, i, b: tf.linalg.eigvalsh(x + tf.transpose(x)),
    "linalg.global_norm": lambda x, i, b: tf.linalg.global_norm([x, x]),
    "linalg.logdet": lambda x, i, b: tf.linalg.logdet(tf.eye(2, dtype=x.dtype) + x * 0),
    "linalg.lstsq": lambda x, i, b: tf.linalg.lstsq(x, x[:, :1]),
    "linalg.matvec": lambda x, i, b: tf.linalg.matvec(x, x[0]),
    "linalg.normalize": lambda x, i, b: tf.linalg.normalize(x)[0],
    "linalg.set_diag": lambda x, i, b: tf.linalg.set_diag(x, x[0]),
    "linalg.svd": lambda x, i, b: tf.linalg.svd(x, compute_uv=False),
    "math.accumulate_n": lambda x, i, b: tf.math.accumulate_n([x, x]),
    "math.betainc": lambda x, i, b: tf.math.betainc(x, x, x),
    "math.bincount": lambda x, i, b: tf.math.bincount(i),
    "math.confusion_matrix": lambda x, i, b: tf.math.confusion_matrix(i, i, 3),
    "math.in_top_k": lambda x, i, b: tf.math.in_top_k(i[:2] // 2, x, 1),
    "math.invert_permutation": lambda x, i, b: tf.math.invert_permutation(i),
    "math.logical_xor": lambda x, i, b: tf.math.logical_xor(b, b),
    "math.polygamma": lambda x, i, b: tf.math.polygamma(x * 0 + 1, x),
    "math.polyval": lambda x, i, b: tf.math.polyval([2.0, 1.0], x),
    "math.scalar_mul": lambda x, i, b: tf.math.scalar_mul(2, x),
    "math.zeta": lambda x, i, b: tf.math.zeta(x + 1, x),
    "nn.batch_normalization": lambda x, i, b: tf.nn.batch_normalization(x, x, x, x, x, 0.1),
    "nn.bias_add": lambda x, i, b: tf.nn.bias_add(x, x[0]),
    "nn.dropout": lambda x, i, b: tf.nn.dropout(x, 0.0),
    "nn.embedding_lookup": lambda x, i, b: tf.nn.embedding_lookup(x, i // 2),
    "nn.moments": lambda x, i, b: tf.nn.moments(x, [0])[1],
    "nn.normalize_moments": lambda x, i, b: tf.nn.normalize_moments(2.0, x, x, None)[1],
    "nn.sparse_softmax_cross_entropy_with_logits": (
        lambda x, i, b: tf.nn.sparse_softmax_cross_entropy_with_logits(i[:2] // 2, x)
    ),
    "nn.sufficient_statistics": lambda x, i, b: tf.nn.sufficient_statistics(x, [0])[2],
    "nn.weighted_cross_entropy_with_logits": (
        lambda x, i, b: tf.nn.weighted_cross_entropy_with_logits(x, x, 2.0)
    ),
    "nn.weighted_moments": lambda x, i, b: tf.nn.weighted_moments(x, [0], x)[1],
    "nn.local_response_normalization": lambda x, i, b: tf.nn.lrn(x[None, None]),
    "nn.depth_to_space": lambda x, i, b: tf.nn.depth_to_space(tf.ones([1, 1, 1, 4]) * x[0, 0], 2),
    "nn.space_to_depth": lambda x, i, b: tf.nn.space_to_depth(x[None, :, :, None], 2),
    "nn.compute_average_loss": lambda x, i, b: tf.nn.compute_average_loss(x[0]),
    "nn.scale_regularization_loss": lambda x, i, b: tf.nn.scale_regularization_loss(x[0]),
    "nn.conv1d": lambda x, i, b: tf.nn.conv1d(x[None], FILTER[0], 1, "SAME"),
    "nn.conv2d": lambda x, i, b: tf.nn.conv2d(IMAGE * x[0, 0], FILTER, 1, "SAME"),
    "nn.conv3d": lambda x, i, b: tf.nn.conv3d(IMAGE[None] * x[0, 0], FILTER[None], [1] * 5, "SAME"),
    "nn.convolution": lambda x, i, b: tf.nn.convolution(IMAGE * x[0, 0], FILTER),
    "nn.depthwise_conv2d": (
        lambda x, i, b: tf.nn.depthwise_conv2d(IMAGE * x[0, 0], FILTER, [1] * 4, "SAME")
    ),
    "nn.separable_conv2d": lambda x, i, b: tf.nn.separable_conv2d(
        IMAGE * x[0, 0], FILTER, np.ones((1, 1, 4, 1), np.float32), [1] * 4, "SAME"
    ),
    "nn.atrous_conv2d": lambda x, i, b: tf.nn.atrous_conv2d(IMAGE * x[0, 0], FILTER, 2, "SAME"),
    "nn.conv2d_transpose": (
        lambda x, i, b: tf.nn.conv2d_transpose(IMAGE * x[0, 0], FILTER, [1, 8, 8, 2], 2)
    ),
    "edit_distance": lambda x, i, b: tf.edit_distance(
        tf.sparse.from_dense(i[None]), tf.sparse.from_dense(i[None, ::-1])
    ),
    "nn.all_candidate_sampler": (
        lambda x, i, b: tf.nn.all_candidate_sampler(i[:, None], 1, 3, True)
    ),
    "nn.compute_accidental_hits": (
        lambda x, i, b: tf.nn.compute_accidental_hits(i[:, None], [0, 1], 1)
    ),
    "nn.ctc_greedy_decoder": (
        lambda x, i, b: tf.sparse.to_dense(tf.nn.ctc_greedy_decoder(x[None], [1, 1])[0][0])
    ),
    "nn.ctc_loss": lambda x, i, b: tf.nn.ctc_loss([[1]], x[:, None], [1], [2]),
    "nn.max_pool_with_argmax": (
        lambda x, i, b: tf.nn.max_pool_with_argmax(x[None, :, :, None], 2, 1, "SAME")[1]
    ),
    "nn.nce_loss": lambda x, i, b: tf.nn.nce_loss(
        x,
        x[0],
        [[1], [0]],
        x,
        2,
        2,
        sampled_values=tf.random.all_candidate_sampler([[1], [0]], 1, 2, True),
    ),
    "nn.sampled_softmax_loss": lambda x, i, b: tf.nn.sampled_softmax_loss(
        x,
        x[0],
        [[1], [0]],
        x,
        2,
        2,
        sampled_values=tf.random.all_candidate_sampler([[1], [0]], 1, 2, True),
    ),
    "signal.frame": lambda x, i, b: tf.signal.frame(i, 2, 1, pad_end=True),
    "signal.inverse_stft": lambda x, i, b: tf.signal.inverse_stft(tf.complex(x, x), 2, 1),
    "signal.inverse_stft_window_fn": (
        lambda x, i, b: tf.signal.inverse_stft_window_fn(1)(2, dtype=x.dtype) * x
    ),
    "signal.linear_to_mel_weight_matrix": (
        lambda x, i, b: tf.matmul(x, tf.signal.linear_to_mel_weight_matrix(3, 2))
    ),
    "signal.mdct": lambda x, i, b: tf.signal.mdct(tf.tile(x, [1, 4]), 4),
    "signal.overlap_and_add": lambda x, i, b: tf.signal.overlap_and_add(x, 1),
    "signal.rfft3d": lambda x, i, b: tf.signal.rfft3d(x[None]),
    "signal.stft": lambda x, i, b: tf.abs(tf.signal.stft(x, 2, 1)),
}

# What does not compute with tensors.
NOT_IN_MAPS = {
    "Assert", "TensorArray", "assert_equal", "assert_greater", "assert_less", "assert_rank",
    "broadcast_static_shape", "control_dependencies", "device", "executing_eagerly",
    "get_current_name_scope", "get_logger", "get_static_value", "group", "init_scope", "inside_function",
    "is_symbolic_tensor", "name_scope",
    "no_op", "numpy_function", "print", "py_function",
}  # fmt: skip


POOLED = {"": [1, 2, 2, 1], "1d": [1, 4, 1], "2d": [1, 2, 2, 1], "3d": [1, 1, 2, 2, 1]}


def pooled(function, shape, x, i, b):
    return function(tf.reshape(x, shape), 2, 1, "SAME")


def of_segments(function, x, i, b):
    return function(x, [0, 0])


def of_unsorted_segments(function, x, i, b):
    return function(x, i[:2], 3)


def of_complex(function, x, i, b):
    return tf.abs(function(tf.complex(x, 2 * x)[None]))


def of_length(function, x, i, b):
    return function(2, dtype=x.dtype) * x


def families():
    """Return the calls of functions that are called alike."""
    for kind in ("sum", "mean", "prod", "max", "min"):
        yield f"math.segment_{kind}", of_segments
        yield f"math.unsorted_segment_{kind}", of_unsorted_segments
    yield "math.unsorted_segment_sqrt_n", of_unsorted_segments
    for name in COMPLEX.split():
        yield f"signal.{name}", of_complex
    for name in WINDOWS.split():
        yield f"signal.{name}_window", of_length


def calls():
    alike = {name: partial(call, FUNCTIONS[name]) for name, call in families()}
    pools = {
        f"nn.{kind}_pool{rank}": partial(pooled, FUNCTIONS[f"nn.{kind}_pool{rank}"], shape)
        for kind in ("max", "avg")
        for rank, shape in POOLED.items()
    }
    one = {name: lambda x, i, b, f=FUNCTIONS[name]: f(x) for name in ONE_FLOAT.split()}
    two = {name: lambda x, i, b, f=FUNCTIONS[name]: f(x, x + 0.25) for name in TWO_FLOATS.split()}
    return {**one, **two, **alike, **pools, **OTHERS}


CALLS = calls()
