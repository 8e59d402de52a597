"""Text: columns of bytes, and conversion and comparison of text values."""
