//! The syntax tree: the file's structure before names are resolved. Lifetimes refer to the file's text, from which
//! all names are slices.

use crate::controller::Operator;
use crate::policy::{Acceptance, LockConflict, Stall};
use crate::protocol::{Carries, Class, Comparison, End, Guarantee, Type};
use cohkit_diagnostics::Span;

/// A name or another word, with its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    /// Characters of the word, as in the file.
    pub text: &'a str,
    pub span: Span,
}

/// A number with its span. A number that does not fit is `u32::MAX`, which is outside every range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    /// Value as written; see above for numbers that do not fit.
    pub value: u32,
    pub span: Span,
}

/// A whole file.
#[derive(Default, Debug)]
pub(super) struct File<'a> {
    /// Name after `protocol`, and the title without its quotes, which may be empty. `None` if the file lacks them.
    pub header: Option<(Name<'a>, &'a str)>,
    /// Blocks and statements in the order of the file, without those that could not be parsed.
    pub items: Vec<Item<'a>>,
    /// Spans of the outermost blocks, from their keyword to their closing brace.
    pub blocks: Vec<Span>,
    /// Declared sizes, in order.
    pub sizes: Vec<Name<'a>>,
    /// Number of homes, if a size declares it.
    pub homes: Option<u16>,
    /// Span of the end of the file, where missing blocks are reported.
    pub end: Span,
}

/// A block or statement outside all others.
#[derive(Debug)]
pub(super) enum Item<'a> {
    /// `line N bytes`: the line size in bytes.
    Line(Number),
    /// `channels { ... }`.
    Channels(Block<ChannelItem<'a>>),
    /// `messages { ... }`.
    Messages(Block<Group<'a>>),
    /// `bounds { ... }`: a message, or `in_flight`, and its limit.
    Bounds(Block<(Name<'a>, Number)>),
    /// `remote NAMES { ... }`.
    Remote(Agent<'a>),
    /// `home { ... }` or `home NAME { ... }`, with rows or as a policy.
    Home(Agent<'a>),
    /// `system NAME { ... }` in a file that composes no others.
    System(Name<'a>, Block<SystemItem<'a>>),
    /// `accesses { ... }`: the program order of threads.
    Accesses(Block<AccessOrder<'a>>),
    /// `guarantee ...`, with the span of the statement.
    Guarantee(Guarantee, Span),
    /// In a file that composes others: `use "FILE" as NAME`.
    Use(Use<'a>),
    /// A node's parts, each with the cache that backs it, if any.
    Node(Name<'a>, Block<(Part<'a>, Option<Part<'a>>)>),
    /// In a file that composes others: `system NAME { ... }` over all spaces.
    JointSystem(Name<'a>, Block<AgentCount<'a>>),
    /// `invariant NAME: CLAIM`.
    Invariant {
        name: Name<'a>,
        claim: Claim<'a>,
        span: Span,
    },
}

/// Entry of a `system` block.
#[derive(Clone, Copy, Debug)]
pub(super) enum SystemItem<'a> {
    /// A number of agents or lines, or the value of a size.
    Has(Name<'a>, Number),
    /// `parent any`.
    ParentAny(Span),
}

/// Program order of one access relative to the other accesses.
#[derive(Debug)]
pub(super) struct AccessOrder<'a> {
    /// Access whose order the entry states.
    pub access: Name<'a>,
    /// Clauses `before` (true) or `after` (false), each with the accesses it names; an empty list means `all`.
    pub clauses: Vec<(bool, Vec<Name<'a>>)>,
}

/// A block in braces after a keyword.
#[derive(Debug)]
pub(super) struct Block<T> {
    /// Span of the keyword in front of the opening brace.
    pub keyword: Span,
    /// Entries that could be parsed, in the order of the file.
    pub items: Vec<T>,
    /// True if the block contains an error. An entry that is missing may then just not have been understood.
    pub broken: bool,
}

/// Entry of a `channels` block.
#[derive(Debug)]
pub(super) enum ChannelItem<'a> {
    /// `NAME [as CLASS] SENDER -> RECEIVER`.
    Channel {
        name: Name<'a>,
        class: Option<Class>,
        from: EndItem<'a>,
        to: EndItem<'a>,
        span: Span,
    },
    /// `ordered CHANNELS` or `ordered CHANNELS per line` (true), which orders only messages about the same line.
    Ordered(Vec<Name<'a>>, bool),
    /// `network NAME { CHANNELS }` or `network NAME capacity N { CHANNELS }`.
    Network(Name<'a>, Option<Number>, Vec<Name<'a>>),
    /// `ordered MESSAGE behind MESSAGES`: a message that stays behind earlier ones.
    OrderedBehind {
        message: Name<'a>,
        earlier: Vec<Name<'a>>,
    },
}

/// `use "FILE" as NAME`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use<'a> {
    /// File name between the quotes.
    pub file: Name<'a>,
    /// Name of the space: the used protocol in this file.
    pub name: Name<'a>,
}

/// `SPACE.PART`; a node, or `lines`, has no space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// Used protocol; `None` for a node or for `lines`.
    pub space: Option<Name<'a>>,
    /// Kind of agents, node, or `lines`.
    pub name: Name<'a>,
}

/// A number of agents, with the numbers that each of them has below it.
#[derive(Debug)]
pub(super) struct AgentCount<'a> {
    /// Kind of agents or node that is counted.
    pub part: Part<'a>,
    /// Number of these agents, or of lines.
    pub number: Number,
    /// Block after the number: numbers of agents that each of these agents has. `None` if no block follows.
    pub each: Option<Block<(Part<'a>, Number)>>,
}

/// Agent at an end of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndItem<'a> {
    /// `remote`, `home` or `any`.
    Role(End),
    /// A kind of remotes.
    Kind(Name<'a>),
}

/// `CHANNEL: MESSAGE, MESSAGE, ...`.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// Channel on which all messages of the group travel.
    pub channel: Name<'a>,
    /// Declared messages, at least one.
    pub messages: Vec<MessageItem<'a>>,
}

/// Declaration of a message type.
#[derive(Debug)]
pub(super) struct MessageItem<'a> {
    pub name: Name<'a>,
    /// Payload; other than [`Carries::Nothing`] only if the parentheses state one.
    pub carries: Carries,
    /// Further fields with their types, in the order of the declaration.
    pub fields: Vec<(Name<'a>, Type)>,
}

/// A `remote` or `home` block.
#[derive(Debug)]
pub(super) struct Agent<'a> {
    /// A home may have no name, a remote several.
    pub names: Vec<Name<'a>>,
    /// Contents: declarations, rows, or statements of a policy.
    pub body: Block<AgentItem<'a>>,
    /// True if a guard reads `memory writes`.
    pub memory_writes: bool,
}

/// Entry of a `remote` or `home` block.
#[derive(Debug)]
pub(super) enum AgentItem<'a> {
    /// `states { ... }`.
    States(Block<StateItem<'a>>),
    /// `variables { ... }`: one instance per agent and line.
    Variables(Block<VariableItem<'a>>),
    /// `registers { ... }`: one instance per agent for all lines.
    Registers(Block<VariableItem<'a>>),
    /// `STATES | EVENTS if GUARD | ACTIONS | NEXT`.
    Row(Row<'a>),
    /// `local NAME { ... }`: a local operation that the home accepts.
    Local(LocalItem<'a>),
    /// `local unlock`, with its span.
    Unlock(Span),
    /// Statement of a home given as a policy, with its span.
    Policy(PolicyItem<'a>, Span),
}

/// Declaration of a variable or register.
#[derive(Debug)]
pub(super) struct VariableItem<'a> {
    pub name: Name<'a>,
    pub ty: Type,
    /// Initial value; `None` for the default of the type.
    pub initial: Option<Expr<'a>>,
}

/// Permission of a state: never, always or conditional.
#[derive(Debug)]
pub(super) enum StatePermission<'a> {
    /// The state does not give the permission.
    Never,
    /// The state gives the permission without condition.
    Always,
    /// While the condition holds.
    If(Expr<'a>),
}

/// Declaration of a state.
#[derive(Debug)]
pub(super) struct StateItem<'a> {
    pub name: Name<'a>,
    /// Read permission.
    pub reads: StatePermission<'a>,
    /// Write permission.
    pub writes: StatePermission<'a>,
    /// True if declared `dirty`: the copy may differ from memory.
    pub dirty: bool,
    /// Span of the word `holds`: the state keeps the line without permission. `None` if the word is absent.
    pub holds: Option<Span>,
    /// Messages after `waits`; empty in a stable state.
    pub waits: Vec<Name<'a>>,
}

/// A row: one rule for each of its states and events.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// Empty in a row about no line, written `-`.
    pub states: Vec<Name<'a>>,
    /// Accesses, messages, local operations or `unlock`; at least one.
    pub events: Vec<Name<'a>>,
    /// Condition after `if`.
    pub guard: Option<Expr<'a>>,
    /// Actions in order; may be empty.
    pub actions: Vec<Action<'a>>,
    /// Next state or `stay`; `None` if the cell is empty or absent.
    pub next: Option<Name<'a>>,
    pub span: Span,
}

/// Action of a row, with its span.
#[derive(Debug)]
pub(super) struct Action<'a> {
    pub kind: ActionKind<'a>,
    pub span: Span,
}

/// Actions that a row may have.
#[derive(Debug)]
pub(super) enum ActionKind<'a> {
    /// `send MESSAGE (FIELD = VALUE, ...) to TARGET`; `to` is `None` if no target is written.
    Send {
        message: Name<'a>,
        fields: Vec<(Name<'a>, Expr<'a>)>,
        to: Option<Expr<'a>>,
    },
    /// `x := e`; with an operator, `x += e` or `x -= e`.
    Assign(Name<'a>, Option<Operator>, Expr<'a>),
    /// `x := any SET`.
    Choose(Name<'a>, Expr<'a>),
    /// As `Assign`, for `x[INDEX]` or `x[INDEX][INDEX]`.
    AssignElement(Name<'a>, Vec<Expr<'a>>, Option<Operator>, Expr<'a>),
    /// `for NAME in SET { ACTIONS }`.
    For(Name<'a>, Expr<'a>, Vec<Action<'a>>),
    /// `write`, or `write deferred`.
    Write {
        deferred: bool,
    },
    /// `defer`: keep the bytes of the taken write in order to write them later.
    Defer,
    /// `done`: complete the pending access.
    Done,
    /// `retry`: the access is not performed and is tried again in the next state.
    Retry,
    /// `every STATE becomes STATE`.
    BulkTransition(Name<'a>, Name<'a>),
    /// `acknowledge LOCAL`: report to the device that its local operation is complete.
    Acknowledge(Name<'a>),
    /// `unlocked`: report to the device that its unlock is complete.
    AcknowledgeUnlock,
    Stall,
    /// `unreachable`: declare that the event cannot occur.
    Unreachable,
    /// `refuse`: reject a local operation or unlock.
    Refuse,
}

/// An expression of any type, with its span.
#[derive(Debug)]
pub(super) struct Expr<'a> {
    pub kind: ExprKind<'a>,
    pub span: Span,
}

/// Forms of expressions. Types are checked during resolution.
#[derive(Debug)]
pub(super) enum ExprKind<'a> {
    /// A number, or the value of a size.
    Number(u32),
    /// A variable, a field, or one of the words `none self sender home true false`.
    Word(&'a str),
    /// `x[INDEX]` or `x[INDEX][INDEX]`.
    Element(Name<'a>, Vec<Expr<'a>>),
    /// `{}` or `{ELEMENT}`.
    Set(Option<Box<Expr<'a>>>),
    /// `count(SET)`: number of members.
    Count(Box<Expr<'a>>),
    /// `not E`.
    Not(Box<Expr<'a>>),
    /// `ELEMENT in SET`.
    In(Box<Expr<'a>>, Box<Expr<'a>>),
    /// `LEFT OPERATOR RIGHT`; on sets, `+` is the union and `-` the difference.
    Binary(Operator, Box<Expr<'a>>, Box<Expr<'a>>),
}

/// `local NAME`, `local NAME lock` or `local NAME [lock]`.
#[derive(Debug)]
pub(super) struct LocalItem<'a> {
    /// Name of the operation, without its form.
    pub name: Name<'a>,
    /// Forms offered: without a lock (false), with one (true), or both.
    pub forms: &'static [bool],
    /// State that names the highest permission of any remote after the operation.
    pub ensure: Name<'a>,
    pub span: Span,
}

/// Statement of a home that is given as a policy; see [`crate::policy::Policy`] for the meaning.
#[derive(Debug)]
pub(super) enum PolicyItem<'a> {
    /// `on MESSAGE(r) { GOALS }`: the goals of a request, each with its span.
    On {
        message: Name<'a>,
        goals: Block<(Goal<'a>, Span)>,
    },
    /// `reach PERMISSION with FORWARD`.
    Reach {
        permission: Name<'a>,
        forward: Name<'a>,
    },
    /// `stall proven` or `stall possible`.
    Stall(Stall),
    /// `accept local always`, `between requests` or `when idle`.
    Accept(Acceptance),
    /// `under lock refuse` or `under lock wait`.
    UnderLock(LockConflict),
    /// `serve past VICTIMS`.
    ServePast(Vec<Name<'a>>),
    /// `serve under forwards`.
    ServeUnderForwards,
    /// `await ACKNOWLEDGEMENT after GRANTS`.
    Await {
        acknowledgement: Name<'a>,
        grants: Vec<Name<'a>>,
    },
    /// `assert ANSWER implies PERMISSION`.
    Expect {
        answer: Name<'a>,
        permission: Name<'a>,
    },
}

/// A statement inside `on REQUEST(r) { ... }`.
#[derive(Debug)]
pub(super) enum Goal<'a> {
    /// `ensure others(r) <= PERMISSION`.
    Ensure(Name<'a>),
    /// `write`: write the bytes of the request to memory.
    Write,
    /// A grant, or an answer, which gives no permission.
    Grant {
        permission: Option<Name<'a>>,
        message: Name<'a>,
        when: Condition<'a>,
    },
}

/// Condition of a grant or answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition<'a> {
    /// No condition.
    Always,
    /// `others(r) <= STATE` or `others(r) == STATE`; the state must be one without permission.
    Others(Name<'a>),
    /// `held(r)`: the requester still holds a copy.
    Held,
    /// `chosen`: the home may use this grant or the next one.
    Chosen,
}

/// Condition of an invariant; see [`crate::protocol::Claim`].
#[derive(Debug)]
pub(super) enum Claim<'a> {
    /// Comparison of two amounts.
    Compare(Amount<'a>, Comparison, Amount<'a>),
    /// Both claims.
    And(Box<Claim<'a>>, Box<Claim<'a>>),
    /// At least one of the claims.
    Or(Box<Claim<'a>>, Box<Claim<'a>>),
    /// Negation.
    Not(Box<Claim<'a>>),
    /// The second claim wherever the first one holds.
    Implies(Box<Claim<'a>>, Box<Claim<'a>>),
    /// `locked`: the device holds the line under a lock.
    Locked,
}

/// Number in a claim.
#[derive(Debug)]
pub(super) enum Amount<'a> {
    /// A number, or the value of a size.
    Constant(Number),
    /// `count(STATES)`: remotes in one of these states.
    RemotesIn(Vec<Name<'a>>),
    /// `in_flight(MESSAGES)`: messages of these types in flight.
    InFlight(Vec<Name<'a>>),
}
