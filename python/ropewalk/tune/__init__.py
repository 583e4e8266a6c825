"""`ropewalk tune` measures this machine and writes a profile of it."""
