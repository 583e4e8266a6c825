# Every exchange is worth all the workers of a rank, whatever cores there are.
halo.worker_bytes = 1
