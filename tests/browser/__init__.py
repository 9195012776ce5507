"""Tests of the explorer in a real browser: Debian's chromium, driven by Playwright. `make browser` runs them."""
