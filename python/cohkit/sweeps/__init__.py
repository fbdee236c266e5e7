"""Sweeps: the same command at every point of a product of axes, on all cores or a cluster, with one table at the end.

`spec` reads what is wanted, `points` makes of it points that any process can run, `local` and `cluster` run them,
`journal` keeps what is done, and `tables` writes it down; `command` is `cohkit sweep`.
"""
