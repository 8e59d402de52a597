"""The programs that run before a kernel, and the shapes that choose them."""
