# A sender copies its data away as soon as it may.
messages.envelope_bytes = 64
messages.patience_us = 0
