"""Bytes of files: where files are, how they are opened, mapped and decompressed."""
