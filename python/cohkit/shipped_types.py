"""Names of shipped items as types. A test of `cohkit list` writes this file."""

from typing import Literal

Workload = Literal[
    "sequential-read",
    "random-read",
    "sequential-write",
    "random-write",
    "random-mixed",
    "sequential-read-once",
    "random-read-once",
    "sequential-write-line",
    "random-write-line",
]
"""Workloads of `simulate`."""

Application = Literal[
    "shared-table",
    "prefetcher",
    "invalidation",
    "rpc",
    "rpc-registers",
    "rpc-descriptors",
    "locks",
    "gather",
    "dma",
    "view",
    "remote-writes",
    "broadcast",
    "exchange",
    "pagerank",
    "sssp",
    "padding",
    "task-queue",
    "histogram",
    "transpose",
    "mocfe",
    "cmc2d",
    "bigfft",
    "crystal-router",
]
"""Applications of `play`."""
