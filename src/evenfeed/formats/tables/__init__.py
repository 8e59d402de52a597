"""Arrow and Parquet tables, read with pyarrow."""
