//! The syntax tree. Every node has a source position.

use cohkit_diagnostics::Span;

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
    Range(Box<Expr<'t>>, Box<Expr<'t>>),
    Scalarset(Box<Expr<'t>>),
    Union(Vec<TypeExpr<'t>>),
    Multiset(Box<Expr<'t>>, Box<TypeExpr<'t>>),
    Array(Box<TypeExpr<'t>>, Box<TypeExpr<'t>>),
    Record(Vec<(Vec<Name<'t>>, TypeExpr<'t>)>),
    /// A type with a reported error.
    Invalid,
}

#[derive(Debug)]
pub(super) struct Expr<'t> {
    pub span: Span,
    pub kind: ExprKind<'t>,
    /// Depth of the tree.
    pub depth: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnaryOperator {
    Not,
    Plus,
    Minus,
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
    /// Position of its digits; that of the expression may include parentheses.
    Number(Span),
    Bool(bool),
    Name(Name<'t>),
    Field(Box<Expr<'t>>, Name<'t>),
    Index(Box<Expr<'t>>, Box<Expr<'t>>),
    Call(Name<'t>, Vec<Expr<'t>>),
    Unary(UnaryOperator, Box<Expr<'t>>),
    /// With the position of the operator.
    Binary(BinaryOperator, Span, Box<Expr<'t>>, Box<Expr<'t>>),
    If(Box<Expr<'t>>, Box<Expr<'t>>, Box<Expr<'t>>),
    /// True for `forall`, false for `exists`.
    Quantified(bool, Vec<Quantifier<'t>>, Box<Expr<'t>>),
    IsUndefined(Box<Expr<'t>>),
    IsMember(Box<Expr<'t>>, TypeExpr<'t>),
    Count(Name<'t>, Box<Expr<'t>>, Box<Expr<'t>>),
}

#[derive(Debug)]
pub(super) struct Quantifier<'t> {
    pub name: Name<'t>,
    pub domain: Domain<'t>,
}

#[derive(Debug)]
pub(super) enum Domain<'t> {
    Type(TypeExpr<'t>),
    Steps(Box<Expr<'t>>, Box<Expr<'t>>, Option<Box<Expr<'t>>>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PropertyKind {
    Invariant,
    Assume,
    Cover,
    Liveness,
}

#[derive(Debug)]
pub(super) struct Property<'t> {
    pub kind: PropertyKind,
    pub title: Option<String>,
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
    Assign(Expr<'t>, Expr<'t>),
    If(Vec<(Expr<'t>, Block<'t>)>, Block<'t>),
    Switch(Expr<'t>, Vec<(Vec<Expr<'t>>, Block<'t>)>, Block<'t>),
    For(Vec<Quantifier<'t>>, Block<'t>),
    While(Expr<'t>, Block<'t>),
    Alias(Vec<(Name<'t>, Expr<'t>)>, Block<'t>),
    Property(Property<'t>),
    Error(String),
    Put(Option<Expr<'t>>),
    Return(Option<Expr<'t>>),
    Undefine(Expr<'t>),
    Clear(Expr<'t>),
    Call(Name<'t>, Vec<Expr<'t>>),
    MultisetAdd(Expr<'t>, Expr<'t>),
    MultisetRemove(Expr<'t>, Expr<'t>),
    MultisetRemovePred(Name<'t>, Expr<'t>, Expr<'t>),
}

#[derive(Debug)]
pub(super) enum Decl<'t> {
    Const(Vec<Name<'t>>, Expr<'t>),
    Type(Vec<Name<'t>>, TypeExpr<'t>),
    Var(Vec<Name<'t>>, TypeExpr<'t>),
}

#[derive(Debug)]
pub(super) struct Parameter<'t> {
    pub name: Name<'t>,
    pub is_variable: bool,
    pub ty: std::rc::Rc<TypeExpr<'t>>,
}

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
        priority: Option<(i64, Span)>,
        guard: Option<Expr<'t>>,
        locals: Vec<Decl<'t>>,
        body: Block<'t>,
    },
    Start {
        title: Option<String>,
        locals: Vec<Decl<'t>>,
        body: Block<'t>,
    },
    Property(Property<'t>),
    Ruleset(Vec<Quantifier<'t>>, Vec<Rule<'t>>),
    Alias(Vec<(Name<'t>, Expr<'t>)>, Vec<Rule<'t>>),
    Choose(Name<'t>, Expr<'t>, Vec<Rule<'t>>),
}

#[derive(Debug)]
pub(super) struct Rule<'t> {
    pub kind: RuleKind<'t>,
}

#[derive(Debug)]
pub(super) enum Item<'t> {
    Decl(Decl<'t>),
    Function(Function<'t>),
    Rule(Rule<'t>),
}
