# One at a time: all others go through MPI.
messages.envelope_bytes = 64
messages.slots = 1
