"""Models for Python: `dpl.load`, and the modules that a model's wheel contains."""
