"""Work for whoever is free: `ropewalk run -n 4 -- examples/channel.py`.

Rank 0 hands out rows of the Mandelbrot set. The others ask for the next row by sending the last.
"""

import numpy as np

import ropewalk

ROWS, COLUMNS, STEPS = 60, 100, 60
STOP = ROWS  # instead of a row's number


def row(number):
    c = np.linspace(-2, 0.6, COLUMNS) + 1j * (2.4 * number / (ROWS - 1) - 1.2)
    z, inside = np.zeros_like(c), np.ones(COLUMNS, bool)
    for _ in range(STEPS):
        z[inside] = z[inside] ** 2 + c[inside]
        inside &= abs(z) <= 2
    return inside.astype(np.uint8)


with ropewalk.Channel() as channel:
    work, answer = np.zeros(1, np.int64), np.zeros(COLUMNS, np.uint8)
    if channel.rank > 0:
        channel.send(answer[:0], 0)  # no row yet
        while channel.receive(work, 0) and work[0] != STOP:
            channel.send(row(work[0]), 0, tag=int(work[0]))
    else:
        picture = np.zeros((ROWS, COLUMNS), np.uint8)
        left = iter(range(ROWS))
        asked = ROWS + channel.size - 1 if channel.size > 1 else 0
        for _ in range(asked):
            status = channel.receive(answer, ropewalk.any_source, ropewalk.any_tag)
            if status.count:
                picture[status.tag] = answer
            channel.send(np.array([next(left, STOP)]), status.source)
        whole = np.array([row(number) for number in range(ROWS)])
        assert not asked or (picture == whole).all()
        print(f"{whole.sum()} points of {whole.size} are inside")
