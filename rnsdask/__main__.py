"""The command line as ``python -m rnsdask``, for where the script ``rnsdask`` is not on the path."""

from rnsdask.cli import main

if __name__ == "__main__":
    main(prog_name="rnsdask")
