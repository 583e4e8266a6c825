# Reductions to a root, gathers and scatters of most sizes go straight between ranks.
nodes.rooted_flat_bytes = 64K
