//! Building models from Rust code.
//!
//! [`Builder`] declares types and variables and hands out small copyable handles;
//! expressions are made from them with methods and operators:
//! `owner.at(line).is(cpu).and(count.gt(0))`, `count.set(count + 1)`.

use crate::model::{
    Deadlock, Expr, Invariant, Model, ModelError, NamedType, Number, Operator, Place, Role, Rule,
    Start, Step, Stmt, SymmetricType, Table, TableId, TraceRenderer, Type, TypeId, Variable,
    VariableId, Violation,
};

/// Collects the parts of a [`Model`].
pub struct Builder {
    /// Parts declared so far, not validated.
    model: Model,
    /// Names that [`Builder::label`] did not find, for the error messages of [`Builder::build`].
    unknown_labels: Vec<String>,
}

impl Builder {
    /// An empty model with the booleans as its only type.
    pub fn new(name: impl Into<String>) -> Builder {
        Builder {
            model: Model {
                name: name.into(),
                types: vec![NamedType {
                    name: "boolean".into(),
                    ty: Type::Bool,
                }],
                variables: Vec::new(),
                tables: Vec::new(),
                undefined: false,
                numbers: Model::NUMBERS,
                functions: Vec::new(),
                starts: Vec::new(),
                rules: Vec::new(),
                invariants: Vec::new(),
                quiescent: None,
                covers: Vec::new(),
                liveness: Vec::new(),
                assumptions: Vec::new(),
                deadlock: Deadlock::default(),
                agents: Vec::new(),
                trace_renderer: None,
                interchangeable: None,
                ordered: Vec::new(),
                deeply_nested: false,
            },
            unknown_labels: Vec::new(),
        }
    }

    /// Returns the model in its current state, without validation.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// The model, if it is valid.
    ///
    /// # Errors
    /// Everything that [`Model::validate`] finds.
    pub fn build(self) -> Result<Model, Vec<ModelError>> {
        let errors = self.model.validate_named(&self.unknown_labels);
        if errors.is_empty() {
            Ok(self.model)
        } else {
            Err(errors)
        }
    }

    /// The model as declared so far.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Adds a type; returns its handle.
    pub(crate) fn declare(&mut self, name: impl Into<String>, ty: Type) -> TypeId {
        self.model.types.push(NamedType {
            name: name.into(),
            ty,
        });
        TypeId(self.model.types.len() as u32 - 1)
    }

    /// Declares a scalarset: `size` values that can only be compared for equality.
    pub fn scalarset(&mut self, name: impl Into<String>, size: u32) -> TypeId {
        self.declare(name, Type::Scalarset(size))
    }

    /// Declares a range of integers from `lo` to `hi`, both included.
    pub fn range(
        &mut self,
        name: impl Into<String>,
        lo: impl Into<Number>,
        hi: impl Into<Number>,
    ) -> TypeId {
        let (lo, hi) = (lo.into(), hi.into());
        self.declare(name, Type::Range { lo, hi })
    }

    /// Declares an enumeration with these labels, in order.
    pub fn enumeration<L: Into<String>>(
        &mut self,
        name: impl Into<String>,
        labels: impl IntoIterator<Item = L>,
    ) -> TypeId {
        self.declare(
            name,
            Type::Enum(labels.into_iter().map(Into::into).collect()),
        )
    }

    /// Declares an array with one element for each value of `index`.
    pub fn array(&mut self, name: impl Into<String>, index: TypeId, element: TypeId) -> TypeId {
        self.declare(name, Type::Array { index, element })
    }

    /// Declares a record with these fields, in order.
    pub fn record<L: Into<String>>(
        &mut self,
        name: impl Into<String>,
        fields: impl IntoIterator<Item = (L, TypeId)>,
    ) -> TypeId {
        self.declare(
            name,
            Type::Record(fields.into_iter().map(|(n, t)| (n.into(), t)).collect()),
        )
    }

    /// Adds a variable; returns its handle.
    fn add(&mut self, name: impl Into<String>, ty: TypeId, role: Role) -> VariableId {
        self.model.variables.push(Variable {
            name: name.into(),
            spoken_name: None,
            ty,
            role,
        });
        VariableId(self.model.variables.len() as u32 - 1)
    }

    /// Sets the text that sentences use for a variable, without its indices.
    pub fn set_spoken_name(&mut self, variable: VariableId, spoken_name: impl Into<String>) {
        self.model.variables[variable.index()].spoken_name = Some(spoken_name.into());
    }

    /// Declares a part of the state.
    pub fn state(&mut self, name: impl Into<String>, ty: TypeId) -> VariableId {
        self.add(name, ty, Role::State)
    }

    /// Declares a temporary for rule bodies; [`VariableId::begin`] starts its lifetime.
    pub fn local(&mut self, name: impl Into<String>, ty: TypeId) -> VariableId {
        self.add(name, ty, Role::Local)
    }

    /// Declares a name for parameters, loops and quantifiers, which takes all values of a simple type.
    pub fn bound(&mut self, name: impl Into<String>, ty: TypeId) -> VariableId {
        self.add(name, ty, Role::Bound)
    }

    /// Declares a constant table.
    pub fn table(
        &mut self,
        name: impl Into<String>,
        index: TypeId,
        result: TypeId,
        values: impl IntoIterator<Item = i32>,
    ) -> TableId {
        let table = Table {
            name: name.into(),
            index,
            result,
            values: values.into_iter().collect(),
        };
        self.model.tables.push(table);
        TableId(self.model.tables.len() as u32 - 1)
    }

    /// The label with this name. For a name that the enumeration lacks, [`Builder::build`] reports the returned
    /// expression as an error.
    pub fn label(&mut self, ty: TypeId, name: &str) -> Expr {
        let position = match self.model.types.get(ty.index()).map(|t| &t.ty) {
            Some(Type::Enum(labels)) => labels.iter().position(|l| l == name),
            _ => None,
        };
        // No enumeration has labels at the highest positions: these denote unknown names.
        let position = position.map(|position| position as u32).unwrap_or_else(|| {
            self.unknown_labels.push(name.into());
            u32::MAX - (self.unknown_labels.len() as u32 - 1)
        });
        Expr::Label(ty, position)
    }

    /// Adds a start state.
    pub fn start(&mut self, name: impl Into<String>, body: Vec<Stmt>) {
        self.model.starts.push(Start {
            name: name.into(),
            parameters: Vec::new(),
            body,
        });
    }

    /// Adds a start state for each combination of values of bound variables.
    pub fn starts(
        &mut self,
        name: impl Into<String>,
        parameters: Vec<VariableId>,
        body: Vec<Stmt>,
    ) {
        self.model.starts.push(Start {
            name: name.into(),
            parameters,
            body,
        });
    }

    /// Adds a rule after those added before.
    pub fn rule(&mut self, rule: Rule) {
        self.model.rules.push(rule);
    }

    /// Adds a claim about every reachable state.
    pub fn invariant(&mut self, name: impl Into<Violation>, holds: impl Into<Expr>) {
        let Violation {
            property, reason, ..
        } = name.into();
        self.model.invariants.push(Invariant {
            name: property,
            reason,
            parameters: Vec::new(),
            holds: holds.into(),
        });
    }

    /// Sets the condition of a quiescent state, which enables the drain check.
    pub fn quiescent(&mut self, when: impl Into<Expr>) {
        self.model.quiescent = Some(when.into());
    }

    /// Sets the definition of a deadlock.
    pub fn deadlock(&mut self, deadlock: Deadlock) {
        self.model.deadlock = deadlock;
    }

    /// Declares that the values of a range are interchangeable names. In the ranges of `optional`, 0 means none, and
    /// every other value is a name plus one.
    pub fn interchangeable(&mut self, names: TypeId, optional: Vec<TypeId>) {
        self.model.interchangeable = Some(SymmetricType { names, optional });
    }

    /// Sets the renderer of the model's traces.
    pub fn trace_renderer(&mut self, trace_renderer: &'static dyn TraceRenderer) {
        self.model.trace_renderer = Some(trace_renderer);
    }

    /// Adds an agent, a lifeline of charts; returns its index.
    pub fn agent(&mut self, name: impl Into<String>) -> i32 {
        self.model.agents.push(name.into());
        self.model.agents.len() as i32 - 1
    }
}

impl Rule {
    /// A rule that may always fire and does nothing yet.
    pub fn new(name: impl Into<String>) -> Rule {
        Rule {
            name: name.into(),
            parameters: Vec::new(),
            guard: Expr::Bool(true),
            body: Vec::new(),
            spontaneous: false,
            priority: 0,
        }
    }

    /// Adds a parameter, a bound variable; the rule has one instance for each of its values.
    pub fn over(mut self, parameter: VariableId) -> Rule {
        self.parameters.push(parameter);
        self
    }

    /// Adds a condition to the guard, by conjunction.
    pub fn when(mut self, condition: impl Into<Expr>) -> Rule {
        let guard = std::mem::replace(&mut self.guard, Expr::Bool(true));
        self.guard = guard.and(condition);
        self
    }

    /// Adds statements to the body.
    pub fn does(mut self, body: impl IntoIterator<Item = Stmt>) -> Rule {
        self.body.extend(body);
        self
    }

    /// Marks the rule as started from outside; see [`Rule::spontaneous`].
    pub fn spontaneously(mut self) -> Rule {
        self.spontaneous = true;
        self
    }
}

impl TypeId {
    /// The label of an enumeration at a position, counted from 0.
    pub fn nth(self, position: u32) -> Expr {
        Expr::Label(self, position)
    }
}

impl TableId {
    /// Lookup in the table.
    pub fn of(self, index: impl Into<Expr>) -> Expr {
        Expr::Table(self, Box::new(index.into()))
    }
}

impl Place {
    /// The element at an index.
    pub fn at(mut self, index: impl Into<Expr>) -> Place {
        self.path.push(Step::Index(index.into()));
        self
    }

    /// The field with a name.
    pub fn field(mut self, name: impl Into<String>) -> Place {
        self.path.push(Step::Field(name.into()));
        self
    }

    /// Makes a statement that stores a value in the place.
    pub fn set(self, value: impl Into<Expr>) -> Stmt {
        Stmt::Assign(self, value.into())
    }

    /// Sets every part to its type's first value.
    pub fn clear(self) -> Stmt {
        Stmt::Clear(self)
    }
}

impl VariableId {
    /// The element at an index.
    pub fn at(self, index: impl Into<Expr>) -> Place {
        Place::from(self).at(index)
    }

    /// The field with a name.
    pub fn field(self, name: impl Into<String>) -> Place {
        Place::from(self).field(name)
    }

    /// Makes a statement that stores a value in the variable.
    pub fn set(self, value: impl Into<Expr>) -> Stmt {
        Place::from(self).set(value)
    }

    /// Sets every part to its type's first value.
    pub fn clear(self) -> Stmt {
        Place::from(self).clear()
    }

    /// Starts the lifetime of a local variable, with a value.
    pub fn begin(self, value: impl Into<Expr>) -> Stmt {
        Stmt::Let(self, Some(value.into()))
    }

    /// Runs statements for each value of a bound variable.
    pub fn each(self, body: Vec<Stmt>) -> Stmt {
        Stmt::For(self, body)
    }

    /// True if a claim holds for all values of a bound variable.
    pub fn all(self, claim: impl Into<Expr>) -> Expr {
        Expr::Forall(self, Box::new(claim.into()))
    }

    /// True if a claim holds for some value of a bound variable.
    pub fn any(self, claim: impl Into<Expr>) -> Expr {
        Expr::Exists(self, Box::new(claim.into()))
    }
}

/// Runs statements if a condition holds.
pub fn when(condition: impl Into<Expr>, then: Vec<Stmt>) -> Stmt {
    Stmt::If(condition.into(), then, Vec::new())
}

/// Runs the first statements if a condition holds, else the second ones.
pub fn choose(condition: impl Into<Expr>, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
    Stmt::If(condition.into(), then, otherwise)
}

/// Makes a statement that reports a violation of the property with this name.
pub fn error(name: impl Into<Violation>) -> Stmt {
    Stmt::Error(name.into())
}

/// Makes a statement that reports a violation of the property with this name, unless the claim holds.
pub fn assert(name: impl Into<Violation>, claim: impl Into<Expr>) -> Stmt {
    Stmt::Assert(name.into(), claim.into())
}

impl From<VariableId> for Place {
    fn from(variable: VariableId) -> Place {
        Place {
            variable,
            path: Vec::new(),
        }
    }
}
impl From<Place> for Expr {
    fn from(place: Place) -> Expr {
        Expr::Read(place)
    }
}
impl From<&Place> for Expr {
    fn from(place: &Place) -> Expr {
        Expr::Read(place.clone())
    }
}
impl From<VariableId> for Expr {
    fn from(variable: VariableId) -> Expr {
        Expr::Read(variable.into())
    }
}
impl From<&Expr> for Expr {
    fn from(e: &Expr) -> Expr {
        e.clone()
    }
}
impl From<i32> for Expr {
    fn from(value: i32) -> Expr {
        Expr::Int(value.into())
    }
}
impl From<Number> for Expr {
    fn from(value: Number) -> Expr {
        Expr::Int(value)
    }
}
impl From<bool> for Expr {
    fn from(value: bool) -> Expr {
        Expr::Bool(value)
    }
}

impl Expr {
    /// All conditions hold; true if there are none.
    pub fn conjunction(conditions: impl IntoIterator<Item = Expr>) -> Expr {
        conditions
            .into_iter()
            .fold(Expr::Bool(true), |a, b| a.and(b))
    }

    /// Some condition holds; false if there are none.
    pub fn disjunction(conditions: impl IntoIterator<Item = Expr>) -> Expr {
        conditions
            .into_iter()
            .fold(Expr::Bool(false), |a, b| a.or(b))
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $method:ident $operator:ident;)*) => {
        impl Expr {
            $($(#[$doc])*
            pub fn $method(self, other: impl Into<Expr>) -> Expr {
                operation(Operator::$operator, self, other.into())
            })*
        }
        impl Place {
            $($(#[$doc])*
            pub fn $method(self, other: impl Into<Expr>) -> Expr {
                Expr::from(self).$method(other)
            })*
        }
        impl VariableId {
            $($(#[$doc])*
            pub fn $method(self, other: impl Into<Expr>) -> Expr {
                Expr::from(self).$method(other)
            })*
        }
    };
}
operations! {
    /// Equality of simple values.
    is Equal;
    /// Inequality of simple values.
    is_not NotEqual;
    /// True if the first number is less than the second.
    lt Less;
    /// True if the first number is at most the second.
    le LessOrEqual;
    /// True if the first number is greater than the second.
    gt Greater;
    /// True if the first number is at least the second.
    ge GreaterOrEqual;
    /// Conjunction.
    and And;
    /// Disjunction.
    or Or;
    /// Implication.
    implies Implies;
}

/// A binary operation. Operands `true` of `and` and `false` of `or` are dropped.
fn operation(operator: Operator, a: Expr, b: Expr) -> Expr {
    match (operator, &a, &b) {
        (Operator::And, Expr::Bool(true), _) | (Operator::Or, Expr::Bool(false), _) => b,
        (Operator::And, _, Expr::Bool(true)) | (Operator::Or, _, Expr::Bool(false)) => a,
        _ => Expr::Binary(operator, Box::new(a), Box::new(b)),
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $operator:ident;)*) => {$(
        arithmetic!(@ $trait $method $operator Expr);
        arithmetic!(@ $trait $method $operator Place);
        arithmetic!(@ $trait $method $operator VariableId);
    )*};
    (@ $trait:ident $method:ident $operator:ident $ty:ty) => {
        impl<E: Into<Expr>> std::ops::$trait<E> for $ty {
            /// An expression; both operands are moved into it.
            type Output = Expr;
            fn $method(self, other: E) -> Expr {
                Expr::Binary(Operator::$operator, Box::new(self.into()), Box::new(other.into()))
            }
        }
    };
}
arithmetic! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
    Rem rem Remainder;
}

macro_rules! negation {
    ($($ty:ty)*) => {$(
        impl std::ops::Not for $ty {
            type Output = Expr;
            fn not(self) -> Expr {
                Expr::Not(Box::new(self.into()))
            }
        }
        impl std::ops::Neg for $ty {
            type Output = Expr;
            fn neg(self) -> Expr {
                Expr::Negate(Box::new(self.into()))
            }
        }
    )*};
}
negation! { Expr Place VariableId }

impl Expr {
    /// The first value if this condition holds, else the second.
    pub fn then(self, a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
        Expr::If(Box::new(self), Box::new(a.into()), Box::new(b.into()))
    }

    /// 1 if this condition holds, else 0; used to count.
    pub fn as_number(self) -> Expr {
        self.then(1, 0)
    }
}
