"""TFRecord files: reading, writing, framing and checksums."""
