"""Files of integers, as text and as bytes: their forms, compression, and matrices of Matrix Market."""
