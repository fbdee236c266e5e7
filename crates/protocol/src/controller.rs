//! Controllers: finite tables that say what an agent does on each event.
//!
//! A controller describes one agent's part in the life of *one line*.
//! Remotes and hand-written homes come from the text as rows;
//! constructed homes come from [`crate::construct`] in the same form.
//! The checker explores controllers, the simulator executes them, and the
//! hardware's table is printed from them. Nothing else knows what a protocol does.
//!
//! ## Semantics
//!
//! A controller has one current [`State`] and values for its variables.
//! On an event the rules for that state and event are tried in order; the first
//! whose guard holds is taken. Its effect is atomic: statements run in order,
//! reading the values left by the statements before them.
//! No rule for a *message* means the message must never arrive in that state:
//! that is an error of the protocol ("unexpected message").
//! No rule for an *access* or local operation means the agent does not start it there,
//! with two exceptions: in a state whose right allows it, a load or a store is
//! performed in place (a hit) without any row.
//!
//! ## The line's data
//!
//! A remote has an implicit line buffer, which exists in states with
//! [`State::holds_line`]. Taking a message that carries the line fills it if the
//! next state holds the line; sending a message that carries the line copies it
//! from the buffer as it was before the rule (or as the taken message filled it).
//! A store that hits writes the buffer; so does a store or non-caching write whose row leads from a state
//! with the right to write to a state with the right to write, after the row's statements. `Statement::Done` ends the access
//! under way: [`crate::under_way`] says with which bytes, and which bytes a message with those of a write carries.
//!
//! A hand-written home has memory that acts at once: sending a message that carries
//! the line reads memory, [`Statement::WriteMemory`] puts the taken message's line there.
//! The bytes of a write may be set aside ([`Statement::SetAside`]) and written later ([`Statement::WriteAside`]).
//! A constructed home has asynchronous memory with one operation in flight per line:
//! [`Statement::StartRead`], [`Statement::StartWrite`] and [`Statement::StartStore`] begin it,
//! and [`Event::MemoryData`] or [`Event::MemoryDone`] comes later.

use crate::remotes::KindId;
use crate::terms::{MessageId, Right, Span, StateId, Type, VariableId};

/// A finite controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Controller {
    /// Name of the agent kind.
    pub name: String,
    /// States; the first is the initial one.
    pub states: Vec<State>,
    /// Variables.
    pub variables: Vec<Variable>,
    /// Constant tables, for constructed controllers; see [`Expression::Table`].
    pub tables: Vec<Table>,
    /// Rules, in the order they are tried.
    pub rules: Vec<Rule>,
    /// The local operations this home accepts, in the order of the text.
    pub locals: Vec<Local>,
    /// The name in the text.
    pub span: Span,
}

/// A state of a controller.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// Name in the text, or the name the construction gave it.
    pub name: String,
    /// What an agent may do with the line in this state.
    pub right: Right,
    /// Whether the line buffer must not be dropped (it may differ from memory).
    pub dirty: bool,
    /// Whether the agent keeps the line's bytes; true wherever `right` is not `None`,
    /// and in states declared `holds`.
    pub holds_line: bool,
    /// Messages this state waits for; empty in a stable state.
    pub waits: Vec<MessageId>,
    /// The name in the text.
    pub span: Span,
}

impl State {
    /// Whether the state waits for nothing.
    pub fn stable(&self) -> bool {
        self.waits.is_empty()
    }
}

/// A variable of a controller, one instance per agent and line, or per agent if it is a register.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// Name in the text.
    pub name: String,
    /// Its values.
    pub ty: Type,
    /// Whether it is a register: the agent has one for all lines together.
    pub register: bool,
    /// What it begins with.
    pub initial: Initial,
    /// Words for the values `0, 1, ...` of a range, for people; empty where numbers speak for themselves.
    pub labels: Vec<String>,
    /// Whether charts and traces leave it out, as no line of the text declares it and its values have no words.
    pub internal: bool,
    /// The name in the text.
    pub span: Span,
}

/// The variable that a home has if it asks whether its memory may be written: no row sets it, and it is true where nobody
/// lends the memory. No text can name a variable so.
pub const MEMORY_WRITES: &str = "memory writes";

/// What a variable begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Initial {
    /// This number; 0 stands for `none`, false and the empty set too.
    Number(u16),
    /// All remotes of a kind: their number in a count, all of them in a set.
    All(KindId),
}

/// A constant table from small numbers to small numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// What the table says, as an identifier.
    pub name: String,
    /// The value for each index.
    pub values: Vec<u16>,
}

/// A local operation of the device behind the home.
#[derive(Clone, PartialEq, Debug)]
pub struct Local {
    /// `clean`, `clean_invalidate`, ...; with `_lock` appended for the locking form
    /// where the text offers both.
    pub name: String,
    /// The highest right any remote has once it is acknowledged.
    pub ensures: Right,
    /// Whether acknowledging it takes the lock.
    pub locks: bool,
}

/// One row: in `state`, on `event`, if `guard` holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// State this rule applies in.
    pub state: StateId,
    /// What happens.
    pub event: Event,
    /// Further condition; `None` is true.
    pub guard: Option<Expression>,
    /// What the agent does.
    pub effect: Effect,
    /// The row in the text; for constructed rules, the part of the policy they come from.
    pub span: Span,
}

impl Rule {
    /// Visits all statements of the row, nested ones too.
    pub fn visit<'r>(&'r self, visitor: &mut impl FnMut(&'r Statement)) {
        if let Effect::Take { body, .. } = &self.effect {
            Statement::visit(body, visitor);
        }
    }

    /// Whether the row chooses one member of a set.
    pub fn chooses(&self) -> bool {
        self.says(&|statement| matches!(statement, Statement::Choose(..)))
    }

    /// Whether some statement of the row is one of these.
    pub fn says(&self, which: &dyn Fn(&Statement) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |statement| found |= which(statement));
        found
    }
}

impl Statement {
    /// Visits statements in order, nested ones too.
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

/// What makes a controller act.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// The core behind a remote, or the cache's own replacement, wants this.
    Access(Access),
    /// This message has arrived.
    Message(MessageId),
    /// The device asks for a local operation: index into [`Controller::locals`].
    Local(u8),
    /// The device gives its lock back.
    Unlock,
    /// The memory's answer to [`Statement::StartRead`]. Where the home may choose
    /// between grants, each choice is one alternative (numbered from 0).
    MemoryData(u8),
    /// The memory has performed [`Statement::StartWrite`] or [`Statement::StartStore`].
    MemoryDone,
}

/// What a core or cache does by itself. All are spontaneous: nothing may rely on them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// Read through the cache.
    Load,
    /// Write through the cache.
    Store,
    /// Replacement gives the line up.
    Evict,
    /// Give up the right to write, keep the right to read.
    Demote,
    /// Write back, keep the right (cache maintenance).
    Clean,
    /// Read without caching.
    ReadOnce,
    /// Write the whole line without caching.
    WriteLine,
    /// Write a part of the line without caching.
    WritePartial,
    /// Read, and what comes later in the thread waits for it.
    Acquire,
    /// Write a part of the line, after what comes earlier in the thread.
    Release,
    /// Order what comes earlier and what comes later in the thread. It is about no line.
    Fence,
    /// Write in the agent's own copy, whatever the text does on a store.
    WriteBack,
    /// Read and write at once, where the rows of the text have it done.
    Atomic,
    /// What a thread asks for when it has read and what comes later waits for that. It is about no line.
    Acquired,
}

impl Access {
    /// All accesses with their names in protocol texts.
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
        (Access::Acquired, "acquired"),
    ];

    /// The name in protocol texts.
    pub fn name(self) -> &'static str {
        Access::ALL[self as usize].1
    }

    /// The right that it takes to perform it in the agent's own copy; `None` for what only gives up or writes back.
    pub fn needs(self) -> Right {
        match self {
            Access::Load | Access::ReadOnce | Access::Acquire => Right::Read,
            Access::Store
            | Access::WriteLine
            | Access::WritePartial
            | Access::Release
            | Access::WriteBack
            | Access::Atomic => Right::Write,
            Access::Evict | Access::Demote | Access::Clean | Access::Fence | Access::Acquired => {
                Right::None
            }
        }
    }

    /// Returns true if it needs no row in a state with the permission: the agent performs it in its own copy.
    pub fn is_performed_in_place(self) -> bool {
        matches!(self, Access::Load | Access::Store | Access::Atomic)
    }

    /// Whether it is about a line; otherwise only rows about no line are.
    pub fn about_line(self) -> bool {
        !matches!(self, Access::Fence | Access::Acquired)
    }

    /// Whether it changes the line's bytes.
    pub fn writes(self) -> bool {
        self.needs() == Right::Write
    }
}

/// What a rule does with its event.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Take the event, run the statements, go to the next state.
    Take {
        /// Run in order.
        body: Vec<Statement>,
        /// `None` stays.
        next: Option<StateId>,
    },
    /// Leave the message in its channel (stall). In an ordered channel it blocks what
    /// follows it. A local operation waits at its port.
    Leave,
    /// Take a local operation or unlock away and report it as refused.
    Refuse,
    /// Declared impossible: reaching it is an "unexpected message" error, as for no rule at all.
    Never,
}

/// A statement of a rule's body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// Send a message to one agent.
    Send {
        /// Which message.
        message: MessageId,
        /// To whom.
        to: Target,
        /// Values of its fields, in the order of the message's declaration.
        fields: Vec<Value>,
    },
    /// Set a variable that is neither an array nor a set.
    Assign(VariableId, Expression),
    /// Set a variable of type [`Type::RemoteSet`].
    AssignSet(VariableId, Set),
    /// Set a variable of type [`Type::Remote`] to one member of a set, whichever; to none if the set is empty.
    /// Stands only in rows that take a message, once at most, and in no loop.
    Choose(VariableId, Set),
    /// Set one value of a [`Type::Array`]: the variable, the value's indices, what it becomes.
    AssignElement(VariableId, Vec<Expression>, Expression),
    /// Set all values of a [`Type::Array`] to this one, which is evaluated once.
    AssignAll(VariableId, Expression),
    /// Set a variable that is a set of homes.
    AssignHomes(VariableId, HomeSet),
    /// Run the statements for each remote for which the condition holds, with
    /// [`Expression::Each`] bound to it, in index order. The condition of a remote is
    /// evaluated just before its turn.
    ForEach {
        /// Selects remotes.
        condition: Expression,
        /// Run for each; no loop inside.
        body: Vec<Statement>,
    },
    /// Run the statements for each home of a set, with [`Expression::Each`] bound to its number, in order.
    /// No turn changes who is in the set.
    ForHomes {
        /// Selects homes.
        set: HomeSet,
        /// Run for each; no loop inside.
        body: Vec<Statement>,
    },
    /// Choose by a condition.
    If {
        /// Evaluated once.
        condition: Expression,
        /// Run if it holds.
        then: Vec<Statement>,
        /// Run if not.
        otherwise: Vec<Statement>,
    },
    /// Put the line of the taken message into memory at once (hand-written homes).
    WriteMemory,
    /// Keep the bytes of the write that the taken message carries, to write them later (hand-written homes).
    /// There is one place for them per line.
    SetAside,
    /// Put the bytes that were set aside into memory at once (hand-written homes).
    WriteAside,
    /// End the access under way, as [`crate::under_way`] says: a read with the bytes at hand, a write whose bytes were
    /// sent without performing it again, another write in the line buffer (remotes).
    Done,
    /// The access of this row is not performed by it, and is tried again in the state that it leads to (remotes).
    /// Nothing is done: whatever ends in a stable state without having been performed is tried again.
    Retry,
    /// All lines of the agent that are in one state go to another, in a row about no line (remotes).
    Every {
        /// The state that they leave.
        from: StateId,
        /// The state that they go to.
        to: StateId,
    },
    /// Read memory; [`Event::MemoryData`] comes later (constructed homes).
    StartRead,
    /// Write the taken message's line to memory; [`Event::MemoryDone`] comes later.
    StartWrite,
    /// Write to memory the bytes of the stored request in hand ([`Carries::Store`] whole line,
    /// [`Carries::PartialStore`] part of it); [`Event::MemoryDone`] comes later.
    /// The home keeps the bytes from taking the request until then.
    ///
    /// [`Carries::Store`]: crate::protocol::Carries::Store
    /// [`Carries::PartialStore`]: crate::protocol::Carries::PartialStore
    StartStore {
        /// Whether the bytes cover the whole line.
        whole: bool,
    },
    /// Tell the device that its local operation is done; if it locks, the lock is taken.
    Acknowledge(u8),
    /// Tell the device that its unlock is done. The lock is given back.
    Unlocked,
}

/// Where a message goes.
#[derive(Clone, PartialEq, Debug)]
pub enum Target {
    /// The home agent of the line.
    Home,
    /// The home with this number; only for messages about no line.
    HomeAt(Expression),
    /// The remote that the expression names (type [`Type::Remote`], must not be `none`).
    Remote(Expression),
    /// Each remote in the set.
    Each(Set),
}

/// The value of a message's field.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number, truth value or remote, which must be one of this type.
    Single(Expression, Type),
    /// A set of remotes.
    Set(Set),
}

/// A set of remotes. Sets are apart from all other values, so that nothing that takes one can be given another.
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
    /// A field of the message at hand, by position.
    Field(u8),
    /// What is in either, written `+`.
    Union(Box<Set>, Box<Set>),
    /// What is in the first and not in the second, written `-`.
    Difference(Box<Set>, Box<Set>),
}

/// A set of homes. They are numbers, which need no `none`.
#[derive(Clone, PartialEq, Debug)]
pub enum HomeSet {
    /// The empty set.
    Empty,
    /// The set holding the home with this number.
    Singleton(Box<Expression>),
    /// A variable that is a set of homes.
    Variable(VariableId),
    /// What is in either, written `+`.
    Union(Box<HomeSet>, Box<HomeSet>),
    /// What is in the first and not in the second, written `-`.
    Difference(Box<HomeSet>, Box<HomeSet>),
}

/// What rows ask of sets of homes. Who executes rows goes by members; [`crate::written_out`] says it home by home.
#[derive(Clone, PartialEq, Debug)]
pub enum OfHomes {
    /// Number of homes in a set.
    Count(HomeSet),
    /// Whether the home with this number is in the set.
    In(Expression, HomeSet),
    /// Whether two sets have the same members.
    Equal(HomeSet, HomeSet),
}

/// An expression over an agent's variables and the event at hand, of any value but a set.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A number (or truth value 0 and 1).
    Constant(u16),
    /// No remote.
    None,
    /// This remote itself (in a remote's rules).
    Own,
    /// The remote that sent the message at hand. If the home sent it, `none`.
    Sender,
    /// The number of the home of the line at hand; where no line is at hand, of the home that the message came from.
    Home,
    /// The remote a [`Statement::ForEach`] or quantifier is at; the number of the home a [`Statement::ForHomes`] is at.
    Each,
    /// Index of the current state.
    State,
    /// A variable of simple type.
    Variable(VariableId),
    /// One value of a [`Type::Array`], by its indices.
    Element(VariableId, Vec<Expression>),
    /// A field of the message at hand, by position.
    Field(u8),
    /// Entry of [`Controller::tables`] at an index.
    Table(u16, Box<Expression>),
    /// Number of remotes in a set.
    Count(Box<Set>),
    /// Whether the remote (first) is in the set (second).
    In(Box<Expression>, Box<Set>),
    /// Whether two sets have the same members.
    SetsEqual(Box<Set>, Box<Set>),
    /// Whether they have not.
    SetsDiffer(Box<Set>, Box<Set>),
    /// What is asked of sets of homes.
    Homes(Box<OfHomes>),
    /// Whether a condition holds for all remotes, each bound to [`Expression::Each`].
    All(Box<Expression>),
    /// Whether it holds for some remote.
    Any(Box<Expression>),
    /// Not.
    Not(Box<Expression>),
    /// What is left of a number that is not below zero when it is counted round, up to this size.
    Round(Box<Expression>, u16),
    /// A binary operator on numbers, truth values or remotes.
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// Binary operators of single values. Amounts may go below zero while an expression is evaluated;
/// stored in a variable or field that cannot hold them, they are an error of the protocol.
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
