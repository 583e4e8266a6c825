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
    assert first[0] == endpoints.rank - (0.5 if endpoints.rank else 0)
