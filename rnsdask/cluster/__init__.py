"""Where jobs run: schedulers, workers, their memory, and how they are reached."""
