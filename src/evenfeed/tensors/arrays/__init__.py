"""Functions that arrange, pick and create values."""
