"""Where this package lies. Imports nothing but os: processes that start bare need it, too."""

import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))
# A process that is started without site-packages puts this on its sys.path to find the package.
PARENT = os.path.dirname(PACKAGE)
# This is the tree that the Python files belong to; it means nothing where the package was
# installed.
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to one place."""
    return os.path.realpath(one) == os.path.realpath(other)
