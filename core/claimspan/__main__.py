"""``python -m claimspan`` is the command line."""

from claimspan.cli import main

main()
