"""Models for Python: `dpl.load`, and what a wheel of a model consists of."""
