"""Batch jobs: planning, running, progress, resuming, summaries."""
