"""The manual pages, and what makes them."""
