//! The type checker of models: names, types, scopes and the shape of tables.
//!
//! A *place* is a variable, or a part of one that fields and indices select: the target of an assignment.

mod declarations;
mod expressions;
mod statements;

use crate::model::{
    Argument, Deadlock, Expr, Function, FunctionId, Model, ModelError, Place, Role, Step, Steps,
    Stmt, Type, TypeId, VariableId,
};

/// Kind of an expression's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A truth value.
    Bool,
    /// A number of any range.
    Int,
    /// A value of this enumeration, scalarset or union.
    Enum(TypeId),
    /// An array, record or multiset of this type.
    Aggregate(TypeId),
}

/// Maximum depth of nested indices that [`Model::spell`] writes out.
const MAX_SPELT_INDICES: u32 = 8;

impl Model {
    /// Returns all errors of the model. The engine requires a model without errors.
    pub fn validate(&self) -> Vec<ModelError> {
        self.validate_named(&[])
    }

    /// Returns all errors of the model. `unknown_labels` holds the names that [`Builder::label`] did not find.
    ///
    /// [`Builder::label`]: crate::build::Builder::label
    pub(crate) fn validate_named(&self, unknown_labels: &[String]) -> Vec<ModelError> {
        self.with_enough_stack(|| validate(self, unknown_labels))
    }

    /// Returns the kind of a type's values.
    pub fn kind_of_type(&self, id: TypeId) -> Kind {
        match self.ty(id) {
            Type::Bool => Kind::Bool,
            Type::Range { .. } => Kind::Int,
            Type::Enum(_) | Type::Scalarset(_) | Type::Union(_) => Kind::Enum(id),
            Type::Array { .. } | Type::Record(_) | Type::Multiset { .. } => Kind::Aggregate(id),
        }
    }

    /// Returns the type of a place in a valid model.
    pub fn type_of_place(&self, place: &Place) -> TypeId {
        place
            .path
            .iter()
            .fold(self.variable(place.variable).ty, |ty, step| {
                match (self.ty(ty), step) {
                    (
                        Type::Array { element, .. } | Type::Multiset { element, .. },
                        Step::Index(_),
                    ) => *element,
                    (Type::Record(fields), Step::Field(name)) => {
                        fields.iter().find(|f| f.0 == *name).map_or(ty, |f| f.1)
                    }
                    _ => ty,
                }
            })
    }

    /// Returns the text of a place for messages: [`Variable::spoken_name`] if there is one, otherwise the name with
    /// fields and indices. Computed indices, and places nested in more than eight indices, are written as `...`.
    pub fn spell(&self, place: &Place) -> String {
        self.spell_in_indices(place, 0)
    }

    /// As [`Model::spell`], inside `depth` indices of other places.
    fn spell_in_indices(&self, place: &Place, depth: u32) -> String {
        let variable = self.variable(place.variable);
        if let Some(spoken_name) = &variable.spoken_name {
            return spoken_name.clone();
        }
        let mut text = variable.name.clone();
        for step in &place.path {
            match step {
                Step::Field(name) => text = format!("{text}.{name}"),
                Step::Index(e) => text = format!("{text}[{}]", self.spell_index(e, depth + 1)),
            }
        }
        text
    }

    /// Text of an index at this depth.
    fn spell_index(&self, e: &Expr, depth: u32) -> String {
        match e {
            Expr::Int(n) => n.to_string(),
            Expr::Bool(b) => b.to_string(),
            Expr::Label(ty, n) => self.show(*ty, (*n).into()),
            Expr::Read(place) | Expr::Peek(place) if depth <= MAX_SPELT_INDICES => {
                self.spell_in_indices(place, depth)
            }
            Expr::Line(_, e) | Expr::Convert(_, e) => self.spell_index(e, depth),
            _ => "...".into(),
        }
    }

    /// Returns the type of an expression, with which its value is shown; `None` for computed numbers.
    pub fn type_of(&self, e: &Expr) -> Option<TypeId> {
        match e {
            Expr::Int(_) | Expr::Negate(_) => None,
            Expr::Label(ty, _) => Some(*ty),
            Expr::Read(place) | Expr::Peek(place) => Some(self.type_of_place(place)),
            Expr::Undefined(ty) | Expr::Convert(ty, _) => Some(*ty),
            Expr::Call(id, _) => self.functions[id.index()].result,
            Expr::Alias(_, _, e) | Expr::Let(_, _, e) | Expr::Line(_, e) => self.type_of(e),
            Expr::Count(..) => None,
            Expr::Table(id, _) => Some(self.tables[id.index()].result),
            Expr::If(_, a, b) => self.type_of(a).or_else(|| self.type_of(b)),
            Expr::Binary(op, ..) if op.is_arithmetic() => None,
            _ => Some(TypeId::BOOL),
        }
    }
}

/// Finds all errors of a model. Later checks are skipped if an earlier group found errors.
fn validate(model: &Model, unknown_labels: &[String]) -> Vec<ModelError> {
    let mut v = Validator {
        model,
        unknown_labels,
        location: String::new(),
        scope: Vec::new(),
        callable_count: 0,
        result: None,
        errors: Vec::new(),
    };
    v.check_types();
    if v.errors.is_empty() {
        // Expressions can be checked only against valid types.
        v.check_variables();
        v.check_tables();
    }
    if v.errors.is_empty() {
        v.check_behaviour();
    }
    v.errors
}

/// Checker of one model. Its methods append errors to `errors` and continue.
struct Validator<'a> {
    /// Model to check.
    model: &'a Model,
    /// Names of labels that no enumeration has, by their distance from the highest position.
    unknown_labels: &'a [String],
    /// Part of the model that is being checked, such as a rule, for messages.
    location: String,
    /// Bound and local variables in scope.
    scope: Vec<VariableId>,
    /// Number of functions that may be called: those declared so far, which excludes mutual recursion.
    callable_count: usize,
    /// In a function, its result type; `None` outside functions.
    result: Option<Option<TypeId>>,
    /// Errors found so far.
    errors: Vec<ModelError>,
}

/// Maximum number of slots (scalars) in a state; larger models are rejected before memory is allocated.
const MAX_SLOTS: u64 = 1 << 20;

/// Maximum number of instances of one claim; each has separate code.
const MAX_CLAIMS: u64 = 1 << 16;

/// Maximum number of rule instances and of start states, since they are numbered by `u32`.
const MAX_INSTANCES: u64 = u32::MAX as u64 - 1;

impl Validator<'_> {
    /// Appends an error at the current location.
    fn error(&mut self, message: impl Into<String>) {
        self.errors.push(ModelError {
            location: self.location.clone(),
            message: message.into(),
        });
    }

    /// Checks functions, start states, rules and properties, in valid types and variables.
    fn check_behaviour(&mut self) {
        let model = self.model;
        if model.starts.is_empty() {
            self.location = format!("model `{}`", model.name);
            self.error("it has no start state");
        }
        for (index, function) in model.functions.iter().enumerate() {
            self.callable_count = index + 1;
            self.check_function(function);
        }
        self.callable_count = model.functions.len();
        let mut instances = 0;
        for start in &model.starts {
            self.location = format!("start `{}`", start.name);
            self.scoped(|v| {
                v.add_numbered_parameters(&start.parameters, &mut instances);
                v.check_block(&start.body);
            });
        }
        let mut instances = 0;
        for rule in &model.rules {
            self.location = format!("rule `{}`", rule.name);
            self.scoped(|v| {
                v.add_numbered_parameters(&rule.parameters, &mut instances);
                v.expect(&rule.guard, Kind::Bool, "the guard");
                v.check_block(&rule.body);
            });
        }
        for invariant in &model.invariants {
            self.location = format!("invariant `{}`", invariant.name);
            self.scoped(|v| {
                v.add_claim_parameters(&invariant.parameters);
                v.expect(&invariant.holds, Kind::Bool, "the invariant");
            });
        }
        for cover in &model.covers {
            self.location = format!("cover `{}`", cover.name);
            if let Some(e) = &cover.holds {
                self.expect(e, Kind::Bool, "the cover");
            }
        }
        for claim in model.liveness.iter().chain(&model.assumptions) {
            self.location = format!("claim `{}`", claim.name);
            self.scoped(|v| {
                v.add_claim_parameters(&claim.parameters);
                v.expect(&claim.holds, Kind::Bool, "the claim");
            });
        }
        self.location = "quiescent".into();
        match &model.quiescent {
            Some(e) => self.expect(e, Kind::Bool, "it"),
            None if model.deadlock == Deadlock::ExceptQuiescent => {
                self.error("deadlock is excepted in quiescent states, but the model declares none")
            }
            None => {}
        }
    }

    /// Checks the parameters and the body of a function.
    fn check_function(&mut self, function: &Function) {
        self.location = format!("function `{}`", function.name);
        self.result = Some(function.result);
        self.scoped(|v| {
            for &p in &function.parameters {
                match v.model.variables.get(p.index()).map(|p| p.role) {
                    Some(role @ (Role::Local | Role::Alias)) => v.bring_into_scope(p, role),
                    _ => v.error("a parameter is a local variable or an alias"),
                }
            }
            v.check_block(&function.body);
        });
        self.result = None;
    }

    /// Runs `f` in a new scope, and returns its result.
    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.scope.len();
        let result = f(self);
        self.scope.truncate(depth);
        result
    }

    /// Brings parameters into scope. Returns the number of combinations of their values, at most `u64::MAX`.
    fn add_parameters(&mut self, parameters: &[VariableId]) -> u64 {
        let mut combinations = 1u64;
        for &p in parameters {
            self.bring_into_scope(p, Role::Bound);
            let ty = self.model.variables.get(p.index()).map(|v| v.ty);
            let values = ty.map_or(1, |ty| self.model.count(ty));
            combinations = combinations.saturating_mul(values);
        }
        combinations
    }

    /// Brings the parameters of a claim into scope, and checks the number of its instances.
    fn add_claim_parameters(&mut self, parameters: &[VariableId]) {
        let instances = self.add_parameters(parameters);
        if instances > MAX_CLAIMS {
            self.error(format!(
                "its parameters make {instances} instances; the maximum is {MAX_CLAIMS}"
            ));
        }
    }

    /// Brings the parameters of a rule or start state into scope, adds its instances to `instances`, and checks the
    /// total. Only the rule that first exceeds the maximum is reported.
    fn add_numbered_parameters(&mut self, parameters: &[VariableId], instances: &mut u64) {
        let total = instances.saturating_add(self.add_parameters(parameters));
        if total > MAX_INSTANCES && *instances <= MAX_INSTANCES {
            self.error(format!(
                "with the values of its parameters there are {total} rules or start states; the maximum is {MAX_INSTANCES}"
            ));
        }
        *instances = total;
    }

    /// Brings a variable into scope, and checks its role.
    fn bring_into_scope(&mut self, id: VariableId, role: Role) {
        match self.model.variables.get(id.index()) {
            None => self.error(format!("there is no variable {}", id.0)),
            Some(v) if v.role != role => {
                let expected_role = match role {
                    Role::Bound => "bound",
                    Role::Alias => "alias",
                    Role::State | Role::Local => "local",
                };
                self.error(format!(
                    "`{}` must be a {expected_role} variable here",
                    v.name
                ));
            }
            Some(v) if role == Role::Bound && self.scope.contains(&id) => {
                self.error(format!("`{}` is bound inside itself", v.name));
            }
            Some(_) => {}
        }
        self.scope.push(id);
    }

    fn check_block(&mut self, block: &[Stmt]) {
        self.scoped(|v| block.iter().for_each(|s| v.check_stmt(s)));
    }

    /// Checks the bounds of a loop over numbers, and brings the loop variable into scope.
    fn check_steps(&mut self, id: VariableId, steps: &Steps) {
        for e in [&steps.from, &steps.to, &steps.by] {
            self.expect(e, Kind::Int, "a loop's bound");
        }
        self.bring_into_scope(id, Role::Bound);
        let bound = self.model.variables.get(id.index());
        if bound.is_some_and(|v| self.model.kind_of_type(v.ty) != Kind::Int) {
            self.error("steps are for numbers");
        }
    }

    /// Returns the element type of a multiset; `None`, with an error, for other places.
    fn element_type(&mut self, place: &Place) -> Option<TypeId> {
        self.kind_of_place(place)?;
        match self.model.ty(self.model.type_of_place(place)) {
            Type::Multiset { element, .. } => Some(*element),
            _ => {
                let text = format!("`{}` is no multiset", self.model.spell(place));
                self.error(text);
                None
            }
        }
    }

    /// Checks the arguments of a call against the function's parameters.
    fn check_call(&mut self, id: FunctionId, arguments: &[Argument]) {
        let model = self.model;
        let Some(function) = model.functions.get(id.index()) else {
            return self.error(format!("there is no function {}", id.0));
        };
        if id.index() >= self.callable_count {
            self.error(format!(
                "`{}` is called before it is declared",
                function.name
            ));
        }
        if function.parameters.len() != arguments.len() {
            self.error(format!(
                "`{}` has {} parameters but is given {} arguments",
                function.name,
                function.parameters.len(),
                arguments.len()
            ));
        }
        for (&p, argument) in function.parameters.iter().zip(arguments) {
            let Some(parameter) = model.variables.get(p.index()) else {
                continue;
            };
            let expected_kind = model.kind_of_type(parameter.ty);
            match (argument, parameter.role) {
                (Argument::Value(e), Role::Local) => self.expect(e, expected_kind, "an argument"),
                (Argument::Place(place), Role::Alias | Role::Local) => {
                    if self
                        .check_target(place)
                        .is_some_and(|kind| kind != expected_kind)
                    {
                        self.error(format!(
                            "`{}` is given a place of another type",
                            parameter.name
                        ));
                    }
                }
                _ => self.error(format!(
                    "`{}` is given a place for a value, or the reverse",
                    parameter.name
                )),
            }
        }
    }
}
