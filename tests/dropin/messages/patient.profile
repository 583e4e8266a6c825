# A sender waits until its receiver takes the data, so that a receiver that does not look, hangs.
messages.envelope_bytes = 64
messages.patience_us = 1000000000
