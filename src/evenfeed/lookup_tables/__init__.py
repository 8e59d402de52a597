"""Tables that map keys to values, as kernels on whole columns."""
