"""Keras variables in compiled functions and on replicas, as inputs and outputs of programs."""
