"""The language: what a program means."""
