"""The analyses: each a named step from the material to an exhibit."""
