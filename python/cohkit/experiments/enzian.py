"""The machines of the Enzian experiments, and how large these are."""

CONFIGURATIONS = {
    "LLC+DDR": ("llc_ddr", "thunderx1-2s"),
    "DC+DDR": ("dc_ddr", "enzian-dc-ddr"),
    "DC+BRAM": ("dc_bram", "enzian-dc-bram"),
}
"""What the article calls each, the name in keys of published numbers, and the platform."""

LINE_BYTES = 128
REGION = "1GiB"
ACCESSES = 2**30 // LINE_BYTES
"""One for each line of the region."""
