//! The finite-model form: a small typed language of guarded commands.
//!
//! A [`Model`] has variables of finite types, start states, and rules.
//! A rule whose guard holds may fire at any time; its body is one atomic step.
//! The form follows Murphi in spirit, but every value is always defined and
//! nothing in it has a textual syntax: front ends build it with [`crate::build`],
//! and [`Model::validate`] tells them what is wrong with the result.
//!
//! Numbers are 32-bit integers. Arithmetic that leaves 32 bits, a value stored
//! outside its variable's range, an index outside its array and a division by zero are
//! errors *of the model*: the search reports them as violations, with the rule's name.

use std::fmt;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);
        impl $name {
            /// The position in the list this index belongs to.
            pub fn index(self) -> usize { self.0 as usize }
        }
    };
}
index!(
    /// Index into [`Model::types`].
    TypeId
);
index!(
    /// Index into [`Model::variables`].
    VariableId
);
index!(
    /// Index into [`Model::tables`].
    TableId
);

impl TypeId {
    /// The booleans; every model's first type.
    pub const BOOL: TypeId = TypeId(0);
}

/// A finite model.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name, for reports.
    pub name: String,
    /// Types; the first is [`Type::Bool`]. A type refers only to earlier ones.
    pub types: Vec<NamedType>,
    /// Everything that has a value: the state, rule-local temporaries, and bound names.
    pub variables: Vec<Variable>,
    /// Constant lookup tables.
    pub tables: Vec<Table>,
    /// Start states. Each runs from the state in which every variable has its type's first value.
    pub starts: Vec<Start>,
    /// Rules, in the order in which a search tries them.
    pub rules: Vec<Rule>,
    /// What must hold in every reachable state.
    pub invariants: Vec<Invariant>,
    /// If given, *drain* is checked: from every reachable state, rules that are not
    /// spontaneous can lead to a state in which this holds.
    pub quiescent: Option<Expr>,
    /// What counts as a deadlock.
    pub deadlock: Deadlock,
    /// The lifelines that [`Stmt::Note`] speaks of, in the order in which a chart draws them.
    pub agents: Vec<String>,
}

/// A type with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedType {
    /// Name, for messages and Murphi text. Need not be unique.
    pub name: String,
    /// What it is.
    pub ty: Type,
}

/// A finite type. Its *first value* is false, the first label, the lower bound,
/// or the aggregate of these.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Type {
    /// False and true.
    Bool,
    /// Named values without order. Two enumerations never mix.
    Enum(Vec<String>),
    /// Integers from `lo` to `hi`, both included. Values of all ranges are numbers and mix freely.
    Range {
        /// Smallest value.
        lo: i32,
        /// Largest value.
        hi: i32,
    },
    /// One element for each value of a simple type.
    Array {
        /// Booleans, an enumeration or a range.
        index: TypeId,
        /// Any earlier type.
        element: TypeId,
    },
    /// Named parts, in order.
    Record(Vec<(String, TypeId)>),
}

/// Something that has a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Name, for traces and Murphi text. State variables need distinct names.
    pub name: String,
    /// Its values.
    pub ty: TypeId,
    /// How long it lives.
    pub role: Role,
}

/// How long a variable lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Part of the state.
    State,
    /// A temporary, alive from its [`Stmt::Let`] to the end of the block around it.
    Local,
    /// Takes each value of its simple type in turn: a rule's parameter, or the variable of a loop
    /// or quantifier. The same bound variable may be used in any number of places, but not nested in itself.
    Bound,
}

/// A constant table from one simple type to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// What the table says.
    pub name: String,
    /// Values it can be asked for. For a range, asking outside it is an error of the model.
    pub index: TypeId,
    /// Type of what it answers.
    pub result: TypeId,
    /// One answer for each index, in order: a number, a label's position, or 0 and 1.
    pub values: Vec<i32>,
}

/// A start state, or one for each value of its parameters.
#[derive(Clone, Debug)]
pub struct Start {
    /// Name, with parameters in braces as in [`Rule::name`].
    pub name: String,
    /// Bound variables; one start state for each combination of their values.
    pub parameters: Vec<VariableId>,
    /// Run once.
    pub body: Vec<Stmt>,
}

/// A guarded command, or one for each value of its parameters.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Name; `{p}` stands for the value of the parameter called `p`.
    /// Parameters that the name does not mention are appended when it is shown.
    pub name: String,
    /// Bound variables; one instance of the rule for each combination of their values,
    /// the last varying fastest.
    pub parameters: Vec<VariableId>,
    /// May fire in states where this holds.
    pub guard: Expr,
    /// The atomic step.
    pub body: Vec<Stmt>,
    /// Whether it is started from outside (by a core, a device), so that nothing may rely on it.
    /// Draining uses only rules that are not spontaneous.
    pub spontaneous: bool,
}

/// A named claim about every reachable state.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// Name of the property.
    pub name: String,
    /// What it means that it does not hold, as a clause; may be empty.
    pub why: String,
    /// What must hold.
    pub holds: Expr,
}

/// What a statement reports: which property is violated, and how.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Violation {
    /// Name of the property.
    pub property: String,
    /// What happened, as a clause; may be empty.
    pub why: String,
    /// Whether it is a limit of the model that is run over rather than a property: a search that meets it
    /// has decided nothing.
    pub limit: bool,
}

impl<S: Into<String>> From<S> for Violation {
    fn from(property: S) -> Violation {
        Violation {
            property: property.into(),
            why: String::new(),
            limit: false,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why.is_empty() {
            true => write!(f, "`{}` does not hold", self.property),
            false => f.write_str(&self.why),
        }
    }
}

impl Violation {
    /// A violation of a property, and what happened, as a clause.
    pub fn new(property: impl Into<String>, why: impl Into<String>) -> Violation {
        Violation {
            property: property.into(),
            why: why.into(),
            limit: false,
        }
    }

    /// What is run over where the model has no more room, as a clause.
    pub fn limit(what: impl Into<String>) -> Violation {
        let what = what.into();
        Violation {
            property: what.clone(),
            why: what,
            limit: true,
        }
    }
}

/// Which states count as deadlocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deadlock {
    /// Any state that no rule leaves for a different state.
    #[default]
    Stuttering,
    /// As before, unless [`Model::quiescent`] holds in it.
    ExceptQuiescent,
    /// None.
    Off,
}

/// A location: a variable and a path into it.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Where the path starts.
    pub variable: VariableId,
    /// Into arrays and records, outermost first.
    pub path: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// The element at an index.
    Index(Expr),
    /// The field with a name.
    Field(String),
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Expr {
    /// A number.
    Int(i32),
    /// A truth value.
    Bool(bool),
    /// A label of an enumeration, by position.
    Label(TypeId, u32),
    /// The value of a variable or a part of one.
    Read(Place),
    /// The answer of a table.
    Table(TableId, Box<Expr>),
    /// Logical negation.
    Not(Box<Expr>),
    /// Arithmetic negation.
    Negate(Box<Expr>),
    /// An operation on two values.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `If(c, a, b)` is `a` where `c` holds and `b` elsewhere; only one of them is evaluated.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Whether the second holds for all values of the first, a bound variable.
    Forall(VariableId, Box<Expr>),
    /// Whether it holds for some value. Both quantifiers try values in order and stop when decided.
    Exists(VariableId, Box<Expr>),
}

/// Binary operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// Sum of numbers.
    Add,
    /// Difference of numbers.
    Subtract,
    /// Product of numbers.
    Multiply,
    /// Quotient, rounded toward zero.
    Divide,
    /// What division leaves; has the sign of the dividend.
    Remainder,
    /// Equality of two simple values of one kind.
    Equal,
    /// Inequality of two simple values of one kind.
    NotEqual,
    /// Order of numbers.
    Less,
    /// Order of numbers.
    LessOrEqual,
    /// Order of numbers.
    Greater,
    /// Order of numbers.
    GreaterOrEqual,
    /// Conjunction; the second is evaluated only where the first holds.
    And,
    /// Disjunction; the second is evaluated only where the first does not hold.
    Or,
    /// Implication; the second is evaluated only where the first holds.
    Implies,
}

impl Operator {
    /// Whether the result is a number, not a truth value.
    pub fn arithmetic(self) -> bool {
        use Operator::*;
        matches!(self, Add | Subtract | Multiply | Divide | Remainder)
    }
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Stmt {
    /// Store a value. A whole array or record may be copied from a place of the same type.
    Assign(Place, Expr),
    /// Give every part of a place its type's first value.
    Clear(Place),
    /// Begin the life of a local variable, with a value or with its type's first value.
    Let(VariableId, Option<Expr>),
    /// Run the first statements where the condition holds and the second elsewhere.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Run the statements for each value of a bound variable, in order.
    For(VariableId, Vec<Stmt>),
    /// Reaching this statement violates the property with this name.
    Error(Violation),
    /// The claim violates the property with this name unless it holds here.
    Assert(Violation, Expr),
    /// What a chart should show at this point. Never changes the state; evaluated only
    /// when a counterexample is told.
    Note(Note),
}

/// A piece of a story; see [`cohkit_protocol::sequence::Step`].
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// Which agent acts: an index into [`Model::agents`].
    pub agent: Expr,
    /// What it does.
    pub action: NoteAction,
    /// Cache line number, where a system has several.
    pub line: Option<Expr>,
    /// Whether the home can see it.
    pub visible: bool,
}

/// What an agent does, with its words still to be filled in.
///
/// A receive is joined to the oldest send of the same words, sender, receiver and line that has not been
/// received yet, so models need no identity for their messages.
#[derive(Clone, PartialEq, Debug)]
pub enum NoteAction {
    /// Puts a message into its channel.
    Send {
        /// Name and fields.
        message: Phrase,
        /// Index of the receiver.
        to: Expr,
    },
    /// Takes a message out of its channel.
    Receive {
        /// Name and fields, in the words of the send.
        message: Phrase,
        /// Index of the sender.
        from: Expr,
    },
    /// Does something of its own.
    Does(Phrase),
    /// Changes its state.
    Becomes(Phrase),
}

/// Words with values in between.
pub type Phrase = Vec<Piece>;

/// A part of a [`Phrase`].
#[derive(Clone, PartialEq, Debug)]
pub enum Piece {
    /// These words.
    Text(String),
    /// A simple value: a number, a label, `true` or `false`.
    Value(Expr),
    /// The name of the agent with this index.
    Agent(Expr),
    /// The second if the first holds, else the third.
    Choice(Expr, Phrase, Phrase),
}

/// What is wrong with a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelError {
    /// The rule, invariant, type or variable concerned.
    pub place: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for ModelError {}

impl Model {
    /// What a type is.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.index()].ty
    }

    /// The variable with this index.
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.index()]
    }

    /// Smallest and largest value of a simple type as numbers (labels by position, false as 0);
    /// `None` for arrays and records.
    pub fn bounds(&self, id: TypeId) -> Option<(i32, i32)> {
        match self.ty(id) {
            Type::Bool => Some((0, 1)),
            Type::Enum(labels) => Some((0, labels.len() as i32 - 1)),
            Type::Range { lo, hi } => Some((*lo, *hi)),
            Type::Array { .. } | Type::Record(_) => None,
        }
    }

    /// How a simple value of a type is written: a label, `true`, a number.
    pub fn show(&self, id: TypeId, value: i32) -> String {
        match self.ty(id) {
            Type::Bool => (value != 0).to_string(),
            Type::Enum(labels) => match labels.get(value as usize) {
                Some(label) => label.clone(),
                None => value.to_string(),
            },
            _ => value.to_string(),
        }
    }

    /// All errors of the model. The interpreter accepts a model only if there are none.
    pub fn validate(&self) -> Vec<ModelError> {
        crate::validate::validate(self)
    }
}
