"""NEURON: a ring of cells; spikes are exchanged by MPI_Allgather(v) every minimum delay."""

import time

from neuron import h

pc = h.ParallelContext()
rank, ranks = int(pc.id()), int(pc.nhost())
cells, netcons = {}, []
number = 64
for gid in range(rank, number, ranks):
    soma = h.Section(name=f"soma{gid}")
    soma.L = soma.diam = 10 + 0.01 * gid
    soma.nseg = 5
    soma.insert("hh")
    synapse = h.ExpSyn(soma(0.5))
    cells[gid] = (soma, synapse)
    pc.set_gid2node(gid, rank)
    detector = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
    detector.threshold = -10
    pc.cell(gid, detector)
for gid, (_, synapse) in cells.items():
    for distance in (1, 7):
        netcon = pc.gid_connect((gid - distance) % number, synapse)
        netcon.weight[0], netcon.delay = 0.02, 0.25 + 0.01 * distance
        netcons.append(netcon)
    if gid % 16 == 0:
        stimulus = h.NetStim()
        stimulus.number, stimulus.start, stimulus.interval = 20, 1 + gid / 16, 11.3
        netcon = h.NetCon(stimulus, synapse)
        netcon.weight[0] = 0.05
        netcons += [stimulus, netcon]
times, gids = h.Vector(), h.Vector()
pc.spike_record(-1, times, gids)
pc.set_maxstep(10)
h.dt = 0.0125
h.finitialize(-65)
pc.barrier()
started = time.perf_counter()
pc.psolve(200)
seconds = time.perf_counter() - started
spikes = pc.py_gather(list(zip(times, map(int, gids), strict=True)), 0)
voltage = pc.allreduce(sum(soma(0.5).v for soma, _ in cells.values()), 1)
if rank == 0:
    print(ranks, "ranks", repr(voltage))
    for t, gid in sorted(one for some in spikes for one in some):
        print(repr(t), gid)
    print("seconds", seconds)
pc.barrier()
h.quit()
