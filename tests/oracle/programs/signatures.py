"""The arguments of the tensor functions: their names, order and defaults."""

# pyright: basic

import inspect

import numpy as np

# By namespace; the first is TensorFlow itself.
NAMES = {
    "": """
        Assert TensorArray abs acos acosh add add_n argmax argmin argsort asin asinh
        assert_equal assert_greater assert_less assert_rank atan atan2 atanh bitcast
        boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to case cast
        clip_by_global_norm clip_by_norm clip_by_value complex concat cond
        control_dependencies cos cosh cumsum device divide dynamic_partition dynamic_stitch
        eig eigvals einsum ensure_shape equal executing_eagerly exp expand_dims eye fill
        floor foldl foldr gather gather_nd get_current_name_scope get_static_value greater
        greater_equal group histogram_fixed_width histogram_fixed_width_bins identity
        identity_n is_symbolic_tensor less less_equal linspace logical_and logical_not
        logical_or map_fn matmul maximum meshgrid minimum multiply name_scope negative no_op
        norm not_equal numpy_function one_hot ones_like pad pow py_function rank
        realdiv reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min
        reduce_prod reduce_sum repeat reshape reverse reverse_sequence roll round
        saturate_cast scalar_mul scan scatter_nd searchsorted sequence_mask shape shape_n
        sigmoid sign sin sinh size slice sort split sqrt square squeeze stack stop_gradient
        strided_slice subtract switch_case tan tanh tensor_scatter_nd_add
        tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub
        tensor_scatter_nd_update tensordot tile transpose truediv truncatediv truncatemod
        unique unique_with_counts unravel_index unstack vectorized_map where while_loop
        zeros_like
    """,
    "math": """
        accumulate_n angle bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc bincount ceil
        confusion_matrix conj count_nonzero cumprod cumulative_logsumexp digamma
        divide_no_nan erf erfc erfcinv erfinv expm1 floordiv floormod igamma igammac imag
        in_top_k invert_permutation is_finite is_inf is_nan is_non_decreasing
        is_strictly_increasing l2_normalize lbeta lgamma log log1p log_sigmoid log_softmax
        logical_xor mod multiply_no_nan ndtri nextafter polygamma polyval real reciprocal
        reciprocal_no_nan reduce_euclidean_norm reduce_std reduce_variance rint rsqrt
        segment_max segment_mean segment_min segment_prod segment_sum softmax softplus
        softsign squared_difference top_k unsorted_segment_max unsorted_segment_mean
        unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
        unsorted_segment_sum xdivy xlog1py xlogy zero_fraction zeta
    """,
    "nn": """
        atrous_conv2d avg_pool avg_pool1d avg_pool2d avg_pool3d batch_normalization bias_add
        compute_average_loss conv1d conv2d conv2d_transpose conv3d convolution crelu
        depth_to_space depthwise_conv2d dropout elu embedding_lookup gelu in_top_k l2_loss
        l2_normalize leaky_relu local_response_normalization log_poisson_loss log_softmax
        lrn max_pool max_pool1d max_pool2d max_pool3d moments normalize_moments relu relu6
        scale_regularization_loss selu separable_conv2d sigmoid_cross_entropy_with_logits
        silu softmax softmax_cross_entropy_with_logits softplus softsign space_to_depth
        sparse_softmax_cross_entropy_with_logits sufficient_statistics swish top_k
        weighted_cross_entropy_with_logits weighted_moments zero_fraction
    """,
    "linalg": """
        adjoint band_part cholesky cholesky_solve cross det diag diag_part eigh eigvalsh
        expm global_norm inv l2_normalize logdet lstsq lu matrix_rank matrix_transpose
        matvec normalize pinv qr set_diag slogdet solve svd tensor_diag tensor_diag_part
        trace triangular_solve
    """,
    "bitwise": """
        bitwise_and bitwise_or bitwise_xor invert left_shift right_shift
    """,
    "debugging": """
        assert_all_finite assert_greater_equal assert_integer assert_less_equal assert_near
        assert_negative assert_non_negative assert_non_positive assert_none_equal
        assert_positive assert_proper_iterable assert_rank_at_least assert_rank_in
        assert_same_float_dtype assert_scalar assert_shapes assert_type check_numerics
        is_numeric_tensor
    """,
}

# Arguments that only the placement of distributed tensors and invalid indices use.
LEFT_OUT = {"layout", "bad_indices_policy"}


def arguments(tf, ask):
    return {
        f"{namespace}.{name}".lstrip("."): ask(_arguments, getattr(tf, namespace, tf), name)
        for namespace, names in NAMES.items()
        for name in names.split()
    }


def _arguments(module, name):
    given = inspect.signature(getattr(module, name)).parameters.values()
    return [
        (one.name, _default(one)) for one in given if one.name not in {"name", "self"} | LEFT_OUT
    ]


def _default(parameter):
    value = parameter.default
    if value is inspect.Parameter.empty:
        return "required"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return np.dtype(getattr(value, "as_numpy_dtype", value)).name
