"""Compiles loops of steps in a function, where that is unobservable."""
