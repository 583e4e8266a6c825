"""`ropewalk bench`: starts the benchmark programs; joins, sums up and draws their rows."""
