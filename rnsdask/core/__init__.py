"""What everything else stands on: errors, moduli sets, layouts, places, exact scalars."""
