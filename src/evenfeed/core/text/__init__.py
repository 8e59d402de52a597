"""Text: columns of bytes, and text values."""
