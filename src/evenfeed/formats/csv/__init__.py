"""CSV files: records, fields and their values."""
