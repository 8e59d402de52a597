"""Functions of signals: Fourier and cosine transforms, windows, frames and spectrograms."""
