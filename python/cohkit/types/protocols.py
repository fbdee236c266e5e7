"""Protocol files: errors, message sequences, tables and constructed homes."""

from typing import Any, Literal

from cohkit.results import Record, Records


class Note(Record):
    """Help for an error: advice, or a related location in the text (otherwise `line` and `column` are `None`).

    Attributes:
        message: one sentence.
        line, column: the related location, from 1; `None` for advice.

    """

    message: str
    line: int | None
    column: int | None


class Diagnostic(Record):
    """An error of a protocol file. Lines and columns count from 1; columns count characters.

    Attributes:
        code: name of the kind of error.
        message: the error, in one sentence.
        end_line, end_column: the end of the marked text, exclusive.
        label: words beside the marked text.
        rendered: the whole error with the text of the file, as the command prints it.

    """

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    label: str
    notes: Records[Note]
    rendered: str


class Action(Record):
    """An action of an agent: `kind` is `send`, `receive`, `does` or `becomes`.

    Attributes:
        message: name of a sent or received message.
        to: receiver of a sent message, as an index into `agents` of the sequence.
        flight: number of this transmission; the step that receives it has the same number.
        what: another action, in words, if `kind` is `does`.
        state: next state of the agent, if `kind` is `becomes`.

    """

    kind: Literal["send", "receive", "does", "becomes"]
    message: str | None = None
    to: int | None = None
    flight: int | None = None
    what: str | None = None
    state: str | None = None


class Step(Record):
    """One step of a message sequence. A receiving action also has the key `from`.

    Attributes:
        agent: the acting agent, as an index into `agents` of the sequence.
        line: the cache line, if there are several.
        visible: true if the home can observe the step: it observes only messages that it sends and receives.

    """

    agent: int
    action: Action
    line: int | None = None
    visible: bool


class Sequence(Record):
    """A message sequence. `chart_text` and `chart_svg` draw it.

    Attributes:
        agents: names of the agents, in the order of their lifelines.
        steps: the steps, in time order.

    """

    agents: list[str]
    steps: Records[Step]


class Fault(Record):
    """A fault of a home's policy, with the message sequences that show it.

    Attributes:
        kind: name of the kind of fault.
        message: the fault, in one sentence.
        remedy: advice, if there is any.
        line, column: the statement of the policy, from 1.

    """

    kind: str
    message: str
    remedy: str | None
    line: int
    column: int
    sequences: Records[Sequence]


class Row(Record):
    """One row of a controller's table, and its line in the protocol file, from 1.

    Attributes:
        event: the access, message, local operation or memory operation.
        guard: the condition on variables and message fields, if there is one.
        actions: the actions, in order; `stall` alone stalls the event, `refuse` alone rejects a local operation.
        next: the next state; `None` if the event is not taken.
        line: line of the row, or, for a constructed row, of the policy statement or message that it comes from.

    """

    state: str
    event: str
    guard: str | None
    actions: list[str]
    next: str | None
    line: int


class BridgeState(Record):
    """State of a bridge.

    Attributes:
        cache: state of the outer cache.
        home: state of the inner home.
        recall: recall of the line from the inner caches that is in progress; empty if there is none.

    """

    cache: str
    home: str
    recall: str


class BridgeRow(Record):
    """Reaction of a bridge to an event.

    Attributes:
        state: state before.
        event: message or operation, after the name of its protocol and a colon.
        sends: messages that are sent, each after the name of its protocol and a colon.
        next: state after.

    """

    state: BridgeState
    event: str
    sends: list[str]
    next: BridgeState


class BridgeTable(Record):
    """An outer cache together with the inner home over it.

    Attributes:
        protocol: name of the composition.
        system: name of the explored system.
        inner: name of the inner protocol in the composition.
        outer: name of the outer protocol.
        rows: the rows, by state.

    """

    protocol: str
    system: str
    inner: str
    outer: str
    rows: Records[BridgeRow]
    run: dict[str, Any]


class Table(Record):
    """The controller of an agent. `initial` maps the name of each agent in charts to its initial state.

    Attributes:
        constructed: true if the home was constructed from a policy; the table is then that for one remote.
        merged: true if equivalent states of the constructed home are merged.
        states: number of states.
        transitions: number of rows that take their event; rows that stall or refuse it do not count.
        events: number of different events.
        rows: the rows, by state; among rows with the same state and event, the first one whose guard holds is taken.

    """

    protocol: str
    agent: Literal["home", "remote"]
    constructed: bool
    merged: bool
    initial: dict[str, str]
    states: int
    transitions: int
    events: int
    rows: Records[Row]
    run: dict[str, Any]


class Sizes(Record):
    """Size of a controller.

    Attributes:
        states: number of states.
        transitions: number of rows that take their event.
        events: number of different events.

    """

    states: int
    transitions: int
    events: int


class Construction(Record):
    """A constructed home: its sizes for one remote, plain and `merged`. `fault` is `None` if construction succeeds.

    Attributes:
        knowledge_sets: number of sets of system states that the home can tell apart by its messages.
        notes: sentences about the construction.

    """

    protocol: str
    home: Sizes
    merged: Sizes
    knowledge_sets: int
    notes: list[str]
    fault: Fault | None
    run: dict[str, Any]
