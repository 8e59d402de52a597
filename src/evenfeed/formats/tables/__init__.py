"""Tables: Arrow and Parquet files, read through pyarrow."""
