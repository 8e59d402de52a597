"""Values that differ from replica to replica, and how functions and variables run on them."""
