"""`ropewalk doctor`: gathers facts of this machine, judges them and prints both."""
