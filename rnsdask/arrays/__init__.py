"""Arrays of numbers as users see them, and the ways to make one."""
