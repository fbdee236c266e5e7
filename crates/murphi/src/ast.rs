//! Syntax tree of a Murphi model, as written: names are unresolved and types unchecked. Expressions, statements, types
//! and names have a source position for diagnostics.

use cohkit_diagnostics::Span;

/// An identifier, with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'t> {
    pub text: &'t str,
    pub span: Span,
}

#[derive(Debug)]
pub(super) struct TypeExpr<'t> {
    pub span: Span,
    pub kind: TypeKind<'t>,
}

#[derive(Debug)]
pub(super) enum TypeKind<'t> {
    Boolean,
    Named(Name<'t>),
    Enum(Vec<Name<'t>>),
    /// First and last value.
    Range(Box<Expr<'t>>, Box<Expr<'t>>),
    /// Number of values.
    Scalarset(Box<Expr<'t>>),
    Union(Vec<TypeExpr<'t>>),
    /// Capacity and element type.
    Multiset(Box<Expr<'t>>, Box<TypeExpr<'t>>),
    /// Index type and element type.
    Array(Box<TypeExpr<'t>>, Box<TypeExpr<'t>>),
    /// Groups of fields that share a type.
    Record(Vec<(Vec<Name<'t>>, TypeExpr<'t>)>),
    /// A type with a reported error.
    Invalid,
}

#[derive(Debug)]
pub(super) struct Expr<'t> {
    pub span: Span,
    pub kind: ExprKind<'t>,
    /// Depth of the tree below this expression, which the parser limits.
    pub depth: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnaryOperator {
    Not,
    Plus,
    Minus,
    /// `~`: of bits.
    Complement,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BinaryOperator {
    Implies,
    /// `||`.
    OrElse,
    /// `&&`.
    AndAlso,
    /// `|`: of truth values or bits.
    Or,
    /// `&`: of truth values or bits.
    And,
    Xor,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug)]
pub(super) enum ExprKind<'t> {
    /// Position of the digits. The position of the expression may include parentheses.
    Number(Span),
    Bool(bool),
    Name(Name<'t>),
    Field(Box<Expr<'t>>, Name<'t>),
    /// Array and index.
    Index(Box<Expr<'t>>, Box<Expr<'t>>),
    Call(Name<'t>, Vec<Expr<'t>>),
    Unary(UnaryOperator, Box<Expr<'t>>),
    /// Operator, its position, and both operands.
    Binary(BinaryOperator, Span, Box<Expr<'t>>, Box<Expr<'t>>),
    /// Condition of `?`, value if true, and value if false.
    If(Box<Expr<'t>>, Box<Expr<'t>>, Box<Expr<'t>>),
    /// True for `forall`, false for `exists`.
    Quantified(bool, Vec<Quantifier<'t>>, Box<Expr<'t>>),
    IsUndefined(Box<Expr<'t>>),
    IsMember(Box<Expr<'t>>, TypeExpr<'t>),
    /// `multisetcount`: name of the slot, multiset, and condition on the slot.
    Count(Name<'t>, Box<Expr<'t>>, Box<Expr<'t>>),
}

/// A name that takes each value of a domain, in `forall`, `exists`, `for` and `ruleset`.
#[derive(Debug)]
pub(super) struct Quantifier<'t> {
    pub name: Name<'t>,
    pub domain: Domain<'t>,
}

#[derive(Debug)]
pub(super) enum Domain<'t> {
    Type(TypeExpr<'t>),
    /// `:= first to last by step`; the step may be absent.
    Steps(Box<Expr<'t>>, Box<Expr<'t>>, Option<Box<Expr<'t>>>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PropertyKind {
    Invariant,
    Assume,
    Cover,
    Liveness,
}

/// A property, at the top level or as a statement.
#[derive(Debug)]
pub(super) struct Property<'t> {
    pub kind: PropertyKind,
    pub title: Option<String>,
    /// Condition that the property states.
    pub claim: Expr<'t>,
    pub span: Span,
}

pub(super) type Block<'t> = Vec<Stmt<'t>>;

#[derive(Debug)]
pub(super) struct Stmt<'t> {
    pub span: Span,
    pub kind: StmtKind<'t>,
}

#[derive(Debug)]
pub(super) enum StmtKind<'t> {
    /// Target and value.
    Assign(Expr<'t>, Expr<'t>),
    /// Conditions with their blocks, and the block of `else`.
    If(Vec<(Expr<'t>, Block<'t>)>, Block<'t>),
    /// Value, cases with their alternative values, and the block of `else`.
    Switch(Expr<'t>, Vec<(Vec<Expr<'t>>, Block<'t>)>, Block<'t>),
    For(Vec<Quantifier<'t>>, Block<'t>),
    While(Expr<'t>, Block<'t>),
    /// Names with the expressions that they stand for, and the scope of the names.
    Alias(Vec<(Name<'t>, Expr<'t>)>, Block<'t>),
    Property(Property<'t>),
    Error(String),
    /// Expression to print, or none for a string.
    Put(Option<Expr<'t>>),
    Return(Option<Expr<'t>>),
    Undefine(Expr<'t>),
    Clear(Expr<'t>),
    Call(Name<'t>, Vec<Expr<'t>>),
    /// Element and multiset.
    MultisetAdd(Expr<'t>, Expr<'t>),
    /// Slot, which is a name bound by `choose`, and multiset.
    MultisetRemove(Expr<'t>, Expr<'t>),
    /// Name of the slot, multiset, and condition on the slots to remove.
    MultisetRemovePred(Name<'t>, Expr<'t>, Expr<'t>),
}

/// A declaration of one or more names with a common value or type.
#[derive(Debug)]
pub(super) enum Decl<'t> {
    Const(Vec<Name<'t>>, Expr<'t>),
    Type(Vec<Name<'t>>, TypeExpr<'t>),
    Var(Vec<Name<'t>>, TypeExpr<'t>),
}

#[derive(Debug)]
pub(super) struct Parameter<'t> {
    pub name: Name<'t>,
    /// True if the parameter is declared with `var`: it is passed by reference.
    pub is_variable: bool,
    pub ty: std::rc::Rc<TypeExpr<'t>>,
}

/// A function, or a procedure if it has no result.
#[derive(Debug)]
pub(super) struct Function<'t> {
    pub name: Name<'t>,
    pub parameters: Vec<Parameter<'t>>,
    pub result: Option<TypeExpr<'t>>,
    pub locals: Vec<Decl<'t>>,
    pub body: Block<'t>,
}

#[derive(Debug)]
pub(super) enum RuleKind<'t> {
    Rule {
        title: Option<String>,
        /// Priority and its position. Only CMurphi has priorities.
        priority: Option<(i64, Span)>,
        guard: Option<Expr<'t>>,
        locals: Vec<Decl<'t>>,
        body: Block<'t>,
    },
    /// A start state.
    Start {
        title: Option<String>,
        locals: Vec<Decl<'t>>,
        body: Block<'t>,
    },
    Property(Property<'t>),
    Ruleset(Vec<Quantifier<'t>>, Vec<Rule<'t>>),
    Alias(Vec<(Name<'t>, Expr<'t>)>, Vec<Rule<'t>>),
    /// Name of a slot, its multiset, and the rules for each slot in use.
    Choose(Name<'t>, Expr<'t>, Vec<Rule<'t>>),
}

#[derive(Debug)]
pub(super) struct Rule<'t> {
    pub kind: RuleKind<'t>,
}

/// An item at the top level of a model.
#[derive(Debug)]
pub(super) enum Item<'t> {
    Decl(Decl<'t>),
    Function(Function<'t>),
    Rule(Rule<'t>),
}
