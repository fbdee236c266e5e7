//! Syntax tree of a Murphi model, as written: names are unresolved and types unchecked. Expressions, statements, types
//! and names have a source position for diagnostics.

use cohkit_diagnostics::Span;

/// An identifier, with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'t> {
    /// Identifier as written; identifiers are case-sensitive.
    pub text: &'t str,
    /// Position of the identifier.
    pub span: Span,
}

/// A type, named or described in place.
#[derive(Debug)]
pub(super) struct TypeExpr<'t> {
    /// Position of the whole type.
    pub span: Span,
    /// The type without its position.
    pub kind: TypeKind<'t>,
}

/// Kinds of types.
#[derive(Debug)]
pub(super) enum TypeKind<'t> {
    /// `boolean`.
    Boolean,
    /// Reference to a declared type.
    Named(Name<'t>),
    /// Values of an enumeration, in order.
    Enum(Vec<Name<'t>>),
    /// First and last value.
    Range(Box<Expr<'t>>, Box<Expr<'t>>),
    /// Number of values.
    Scalarset(Box<Expr<'t>>),
    /// Members, which are enumerations or scalarsets.
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

/// An expression.
#[derive(Debug)]
pub(super) struct Expr<'t> {
    /// Position of the whole expression.
    pub span: Span,
    /// The expression without its position.
    pub kind: ExprKind<'t>,
    /// Depth of the tree below this expression, at least 1, which the parser limits.
    pub depth: u32,
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnaryOperator {
    /// `!`: of truth values.
    Not,
    /// `+`: without effect.
    Plus,
    /// `-`: of numbers.
    Minus,
    /// `~`: of bits.
    Complement,
}

/// Operators with two operands, except `?:`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BinaryOperator {
    /// `->`: of truth values.
    Implies,
    /// `||`.
    OrElse,
    /// `&&`.
    AndAlso,
    /// `|`: of truth values or bits.
    Or,
    /// `&`: of truth values or bits.
    And,
    /// `^`: of bits.
    Xor,
    /// `=` or `==`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `%`.
    Remainder,
}

/// Kinds of expressions.
#[derive(Debug)]
pub(super) enum ExprKind<'t> {
    /// Position of the digits. The position of the expression may include parentheses.
    Number(Span),
    /// `true` or `false`.
    Bool(bool),
    /// A constant, variable, parameter, alias or value of an enumeration, or the word `undefined`.
    Name(Name<'t>),
    /// Record and name of the field.
    Field(Box<Expr<'t>>, Name<'t>),
    /// Array and index.
    Index(Box<Expr<'t>>, Box<Expr<'t>>),
    /// Function and arguments.
    Call(Name<'t>, Vec<Expr<'t>>),
    /// Operator and operand.
    Unary(UnaryOperator, Box<Expr<'t>>),
    /// Operator, its position, and both operands.
    Binary(BinaryOperator, Span, Box<Expr<'t>>, Box<Expr<'t>>),
    /// Condition of `?`, value if true, and value if false.
    If(Box<Expr<'t>>, Box<Expr<'t>>, Box<Expr<'t>>),
    /// True for `forall`, false for `exists`.
    Quantified(bool, Vec<Quantifier<'t>>, Box<Expr<'t>>),
    /// `isundefined`: the place that it tests.
    IsUndefined(Box<Expr<'t>>),
    /// `ismember`: value of a union, and the member type.
    IsMember(Box<Expr<'t>>, TypeExpr<'t>),
    /// `multisetcount`: name of the slot, multiset, and condition on the slot.
    Count(Name<'t>, Box<Expr<'t>>, Box<Expr<'t>>),
}

/// A name that takes each value of a domain, in `forall`, `exists`, `for` and `ruleset`.
#[derive(Debug)]
pub(super) struct Quantifier<'t> {
    /// Name of the variable.
    pub name: Name<'t>,
    /// Values of the variable.
    pub domain: Domain<'t>,
}

/// Values of a quantified name.
#[derive(Debug)]
pub(super) enum Domain<'t> {
    /// `: type`: all values of a simple type.
    Type(TypeExpr<'t>),
    /// `:= first to last by step`; the step may be absent.
    Steps(Box<Expr<'t>>, Box<Expr<'t>>, Option<Box<Expr<'t>>>),
}

/// Kinds of properties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PropertyKind {
    /// `invariant` or `assert`: holds in every state, or where the statement is executed.
    Invariant,
    /// `assume`: states that violate the condition are not explored.
    Assume,
    /// `cover`: holds in some reachable state.
    Cover,
    /// `liveness`: a state in which the condition holds is reachable from every state.
    Liveness,
}

/// A property, at the top level or as a statement.
#[derive(Debug)]
pub(super) struct Property<'t> {
    /// Kind of the property.
    pub kind: PropertyKind,
    /// Name in quotes; `None` if the property has none.
    pub title: Option<String>,
    /// Condition that the property states.
    pub claim: Expr<'t>,
    /// Position of the property.
    pub span: Span,
}

/// Statements in order.
pub(super) type Block<'t> = Vec<Stmt<'t>>;

/// A statement.
#[derive(Debug)]
pub(super) struct Stmt<'t> {
    /// Position of the whole statement.
    pub span: Span,
    /// The statement without its position.
    pub kind: StmtKind<'t>,
}

/// Kinds of statements.
#[derive(Debug)]
pub(super) enum StmtKind<'t> {
    /// Target and value.
    Assign(Expr<'t>, Expr<'t>),
    /// Conditions with their blocks, and the block of `else`.
    If(Vec<(Expr<'t>, Block<'t>)>, Block<'t>),
    /// Value, cases with their alternative values, and the block of `else`.
    Switch(Expr<'t>, Vec<(Vec<Expr<'t>>, Block<'t>)>, Block<'t>),
    /// Loop variables, outermost first, and the body. Only CMurphi has several variables.
    For(Vec<Quantifier<'t>>, Block<'t>),
    /// Condition and body.
    While(Expr<'t>, Block<'t>),
    /// Names with the expressions that they stand for, and the scope of the names.
    Alias(Vec<(Name<'t>, Expr<'t>)>, Block<'t>),
    /// A condition that must hold, is assumed, or is to be covered, where the statement is executed.
    Property(Property<'t>),
    /// Message of an error that execution of the statement reports.
    Error(String),
    /// Expression to print, or none for a string.
    Put(Option<Expr<'t>>),
    /// Result, or none in a procedure or rule.
    Return(Option<Expr<'t>>),
    /// Place that loses its value.
    Undefine(Expr<'t>),
    /// Place that gets the first values of its type.
    Clear(Expr<'t>),
    /// Function or procedure, and arguments.
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
    /// Constants with their common value.
    Const(Vec<Name<'t>>, Expr<'t>),
    /// Types that are the same type.
    Type(Vec<Name<'t>>, TypeExpr<'t>),
    /// Variables with their common type.
    Var(Vec<Name<'t>>, TypeExpr<'t>),
}

/// A parameter of a function.
#[derive(Debug)]
pub(super) struct Parameter<'t> {
    /// Name of the parameter.
    pub name: Name<'t>,
    /// True if the parameter is declared with `var`: it is passed by reference.
    pub is_variable: bool,
    /// Type, shared by the parameters of one declaration.
    pub ty: std::rc::Rc<TypeExpr<'t>>,
}

/// A function, or a procedure if it has no result.
#[derive(Debug)]
pub(super) struct Function<'t> {
    /// Name of the function.
    pub name: Name<'t>,
    /// Parameters in order.
    pub parameters: Vec<Parameter<'t>>,
    /// Type of the result; `None` for a procedure.
    pub result: Option<TypeExpr<'t>>,
    /// Declarations in front of the body.
    pub locals: Vec<Decl<'t>>,
    /// Statements of the body.
    pub body: Block<'t>,
}

/// Kinds of items that a ruleset may contain.
#[derive(Debug)]
pub(super) enum RuleKind<'t> {
    /// A transition rule.
    Rule {
        /// Name in quotes; `None` if the rule has none.
        title: Option<String>,
        /// Priority and its position. Only CMurphi has priorities.
        priority: Option<(i64, Span)>,
        /// Condition before `==>`; `None` if the rule may always fire.
        guard: Option<Expr<'t>>,
        /// Declarations in front of the body.
        locals: Vec<Decl<'t>>,
        /// Statements of the atomic step.
        body: Block<'t>,
    },
    /// A start state.
    Start {
        /// Name in quotes; `None` if the start state has none.
        title: Option<String>,
        /// Declarations in front of the body.
        locals: Vec<Decl<'t>>,
        /// Statements that initialise the state.
        body: Block<'t>,
    },
    /// A property of all states.
    Property(Property<'t>),
    /// Parameters, and the rules that have an instance for each combination of their values.
    Ruleset(Vec<Quantifier<'t>>, Vec<Rule<'t>>),
    /// Names with the expressions that they stand for, and the rules that use the names.
    Alias(Vec<(Name<'t>, Expr<'t>)>, Vec<Rule<'t>>),
    /// Name of a slot, its multiset, and the rules for each slot in use.
    Choose(Name<'t>, Expr<'t>, Vec<Rule<'t>>),
}

/// A rule, start state or property, or a construct around several of them.
#[derive(Debug)]
pub(super) struct Rule<'t> {
    /// Kind with its contents.
    pub kind: RuleKind<'t>,
}

/// An item at the top level of a model.
#[derive(Debug)]
pub(super) enum Item<'t> {
    /// Declaration of constants, types or variables of the state.
    Decl(Decl<'t>),
    /// Function or procedure.
    Function(Function<'t>),
    /// Rule, start state or property.
    Rule(Rule<'t>),
}
