"""The values that all packages share: errors, moduli sets, layouts, places, exact scalars."""
