"""Applications from Python: the command's results, clear refusals, and the experiments with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_type_hints

import duckdb
import pytest

import cohkit
from cohkit import cpu, device, scenario, types
from cohkit.experiments import EXPERIMENTS, Conditions, cckit_fig7, plays
from cohkit.published import Published, compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Command

# Conditions for tests that do not depend on the accuracy of results.
FEW_ACCESSES = Conditions(accesses=2000)


def without_run(value: Any) -> Any:
    """Return a result without the entry `run`, which depends on the machine."""
    return {key: item for key, item in value.items() if key != "run"}


def test_results_match_the_command(cohkit_command: Command) -> None:
    options = ["--param", "contexts=3", "--param", "calls=20", "--seed", 4, "--set", "link.latency=100ns"]
    printed = json.loads(cohkit_command("play", "enzian-dc-ddr", "rpc", *options, "--json").stdout)
    numbers = {"contexts": 3, "calls": 20}
    result = cohkit.play("enzian-dc-ddr", "rpc", numbers=numbers, seed=4, set={"link.latency": "100ns"})
    assert without_run(result) == without_run(printed)
    assert set(result) == set(get_type_hints(types.Play))
    assert result["durations_ns"]
    assert set(result["durations_ns"]["call"]) == set(get_type_hints(types.Times))
    assert result["counts"] == {"calls": 60}
    assert result["durations_ns"]["call"]["distribution"][-1][1] == 60


def test_unsupported_plays_are_rejected() -> None:
    for numbers, expected_message in [
        ({"thread": 3}, "rpc has no number `thread`; it has contexts, payload, calls"),
        ({"contexts": 0}, "contexts must be 1 to 4096, not 0"),
        ({}, "two-line RPC never ends"),
        ({"calls": 1, "contexts": 4096, "payload": 200}, "uses 1638400 lines, but memory has 1000"),
    ]:
        with pytest.raises(cohkit.InputError) as refused:
            cohkit.play("enzian-dc-bram", "rpc", numbers=numbers, set={"lines": 1000})
        assert expected_message in str(refused.value)
    with pytest.raises(cohkit.InputError, match="there are shared-table, prefetcher, invalidation, rpc, rpc-registers"):
        cohkit.play("enzian-dc-bram", "tables", time="1ms")  # type: ignore[arg-type]
    with pytest.raises(cohkit.InputError, match="hand-written"):
        cohkit.play("enzian-dc-bram", "rpc", numbers={"calls": 1}, protocol=cohkit.shipped("msi"))


def test_materialised_view_matches_duckdb() -> None:
    """The view of the shipped application equals the result of the same query on the same table."""
    for incremental, updates in ((1, 1000), (0, 1000), (1, 1)):
        numbers = {"scale": 4, "updates": updates, "transactions": 2, "incremental": incremental}
        tables = cohkit.play("enzian-dc-ddr", "view", numbers=numbers, tables=True)["tables"]
        assert tables is not None
        customers, prices = zip(*tables["orders"], strict=True)
        assert len(customers) == 6000
        database = duckdb.connect()
        database.execute(
            "CREATE TABLE ORDERS AS SELECT UNNEST($1::BIGINT[]) AS O_CUSTKEY, UNNEST($2::BIGINT[]) AS O_TOTALPRICE",
            [list(customers), list(prices)],
        )
        query = "SELECT SUM(O_TOTALPRICE) FROM ORDERS GROUP BY O_CUSTKEY ORDER BY O_CUSTKEY"
        expected_rows = database.execute(query).fetchall()
        assert len(expected_rows) > 100

        def column(rows: Any) -> bytes:
            """Return the only column of rows, as 64-bit words."""
            return b"".join(int(value).to_bytes(8, "little") for (value,) in rows)

        assert column(tables["view"]) == column(expected_rows)


class Breaker(device.Application):
    """Answers reads of eight lines, but breaks its contract in one of several ways when the CPU reads line 3."""

    name = "breaker"
    lines = range(8)

    def __init__(self, breach_name: str) -> None:
        self.breach_name = breach_name
        self.words = 0

    def handle(self, event: device.Event) -> Iterator[device.Action]:
        match event:
            case device.Start(words):
                self.words = words
            case device.Read(3) if self.breach_name == "raises":
                raise LookupError("there is no line 3")
            case device.Read(3) if self.breach_name != "nothing":
                yield from self.breach()
            case device.Read(line):
                yield device.Answer(line, [0] * self.words)

    def breach(self) -> list[Any]:
        """Return the actions for the read of line 3."""
        answer = device.Answer(3, [0] * self.words)
        breaches: dict[str, list[Any]] = {
            "answers twice": [answer, answer],
            "never answers": [],
            "answers short": [device.Answer(3, [0])],
            "unlocks": [device.Unlock(3)],
            "accepts": [device.Accept(3)],
            "writes": [device.Store(0, 20, [0] * self.words)],
            "keeps a lock": [answer, device.Local(20, "clean", lock=True)],
            "does something else": [cpu.Load(3)],
        }
        return breaches[self.breach_name]


class Breaking(cohkit.Scenario):
    """A thread reads three lines of a `Breaker`; the result is wrong if line 3 contains zero."""

    lines = 8

    def __init__(self, breach_name: str) -> None:
        self.breach_name = breach_name

    def application(self) -> Breaker:
        return Breaker(self.breach_name)

    def threads(self) -> list[cpu.Thread]:
        def reader() -> cpu.Thread:
            for line in (2, 3, 4):
                yield cpu.Load(line)

        return [reader()]

    def verify(self, application: device.Application, contents: scenario.Contents) -> str | None:
        assert isinstance(application, Breaker)
        assert len(contents.words) == len(contents.initial) == 8
        return "line 3 was read" if contents.words[3][0] == 0 else None


@pytest.mark.parametrize(
    ("breach_name", "kind", "line", "expected_message"),
    [
        ("answers twice", "contract of an application", 3, "breaker answers a read that is not outstanding"),
        ("answers short", "contract of an application", 3, "breaker gives a line of 1 words; lines have 16"),
        ("unlocks", "contract of an application", 3, "breaker unlocks a line that it has not locked"),
        ("accepts", "contract of an application", 3, "breaker accepts a write that is not outstanding"),
        ("writes", "contract of an application", 20, "breaker writes memory of a line that it has not locked"),
        ("never answers", "no progress", 3, "breaker has not answered a read"),
        ("keeps a lock", "no progress", 20, "breaker has not released its lock"),
        ("nothing", "result of a scenario", 0, "breaker: line 3 was read"),
    ],
)
def test_contract_violation_is_reported_with_name_line_and_time(
    breach_name: str, kind: str, line: int, expected_message: str
) -> None:
    failure = cohkit.play("enzian-dc-bram", Breaking(breach_name))["failure"]
    assert failure is not None
    assert (failure["kind"], failure["line"]) == (kind, line)
    assert expected_message in failure["message"]
    assert failure["time_ps"] > 0


class Waiting(Breaking):
    """One thread waits for line 3, and another runs without end."""

    def threads(self) -> list[cpu.Thread]:
        def busy() -> cpu.Thread:
            for _ in range(2000):
                yield cpu.Load(6)

        return [*super().threads(), busy()]


def test_core_that_exceeds_its_timeout_fails() -> None:
    timeout: dict[str, str | int] = {"cores.timeout": "20us"}
    failure = cohkit.play("enzian-dc-bram", Waiting("never answers"), set=timeout)["failure"]
    assert failure is not None
    assert (failure["kind"], failure["line"]) == ("timeout of a core", 3)
    assert failure["message"].endswith("and reports a timeout: breaker has not answered a read")
    assert 20e6 < failure["time_ps"] < 30e6


def test_exceptions_of_user_code_propagate() -> None:
    with pytest.raises(LookupError, match="there is no line 3"):
        cohkit.play("enzian-dc-bram", Breaking("raises"))
    with pytest.raises(TypeError, match=r"Load\(line=3, word=0\) is not one of the valid instructions"):
        cohkit.play("enzian-dc-bram", Breaking("does something else"))
    with pytest.raises(cohkit.InputError, match="a custom scenario defines its own parameters"):
        cohkit.play("enzian-dc-bram", Breaking("nothing"), numbers={"rows": 1})


@pytest.mark.parametrize(
    "lines", [range(0, 8, 2), range(7, -1, -1), range(5, 2), range(-1, 8), range(2**32), [0, 1], 8, "8"]
)
def test_invalid_line_ranges_are_rejected(lines: Any) -> None:
    scenario = Breaking("nothing")
    breaker = scenario.application()
    breaker.lines = lines
    scenario.application = lambda: breaker  # type: ignore[method-assign]
    with pytest.raises(cohkit.InputError) as refused:
        cohkit.play("enzian-dc-bram", scenario)
    expected_start = (
        "`lines` of the application breaker must be a range of consecutive lines, such as range(8), or None, not "
    )
    assert str(refused.value) == f"{expected_start}{lines!r}"


@pytest.mark.parametrize("lines", [-1, 2**32, 8.0, range(8), "8", None])
def test_invalid_line_counts_are_rejected(lines: Any) -> None:
    scenario = Breaking("nothing")
    scenario.lines = lines
    with pytest.raises(cohkit.InputError) as refused:
        cohkit.play("enzian-dc-bram", scenario)
    expected_start = "`lines` of the scenario Breaking is a number of lines, 0 to 4294967295, not "
    assert str(refused.value) == f"{expected_start}{lines!r}"


class Doubler(device.Application):
    """Doubles the value that is written to its register, through the CPU's memory."""

    name = "doubler"

    def handle(self, event: device.Event) -> Iterator[device.Action]:
        match event:
            case device.RegisterWrite(register, value):
                yield device.Begin(register)
                yield device.HostFetch(register, value, 1)
            case device.HostFetchCompletion(tag, words):
                yield device.HostStore(tag, [2 * words[0]])
                yield device.End(tag, "doubling")
                yield device.Wake(7, 1_000)
            case device.Timer(7):
                yield device.Count("woken")
            case device.RegisterRead(register, thread):
                yield device.Reply(thread, register + 1)


class Doubling(cohkit.Scenario):
    """Uses each kind of step, and records the results in `seen`."""

    lines = 4

    def application(self) -> Doubler:
        return Doubler()

    def threads(self) -> list[cpu.Thread]:
        self.seen: list[int] = []

        def thread() -> cpu.Thread:
            yield cpu.StoreHost(5, 21)
            yield cpu.WriteRegister(9, 5)
            self.seen.append((yield cpu.ReadRegister(30)))
            while not (found := (yield cpu.LoadHost(9))):
                yield cpu.Work(50_000)
            self.seen.append(found)
            before = yield cpu.Add(1, 2, 5)
            self.seen.append((yield cpu.CompareSwap(1, 2, before + 5, 3)) - before)
            yield cpu.Prefetch(2)
            self.seen.append((yield cpu.LoadExclusive(1, 2)))
            yield cpu.Release(1, 3, 7)
            self.seen.append((yield cpu.Acquire(1, 3)))

        return [thread()]

    def verify(self, application: device.Application, contents: scenario.Contents) -> str | None:
        return None if self.seen == [31, 42, 5, 3, 7] else f"{self.seen} in {application.name}, {contents}"


def test_every_step_and_action_of_python_does_something() -> None:
    result = cohkit.play("enzian-dc-bram", Doubling())
    assert result["failure"] is None
    assert result["durations_ns"]
    assert result["durations_ns"]["doubling"]["count"] == 1
    assert result["counts"] == {"woken": 1}
    # A bus that is 100 ns slower in each direction adds this to three transfers.
    slower = cohkit.play("enzian-dc-bram", Doubling(), set={"bus.latency": "500ns"})
    assert slower["durations_ns"]
    more = slower["durations_ns"]["doubling"]["mean"] - result["durations_ns"]["doubling"]["mean"]
    assert more == pytest.approx(200)


def rows(name: str, conditions: Conditions = FEW_ACCESSES) -> dict[str, types.Result]:
    """Return the rows of an experiment with few accesses, by name."""
    return {row["name"]: row for row in compare(name, EXPERIMENTS[name].run(conditions), Published.shipped())}


def test_single_clean_invalidate_takes_as_long_as_published() -> None:
    table = rows("cckit-table3")
    fitted = {name: row for name, row in table.items() if row["use"] == "fitted"}
    assert sorted(fitted) == ["clean, DC+BRAM, one at a time", "clean, DC+DDR, one at a time"]
    for name, row in fitted.items():
        assert row["error"] is not None
        assert abs(row["error"]) < 0.05
        batch_times = table[name.replace("one at a time", "as many as accepted")]
        assert batch_times["unit"] == "M/s"
        assert 1000 / batch_times["ours"] < row["ours"] / 20
    rest = {row["use"] for name, row in table.items() if name not in fitted}
    assert rest == {"predicted blind", "known", "not steady"}


def test_contention_costs_and_prefetching_pays() -> None:
    # The table of cckit-fig7 is warm after millions of accesses only, so a smaller one is compared.
    small = [
        stage._replace(numbers={**stage.numbers, "rows": 64}, time_us=200, warm_up_us=100, seeds=1)
        for stage in cckit_fig7._stages()  # noqa: SLF001 -- for fewer rows
    ]
    increments = {row.name: row.value for row in plays.run(small, "M/s", Conditions())}
    for machine in ("FPGA", "second CPU"):
        assert increments[f"0 %, {machine}"] > 5 * increments[f"100 %, {machine}"]
    reads = rows("cckit-fig8")
    assert reads["1, with prefetcher"]["ours"] > reads["1, without prefetcher"]["ours"]
    assert reads["4, without prefetcher"]["ours"] > 3 * reads["1, without prefetcher"]["ours"]


def test_incremental_views_respond_faster() -> None:
    views = rows("cckit-fig9", FEW_ACCESSES._replace(accesses=20_000))
    for size in ("SF 0.5", "SF 1"):
        assert views[f"1, incremental, {size}"]["ours"] < views[f"1, recomputed, {size}"]["ours"]
    # Regression: the initial scan was counted as a scan for an answer, so the read rate exceeded that of the links, on
    # which a line of 128 bytes takes 6462.5 ps.
    assert views["at best, recomputed, SF 1, read"]["ours"] < 128 / 6462.5e-12 / 2**30


def test_coherent_lock_is_faster_than_message_lock() -> None:
    locks = rows("locktable")
    assert locks["1, coherent, host latency"]["ours"] < locks["1, messages, host latency"]["ours"]
    assert locks["8, coherent, host rate"]["ours"] > locks["8, messages, host rate"]["ours"]
    calls = rows("cckit-fig10")
    lines = calls["50 %, lines, 1 context"]["ours"]
    assert lines < calls["50 %, descriptors, one word, 1 context"]["ours"]
    assert lines < calls["50 %, registers, 16 words, 1 context"]["ours"]


def test_card_acquires_locks_faster_with_a_larger_cached_share() -> None:
    locks = rows("ccix-locktable")
    assert locks["64, device latency"]["ours"] < locks["1, device latency"]["ours"]
    assert locks["1, host latency"]["ours"] < locks["1, device latency"]["ours"]
    assert locks["64, host rate"]["ours"] < locks["1, host rate"]["ours"]


def test_cost_of_a_line_depends_on_its_protocol() -> None:
    framed, pipe = rows("symmetric-vs-asymmetric"), rows("symmetric-vs-asymmetric-64")
    assert len(framed) == len(pipe) == 4 * 4 * 3 * 3
    # A line that the host has written is taken by forward and answer; by snoop or request, write-back, its end and
    # answer; or by request, data and GO.
    for row_of in (framed, pipe):
        message_counts = [
            row_of[f"1, engine dirty, {name}, messages"]["ours"] for name in ("ECI", "CXL.mem", "CXL bias", "CXL.cache")
        ]
        assert message_counts == [2, 4, 4, 3]
    assert pipe["1, engine dirty, ECI, bytes"]["ours"] == 2 * 16 + 64
    # A flit of 256 bytes is sent for each of the messages, as nothing else waits.
    assert framed["1, engine dirty, CXL.mem, bytes"]["ours"] >= 4 * 256


def test_coherent_lines_are_faster_for_small_calls() -> None:
    values = {name: row["ours"] for name, row in rows("rpc-payload").items()}
    # Latency and rate of five ways, throughput of one and the best of it, each of eight sizes.
    assert len(values) == 2 * 6 * 8 + 2 * 8 + 2
    for lines in (2, 10, 200):
        latency = values[f"{lines}, lines, latency"]
        assert latency < values[f"{lines}, registers, a word of each line, latency"]
        assert latency < values[f"{lines}, registers, all words, latency"] / 10
        assert latency < values[f"{lines}, descriptors, all words, latency"]
    # A transfer moves many lines at a time; fetching line by line does not.
    assert values["2, lines, latency"] < values["2, descriptors, a word of each line, latency"]
    assert values["50, lines, latency"] > values["50, descriptors, a word of each line, latency"]
    # Contexts do not share lines.
    assert values["1, lines, rate"] == pytest.approx(16_000 / values["1, lines, latency"], rel=0.1)


def test_results_along_an_axis_are_drawn_as_lines(tmp_path: Any, cohkit_command: Command) -> None:
    completed = cohkit_command("reproduce", "cckit-fig10", "--accesses", 1000, "--out", tmp_path)
    assert (completed.returncode, completed.stderr) == (0, "")
    plot = (tmp_path / "cckit-fig10.svg").read_text()
    for words in (
        "lines, 1 context = 16 contexts = 48 contexts",
        "registers, 16 words, 1 context",
        "share of calls (%)",
        "latency of a call (ns)",
    ):
        assert f"<!-- {words} -->" in plot


class Quiet(device.Application):
    """Application that returns its actions, or None instead, which is an error."""

    name = "quiet"

    def __init__(self, actions: list[device.Action] | None) -> None:
        self.actions = actions

    def handle(self, event: device.Event) -> Iterator[device.Action]:
        return self.actions if isinstance(event, device.Start) or self.actions is None else []  # type: ignore[return-value]


class Stepping(cohkit.Scenario):
    """One thread performs a single step; the application returns the given actions at the start."""

    lines = 8

    def __init__(self, step: cpu.Step, actions: list[device.Action] | None) -> None:
        self.step = step
        self.actions = actions

    def application(self) -> Quiet:
        return Quiet(self.actions)

    def threads(self) -> list[cpu.Thread]:
        def thread() -> cpu.Thread:
            yield self.step

        return [thread()]


@pytest.mark.parametrize(
    ("step", "actions", "error_type", "expected_message"),
    [
        (cpu.Load(0), None, TypeError, "`handle` of Quiet returns None"),
        (cpu.Load(8), [], cohkit.InputError, r"thread 0: Load\(line=8, word=0\): the scenario has 8 lines"),
        (cpu.Store(1, 0, 2**64), [], OverflowError, r"Store\(line=1, .*: `value` is 0 to 18446744073709551615"),
        (cpu.Store(1, 0, -1), [], OverflowError, "`value` is 0 to"),
        (cpu.Load("1"), [], TypeError, r"Load\(line='1', word=0\): `line` is a number, not '1'"),  # type: ignore[arg-type]
        (cpu.Load(0), [device.Store(1, 0, 5)], TypeError, r"words=5\): `words` are numbers, not 5"),  # type: ignore[arg-type]
        (cpu.Load(0), [device.Store(1, 0, [0, None])], TypeError, "`words` is a number, not None"),  # type: ignore[list-item]
        (cpu.Load(1, 2**16), [], OverflowError, "`word` is 0 to 65535, not 65536"),
        (cpu.Load(0), [device.Wake(2**32, 0)], OverflowError, r"Wake\(tag=4294967296, .*`tag` is 0 to 4294967295"),
    ],
)
def test_invalid_scenario_steps_are_named(
    step: cpu.Step, actions: list[device.Action] | None, error_type: type[Exception], expected_message: str
) -> None:
    """Regression: the error for a number out of range did not name it, and an access to no line failed the run."""
    with pytest.raises(error_type, match=expected_message):
        cohkit.play("enzian-dc-bram", Stepping(step, actions))


# A machine with the device's and the host's memory, for coherent accesses of the application to the latter.
TWO_SPACES = "enzian-dc-bram+enzian-cpu-home"
LINES_PER_PAGE = 512
"""Words of a page."""
# Words of host memory on the absent page and on the read-only page of the platform that `refusing` returns.
ABSENT_LINES = range(3 * LINES_PER_PAGE, 4 * LINES_PER_PAGE)
READ_ONLY_LINES = range(LINES_PER_PAGE, 2 * LINES_PER_PAGE)


class Prober(device.Application):
    """Accesses words of the host's memory with each kind of action, one after the other."""

    name = "prober"

    def __init__(self, *, heeds: bool) -> None:
        self.heeds = heeds
        self.heard: list[device.Event] = []
        self.asks: Iterator[device.Action] = iter(
            [
                device.CoherentStore(0, 4, [7, 8], cached=False),
                device.CoherentAdd(1, 4, 5),
                device.CoherentCompareSwap(2, 5, 8, 9),
                device.CoherentLoad(3, 4, 2),
                device.CoherentLoad(4, READ_ONLY_LINES[2], 1, cached=False),
                device.CoherentStore(5, READ_ONLY_LINES[0] - 1, [1, 1]),
                device.CoherentAdd(6, READ_ONLY_LINES[5]),
                device.CoherentLoad(7, ABSENT_LINES[9], 3),
            ]
        )

    def handle(self, event: device.Event) -> Iterator[device.Action]:
        if not isinstance(event, device.Start):
            self.heard.append(event)
        if isinstance(event, device.AccessRefusal) and self.heeds:
            yield device.Abandon(event.tag)
            yield device.Count("refused")
        if (ask := next(self.asks, None)) is not None:
            yield ask


class Probing(cohkit.Scenario):
    """No threads; records host memory at the end in `host`."""

    lines = 1
    host_words = 4 * LINES_PER_PAGE

    def __init__(self, *, heeds: bool) -> None:
        self.heeds = heeds
        self.host: list[int] = []

    def application(self) -> Prober:
        self.prober = Prober(heeds=self.heeds)
        return self.prober

    def threads(self) -> list[cpu.Thread]:
        return []

    def verify(self, application: device.Application, contents: scenario.Contents) -> None:  # noqa: ARG002
        self.host = list(contents.host)


def refusing(before: str) -> dict[str, str | int]:
    """One of two pages is read-only, one of four is absent."""
    return {
        f"{before}translation.{name}": value
        for name, value in (("enabled", 1), ("read_only_one_in", 2), ("absent_one_in", 4))
    }


def test_application_continues_after_abandoned_access() -> None:
    """Refused accesses are reported in order and abandoned. Without address translation, all are performed."""
    scenario = Probing(heeds=True)
    played = cohkit.play(TWO_SPACES, scenario, protocol="eci-both", set=refusing("host.agents.device."))
    assert played["failure"] is None
    assert played["counts"] == {"refused": 3}
    assert scenario.prober.heard == [
        device.CoherentStoreCompletion(0),
        device.CoherentLoadCompletion(1, [7]),
        device.CoherentLoadCompletion(2, [8]),
        device.CoherentLoadCompletion(3, [12, 9]),
        device.CoherentLoadCompletion(4, [0]),
        device.AccessRefusal(5, READ_ONLY_LINES[0], write=True, permits="read"),
        device.AccessRefusal(6, READ_ONLY_LINES[5], write=True, permits="read"),
        device.AccessRefusal(7, ABSENT_LINES[9], write=False, permits="none"),
    ]
    # The part of the store before the read-only page was written.
    assert [word for word, value in enumerate(scenario.host) if value] == [4, 5, READ_ONLY_LINES[0] - 1]
    physical = Probing(heeds=True)
    before = cohkit.play(TWO_SPACES, physical, protocol="eci-both")
    assert physical.prober.heard[5:] == [
        device.CoherentStoreCompletion(5),
        device.CoherentLoadCompletion(6, [0]),
        device.CoherentLoadCompletion(7, [0, 0, 0]),
    ]
    assert before["counts"] == {}


def test_application_that_ignores_a_refusal_ends_the_run() -> None:
    played = cohkit.play(TWO_SPACES, Probing(heeds=False), protocol="eci-both", set=refusing("host.agents.device."))
    assert played["failure"] is not None
    assert played["failure"]["kind"] == "permission of a page"
    assert played["failure"]["message"] == (
        "prober cannot write: the page is read-only "
        "(word 512 of the host's memory, address 0x1000, its access 5), and does not handle the page fault"
    )


class Visits(cohkit.Scenario):
    """One thread stores to a line of each of four pages, and loads it."""

    lines = 4 * 32

    def __init__(self, on_error: str) -> None:
        self.on_error = on_error
        self.seen: list[Any] = []

    def application(self) -> Quiet:
        return Quiet([])

    def threads(self) -> list[cpu.Thread]:
        def thread() -> cpu.Thread:
            for line in range(0, self.lines, 32):
                try:
                    yield cpu.Store(line, 1, line + 1)
                    self.seen.append((yield cpu.Load(line, 1)))
                except cpu.AccessError as error:
                    if self.on_error == "lets it pass":
                        raise
                    if self.on_error == "raises":
                        raise LookupError from error
                    self.seen.append((error.step, error.write, error.permits))
                    if self.on_error == "ends":
                        return

        return [thread()]


# The platform's cores have a write buffer and an L1, and addresses are not translated behind these.
UNBUFFERED_CORES: dict[str, str | int] = {"cores.write_buffer": "0B", "cores.l1_size": "0B", **refusing("")}


def test_thread_continues_after_a_caught_refusal() -> None:
    for on_error, step_count in (("goes on", 4), ("ends", 2)):
        scenario = Visits(on_error)
        played = cohkit.play("enzian-dc-bram", scenario, set=UNBUFFERED_CORES)
        assert played["failure"] is None
        everything = [1, (cpu.Store(32, 1, 33), True, "read"), 65, (cpu.Store(96, 1, 97), True, "none")]
        assert scenario.seen == everything[:step_count]
        assert played["statistics"] is not None
        assert played["statistics"]["translation_faults"] == step_count // 2


def test_thread_that_does_not_catch_a_refusal_ends_the_run() -> None:
    played = cohkit.play("enzian-dc-bram", Visits("lets it pass"), set=UNBUFFERED_CORES)
    assert played["failure"] is not None
    assert played["failure"]["kind"] == "permission of a page"
    assert "thread 0 cannot write: the page is read-only (word 1 of line 32," in played["failure"]["message"]
    with pytest.raises(LookupError):
        cohkit.play("enzian-dc-bram", Visits("raises"), set=UNBUFFERED_CORES)


@pytest.mark.parametrize(
    ("step", "expected_message"),
    [
        (device.CoherentLoad(0, 2**32), "`first` is 0 to 4294967295"),
        (device.CoherentAdd(0, 2**32), "`word` is 0 to 4294967295"),
        (device.CoherentStore(0, 0, [2**64]), "`words` is 0 to 18446744073709551615"),
    ],
)
def test_invalid_host_words_are_named(step: device.Action, expected_message: str) -> None:
    with pytest.raises(OverflowError, match=expected_message):
        cohkit.play("enzian-dc-bram", Stepping(cpu.Load(0), [step]))
    invalid_scenario = Visits("goes on")
    invalid_scenario.host_words = -1
    with pytest.raises(cohkit.InputError, match="`host_words` of the scenario Visits is a number of words, 0 to 42949"):
        cohkit.play("enzian-dc-bram", invalid_scenario)
