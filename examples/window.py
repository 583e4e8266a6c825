"""Primes below 100000, counted in strips: `ropewalk run -n 4 -- examples/window.py`.

Ranks take strips by a counter that all of them share. Whoever is done takes the next one, so unlike
strips and unlike ranks do no harm, and no rank answers requests: the counter is an element of a
window, and counts are written into the memory of rank 0.
"""

import numpy as np

import ropewalk

STRIPS, LENGTH = 200, 500


def primes(first, end):
    numbers = np.arange(first, end)
    prime = numbers > 1
    for factor in range(2, int(end**0.5) + 1):
        prime &= (numbers % factor != 0) | (numbers == factor)
    return int(prime.sum())


taken = 0
with ropewalk.Window(STRIPS + 1, np.int64) as window:  # the last element is the counter
    while (strip := int(window.fetch_and_op(1, 0, STRIPS))) < STRIPS:
        window.put(primes(strip * LENGTH, (strip + 1) * LENGTH), 0, strip)
        taken += 1
    window.fence()
    if window.rank == 0:
        print(f"{window.array[:STRIPS].sum()} primes below {STRIPS * LENGTH}")
    print(f"rank {window.rank} has counted {taken} of {STRIPS} strips")
