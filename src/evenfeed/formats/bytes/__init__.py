"""File bytes: local and remote filesystems, open files, memory maps and decompression."""
