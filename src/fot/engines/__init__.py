"""Engines: where the text of a live run comes from."""
