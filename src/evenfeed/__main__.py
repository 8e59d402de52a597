"""The `evenfeed` command, also as `python -m evenfeed`."""

import sys

from evenfeed.command.main import main

if __name__ == "__main__":
    sys.exit(main())
