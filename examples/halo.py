import ropewalk

with ropewalk.EndpointSet() as endpoints:
    line = ropewalk.CartesianGrid([endpoints.size], periodic=False)
    u = ropewalk.zeros((514, 512))  # 512 rows and a ghost row on either side, on 2 MiB pages
    u += endpoints.rank
    halo = ropewalk.Halo(line, endpoints, u)
    halo.start()  # the outermost rows leave
    inner = (u[1:-3] + u[3:-1]) / 2  # rows that need no neighbour
    halo.wait()  # the neighbours' rows are in the ghost rows
    first, last = (u[0] + u[2]) / 2, (u[-3] + u[-1]) / 2
    rank, size = endpoints.rank, endpoints.size
    assert first[0] == rank - (0.5 if rank > 0 else 0)
    assert last[0] == rank + (0.5 if rank + 1 < size else 0)
    if rank == 0:
        print(f"{size} ranks: rank 0 has relaxed 512 rows, and its neighbours' rows were right")
