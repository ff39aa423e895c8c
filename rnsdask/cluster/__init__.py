"""Schedulers and workers, their memory, and connections to them."""
