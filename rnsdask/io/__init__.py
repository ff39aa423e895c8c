"""Files of integers: text, bytes, NumPy, Parquet and Matrix Market, and compression."""
