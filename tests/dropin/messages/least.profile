# Every message that is long enough for a descriptor goes through memory.
messages.envelope_bytes = 64
