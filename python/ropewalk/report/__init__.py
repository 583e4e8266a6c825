"""`ropewalk report`: one HTML page out of the rows that benches write.

rows reads them, pictures makes charts of each bench's rows, lines and strips draw a chart as SVG,
page puts all of it into one file, and compare says what differs between two files.
"""
