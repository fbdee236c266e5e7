//! Controllers: finite tables of an agent's actions on each event.
//!
//! A controller describes one agent's part in the life of *one line*. Rows of remotes and of hand-written homes come
//! from the protocol file. Constructed homes come from [`crate::construct`] in the same form. The checker explores
//! controllers, the simulator executes them, and the hardware's table is printed from them. Nothing else defines the
//! behaviour of a protocol.
//!
//! ## Semantics
//!
//! A controller has one current [`State`] and values for its variables. On an event the rules for that state and event
//! are tried in order; the first whose guard holds is taken. Its effect is atomic: statements run in order, reading the
//! values left by the statements before them.
//!
//! A *message* without a rule must never arrive in that state: that is an error of the protocol ("unexpected message").
//! An *access* or local operation without a rule does not start in that state. Loads, stores and atomics are the
//! exception: in a state with the permission they are performed in place (a hit) without a row.
//!
//! ## The line's data
//!
//! A remote has an implicit line buffer, which exists in states with [`State::holds_line`]. Taking a message that
//! carries the line fills the buffer if the next state holds the line. Sending a message that carries the line copies
//! the buffer as it was before the rule, or as the taken message filled it. A store that hits writes the buffer. So
//! does a store or non-caching write whose row leads from a state with write permission to another one, after the row's
//! statements. `Statement::Done` completes the pending access: [`crate::pending_access`] defines with which bytes, and
//! which bytes a message with those of a write carries.
//!
//! A hand-written home has memory without latency: sending a message that carries the line reads memory, and
//! [`Statement::WriteMemory`] writes the taken message's line to memory. The bytes of a write may be deferred
//! ([`Statement::DeferStore`]) and written later ([`Statement::CommitDeferred`]). A constructed home has asynchronous
//! memory with one operation in progress per line: [`Statement::StartRead`], [`Statement::StartWrite`] and
//! [`Statement::StartStore`] start it, and [`Event::MemoryData`] or [`Event::MemoryDone`] completes it.

use crate::remotes::KindId;
use crate::terms::{MessageId, Permission, StateId, Type, VariableId};
use cohkit_diagnostics::Span;

/// A finite controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Controller {
    /// Name of the agent kind.
    pub name: String,
    /// States; the first is the initial one.
    pub states: Vec<State>,
    /// Variables and registers; a [`VariableId`] is an index into this list.
    pub variables: Vec<Variable>,
    /// Constant tables, for constructed controllers; see [`Expression::Table`].
    pub tables: Vec<Table>,
    /// Rules, in the order they are tried.
    pub rules: Vec<Rule>,
    /// Local operations that this home accepts, in the order of the file.
    pub locals: Vec<Local>,
    /// Span of the agent's name.
    pub span: Span,
}

/// A state of a controller.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// Name in the file, or the name that the construction gave it.
    pub name: String,
    /// Permission of the agent for the line in this state.
    pub permission: Permission,
    /// True if the line buffer must not be dropped, because it may differ from memory.
    pub dirty: bool,
    /// True if the agent keeps the line's bytes: wherever `permission` is not `None`, and in states declared `holds`.
    pub holds_line: bool,
    /// Messages this state waits for; empty in a stable state.
    pub waits: Vec<MessageId>,
    /// Span of the state's name.
    pub span: Span,
}

impl State {
    /// Returns true if the state waits for no message.
    pub fn is_stable(&self) -> bool {
        self.waits.is_empty()
    }
}

/// A variable of a controller, one instance per agent and line, or per agent if it is a register.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// Name in the file.
    pub name: String,
    /// Type of its values.
    pub ty: Type,
    /// True if the variable is a register: the agent has one instance for all lines together.
    pub register: bool,
    /// Initial value; for an array, of every element.
    pub initial: Initial,
    /// Words for the values `0, 1, ...` of a range, for people; empty if values are shown as numbers.
    pub labels: Vec<String>,
    /// True if charts and traces omit the variable: no line of the file declares it, and its values have no words.
    pub internal: bool,
    /// Span of the variable's name.
    pub span: Span,
}

/// Name of the variable of a home that reads `memory writes` (may memory be written?). No row sets the variable, and it
/// is true unless memory has a backing permission of an outer level. No variable of a file can have this name.
pub const MEMORY_WRITES: &str = "memory writes";

/// Initial value of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Initial {
    /// A number; 0 also encodes `none`, false and the empty set.
    Number(u16),
    /// All remotes of a kind: their number in a count, all of them in a set.
    All(KindId),
}

/// A constant table from small numbers to small numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Name of the function that the table gives, as an identifier.
    pub name: String,
    /// The value for each index.
    pub values: Vec<u16>,
}

/// A local operation of the device behind the home.
#[derive(Clone, PartialEq, Debug)]
pub struct Local {
    /// `clean`, `clean_invalidate`, ...; with `_lock` appended for the locking form if the file offers both forms.
    pub name: String,
    /// Highest permission that any remote has once the operation is acknowledged.
    pub ensures: Permission,
    /// True if acknowledging the operation takes the lock.
    pub locks: bool,
}

/// One row: in `state`, on `event`, if `guard` holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// State in which the rule applies.
    pub state: StateId,
    /// Event that triggers the rule.
    pub event: Event,
    /// Further condition; `None` is true.
    pub guard: Option<Expression>,
    /// Effect on the event.
    pub effect: Effect,
    /// Span of the row; for constructed rules, of the part of the policy they come from.
    pub span: Span,
}

impl Rule {
    /// Visits all statements of the row, including nested ones.
    pub fn visit<'r>(&'r self, visitor: &mut impl FnMut(&'r Statement)) {
        if let Effect::Take { body, .. } = &self.effect {
            Statement::visit(body, visitor);
        }
    }

    /// Returns true if the row chooses one member of a set (`any`).
    pub fn chooses(&self) -> bool {
        self.has_statement(&|statement| matches!(statement, Statement::Choose(..)))
    }

    /// Returns true if `predicate` holds for some statement of the row, including nested ones.
    pub fn has_statement(&self, predicate: &dyn Fn(&Statement) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |statement| found |= predicate(statement));
        found
    }
}

impl Statement {
    /// Visits statements in order, including nested ones.
    pub fn visit<'s>(body: &'s [Statement], visitor: &mut impl FnMut(&'s Statement)) {
        for statement in body {
            visitor(statement);
            match statement {
                Statement::ForEach { body, .. } | Statement::ForHomes { body, .. } => {
                    Statement::visit(body, visitor);
                }
                Statement::If {
                    then, otherwise, ..
                } => {
                    Statement::visit(then, visitor);
                    Statement::visit(otherwise, visitor);
                }
                _ => {}
            }
        }
    }
}

/// Event that a controller reacts to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// An access of the core behind a remote, or of the cache's own replacement.
    Access(Access),
    /// Arrival of a message.
    Message(MessageId),
    /// A local operation requested by the device: index into [`Controller::locals`].
    Local(u8),
    /// The device releases its lock.
    Unlock,
    /// Memory's response to [`Statement::StartRead`]. If the home may choose between grants, each choice is one
    /// alternative, numbered from 0.
    MemoryData(u8),
    /// The memory has performed [`Statement::StartWrite`] or [`Statement::StartStore`].
    MemoryDone,
}

/// Spontaneous action of a core or cache. No other agent may rely on one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// Read through the cache.
    Load,
    /// Write through the cache.
    Store,
    /// Evict: replacement gives up the line.
    Evict,
    /// Give up write permission, keep read permission.
    Demote,
    /// Write back, keep the permission (cache maintenance).
    Clean,
    /// Read without caching.
    ReadOnce,
    /// Write the whole line without caching.
    WriteLine,
    /// Write part of the line without caching.
    WritePartial,
    /// Acquiring read: later accesses of the thread wait for it.
    Acquire,
    /// Releasing write of part of the line: performed after earlier accesses of the thread.
    Release,
    /// Fence between earlier and later accesses of the thread. Not about a line.
    Fence,
    /// Write performed in the agent's own copy, even if the protocol performs stores elsewhere.
    WriteBack,
    /// Atomic read-modify-write: in place with write permission, otherwise by the protocol's rows.
    Atomic,
    /// Acquire fence, issued after each acquiring read and at a fence that orders loads. Not about a line.
    AcquireFence,
}

impl Access {
    /// All accesses with their names in protocol files.
    pub const ALL: [(Access, &'static str); 14] = [
        (Access::Load, "load"),
        (Access::Store, "store"),
        (Access::Evict, "evict"),
        (Access::Demote, "demote"),
        (Access::Clean, "clean"),
        (Access::ReadOnce, "read_once"),
        (Access::WriteLine, "write_line"),
        (Access::WritePartial, "write_partial"),
        (Access::Acquire, "acquire"),
        (Access::Release, "release"),
        (Access::Fence, "fence"),
        (Access::WriteBack, "write_back"),
        (Access::Atomic, "atomic"),
        (Access::AcquireFence, "acquired"),
    ];

    /// Name in protocol files.
    pub fn name(self) -> &'static str {
        Access::ALL[self as usize].1
    }

    /// Permission needed to perform the access in the agent's own copy; `None` for fences and for accesses that only
    /// give up or write back.
    pub fn needs(self) -> Permission {
        match self {
            Access::Load | Access::ReadOnce | Access::Acquire => Permission::Read,
            Access::Store
            | Access::WriteLine
            | Access::WritePartial
            | Access::Release
            | Access::WriteBack
            | Access::Atomic => Permission::Write,
            Access::Evict
            | Access::Demote
            | Access::Clean
            | Access::Fence
            | Access::AcquireFence => Permission::None,
        }
    }

    /// Returns true if `permission` lets the agent perform the access in its own copy. Fences, and accesses that only
    /// give up or write back, perform nothing there.
    pub fn is_permitted_by(self, permission: Permission) -> bool {
        let needed = self.needs();
        needed > Permission::None && permission >= needed
    }

    /// Returns true if the access needs no row in a state with the permission: the agent performs it in its own copy.
    pub fn is_performed_in_place(self) -> bool {
        matches!(self, Access::Load | Access::Store | Access::Atomic)
    }

    /// Returns true if the access is about a line. The others are taken by rows about no line only.
    pub fn about_line(self) -> bool {
        !matches!(self, Access::Fence | Access::AcquireFence)
    }

    /// Returns true if the access changes the line's bytes.
    pub fn writes(self) -> bool {
        self.needs() == Permission::Write
    }
}

/// Effect of a rule on its event.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Take the event, run the statements, go to the next state.
    Take {
        /// Statements, executed in order.
        body: Vec<Statement>,
        /// Next state; `None` keeps the current state.
        next: Option<StateId>,
    },
    /// Stall: the message stays in its channel, and in an ordered channel blocks the messages behind it. A local
    /// operation waits at its port.
    Stall,
    /// Reject a local operation or unlock and report it as refused.
    Refuse,
    /// Declared impossible: reaching it is an "unexpected message" error, as for no rule at all.
    Never,
}

/// A statement of a rule's body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// Send a message to one agent.
    Send {
        /// Type of the message.
        message: MessageId,
        /// Destination; several agents for [`Target::Each`].
        to: Target,
        /// Values of its fields, in the order of the message's declaration.
        fields: Vec<Value>,
    },
    /// Set a variable that is neither an array nor a set.
    Assign(VariableId, Expression),
    /// Set a variable of type [`Type::RemoteSet`].
    AssignSet(VariableId, Set),
    /// Set a variable of type [`Type::Remote`] to any member of a set, or to none if the set is empty. Occurs at most
    /// once in a row, only in rows that take a message, and never in a loop.
    Choose(VariableId, Set),
    /// Set one element of a [`Type::Array`]: the variable, the element's indices, the new value.
    AssignElement(VariableId, Vec<Expression>, Expression),
    /// Set all elements of a [`Type::Array`] to this value, which is evaluated once.
    AssignAll(VariableId, Expression),
    /// Set a variable that is a set of homes.
    AssignHomes(VariableId, HomeSet),
    /// Run the statements for each remote for which the condition holds, in index order, with [`Expression::Each`]
    /// bound to the remote. The condition of a remote is evaluated just before its iteration.
    ForEach {
        /// Condition that selects remotes.
        condition: Expression,
        /// Statements of one iteration; no nested loop.
        body: Vec<Statement>,
    },
    /// Run the statements for each home of a set, in order, with [`Expression::Each`] bound to the home's number. No
    /// iteration changes the set.
    ForHomes {
        /// Set of homes, evaluated once before the first iteration.
        set: HomeSet,
        /// Statements of one iteration; no nested loop.
        body: Vec<Statement>,
    },
    /// Run one of two lists of statements.
    If {
        /// Condition, evaluated once.
        condition: Expression,
        /// Statements to run if it holds.
        then: Vec<Statement>,
        /// Statements to run otherwise.
        otherwise: Vec<Statement>,
    },
    /// Write the taken message's line to memory, without latency (hand-written homes).
    WriteMemory,
    /// Defer the write in the taken message: keep its bytes to write them later (hand-written homes). There is one
    /// buffer for them per line.
    DeferStore,
    /// Write the deferred bytes to memory, without latency (hand-written homes).
    CommitDeferred,
    /// Complete the pending access, as [`crate::pending_access`] defines (remotes). A read returns the bytes of the
    /// current message or of the copy. A write whose bytes were sent is not performed again. Any other write is
    /// performed in the line buffer.
    Done,
    /// Retry: the row does not perform its access, which is retried in the next state (remotes). Execution does
    /// nothing, because any access that reaches a stable state without being performed is retried.
    Retry,
    /// Bulk transition of all lines of the agent that are in one state, in a row about no line (remotes).
    BulkTransition {
        /// State before the transition.
        from: StateId,
        /// State after the transition.
        to: StateId,
    },
    /// Start a memory read, which [`Event::MemoryData`] completes (constructed homes).
    StartRead,
    /// Start writing the taken message's line to memory; [`Event::MemoryDone`] completes it.
    StartWrite,
    /// Start writing the bytes of the request in progress to memory ([`Carries::Store`] for the whole line,
    /// [`Carries::PartialStore`] for part of it). [`Event::MemoryDone`] completes it. Until then the home keeps the
    /// bytes of the request.
    ///
    /// [`Carries::Store`]: crate::protocol::Carries::Store
    /// [`Carries::PartialStore`]: crate::protocol::Carries::PartialStore
    StartStore {
        /// True if the bytes cover the whole line.
        whole: bool,
    },
    /// Report to the device that its local operation, an index into [`Controller::locals`], is complete. A locking
    /// operation takes the lock.
    Acknowledge(u8),
    /// Report to the device that its unlock is complete. The lock is released.
    AcknowledgeUnlock,
}

/// Destination of a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Target {
    /// The home agent of the line.
    Home,
    /// Home with this number; only for messages about no line.
    HomeAt(Expression),
    /// Remote given by an expression of type [`Type::Remote`], which must not be `none`.
    Remote(Expression),
    /// Each remote in the set.
    Each(Set),
}

/// The value of a message's field.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number, truth value or remote, which must fit this type.
    Single(Expression, Type),
    /// A set of remotes.
    Set(Set),
}

/// A set of remotes. Sets have a type of their own, so that they cannot be confused with single values.
#[derive(Clone, PartialEq, Debug)]
pub enum Set {
    /// The empty set.
    Empty,
    /// All remotes of a kind, written as the kind's name.
    All(KindId),
    /// The set holding one remote; empty for `none`.
    Singleton(Box<Expression>),
    /// A variable of type [`Type::RemoteSet`].
    Variable(VariableId),
    /// A field of the current message, by position.
    Field(u8),
    /// Union, written `+`.
    Union(Box<Set>, Box<Set>),
    /// Difference, written `-`.
    Difference(Box<Set>, Box<Set>),
}

/// A set of homes. Members are numbers; there is no `none`.
#[derive(Clone, PartialEq, Debug)]
pub enum HomeSet {
    /// The empty set.
    Empty,
    /// The set holding the home with this number.
    Singleton(Box<Expression>),
    /// A variable that is a set of homes.
    Variable(VariableId),
    /// Union, written `+`.
    Union(Box<HomeSet>, Box<HomeSet>),
    /// Difference, written `-`.
    Difference(Box<HomeSet>, Box<HomeSet>),
}

/// Queries on sets of homes. Executors evaluate them by members; [`crate::unroll`] unrolls them home by home.
#[derive(Clone, PartialEq, Debug)]
pub enum HomeSetQuery {
    /// Number of homes in a set.
    Count(HomeSet),
    /// True if the home with this number is in the set.
    In(Expression, HomeSet),
    /// True if two sets have the same members.
    Equal(HomeSet, HomeSet),
}

/// An expression over an agent's variables and the current event, of any type but a set.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A number (or truth value 0 and 1).
    Constant(u16),
    /// No remote.
    None,
    /// The executing remote itself (in a remote's rules).
    Own,
    /// Remote that sent the current message; `none` if the home sent it.
    Sender,
    /// Number of the home of the current line; for an event about no line, of the home that sends or receives the
    /// message.
    Home,
    /// Remote of the current iteration of a [`Statement::ForEach`] or quantifier; home number in a
    /// [`Statement::ForHomes`].
    Each,
    /// Index of the current state.
    State,
    /// A variable of simple type.
    Variable(VariableId),
    /// One value of a [`Type::Array`], by its indices.
    Element(VariableId, Vec<Expression>),
    /// A field of the current message, by position.
    Field(u8),
    /// Entry of a table: index into [`Controller::tables`], and the expression for the position in the table.
    Table(u16, Box<Expression>),
    /// Number of remotes in a set.
    Count(Box<Set>),
    /// True if the remote (first) is in the set (second).
    In(Box<Expression>, Box<Set>),
    /// True if two sets have the same members.
    SetsEqual(Box<Set>, Box<Set>),
    /// True if two sets have different members.
    SetsDiffer(Box<Set>, Box<Set>),
    /// A query on sets of homes.
    Homes(Box<HomeSetQuery>),
    /// True if a condition holds for all remotes, each bound to [`Expression::Each`].
    All(Box<Expression>),
    /// True if a condition holds for some remote, bound to [`Expression::Each`].
    Any(Box<Expression>),
    /// Logical negation.
    Not(Box<Expression>),
    /// Remainder of a non-negative number modulo this size, for types `cycle`.
    Modulo(Box<Expression>, u16),
    /// A binary operator on numbers, truth values or remotes.
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// Binary operators of single values. Intermediate results may be negative. Storing a value in a variable or field
/// that cannot hold it is an error of the protocol. `And` and `Or` do not evaluate the right operand if the left one
/// decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Operator {
    Add,
    Subtract,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}
