"""Checkpoints, `ClusterSpec` and the Example protocol buffers: TensorFlow's `tf.train`.

Examples:
    >>> import evenfeed as tf
    >>> example = tf.train.Example(features=tf.train.Features(feature={
    ...     "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[7])),
    ... }))
    >>> back = tf.train.Example.FromString(example.SerializeToString())
    >>> back.features.feature["label"].int64_list.value[:]
    [7]
"""

from typing import TYPE_CHECKING, Any

from evenfeed.checkpoints.checkpoint import Checkpoint
from evenfeed.checkpoints.checkpoint_options import CheckpointOptions
from evenfeed.checkpoints.inspection import list_variables, load_checkpoint, load_variable
from evenfeed.checkpoints.rotation import CheckpointManager
from evenfeed.checkpoints.state_file import (
    checkpoints_iterator,
    get_checkpoint_state,
    latest_checkpoint,
)
from evenfeed.checkpoints.views import CheckpointView, TrackableView
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.publish import publish, refusal
from evenfeed.formats.example.example_protos import message_class
from evenfeed.replicas.variables.moving_averages import ExponentialMovingAverage
from evenfeed.train import experimental

__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "CheckpointView",
    "ClusterDef",
    "ClusterSpec",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "JobDef",
    "SequenceExample",
    "TrackableView",
    "checkpoints_iterator",
    "experimental",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]

publish(__name__, [name for name in __all__ if name in globals()], globals())

if TYPE_CHECKING:
    BytesList: Any
    ClusterDef: Any
    Example: Any
    Feature: Any
    FeatureList: Any
    FeatureLists: Any
    Features: Any
    FloatList: Any
    Int64List: Any
    JobDef: Any
    SequenceExample: Any
else:
    _missing = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )

    # Imports protobuf only when a message class is first used. Python asks again only for names that it does not find.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            return _missing(name)
        found = globals()[name] = message_class(name)
        return found
