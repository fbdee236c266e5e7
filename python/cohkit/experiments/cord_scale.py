"""Stores to other hosts' memory by all cores of 8 to 512 hosts, behind two levels of switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.experiments.cord import ORDERINGS, TABLES, play_runs, successful_plays, text, traffic
from cohkit.experiments.cord_programs import duration
from cohkit.experiments.experiment import Experiment
from cohkit.published import Measurement

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.player import Request

PLATFORM = "cxl-512x8"
CORES = 8
HOSTS = (8, 64, 512)
STORES = 16
RELEASES = 4
FANOUT = 3


class Exchange(NamedTuple):
    """A run in which all cores of `hosts` hosts store to other hosts.

    Attributes:
        hosts: number of hosts, each with `CORES` cores.
        ordering: key of `ORDERINGS`.

    """

    hosts: int
    ordering: str

    def request(self, conditions: Conditions) -> Request:
        """Return the request to play."""
        threads = CORES * self.hosts
        stores = STORES * RELEASES
        if conditions.accesses is not None:
            stores = max(1, min(stores, conditions.accesses // threads))
        releases = min(RELEASES, stores)
        sizes = dict(ORDERINGS[self.ordering])
        if self.ordering == "cord":
            # One more epoch number than entries is sufficient.
            sizes |= {**TABLES, "epochs": sizes["entries"] + 1}
        if "homes" in sizes:
            sizes["homes"] = self.hosts
        return {
            "platform": PLATFORM,
            "application": "exchange",
            "numbers": {
                "homes": self.hosts,
                "threads": threads,
                "fanout": FANOUT,
                "stores": stores // releases,
                "releases": releases,
            },
            "protocol": text(self.ordering),
            "sizes": sizes,
            "set": {"remotes": threads, "cores.count": threads, "hosts.count": self.hosts, "home.count": self.hosts},
            "seed": conditions.seed,
        }


def _run(conditions: Conditions) -> list[Measurement]:
    """Return time (ns) and traffic (bytes per core) for each ordering and number of hosts."""
    max_stores = conditions.accesses
    runs = [
        Exchange(hosts, ordering)
        for ordering in ORDERINGS
        for hosts in HOSTS
        if max_stores is None or hosts == HOSTS[0] or CORES * hosts <= max_stores
    ]
    results = successful_plays(play_runs(runs, conditions))
    results_by_run = [("time", "ns", run, duration(results[repr(run)])) for run in runs]
    results_by_run += [("traffic", "B", run, traffic(results[repr(run)]) / (CORES * run.hosts)) for run in runs]
    return [
        Measurement(
            f"{run.hosts}, {run.ordering} {quantity}",
            value,
            unit,
            f"cord.scale.{quantity}.{run.ordering}.{run.hosts}",
            cut=max_stores is not None,
        )
        for quantity, unit, run, value in results_by_run
    ]


def _limited(accesses: int) -> str:
    return (
        f"no more than {accesses} stores of all, or one of each; more hosts than 8 are left out if they have more cores"
    )


EXPERIMENTS = {
    "cord-scale": Experiment(
        run=_run,
        note="""\
Every core of every host stores 16 lines to the memory of three other hosts, one after the other, and then releases a
flag of the first one; it does so four times. The thread that acquires the last flag checks the lines, and lets the
others check theirs. The first of the three is the next host, and the distances between them are equal. Time is from the
first store of a core to its last check, and traffic is the bytes between hosts; both are means over cores. Each switch
has eight hosts, below one top switch; a machine of eight hosts has one switch. The links between switches are assumed
(`cohkit platform cxl-512x8`).
""",
        omissions="waiting inside meshes, room in buffers, memory behind the shared cache",
        headline="Hosts behind different switches are farther apart, which costs orderings that wait.",
        axis="time (ns); bytes between hosts, for a core",
        along="hosts",
        logarithmic="x",
        rerun_accesses=2**11,
        limited=_limited,
    ),
}
