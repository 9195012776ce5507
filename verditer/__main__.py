"""`python -m verditer` is the command `verditer`."""

try:
    from verditer.entry import command
except KeyboardInterrupt:  # before `entry` can handle it
    raise SystemExit(0) from None

command()
