"""Tests of the admin port and of the explorer's API, over plain HTTP."""
