"""``python -m polyleaf``: the command line."""

import sys

from polyleaf.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
