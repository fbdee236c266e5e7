"""The size of the home of ECI: ours is constructed from a policy, the published one was written by hand."""

from __future__ import annotations

from cohkit.protocols import construct, shipped
from cohkit.published import COUNT, Ours

TITLE = "The home of ECI: constructed from its policy, and as published"


def run() -> list[Ours]:
    """Construct the home for one CPU and count, as it is and with the states merged that no future can tell apart."""
    home = construct(shipped("eci"))
    published = "enzian.state_machine"
    rows = []
    for form, sizes in (("", home["home"]), (", merged", home["merged"])):
        rows += [
            Ours(f"states{form}", sizes["states"], COUNT, f"{published}.states"),
            Ours(f"transitions{form}", sizes["transitions"], COUNT, f"{published}.transitions"),
            # What the publication calls messages are events of the table, which local and memory operations are too.
            Ours(f"messages{form}", sizes["events"], COUNT, f"{published}.messages"),
        ]
    return rows
