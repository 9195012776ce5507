"""Tests of `verditer.testing`: the server that other projects use in their tests."""
