"""Execution on a Dask cluster: an existing one, or one whose workers are jobs of Slurm, PBS or LSF."""

from __future__ import annotations

import importlib
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit.errors import UnavailableError
from cohkit.sweeps.points import Outcome, Point, lost_outcome, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TIMEOUT_S = 10.0

SYSTEMS = {"slurm": ("slurm", "SLURM", "sbatch"), "pbs": ("pbs", "PBS", "qsub"), "lsf": ("lsf", "LSF", "bsub")}
"""Batch systems by name: module and class prefix of dask-jobqueue, and the submission command."""


class Jobs(NamedTuple):
    """Workers that are jobs of a batch system, with one processor each.

    Attributes:
        system: batch system: a key of `SYSTEMS`.
        jobs: number of jobs, each with one worker.
        memory: memory of a job, with unit.
        walltime: maximum duration of a job, as `HH:MM`.
        queue: queue of the batch system; its default queue if `None`.

    """

    system: str
    jobs: int = 1
    memory: str = "4GB"
    walltime: str = "01:00"
    queue: str | None = None

    def _job_options(self) -> dict[str, Any]:
        """Return the arguments of dask-jobqueue."""
        options: dict[str, Any] = {
            "cores": 1,
            "processes": 1,
            "memory": self.memory,
            "walltime": self.walltime if self.system == "lsf" else f"{self.walltime}:00",
            "queue": self.queue,
            "job_name": "cohkit-sweep",
            "python": "python3",
        }
        # Without it, dask-jobqueue looks for the unit in files of an LSF installation.
        return options | ({"lsf_units": "mb"} if self.system == "lsf" else {})

    def script(self) -> str:
        """Return a job script for a scheduler at the placeholder address SCHEDULER."""
        module, prefix, _ = SYSTEMS[self.system]
        job = getattr(_import(f"dask_jobqueue.{module}"), f"{prefix}Job")
        return str(job(scheduler="tcp://SCHEDULER", name="NAME", **self._job_options()).job_script())

    def cluster(self) -> Any:  # noqa: ANN401 -- dask-jobqueue has no types
        """Start a scheduler here, and submit the workers to the batch system."""
        _, prefix, submit_command = SYSTEMS[self.system]
        jobqueue = _import("dask_jobqueue")
        # Without the command, no worker would ever start, and no error would be reported.
        if not shutil.which(submit_command):
            raise UnavailableError(
                f"`--cluster {self.system}` needs the command `{submit_command}`, which is not installed"
            )
        cluster = getattr(jobqueue, f"{prefix}Cluster")(**self._job_options())
        # `scale` would submit jobs in the background, where a rejected job is not reported.
        for _ in range(self.jobs):
            cluster.worker_spec.update(cluster.new_worker_spec())
        try:
            cluster.sync(cluster._correct_state)  # noqa: SLF001 -- nothing public waits for submissions alone
        except RuntimeError as error:
            # Only submitted workers can be closed.
            for name, worker in list(cluster.workers.items()):
                if worker.status.name == "created":
                    del cluster.workers[name], cluster.worker_spec[name]
                    cluster._created.discard(worker)  # noqa: SLF001 -- it insists on these when it closes
            cluster.close()
            messages = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise UnavailableError(f"`{submit_command}` rejected the job: {messages[-1]}") from None
        return cluster


def _import(module: str) -> Any:  # noqa: ANN401 -- neither has types
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnavailableError(
            f"a cluster needs {module.partition('.')[0].replace('_', '-')}, which is not installed: "
            "`pip install 'cohkit[cluster]'` adds it"
        ) from error


def outcomes(points: Sequence[Point], executor: str | Jobs) -> Iterator[list[Outcome]]:
    """Run points on the scheduler at this address, or on jobs, and yield outcomes as they complete.

    The points of a worker that dies are rescheduled; Dask decides after how many such workers a point has failed.
    """
    distributed = _import("distributed")
    cluster = executor.cluster() if isinstance(executor, Jobs) else None
    try:
        try:
            client = distributed.Client(cluster or executor, timeout=_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UnavailableError(f"no Dask scheduler answers at {executor}: {error}") from None
        with client:
            yield from _gather(client, distributed, points)
    finally:
        if cluster is not None:
            cluster.close()


def _gather(client: Any, distributed: Any, points: Sequence[Point]) -> Iterator[list[Outcome]]:  # noqa: ANN401
    """Run the points on the cluster, and yield their outcomes in batches, in the order of completion."""
    killed_worker_error = distributed.scheduler.KilledWorker
    futures = {client.submit(run, point, pure=False): point for point in points}
    try:
        for batch in distributed.as_completed(futures, loop=client.loop).batches():
            outcomes_of_batch = []
            for future in batch:
                error = future.exception()
                # Drop completed futures, so that workers can free their results.
                point = futures.pop(future)
                if isinstance(error, killed_worker_error):
                    # The identity of the worker is not part of the result.
                    outcomes_of_batch.append(lost_outcome(point, "each worker that ran it died"))
                else:
                    outcomes_of_batch.append(
                        lost_outcome(point, f"{type(error).__name__}: {error}") if error else future.result()
                    )
            yield outcomes_of_batch
    finally:
        client.cancel(list(futures))
