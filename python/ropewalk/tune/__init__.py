"""`ropewalk tune`: a profile of this machine, measured."""
