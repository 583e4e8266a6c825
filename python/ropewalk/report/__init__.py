"""`ropewalk report` makes one HTML page out of the rows that benches write.

rows reads them. peers, exchanges and lattice make charts of the benches' rows, and sections says
which of them makes those of which bench. lines and strips draw a chart as SVG, page puts all of it
into one file, and compare says what differs between two files.
"""
