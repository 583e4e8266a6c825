"""Where this package lies. Imports nothing but os: processes that start bare need it, too."""

import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))
# What a process that is started without site-packages puts on its sys.path to find the package.
PARENT = os.path.dirname(PACKAGE)
# The tree that the Python files belong to; of no meaning where the package was installed.
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
