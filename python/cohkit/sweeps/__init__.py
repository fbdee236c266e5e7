"""Sweeps: one command at every point of a product of axes, on all cores or a cluster, with one table of results.

`spec` reads the specification, and `points` expands it into points that any process can run. `local` and `cluster` run
them, `journal` records the outcomes, and `tables` writes them. `command` implements `cohkit sweep`.
"""
