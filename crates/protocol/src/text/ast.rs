//! The syntax tree: the file's structure before names are resolved.

use crate::controller::Operator;
use crate::policy::{Acceptance, LockConflict, Stall};
use crate::protocol::{Carries, Class, Comparison, End, Guarantee, Type};
use cohkit_diagnostics::Span;

/// A name or another word, with its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    pub text: &'a str,
    pub span: Span,
}

/// A number with its span. A number that does not fit is `u32::MAX`, which is outside every range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub value: u32,
    pub span: Span,
}

#[derive(Default, Debug)]
pub(super) struct File<'a> {
    pub header: Option<(Name<'a>, &'a str)>,
    pub items: Vec<Item<'a>>,
    pub blocks: Vec<Span>,
    /// Declared sizes, in order.
    pub sizes: Vec<Name<'a>>,
    /// Number of homes, if a size declares it.
    pub homes: Option<u16>,
    /// Span of the end of the file, where missing blocks are reported.
    pub end: Span,
}

#[derive(Debug)]
pub(super) enum Item<'a> {
    Line(Number),
    Channels(Block<ChannelItem<'a>>),
    Messages(Block<Group<'a>>),
    Bounds(Block<(Name<'a>, Number)>),
    Remote(Agent<'a>),
    Home(Agent<'a>),
    System(Name<'a>, Block<SystemItem<'a>>),
    Accesses(Block<AccessOrder<'a>>),
    Guarantee(Guarantee, Span),
    /// In a file that composes others: a used file, a node, and a system over all spaces.
    Use(Use<'a>),
    /// A node's parts, each with the cache that backs it, if any.
    Node(Name<'a>, Block<(Part<'a>, Option<Part<'a>>)>),
    JointSystem(Name<'a>, Block<AgentCount<'a>>),
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

/// Program order of one access: clauses `before` (true) or `after` (false) with the other accesses. None means all.
#[derive(Debug)]
pub(super) struct AccessOrder<'a> {
    pub access: Name<'a>,
    pub clauses: Vec<(bool, Vec<Name<'a>>)>,
}

/// A block in braces after a keyword.
#[derive(Debug)]
pub(super) struct Block<T> {
    pub keyword: Span,
    pub items: Vec<T>,
    /// True if the block contains an error. An entry that is missing may then just not have been understood.
    pub broken: bool,
}

#[derive(Debug)]
pub(super) enum ChannelItem<'a> {
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
    Behind {
        message: Name<'a>,
        earlier: Vec<Name<'a>>,
    },
}

/// `use "FILE" as NAME`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use<'a> {
    pub file: Name<'a>,
    pub name: Name<'a>,
}

/// `SPACE.PART`; a node, or `lines`, has no space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub space: Option<Name<'a>>,
    pub name: Name<'a>,
}

/// A number of agents, with the numbers that each of them has below it.
#[derive(Debug)]
pub(super) struct AgentCount<'a> {
    pub part: Part<'a>,
    pub number: Number,
    pub each: Option<Block<(Part<'a>, Number)>>,
}

/// Agent at an end of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndItem<'a> {
    Of(End),
    /// A kind of remotes.
    Kind(Name<'a>),
}

/// `CHANNEL: MESSAGE, MESSAGE, ...`.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub channel: Name<'a>,
    pub messages: Vec<MessageItem<'a>>,
}

#[derive(Debug)]
pub(super) struct MessageItem<'a> {
    pub name: Name<'a>,
    pub carries: Carries,
    pub fields: Vec<(Name<'a>, Type)>,
}

/// A `remote` or `home` block.
#[derive(Debug)]
pub(super) struct Agent<'a> {
    /// A home may have no name, a remote several.
    pub names: Vec<Name<'a>>,
    pub body: Block<AgentItem<'a>>,
    /// True if a guard reads `memory writes`.
    pub memory_writes: bool,
}

#[derive(Debug)]
pub(super) enum AgentItem<'a> {
    States(Block<StateItem<'a>>),
    Variables(Block<VariableItem<'a>>),
    Registers(Block<VariableItem<'a>>),
    Row(Row<'a>),
    Local(LocalItem<'a>),
    Unlock(Span),
    Policy(PolicyItem<'a>, Span),
}

#[derive(Debug)]
pub(super) struct VariableItem<'a> {
    pub name: Name<'a>,
    pub ty: Type,
    pub initial: Option<Expr<'a>>,
}

/// Permission of a state: never, always or conditional.
#[derive(Debug)]
pub(super) enum StatePermission<'a> {
    Never,
    Always,
    /// While the condition holds.
    If(Expr<'a>),
}

#[derive(Debug)]
pub(super) struct StateItem<'a> {
    pub name: Name<'a>,
    pub reads: StatePermission<'a>,
    pub writes: StatePermission<'a>,
    pub dirty: bool,
    pub holds: Option<Span>,
    pub waits: Vec<Name<'a>>,
}

#[derive(Debug)]
pub(super) struct Row<'a> {
    /// Empty in a row about no line, written `-`.
    pub states: Vec<Name<'a>>,
    pub events: Vec<Name<'a>>,
    pub guard: Option<Expr<'a>>,
    pub actions: Vec<Action<'a>>,
    pub next: Option<Name<'a>>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) struct Action<'a> {
    pub kind: ActionKind<'a>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum ActionKind<'a> {
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
    Defer,
    Done,
    Retry,
    /// `every STATE becomes STATE`.
    Every(Name<'a>, Name<'a>),
    Acknowledge(Name<'a>),
    Unlocked,
    Stall,
    Unreachable,
    Refuse,
}

#[derive(Debug)]
pub(super) struct Expr<'a> {
    pub kind: ExprKind<'a>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum ExprKind<'a> {
    Number(u32),
    /// A variable, a field, or one of the words `none self sender home true false`.
    Word(&'a str),
    /// `x[INDEX]` or `x[INDEX][INDEX]`.
    Element(Name<'a>, Vec<Expr<'a>>),
    Set(Option<Box<Expr<'a>>>),
    Count(Box<Expr<'a>>),
    Not(Box<Expr<'a>>),
    In(Box<Expr<'a>>, Box<Expr<'a>>),
    Binary(Operator, Box<Expr<'a>>, Box<Expr<'a>>),
}

/// `local NAME`, `local NAME lock` or `local NAME [lock]`.
#[derive(Debug)]
pub(super) struct LocalItem<'a> {
    pub name: Name<'a>,
    /// Forms offered: without a lock (false), with one (true), or both.
    pub forms: &'static [bool],
    pub ensure: Name<'a>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum PolicyItem<'a> {
    On {
        message: Name<'a>,
        goals: Block<(Goal<'a>, Span)>,
    },
    Reach {
        permission: Name<'a>,
        forward: Name<'a>,
    },
    Stall(Stall),
    Accept(Acceptance),
    UnderLock(LockConflict),
    ServePast(Vec<Name<'a>>),
    ServeUnderForwards,
    Await {
        acknowledgement: Name<'a>,
        grants: Vec<Name<'a>>,
    },
    Expect {
        answer: Name<'a>,
        permission: Name<'a>,
    },
}

/// A statement inside `on REQUEST(r) { ... }`.
#[derive(Debug)]
pub(super) enum Goal<'a> {
    Ensure(Name<'a>),
    Write,
    /// A grant, or an answer, which gives no permission.
    Grant {
        permission: Option<Name<'a>>,
        message: Name<'a>,
        when: Condition<'a>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Condition<'a> {
    Always,
    Others(Name<'a>),
    Held,
    Chosen,
}

#[derive(Debug)]
pub(super) enum Claim<'a> {
    Compare(Amount<'a>, Comparison, Amount<'a>),
    And(Box<Claim<'a>>, Box<Claim<'a>>),
    Or(Box<Claim<'a>>, Box<Claim<'a>>),
    Not(Box<Claim<'a>>),
    Implies(Box<Claim<'a>>, Box<Claim<'a>>),
    Locked,
}

#[derive(Debug)]
pub(super) enum Amount<'a> {
    Constant(Number),
    RemotesIn(Vec<Name<'a>>),
    InFlight(Vec<Name<'a>>),
}
