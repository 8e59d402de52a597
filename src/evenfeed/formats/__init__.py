"""Files: from bytes to Blocks, and back."""
