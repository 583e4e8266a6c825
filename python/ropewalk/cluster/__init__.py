"""A cluster in a box: several nodes with a network of known rate, on this machine.

`box.Box` is the box itself, `command` the verb `ropewalk cluster`. Nothing is imported here: what
runs inside a box starts with a bare interpreter, once a node.
"""
