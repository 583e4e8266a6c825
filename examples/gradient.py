"""Data-parallel training: `ropewalk run -n 4 -- examples/gradient.py`.

Every rank has its own samples and the same two-layer network. The gradient of the second layer is
reduced while this rank works out that of the first.
"""

import numpy as np

import ropewalk

SAMPLES = 512  # a rank
STEPS = 500
RATE = 2.0

comm = ropewalk.Communicator()
random = np.random.default_rng([7, comm.rank])
x = random.uniform(-1, 1, (SAMPLES, 3))
x[:, 2] = 1  # the bias
y = (x[:, :1] * x[:, 1:2] > 0).astype(float)  # whether both numbers have the same sign

# All ranks start from the root's weights. The gradients lie in communication memory, where the
# others reach them.
weights = [comm.broadcast(random.normal(0, 1, shape)) for shape in ((3, 32), (32, 1))]
gradients = [ropewalk.empty(one.shape) for one in weights]

for _ in range(STEPS):
    hidden = np.tanh(x @ weights[0])
    guess = 1 / (1 + np.exp(-hidden @ weights[1]))
    error = (guess - y) / SAMPLES
    gradients[1][:] = hidden.T @ error
    second = comm.start_allreduce(gradients[1], out=gradients[1])
    gradients[0][:] = x.T @ ((error @ weights[1].T) * (1 - hidden**2))
    first = comm.start_allreduce(gradients[0], out=gradients[0])
    for weight, pending in zip(weights, (first, second), strict=True):
        weight -= RATE * pending.result() / comm.size

right = int(comm.allreduce(((guess > 0.5) == (y > 0.5)).sum()))
if comm.rank == 0:
    print(f"{100 * right / (SAMPLES * comm.size):.1f} % of {SAMPLES * comm.size} samples are right")
