"""Checks of an installation, a machine, its GPUs and a cluster, for ``rnsdask doctor``."""
