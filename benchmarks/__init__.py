"""Benchmarks: how fast and how small Verditer is, next to Azurite and next to its own past, in one run on one machine.

`python -m benchmarks` asks every question of the table in `questions/`. `driver` starts the sides and asks them by turns,
`report` writes the table. Ratios are what lasts; the absolute numbers belong to the machine and the hour.
"""
