# Private blocks of any length are written into receive buffers that are mapped.
node.pushed_bytes = 1
