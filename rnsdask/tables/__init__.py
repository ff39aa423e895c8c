"""The tables of number systems, one file a kind: for each row that it has, what does it."""
