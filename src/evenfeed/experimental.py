"""The names of TensorFlow's `tf.experimental` that input pipelines use, and those of the live view."""

from typing import TYPE_CHECKING

from evenfeed.core.optional import Optional
from evenfeed.core.publish import members_of, publish, refusal
from evenfeed.live.watching import enable_stats

if TYPE_CHECKING:
    from evenfeed.live.public_names import dashboard, save_trace

__all__ = ["Optional", "dashboard", "enable_stats", "save_trace"]

publish(__name__, ["Optional", "enable_stats"], globals())

if not TYPE_CHECKING:
    _missing = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
    # A web server takes time to import.
    __getattr__ = members_of("evenfeed.live.public_names", __name__, _missing)
