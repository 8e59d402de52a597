"""What `evenfeed.experimental` has of the live view, loaded at first use: a web server takes time to import."""

from evenfeed.live.page_server import dashboard
from evenfeed.live.trace_file import save_trace

__all__ = ["dashboard", "save_trace"]
