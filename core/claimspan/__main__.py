"""``python -m claimspan`` is the command line."""

from claimspan.cli.main import main

main()
