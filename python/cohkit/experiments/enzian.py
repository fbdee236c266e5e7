"""Platforms and access parameters of the experiments on Enzian machines."""

CONFIGURATIONS = {
    "LLC+DDR": ("llc_ddr", "thunderx1-2s"),
    "DC+DDR": ("dc_ddr", "enzian-dc-ddr"),
    "DC+BRAM": ("dc_bram", "enzian-dc-bram"),
}
"""By the name of a configuration in the CCKit article: its name in keys of published numbers, and its platform."""

LINE_BYTES = 128
"""Size of a cache line, in bytes."""

REGION = "1GiB"
"""Region that each run accesses; `ACCESSES` depends on its size."""

ACCESSES = 2**30 // LINE_BYTES
"""Number of accesses of a run: one per line of the region."""
