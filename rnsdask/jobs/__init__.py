"""Batch jobs: planned, run, watched, resumed, summed up."""
