"""Benchmarks: speed and memory of Verditer compared with Azurite, or with an earlier revision, in one run on one machine.

`python -m benchmarks` runs every benchmark of the table in `benchmarks/cases`. `driver` starts the servers and measures them
alternately, `report` writes the tables. Ratios are comparable between runs; absolute numbers are not.
"""
