"""The tables of number systems, one file for each kind: the function of each row that the system has."""
