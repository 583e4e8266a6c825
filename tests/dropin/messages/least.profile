# Every message that is long enough for a descriptor.
messages.envelope_bytes = 64
