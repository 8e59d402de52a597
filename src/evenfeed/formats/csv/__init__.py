"""CSV: reading files, splitting records into fields, and converting fields to values."""
