"""Machines of the Enzian experiments, and their sizes."""

CONFIGURATIONS = {
    "LLC+DDR": ("llc_ddr", "thunderx1-2s"),
    "DC+DDR": ("dc_ddr", "enzian-dc-ddr"),
    "DC+BRAM": ("dc_bram", "enzian-dc-bram"),
}
"""Configurations by their name in the article: name in keys of published numbers, and platform."""

LINE_BYTES = 128
REGION = "1GiB"
ACCESSES = 2**30 // LINE_BYTES
"""One access per line of the region."""
