"""Image functions that JAX traces and differentiates, for losses and models."""
