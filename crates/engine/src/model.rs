//! The finite-model form: a small typed language of guarded commands.
//!
//! A [`Model`] has variables of finite types, start states, and rules.
//! A rule whose guard holds may fire at any time; its body is one atomic step.
//! The form is that of Murphi, but nothing in it has a textual syntax: front ends build it
//! (from text, or with [`crate::build`]),
//! and [`Model::validate`] tells them what is wrong with the result.
//! Whether a variable can be without a value is said by [`Model::undefined`].
//!
//! Numbers are 64-bit integers, of fewer bits where a model says so ([`Model::numbers`]). Arithmetic that leaves them, a value stored
//! outside its variable's range, an index outside its array and a division by zero are
//! errors *of the model*: the search reports them as violations, with the rule's name.

use crate::number::Arithmetic;
pub use crate::number::{Number, UNDEFINED};
use crate::story::Story;
use std::fmt;

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
    /// Everything that has a value: the state, rule-local temporaries, and bound names.
    pub variables: Vec<Variable>,
    /// Constant lookup tables.
    pub tables: Vec<Table>,
    /// Whether variables begin *undefined*, and can become so again; then every simple type has this one value more.
    /// Otherwise they begin with their type's first value, and always have one.
    pub undefined: bool,
    /// The least and the greatest number that arithmetic may give; any other is an error of the model.
    pub numbers: (Number, Number),
    /// What rules and claims may call. A function may call itself and those before it.
    pub functions: Vec<Function>,
    /// Start states. Each runs from the state in which nothing has been assigned yet.
    pub starts: Vec<Start>,
    /// Rules, in the order in which a search tries them.
    pub rules: Vec<Rule>,
    /// What must hold in every reachable state.
    pub invariants: Vec<Invariant>,
    /// If given, *drain* is checked: from every reachable state, rules that are not
    /// spontaneous can lead to a state in which this holds.
    pub quiescent: Option<Expr>,
    /// What must be met at least once.
    pub covers: Vec<Cover>,
    /// What must stay within reach: from every reachable state, rules of any kind can lead to a state in which it holds.
    pub liveness: Vec<Invariant>,
    /// States in which one of these does not hold are left out, as if no rule led to them; yet leading to one is progress.
    pub assumptions: Vec<Invariant>,
    /// What counts as a deadlock.
    pub deadlock: Deadlock,
    /// Who acts in it, in the order in which a chart draws them.
    pub agents: Vec<String>,
    /// Who makes the stories of its traces.
    pub teller: Option<&'static dyn Teller>,
    /// Ranges that name things of one kind, if any do.
    pub interchangeable: Option<Interchangeable>,
}

/// Numbers that are used like the values of a scalarset: to tell things of one kind apart, and for nothing else.
///
/// Whoever builds the model says so; it is not checked. Permuting the numbers, wherever they stand and whatever
/// they index, must take rules to rules and claims to claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interchangeable {
    /// The range from 0 on whose values name the things. Only types that are declared as this one are meant.
    pub names: TypeId,
    /// Ranges in which 0 stands for none of them, and all others for a name that is less by one.
    pub optional: Vec<TypeId>,
}

/// A type with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedType {
    /// Name, for messages and texts. Need not be unique.
    pub name: String,
    /// What it is.
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
        /// Booleans, an enumeration or a range.
        index: TypeId,
        /// Any earlier type.
        element: TypeId,
    },
    /// Named parts, in order.
    Record(Vec<(String, TypeId)>),
    /// So many values that can only be told apart: no order, no names.
    Scalarset(u32),
    /// The values of several enumerations and scalarsets, in this order.
    Union(Vec<TypeId>),
    /// Up to `capacity` elements without order; its first value is empty.
    /// Elements stand in slots, numbered from 0, within a step; stored states have them sorted.
    Multiset {
        /// The most elements.
        capacity: u32,
        /// Any earlier type.
        element: TypeId,
    },
}

/// What can be called: a function if it has a result, else a procedure.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name, for messages and texts.
    pub name: String,
    /// [`Role::Local`] for values, [`Role::Alias`] for places.
    pub parameters: Vec<VariableId>,
    /// Type of what it returns.
    pub result: Option<TypeId>,
    /// What it does. A function that ends without [`Stmt::Return`] is an error of the model.
    pub body: Vec<Stmt>,
}

/// What a call passes.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// To a [`Role::Local`] parameter: a copy.
    Value(Expr),
    /// To a [`Role::Alias`] parameter: the place itself; its indices are evaluated once. To a [`Role::Local`]
    /// parameter that the function does not change: the same, so that the value changes with the place.
    Place(Place),
}

/// Something that must be met at least once.
#[derive(Clone, Debug)]
pub struct Cover {
    /// Name of the property.
    pub name: String,
    /// In a reachable state; `None` if [`Stmt::Cover`] says where.
    pub holds: Option<Expr>,
}

/// Numbers from one to another in steps; each part is evaluated once. A step of 0 is an error of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    /// The first number.
    pub from: Expr,
    /// No number goes beyond it.
    pub to: Expr,
    /// The distance; negative to go down.
    pub by: Expr,
}

/// Something that has a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Name, for traces and texts. State variables need distinct names.
    pub name: String,
    /// What sentences call it, whatever its indices; its name if nothing is said.
    pub said: Option<String>,
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
    /// A temporary, alive from its [`Stmt::Let`] to the end of the block around it; or a parameter.
    Local,
    /// Another name for a place, which is found once, where the name begins; or a parameter.
    Alias,
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
    /// Of the rules that may fire in a state, only those of the smallest priority do; 0 if nothing else is said.
    pub priority: i32,
}

/// A named claim about states.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// Name of the property.
    pub name: String,
    /// What it means that it does not hold, as a clause; may be empty.
    pub why: String,
    /// Bound variables; one claim for each combination of their values.
    pub parameters: Vec<VariableId>,
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
    /// The property that a model violates by doing what has no meaning, beside what the engine finds by itself.
    pub(crate) const ILL_DEFINED: &'static str = "values in range";

    /// Something that has no meaning is done, as a clause.
    pub(crate) fn ill_defined(why: impl Into<String>) -> Violation {
        Violation::new(Violation::ILL_DEFINED, why)
    }

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
    /// Any state in which no rule may fire, not even one that changes nothing.
    Stuck,
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
    /// The element at an index of an array, or in a slot of a multiset; there must be one.
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
    /// The value of a variable or a part of one. A simple part that is undefined is an error of the model.
    Read(Place),
    /// The same, but a simple part that is undefined is taken as it is; two such are equal.
    Peek(Place),
    /// No value; to be stored, passed or returned.
    Undefined(TypeId),
    /// Whether a simple part is undefined.
    IsUndefined(Place),
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
    /// As [`Expr::Forall`], for a bound variable that takes these numbers only.
    ForallSteps(VariableId, Box<Steps>, Box<Expr>),
    /// As [`Expr::Exists`], likewise.
    ExistsSteps(VariableId, Box<Steps>, Box<Expr>),
    /// What a function returns.
    Call(FunctionId, Vec<Argument>),
    /// An expression in which a name stands for a place.
    Alias(VariableId, Place, Box<Expr>),
    /// An expression in which a local variable has a value.
    Let(VariableId, Box<Expr>, Box<Expr>),
    /// The value of a union as one of its member, or the reverse. A value that the type lacks is an error of the model.
    Convert(TypeId, Box<Expr>),
    /// Whether a value of a union is one of this member; an undefined one is of none.
    IsMember(Box<Expr>, TypeId),
    /// Whether there is an element in a slot of a multiset.
    Present(Place, Box<Expr>),
    /// In how many slots of a multiset there is an element for which a claim holds, with the slot as bound variable.
    Count(VariableId, Place, Box<Expr>),
    /// An expression that begins on this line of a text.
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
    /// Bits that are set in both numbers.
    BitAnd,
    /// Bits that are set in one of the numbers or both.
    BitOr,
    /// Bits that are set in one of the numbers alone.
    BitXor,
    /// Product with a power of two.
    ShiftLeft,
    /// Quotient by a power of two, rounded down. Shifts by less than 0 go the other way;
    /// those by 64 or more, either way, give 0.
    ShiftRight,
}

impl Expr {
    /// The expression, without the lines of the text that it begins on.
    pub fn without_line(&self) -> &Expr {
        match self {
            Expr::Line(_, e) => e.without_line(),
            e => e,
        }
    }
}

impl Operator {
    /// Whether the result is a number, not a truth value.
    pub fn arithmetic(self) -> bool {
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
    /// The operator as one that gives numbers; nothing if it gives a truth value.
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

    /// The value for these operands, a truth value as 0 or 1; nothing if it is none of `numbers`, as the model says
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
    /// Store a value. Whole arrays, records and multisets are stored as their parts, undefined ones included.
    Assign(Place, Expr),
    /// Give every part of a place its type's first value.
    Clear(Place),
    /// Take the value from every simple part of a place.
    Undefine(Place),
    /// Begin the life of a local variable, with a value or as variables begin ([`Model::undefined`]).
    Let(VariableId, Option<Expr>),
    /// Run statements in which a name stands for a place.
    Alias(VariableId, Place, Vec<Stmt>),
    /// Run the first statements where the condition holds and the second elsewhere.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Run the statements for each value of a bound variable, in order.
    For(VariableId, Vec<Stmt>),
    /// The same for a bound variable that takes these numbers only.
    ForSteps(VariableId, Box<Steps>, Vec<Stmt>),
    /// Run the statements as long as the condition holds; more often than this is an error of the model.
    While(Expr, Vec<Stmt>, u32),
    /// Run the statements of the first case one of whose values equals the first expression, or else the last ones.
    Switch(Expr, Vec<(Vec<Expr>, Vec<Stmt>)>, Vec<Stmt>),
    /// Leave the function, rule or start, with a value in a function.
    Return(Option<Expr>),
    /// Call a procedure, or a function for what it does.
    Call(FunctionId, Vec<Argument>),
    /// Unless this holds, nothing has happened: the rule does not fire, the start state is none.
    Assume(Expr),
    /// This is met.
    Cover(CoverId),
    /// Put an element into a free slot of a multiset; that there is none is an error of the model.
    Insert(Place, Expr),
    /// Take the element from a slot of a multiset; that there is none is an error of the model.
    Remove(Place, Expr),
    /// Take all elements from a multiset for which a claim holds, with the slot as bound variable.
    RemoveWhere(VariableId, Place, Expr),
    /// The statements that follow stand on this line of a text.
    Line(u32),
    /// Reaching this statement violates the property with this name.
    Error(Violation),
    /// The claim violates the property with this name unless it holds here.
    Assert(Violation, Expr),
    /// What is told at this point.
    Note(Note),
}

/// What a rule tells as it fires. Never changes the state; evaluated only where somebody listens.
#[derive(Clone, PartialEq, Debug)]
pub enum Note {
    /// Something for the [`Teller`] of the model.
    Says {
        /// What sort of thing it is, in the teller's numbers.
        sort: u32,
        /// Who and where: simple values.
        values: Vec<Expr>,
        /// In words.
        words: Phrase,
    },
    /// A member of a group is met, which [`crate::coverage`] counts.
    Marks {
        /// Which group.
        group: u32,
        /// Which member, a simple value.
        member: Expr,
    },
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

impl Note {
    /// How many values it tells.
    pub(crate) fn values(&self) -> u32 {
        match self {
            Note::Says { values, words, .. } => {
                values.len() as u32 + words.iter().map(Piece::values).sum::<u32>()
            }
            Note::Marks { .. } => 1,
        }
    }
}

impl Piece {
    /// How many values it tells.
    pub(crate) fn values(&self) -> u32 {
        match self {
            Piece::Text(_) => 0,
            Piece::Value(_) | Piece::Agent(_) => 1,
            Piece::Choice(_, a, b) => 1 + a.iter().chain(b).map(Piece::values).sum::<u32>(),
        }
    }
}

/// Begins the stories of ways through a model.
pub trait Teller: fmt::Debug + Sync {
    /// A story that begins in a start state; nothing if there is nothing to tell.
    fn begin<'a>(&self, model: &'a Model, state: &[Number]) -> Option<Box<dyn Story + 'a>>;
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
    /// All numbers there are, for [`Model::numbers`].
    pub const NUMBERS: (Number, Number) = (Number::MIN + 1, Number::MAX);

    /// What a type is.
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

    /// The number of simple parts of each type.
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = Vec::new();
        for named in &self.types {
            sizes.push(match &named.ty {
                Type::Array { index, element } => {
                    // More than there is room for has been refused.
                    self.count(*index) as u32 * sizes[element.index()]
                }
                Type::Record(fields) => fields.iter().map(|f| sizes[f.1.index()]).sum(),
                Type::Multiset { capacity, element } => capacity * (1 + sizes[element.index()]),
                _ => 1,
            });
        }
        sizes
    }

    /// Whether values of a type contain a multiset.
    pub(crate) fn holds_multiset(&self, ty: TypeId) -> bool {
        match self.ty(ty) {
            Type::Multiset { .. } => true,
            Type::Array { element, .. } => self.holds_multiset(*element),
            Type::Record(fields) => fields.iter().any(|f| self.holds_multiset(f.1)),
            _ => false,
        }
    }

    /// Of how many bits its numbers are.
    pub fn number_bits(&self) -> u32 {
        let most = self.numbers.1.max(-1 - self.numbers.0);
        Number::BITS - most.leading_zeros() + 1
    }

    /// How many values a simple type has, or the most that can be told if it has still more; 1 for all others.
    pub fn count(&self, id: TypeId) -> u64 {
        let (lo, hi) = self.bounds(id).unwrap_or((0, 0));
        (hi.wrapping_sub(lo) as u64).saturating_add(1)
    }

    /// The number that a union gives to a member's first value; `None` if it has no such member.
    pub fn offset_in_union(&self, union: TypeId, member: TypeId) -> Option<Number> {
        let Type::Union(members) = self.ty(union) else {
            return None;
        };
        let mut offset = 0;
        for &one in members {
            if one == member {
                return Some(offset);
            }
            offset += self.bounds(one)?.1 + 1;
        }
        None
    }

    /// How a simple value of a type is written: a label, `true`, a number, `Name_1`, or `undefined`.
    pub fn show(&self, id: TypeId, value: Number) -> String {
        match self.ty(id) {
            _ if value == UNDEFINED => "undefined".into(),
            Type::Scalarset(_) => format!("{}_{}", self.types[id.index()].name, value + 1),
            Type::Union(members) => {
                let mut rest = value;
                for &member in members {
                    let count = self.bounds(member).map_or(0, |b| b.1 + 1);
                    if rest < count {
                        return self.show(member, rest);
                    }
                    rest -= count;
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
    fn a_model_of_fewer_bits_has_fewer_numbers() {
        let narrow = (i32::MIN.into(), i32::MAX.into());
        assert_eq!(Operator::Add.of(1 << 30, 1 << 30, narrow), None);
        assert_eq!(
            Operator::Subtract.of(0, 1 << 31, narrow),
            Some(i32::MIN.into())
        );
        assert_eq!(Operator::Less.of(1 << 40, 1 << 41, narrow), Some(1));
    }
}
