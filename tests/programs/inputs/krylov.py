"""PETSc through petsc4py: a conjugate gradient solve, two small MPI_Allreduce an iteration."""

import sys
import time

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

n = 64
grid = PETSc.DMDA().create([n, n, n], stencil_width=1)
matrix = grid.createMatrix()
(x0, x1), (y0, y1), (z0, z1) = grid.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for z in range(z0, z1):
    for y in range(y0, y1):
        for x in range(x0, x1):
            row.index = (x, y, z)
            matrix.setValueStencil(row, row, 6.01)
            for dx, dy, dz in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)):
                other = (x + dx, y + dy, z + dz)
                if all(0 <= i < n for i in other):
                    column.index = other
                    matrix.setValueStencil(row, column, -1.0)
matrix.assemble()
b = grid.createGlobalVec()
b.set(1.0)
solution = b.duplicate()
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-12, max_it=2000)
solver.setConvergenceHistory()
started = time.perf_counter()
for _ in range(3):
    solution.set(0.0)
    solver.solve(b, solution)
seconds = time.perf_counter() - started
norm, sum_ = solution.norm(), solution.sum()
if PETSc.COMM_WORLD.rank == 0:
    print(solver.getIterationNumber(), repr(norm), repr(sum_))
    print(*map(repr, solver.getConvergenceHistory()), sep="\n")
    print("seconds", seconds)
