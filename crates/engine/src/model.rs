//! The finite-model form: a small typed language of guarded commands.
//!
//! A [`Model`] has variables of finite types, start states, and rules.
//! A rule whose guard holds may fire at any time; its body is one atomic step.
//! The form is that of Murphi, but without a textual syntax. Front ends build it (from text, or with [`crate::build`]),
//! and [`Model::validate`] reports the errors in the result.
//! [`Model::undefined`] says whether variables can be without a value.
//!
//! Numbers are 64-bit integers; [`Model::numbers`] may restrict them to fewer bits. Errors *of the model* are:
//! arithmetic that leaves these numbers, a value stored outside its variable's range, an index outside its array, and a
//! division by zero. The search reports them as violations, with the rule's name.

use crate::number::Arithmetic;
pub use crate::number::{Number, UNDEFINED};
use crate::trace_events::TraceEvents;
use cohkit_base::deep_stack::run_on_deep_stack;
use std::fmt;
use std::mem::take;

cohkit_base::index!(
    /// Index into [`Model::types`].
    TypeId(u32)
);
cohkit_base::index!(
    /// Index into [`Model::variables`].
    VariableId(u32)
);
cohkit_base::index!(
    /// Index into [`Model::tables`].
    TableId(u32)
);
cohkit_base::index!(
    /// Index into [`Model::functions`].
    FunctionId(u32)
);
cohkit_base::index!(
    /// Index into [`Model::covers`].
    CoverId(u32)
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
    /// State variables, rule-local temporaries, aliases and bound names.
    pub variables: Vec<Variable>,
    /// Constant tables; a [`TableId`] is an index into this list.
    pub tables: Vec<Table>,
    /// True if variables begin *undefined*, and can become so again; every simple type then has this additional value.
    /// If false, variables begin with their type's first value, and always have a value.
    pub undefined: bool,
    /// Least and greatest result of arithmetic; any other result is an error of the model.
    pub numbers: (Number, Number),
    /// Functions and procedures that rules and claims may call. A function may call itself and earlier ones.
    pub functions: Vec<Function>,
    /// Start states. Each runs from the state in which nothing has been assigned yet.
    pub starts: Vec<Start>,
    /// Rules, in the order in which a search tries them.
    pub rules: Vec<Rule>,
    /// Claims about every reachable state.
    pub invariants: Vec<Invariant>,
    /// Condition of a quiescent state. If given, *drain* is checked: from every reachable state, rules that are not
    /// spontaneous can lead to a quiescent state.
    pub quiescent: Option<Expr>,
    /// Conditions or statements that some run must reach at least once.
    pub covers: Vec<Cover>,
    /// Liveness properties: from every reachable state, rules of any kind can lead to a state in which the claim holds.
    pub liveness: Vec<Invariant>,
    /// Assumptions. A state that violates one is excluded, as if no rule led to it; a step to such a state still counts
    /// as progress.
    pub assumptions: Vec<Invariant>,
    /// States that count as deadlocks.
    pub deadlock: Deadlock,
    /// Names of the agents, in the order of their lifelines in a chart.
    pub agents: Vec<String>,
    /// Renderer of the model's traces; `None` if traces have no chart.
    pub trace_renderer: Option<&'static dyn TraceRenderer>,
    /// Ranges that name interchangeable things, if any.
    pub interchangeable: Option<SymmetricType>,
    /// Scalarsets that are not permuted: loops take their values in the order of their numbers.
    pub ordered: Vec<TypeId>,
    /// True if expressions or statements are nested so deeply that recursion over them needs a large stack.
    pub deeply_nested: bool,
}

/// Numbers that are used like the values of a scalarset: only to distinguish things of one kind.
///
/// The builder of the model declares this; the engine does not check it. Permuting the numbers, in all variables and
/// all indices, must map rules to rules and claims to claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymmetricType {
    /// Range from 0 on whose values name the things. Types count as this range only if they are declared as it.
    pub names: TypeId,
    /// Ranges in which 0 means none, and every other value is a name plus one.
    pub optional: Vec<TypeId>,
}

/// A type with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedType {
    /// Name, for messages and texts. Need not be unique.
    pub name: String,
    /// Structure of the type.
    pub ty: Type,
}

/// A finite type. Its *first value* is false, the first label, the lower bound,
/// or the aggregate of these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    /// False and true.
    Bool,
    /// Named values without order. Two enumerations never mix.
    Enum(Vec<String>),
    /// Integers from `lo` to `hi`, both included. Values of all ranges are numbers and mix freely.
    Range {
        /// Smallest value.
        lo: Number,
        /// Largest value.
        hi: Number,
    },
    /// One element for each value of a simple type.
    Array {
        /// Any earlier simple type.
        index: TypeId,
        /// Any earlier type, also an aggregate.
        element: TypeId,
    },
    /// Named parts, in order.
    Record(Vec<(String, TypeId)>),
    /// A number of values that can only be compared for equality: no order, no names.
    Scalarset(u32),
    /// The values of several enumerations and scalarsets, in this order.
    Union(Vec<TypeId>),
    /// Up to `capacity` elements without order; its first value is empty.
    /// Within a step, elements have numbered slots, counted from 0; stored states have them sorted.
    Multiset {
        /// Maximum number of elements.
        capacity: u32,
        /// Any earlier type, also an aggregate.
        element: TypeId,
    },
}

/// A function if it has a result, else a procedure.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name, for messages and texts.
    pub name: String,
    /// Parameters: [`Role::Local`] for values, [`Role::Alias`] for places.
    pub parameters: Vec<VariableId>,
    /// Type of the returned value; `None` for a procedure.
    pub result: Option<TypeId>,
    /// Statements. A function that ends without [`Stmt::Return`] is an error of the model.
    pub body: Vec<Stmt>,
}

/// Argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// A copy of the value, for a [`Role::Local`] parameter.
    Value(Expr),
    /// The place itself; its indices are evaluated once. The parameter is a [`Role::Alias`], or a [`Role::Local`] that
    /// the function does not change; in both cases it changes with the place.
    Place(Place),
}

/// A cover: a condition or statement that some run must reach at least once.
#[derive(Clone, Debug)]
pub struct Cover {
    /// Name of the property.
    pub name: String,
    /// Condition that some reachable state must satisfy; `None` if a [`Stmt::Cover`] marks the place instead.
    pub holds: Option<Expr>,
}

/// An arithmetic sequence of numbers; each part is evaluated once. A step of 0 is an error of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    /// First number of the sequence.
    pub from: Expr,
    /// Limit: no number of the sequence lies beyond it.
    pub to: Expr,
    /// Increment; negative to count down.
    pub by: Expr,
}

/// A named value: part of the state, temporary, alias or bound name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Name, for traces and texts. State variables need distinct names.
    pub name: String,
    /// Text used for the variable in sentences, without its indices; `None` to use its name.
    pub spoken_name: Option<String>,
    /// Type of its values.
    pub ty: TypeId,
    /// Kind and lifetime.
    pub role: Role,
}

/// Kind and lifetime of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Part of the state.
    State,
    /// A temporary, alive from its [`Stmt::Let`] to the end of the block around it; or a parameter.
    Local,
    /// Another name for a place, resolved once, where the name is bound; or a parameter.
    Alias,
    /// Takes each value of its simple type in turn: a rule's parameter, or the variable of a loop
    /// or quantifier. The same bound variable may be used in any number of places, but not nested in itself.
    Bound,
}

/// A constant table from one simple type to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Name, for messages.
    pub name: String,
    /// Index type. For a range, a lookup outside it is an error of the model.
    pub index: TypeId,
    /// Type of the results.
    pub result: TypeId,
    /// One result for each index, in order: a number, a label's position, or 0 and 1.
    pub values: Vec<i32>,
}

/// A start state, or one for each value of its parameters.
#[derive(Clone, Debug)]
pub struct Start {
    /// Name, with parameters in braces as in [`Rule::name`].
    pub name: String,
    /// Bound variables; one start state for each combination of their values.
    pub parameters: Vec<VariableId>,
    /// Statements that set the state, run once.
    pub body: Vec<Stmt>,
}

/// A guarded command, or one for each value of its parameters.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Name; `{p}` is replaced by the value of the parameter called `p`.
    /// Parameters that the name does not mention are appended when it is shown.
    pub name: String,
    /// Bound variables; one instance of the rule for each combination of their values,
    /// the last varying fastest.
    pub parameters: Vec<VariableId>,
    /// Condition under which the rule may fire.
    pub guard: Expr,
    /// The atomic step; statements run in order.
    pub body: Vec<Stmt>,
    /// True if the environment (a core, a device) starts the rule, so that nothing may rely on it.
    /// The drain check uses only rules that are not spontaneous.
    pub spontaneous: bool,
    /// Priority. In each state, only enabled rules of the smallest priority fire; the default is 0.
    pub priority: i32,
}

/// A named claim about states.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// Name of the property.
    pub name: String,
    /// Meaning of a violation, as a clause; may be empty.
    pub reason: String,
    /// Bound variables; one claim for each combination of their values.
    pub parameters: Vec<VariableId>,
    /// Condition that must hold.
    pub holds: Expr,
}

/// Report of a statement: the violated property, and a description.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Violation {
    /// Name of the property.
    pub property: String,
    /// Description of the violation, as a clause; may be empty.
    pub reason: String,
    /// True if the model has exceeded one of its own limits, such as a capacity: the search is then undecided.
    pub limit: bool,
}

impl<S: Into<String>> From<S> for Violation {
    fn from(property: S) -> Violation {
        Violation {
            property: property.into(),
            reason: String::new(),
            limit: false,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.is_empty() {
            true => write!(f, "`{}` does not hold", self.property),
            false => f.write_str(&self.reason),
        }
    }
}

impl Violation {
    /// Name of the property violated by operations without a meaning. The engine's own faults (range, index, division)
    /// have the same name.
    pub(crate) const ILL_DEFINED: &'static str = "values in range";

    /// Creates a violation by an operation without a meaning; `reason` is a clause.
    pub(crate) fn ill_defined(reason: impl Into<String>) -> Violation {
        Violation::new(Violation::ILL_DEFINED, reason)
    }

    /// Creates a violation of `property`; `reason` is a clause.
    pub fn new(property: impl Into<String>, reason: impl Into<String>) -> Violation {
        Violation {
            property: property.into(),
            reason: reason.into(),
            limit: false,
        }
    }

    /// Creates a report that the model's capacity is exceeded; `description` is a clause that names the limit.
    pub fn limit(description: impl Into<String>) -> Violation {
        let description = description.into();
        Violation {
            property: description.clone(),
            reason: description,
            limit: true,
        }
    }
}

/// Definition of a deadlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deadlock {
    /// Any state that no rule leaves for a different state.
    #[default]
    Stuttering,
    /// As [`Deadlock::Stuttering`], except for states in which [`Model::quiescent`] holds.
    ExceptQuiescent,
    /// Any state in which no rule is enabled, not even one that changes nothing.
    Stuck,
    /// No state: deadlock is not checked.
    Off,
}

/// A location: a variable and a path into it.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Variable in which the path starts.
    pub variable: VariableId,
    /// Steps into arrays, records and multisets, outermost first.
    pub path: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// The element at an index of an array, or in a slot of a multiset.
    /// An invalid index or an empty slot is an error of the model.
    Index(Expr),
    /// The field with a name.
    Field(String),
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A number.
    Int(Number),
    /// A truth value.
    Bool(bool),
    /// A label of an enumeration, by position.
    Label(TypeId, u32),
    /// The value of a variable or a part of one. A scalar that is undefined is an error of the model.
    Read(Place),
    /// As [`Expr::Read`], but an undefined scalar is a value like any other; two undefined values are equal.
    Peek(Place),
    /// The undefined value of a type; may be stored, passed or returned.
    Undefined(TypeId),
    /// True if a scalar is undefined.
    IsUndefined(Place),
    /// Lookup in a table.
    Table(TableId, Box<Expr>),
    /// Logical negation.
    Not(Box<Expr>),
    /// Arithmetic negation.
    Negate(Box<Expr>),
    /// An operation on two values.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `If(c, a, b)` is `a` if `c` holds, else `b`; only one of them is evaluated.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// True if the expression holds for all values of the bound variable.
    Forall(VariableId, Box<Expr>),
    /// True if the expression holds for some value of the bound variable. Both quantifiers try values in order and stop
    /// when decided.
    Exists(VariableId, Box<Expr>),
    /// As [`Expr::Forall`], for a bound variable that takes only these numbers.
    ForallSteps(VariableId, Box<Steps>, Box<Expr>),
    /// As [`Expr::Exists`], for a bound variable that takes only these numbers.
    ExistsSteps(VariableId, Box<Steps>, Box<Expr>),
    /// Result of a function call.
    Call(FunctionId, Vec<Argument>),
    /// An expression in which a name is an alias of a place.
    Alias(VariableId, Place, Box<Expr>),
    /// An expression in which a local variable has a value.
    Let(VariableId, Box<Expr>, Box<Expr>),
    /// The value of a union as one of its member, or the reverse. A value outside the target type is an error of the
    /// model.
    Convert(TypeId, Box<Expr>),
    /// True if a value of a union is one of this member; the undefined value belongs to no member.
    IsMember(Box<Expr>, TypeId),
    /// True if a slot of a multiset holds an element.
    Present(Place, Box<Expr>),
    /// Number of slots of a multiset whose element satisfies a claim; the bound variable is the slot.
    Count(VariableId, Place, Box<Expr>),
    /// An expression that begins on this line of the source text.
    Line(u32, Box<Expr>),
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
    /// Remainder of the division; has the sign of the dividend.
    Remainder,
    /// Equality of two simple values of one kind.
    Equal,
    /// Inequality of two simple values of one kind.
    NotEqual,
    /// True if the first number is less than the second.
    Less,
    /// True if the first number is at most the second.
    LessOrEqual,
    /// True if the first number is greater than the second.
    Greater,
    /// True if the first number is at least the second.
    GreaterOrEqual,
    /// Conjunction; the second operand is evaluated only if the first holds.
    And,
    /// Disjunction; the second operand is evaluated only if the first does not hold.
    Or,
    /// Implication; the second operand is evaluated only if the first holds.
    Implies,
    /// Bits that are set in both numbers.
    BitAnd,
    /// Bits that are set in at least one of the numbers.
    BitOr,
    /// Bits that are set in exactly one of the numbers.
    BitXor,
    /// Product with a power of two.
    ShiftLeft,
    /// Quotient by a power of two, rounded down. A negative distance shifts in the other direction.
    /// A distance of 64 or more, in either direction, gives 0.
    ShiftRight,
}

impl Expr {
    /// The expression without its [`Expr::Line`] wrappers.
    pub fn without_line(&self) -> &Expr {
        match self {
            Expr::Line(_, e) => e.without_line(),
            e => e,
        }
    }
}

impl Operator {
    /// True if the result is a number, not a truth value.
    pub fn is_arithmetic(self) -> bool {
        use Operator::*;
        matches!(
            self,
            Add | Subtract
                | Multiply
                | Divide
                | Remainder
                | BitAnd
                | BitOr
                | BitXor
                | ShiftLeft
                | ShiftRight
        )
    }
}

impl Operator {
    /// The operator as [`Arithmetic`]; `None` if its result is a truth value.
    pub(crate) fn as_arithmetic(self) -> Option<Arithmetic> {
        Some(match self {
            Operator::Add => Arithmetic::Add,
            Operator::Subtract => Arithmetic::Subtract,
            Operator::Multiply => Arithmetic::Multiply,
            Operator::Divide => Arithmetic::Divide,
            Operator::Remainder => Arithmetic::Remainder,
            Operator::BitAnd => Arithmetic::BitAnd,
            Operator::BitOr => Arithmetic::BitOr,
            Operator::BitXor => Arithmetic::BitXor,
            Operator::ShiftLeft => Arithmetic::ShiftLeft,
            Operator::ShiftRight => Arithmetic::ShiftRight,
            _ => return None,
        })
    }

    /// Result for these operands; a truth value is 0 or 1. `None` if the result is undefined or outside `numbers`
    /// ([`Model::numbers`]).
    pub fn of(self, a: Number, b: Number, numbers: (Number, Number)) -> Option<Number> {
        let truth = match self {
            Operator::Equal => a == b,
            Operator::NotEqual => a != b,
            Operator::Less => a < b,
            Operator::LessOrEqual => a <= b,
            Operator::Greater => a > b,
            Operator::GreaterOrEqual => a >= b,
            Operator::And => a != 0 && b != 0,
            Operator::Or => a != 0 || b != 0,
            Operator::Implies => a == 0 || b != 0,
            _ => {
                let result = self.as_arithmetic()?.of(a, b)?;
                return (numbers.0 <= result && result <= numbers.1).then_some(result);
            }
        };
        Some(truth.into())
    }
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// Store a value. Arrays, records and multisets are stored part by part, including undefined parts.
    Assign(Place, Expr),
    /// Set every part of a place to its type's first value.
    Clear(Place),
    /// Make every scalar of a place undefined.
    Undefine(Place),
    /// Begin the lifetime of a local variable, with a value or with the initial value of variables
    /// ([`Model::undefined`]).
    Let(VariableId, Option<Expr>),
    /// Run statements in which a name is an alias of a place.
    Alias(VariableId, Place, Vec<Stmt>),
    /// Run the first statements if the condition holds, else the second ones.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Run the statements for each value of a bound variable, in order.
    For(VariableId, Vec<Stmt>),
    /// As [`Stmt::For`], for a bound variable that takes only these numbers.
    ForSteps(VariableId, Box<Steps>, Vec<Stmt>),
    /// Run the statements while the condition holds; more iterations than this number are an error of the model.
    While(Expr, Vec<Stmt>, u32),
    /// Run the statements of the first case with a value equal to the first expression, or else the last ones.
    Switch(Expr, Vec<(Vec<Expr>, Vec<Stmt>)>, Vec<Stmt>),
    /// Leave the function, rule or start; in a function, with a value.
    Return(Option<Expr>),
    /// Call a procedure, or a function for its effects.
    Call(FunctionId, Vec<Argument>),
    /// If the condition is false, the step has not happened: the rule does not fire, or the start state does not exist.
    Assume(Expr),
    /// Mark a cover as reached.
    Cover(CoverId),
    /// Put an element into a free slot of a multiset; a full multiset is an error of the model.
    Insert(Place, Expr),
    /// Take the element from a slot of a multiset; an empty slot is an error of the model.
    Remove(Place, Expr),
    /// Remove all elements of a multiset that satisfy a claim; the bound variable is the slot.
    RemoveWhere(VariableId, Place, Expr),
    /// The statements that follow are on this line of the source text.
    Line(u32),
    /// Report a violation when this statement is reached.
    Error(Violation),
    /// Report a violation if the claim does not hold here.
    Assert(Violation, Expr),
    /// Emit a note.
    Note(Note),
}

/// Note that a rule emits when it fires. Notes never change the state, and are evaluated only for traces and coverage.
#[derive(Clone, PartialEq, Debug)]
pub enum Note {
    /// An event for the [`TraceRenderer`] of the model.
    Event {
        /// Kind of the event, numbered by the renderer.
        kind: u32,
        /// Participants and locations: simple values.
        values: Vec<Expr>,
        /// Description, shown in charts.
        phrase: Phrase,
    },
    /// A member of a group has been used; [`crate::coverage`] counts these.
    Mark {
        /// Index of the group.
        group: u32,
        /// The member, a simple value.
        member: Expr,
    },
}

/// Text with values inserted.
pub type Phrase = Vec<Piece>;

/// A part of a [`Phrase`].
#[derive(Clone, PartialEq, Debug)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A simple value: a number, a label, `true` or `false`.
    Value(Expr),
    /// The name of the agent with this index.
    Agent(Expr),
    /// The first phrase if the condition holds, else the second.
    Choice(Expr, Phrase, Phrase),
}

impl Note {
    /// Number of values that the note carries.
    pub(crate) fn value_count(&self) -> u32 {
        match self {
            Note::Event { values, phrase, .. } => {
                values.len() as u32 + phrase.iter().map(Piece::value_count).sum::<u32>()
            }
            Note::Mark { .. } => 1,
        }
    }
}

impl Piece {
    /// Number of values that the piece carries.
    pub(crate) fn value_count(&self) -> u32 {
        match self {
            Piece::Text(_) => 0,
            Piece::Value(_) | Piece::Agent(_) => 1,
            Piece::Choice(_, a, b) => 1 + a.iter().chain(b).map(Piece::value_count).sum::<u32>(),
        }
    }
}

/// Renderer of traces: makes the chart of a path through a model.
pub trait TraceRenderer: fmt::Debug + Sync {
    /// Begins the events of a path at its start state. Returns `None` if the model has nothing to draw.
    fn begin<'a>(&self, model: &'a Model, state: &[Number]) -> Option<Box<dyn TraceEvents + 'a>>;
}

/// Error in a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelError {
    /// Location: the rule, invariant, type or variable with the error.
    pub location: String,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

impl std::error::Error for ModelError {}

/// Trees of a deeply nested model are freed by recursion too, on a stack that is large enough.
impl Drop for Model {
    fn drop(&mut self) {
        if !self.deeply_nested {
            return;
        }
        let functions = take(&mut self.functions);
        let starts = take(&mut self.starts);
        let rules = take(&mut self.rules);
        let invariants = take(&mut self.invariants);
        let quiescent = take(&mut self.quiescent);
        let covers = take(&mut self.covers);
        let liveness = take(&mut self.liveness);
        let assumptions = take(&mut self.assumptions);
        let trees = (
            functions,
            starts,
            rules,
            invariants,
            quiescent,
            covers,
            liveness,
            assumptions,
        );
        // Without the memory for a large stack, the trees are freed on this one.
        let _ = run_on_deep_stack(move || drop(trees));
    }
}

impl Model {
    /// The widest possible [`Model::numbers`]: all 64-bit integers except [`UNDEFINED`].
    pub const NUMBERS: (Number, Number) = (Number::MIN + 1, Number::MAX);

    /// Runs a function that recurses over expressions or statements, on a stack that is large enough.
    ///
    /// # Panics
    /// If the model is deeply nested, and the system cannot reserve the stack.
    pub fn with_enough_stack<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        match self.deeply_nested {
            true => run_on_deep_stack(f).expect("a stack as large as for reading the model"),
            false => f(),
        }
    }

    /// Structure of a type.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.index()].ty
    }

    /// The variable with this index.
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.index()]
    }

    /// Smallest and largest value of a simple type as numbers (labels by position, false as 0);
    /// `None` for arrays, records and multisets.
    pub fn bounds(&self, id: TypeId) -> Option<(Number, Number)> {
        match self.ty(id) {
            Type::Bool => Some((0, 1)),
            Type::Enum(labels) => Some((0, labels.len() as Number - 1)),
            Type::Range { lo, hi } => Some((*lo, *hi)),
            Type::Scalarset(size) => Some((0, Number::from(*size) - 1)),
            Type::Union(members) => {
                let count = |&member: &TypeId| self.bounds(member).map_or(0, |b| b.1 + 1);
                Some((0, members.iter().map(count).sum::<Number>() - 1))
            }
            Type::Array { .. } | Type::Record(_) | Type::Multiset { .. } => None,
        }
    }

    /// The number of scalars of each type.
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = Vec::new();
        for named in &self.types {
            sizes.push(match &named.ty {
                Type::Array { index, element } => {
                    // Validation has rejected types that exceed `u32`.
                    self.count(*index) as u32 * sizes[element.index()]
                }
                Type::Record(fields) => fields.iter().map(|f| sizes[f.1.index()]).sum(),
                Type::Multiset { capacity, element } => capacity * (1 + sizes[element.index()]),
                _ => 1,
            });
        }
        sizes
    }

    /// True if values of a type contain a multiset.
    pub(crate) fn holds_multiset(&self, ty: TypeId) -> bool {
        match self.ty(ty) {
            Type::Multiset { .. } => true,
            Type::Array { element, .. } => self.holds_multiset(*element),
            Type::Record(fields) => fields.iter().any(|f| self.holds_multiset(f.1)),
            _ => false,
        }
    }

    /// Width of the model's numbers in bits, with sign.
    pub fn number_bits(&self) -> u32 {
        let max_magnitude = self.numbers.1.max(-1 - self.numbers.0);
        Number::BITS - max_magnitude.leading_zeros() + 1
    }

    /// Number of values of a simple type, saturated at `u64::MAX`; 1 for all other types.
    pub fn count(&self, id: TypeId) -> u64 {
        let (lo, hi) = self.bounds(id).unwrap_or((0, 0));
        (hi.wrapping_sub(lo) as u64).saturating_add(1)
    }

    /// Number that a union assigns to a member's first value; `None` if it has no such member.
    pub fn offset_in_union(&self, union: TypeId, member: TypeId) -> Option<Number> {
        let Type::Union(members) = self.ty(union) else {
            return None;
        };
        let mut offset = 0;
        for &candidate in members {
            if candidate == member {
                return Some(offset);
            }
            offset += self.bounds(candidate)?.1 + 1;
        }
        None
    }

    /// Text of a simple value of a type: a label, `true`, a number, `Name_1`, or `undefined`.
    pub fn show(&self, id: TypeId, value: Number) -> String {
        match self.ty(id) {
            _ if value == UNDEFINED => "undefined".into(),
            Type::Scalarset(_) => format!("{}_{}", self.types[id.index()].name, value + 1),
            Type::Union(members) => {
                let mut remaining = value;
                for &member in members {
                    let count = self.bounds(member).map_or(0, |b| b.1 + 1);
                    if remaining < count {
                        return self.show(member, remaining);
                    }
                    remaining -= count;
                }
                value.to_string()
            }
            Type::Bool => (value != 0).to_string(),
            Type::Enum(labels) => match labels.get(value as usize) {
                Some(label) => label.clone(),
                None => value.to_string(),
            },
            _ => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_models_overflow_at_32_bits() {
        let narrow = (i32::MIN.into(), i32::MAX.into());
        assert_eq!(Operator::Add.of(1 << 30, 1 << 30, narrow), None);
        assert_eq!(
            Operator::Subtract.of(0, 1 << 31, narrow),
            Some(i32::MIN.into())
        );
        assert_eq!(Operator::Less.of(1 << 40, 1 << 41, narrow), Some(1));
    }
}
