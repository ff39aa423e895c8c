"""The version, as installed: pyproject.toml is its only source."""

from importlib.metadata import version

__version__ = version("rnsdask")
