# One message at a time goes through memory, and all others go through MPI.
messages.envelope_bytes = 64
messages.slots = 1
