"""`python -m ropewalk` is the command `ropewalk`."""

import sys

from ropewalk.command import main

if __name__ == "__main__":
    sys.exit(main())
