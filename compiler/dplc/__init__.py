"""The compiler: how a program runs fast."""

VERSION = "0.1.0"
