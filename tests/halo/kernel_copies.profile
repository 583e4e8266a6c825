# Faces in private memory are never staged, so that tests with small ones try the kernel.
halo.kernel_bytes = 0
halo.kernel_small_pages_bytes = 0
halo.kernel_run_bytes = 0
halo.worker_bytes = 1
