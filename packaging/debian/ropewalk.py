#!/usr/bin/python3
"""Starts the command ropewalk, whose modules are for itself alone."""

import sys

sys.path.insert(0, "/usr/lib/ropewalk")
from ropewalk.command import main

sys.exit(main())
