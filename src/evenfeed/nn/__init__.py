"""Functions of neural networks: TensorFlow's `tf.nn`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.nn import experimental
from evenfeed.replicas.reduce.average_loss import compute_average_loss, scale_regularization_loss
from evenfeed.tensors.arrays.cutting import depth_to_space, space_to_depth
from evenfeed.tensors.arrays.sorting import in_top_k, top_k
from evenfeed.tensors.math.norms import l2_normalize
from evenfeed.tensors.math.reductions import zero_fraction
from evenfeed.tensors.math.single_values import sigmoid, softplus, softsign
from evenfeed.tensors.math.trigonometry import tanh
from evenfeed.tensors.nn.activations import (
    bias_add,
    crelu,
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    relu6,
    selu,
    silu,
    softmax,
)
from evenfeed.tensors.nn.argmax_pooling import max_pool_with_argmax
from evenfeed.tensors.nn.candidates import all_candidate_sampler, compute_accidental_hits
from evenfeed.tensors.nn.convolutions import (
    atrous_conv2d,
    conv1d,
    conv2d,
    conv3d,
    convolution,
    depthwise_conv2d,
    separable_conv2d,
)
from evenfeed.tensors.nn.ctc import ctc_greedy_decoder, ctc_loss
from evenfeed.tensors.nn.dropouts import dropout
from evenfeed.tensors.nn.embeddings import embedding_lookup_sparse, safe_embedding_lookup_sparse
from evenfeed.tensors.nn.losses import (
    l2_loss,
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from evenfeed.tensors.nn.normalization import (
    batch_normalization,
    embedding_lookup,
    local_response_normalization,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
)
from evenfeed.tensors.nn.pooling import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    pool,
)
from evenfeed.tensors.nn.sampled_losses import nce_loss, sampled_softmax_loss
from evenfeed.tensors.nn.space_batches import batch_to_space, space_to_batch
from evenfeed.tensors.nn.transposed_convolutions import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
    conv_transpose,
)

lrn = local_response_normalization
swish = silu

__all__ = [
    "all_candidate_sampler",
    "atrous_conv2d",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_normalization",
    "batch_to_space",
    "bias_add",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_greedy_decoder",
    "ctc_loss",
    "depth_to_space",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "experimental",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "relu",
    "relu6",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
