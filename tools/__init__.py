"""Build-time programs of the book; `python -m tools` lists them. Never imported by a chapter."""
