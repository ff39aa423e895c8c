"""Operations on chunks of numbers in a residue number system, NumPy or CuPy. No Dask in here."""
