"""TFRecord files: framing, checksums, reading and writing."""
