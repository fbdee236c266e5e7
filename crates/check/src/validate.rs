//! The type checker of models: names, types, scopes and the shape of tables.

use crate::model::*;
use rustc_hash::FxHashSet;

/// What an expression's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A truth value.
    Bool,
    /// A number of any range.
    Int,
    /// A label of this enumeration.
    Enum(TypeId),
    /// An array or record of this type.
    Aggregate(TypeId),
}

impl Model {
    pub(crate) fn kind_of_type(&self, id: TypeId) -> Kind {
        match self.ty(id) {
            Type::Bool => Kind::Bool,
            Type::Range { .. } => Kind::Int,
            Type::Enum(_) => Kind::Enum(id),
            Type::Array { .. } | Type::Record(_) => Kind::Aggregate(id),
        }
    }

    /// The type of a place, for a valid model.
    pub fn type_of_place(&self, place: &Place) -> TypeId {
        place
            .path
            .iter()
            .fold(self.variable(place.variable).ty, |ty, step| {
                match (self.ty(ty), step) {
                    (Type::Array { element, .. }, Step::Index(_)) => *element,
                    (Type::Record(fields), Step::Field(name)) => {
                        fields.iter().find(|f| f.0 == *name).map_or(ty, |f| f.1)
                    }
                    _ => ty,
                }
            })
    }

    /// The type of an expression, as far as it decides how a value is shown; `None` for computed numbers.
    pub fn type_of(&self, e: &Expr) -> Option<TypeId> {
        match e {
            Expr::Int(_) | Expr::Negate(_) => None,
            Expr::Label(ty, _) => Some(*ty),
            Expr::Read(place) => Some(self.type_of_place(place)),
            Expr::Table(id, _) => Some(self.tables[id.index()].result),
            Expr::If(_, a, b) => self.type_of(a).or_else(|| self.type_of(b)),
            Expr::Binary(op, ..) if op.arithmetic() => None,
            _ => Some(TypeId::BOOL),
        }
    }
}

pub(crate) fn validate(model: &Model) -> Vec<ModelError> {
    let mut v = Validator {
        model,
        place: String::new(),
        scope: Vec::new(),
        errors: Vec::new(),
    };
    v.types();
    if v.errors.is_empty() {
        // Expressions can be judged only against sound types.
        v.variables();
        v.tables();
    }
    if v.errors.is_empty() {
        v.behaviour();
    }
    v.errors
}

struct Validator<'a> {
    model: &'a Model,
    place: String,
    /// Bound and local variables that are alive here.
    scope: Vec<VariableId>,
    errors: Vec<ModelError>,
}

/// More slots than this in one state are refused before memory is.
const MAX_SLOTS: u64 = 1 << 20;

/// More instances than this of one rule are refused; each has its own code.
const MAX_INSTANCES: u64 = 1 << 16;

impl Validator<'_> {
    fn error(&mut self, message: impl Into<String>) {
        self.errors.push(ModelError {
            place: self.place.clone(),
            message: message.into(),
        });
    }

    fn types(&mut self) {
        let model = self.model;
        self.place = "types".into();
        if model.types.first().map(|t| &t.ty) != Some(&Type::Bool) {
            self.error("the first type must be the booleans");
        }
        let mut slots: Vec<u64> = Vec::new();
        for (i, named) in model.types.iter().enumerate() {
            self.place = format!("type `{}`", named.name);
            let earlier = |id: TypeId| id.index() < i;
            let size = match &named.ty {
                Type::Bool => 1,
                Type::Enum(labels) => {
                    if labels.is_empty() {
                        self.error("an enumeration needs at least one label");
                    }
                    let mut seen = FxHashSet::default();
                    for label in labels {
                        if !seen.insert(label) {
                            self.error(format!("the label `{label}` stands twice"));
                        }
                    }
                    1
                }
                Type::Range { lo, hi } => {
                    if lo > hi {
                        self.error(format!("the range {lo}..{hi} is empty"));
                    } else if hi.checked_sub(*lo).is_none_or(|width| width == i32::MAX) {
                        self.error(format!(
                            "the range {lo}..{hi} has more than 2^31 - 1 values"
                        ));
                    }
                    1
                }
                Type::Array { index, element } => {
                    if !earlier(*index) || !earlier(*element) {
                        self.error("an array may refer only to earlier types");
                        1
                    } else if let Some((lo, hi)) = model.bounds(*index) {
                        (hi as i64 - lo as i64 + 1).max(1) as u64 * slots[element.index()]
                    } else {
                        self.error("an array's index must be a simple type");
                        1
                    }
                }
                Type::Record(fields) => {
                    let mut seen = FxHashSet::default();
                    let mut size = 0;
                    for (name, ty) in fields {
                        if !seen.insert(name) {
                            self.error(format!("the field `{name}` stands twice"));
                        }
                        if earlier(*ty) {
                            size += slots[ty.index()];
                        } else {
                            self.error("a record may refer only to earlier types");
                        }
                    }
                    if fields.is_empty() {
                        self.error("a record needs at least one field");
                    }
                    size
                }
            };
            if size > MAX_SLOTS {
                self.error(format!(
                    "a value would have {size} parts; the most is {MAX_SLOTS}"
                ));
            }
            slots.push(size.min(MAX_SLOTS));
        }
        let total: u64 = (model.variables.iter())
            .filter_map(|v| slots.get(v.ty.index()))
            .sum();
        if total > MAX_SLOTS {
            self.place = "variables".into();
            self.error(format!(
                "they have {total} parts together; the most is {MAX_SLOTS}"
            ));
        }
    }

    fn variables(&mut self) {
        let mut seen = FxHashSet::default();
        for variable in &self.model.variables {
            self.place = format!("variable `{}`", variable.name);
            if variable.ty.index() >= self.model.types.len() {
                self.error("its type does not exist");
            } else if variable.role == Role::Bound && self.model.bounds(variable.ty).is_none() {
                self.error("a bound variable needs a simple type");
            }
            if variable.role == Role::State && !seen.insert(&variable.name) {
                self.error("another state variable has this name");
            }
        }
    }

    fn tables(&mut self) {
        let model = self.model;
        for table in &model.tables {
            self.place = format!("table `{}`", table.name);
            let known = |id: TypeId| {
                (id.index() < model.types.len())
                    .then(|| model.bounds(id))
                    .flatten()
            };
            let (Some((lo, hi)), Some((least, most))) = (known(table.index), known(table.result))
            else {
                self.error("index and result must be simple types");
                continue;
            };
            let wanted = (hi as i64 - lo as i64 + 1) as usize;
            if table.values.len() != wanted {
                self.error(format!(
                    "it has {} values where its index has {wanted}",
                    table.values.len()
                ));
            }
            if let Some(bad) = table.values.iter().find(|v| !(least..=most).contains(v)) {
                self.error(format!("the value {bad} is outside {least}..{most}"));
            }
        }
    }

    fn behaviour(&mut self) {
        let model = self.model;
        if model.starts.is_empty() {
            self.place = format!("model `{}`", model.name);
            self.error("it has no start state");
        }
        for start in &model.starts {
            self.place = format!("start `{}`", start.name);
            self.scoped(|v| {
                v.parameters(&start.parameters);
                v.block(&start.body);
            });
        }
        for rule in &model.rules {
            self.place = format!("rule `{}`", rule.name);
            self.scoped(|v| {
                v.parameters(&rule.parameters);
                v.expect(&rule.guard, Kind::Bool, "the guard");
                v.block(&rule.body);
            });
        }
        for invariant in &model.invariants {
            self.place = format!("invariant `{}`", invariant.name);
            self.expect(&invariant.holds, Kind::Bool, "the invariant");
        }
        self.place = "quiescent".into();
        match &model.quiescent {
            Some(e) => self.expect(e, Kind::Bool, "it"),
            None if model.deadlock == Deadlock::ExceptQuiescent => self.error(
                "deadlock is excepted where the model is quiescent, but it does not say when it is",
            ),
            None => {}
        }
    }

    /// Runs `f`; what it brought into scope ends with it.
    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        let depth = self.scope.len();
        f(self);
        self.scope.truncate(depth);
    }

    fn parameters(&mut self, parameters: &[VariableId]) {
        let mut instances = 1u64;
        for &p in parameters {
            self.bring(p, Role::Bound);
            let ty = self.model.variables.get(p.index()).map(|v| v.ty);
            if let Some((lo, hi)) = ty.and_then(|ty| self.model.bounds(ty)) {
                instances = instances.saturating_mul((hi as i64 - lo as i64 + 1) as u64);
            }
        }
        if instances > MAX_INSTANCES {
            self.error(format!(
                "its parameters make {instances} instances; the most is {MAX_INSTANCES}"
            ));
        }
    }

    /// Brings a variable to life here.
    fn bring(&mut self, id: VariableId, role: Role) {
        match self.model.variables.get(id.index()) {
            None => self.error(format!("there is no variable {}", id.0)),
            Some(v) if v.role != role => {
                let wanted = if role == Role::Bound {
                    "bound"
                } else {
                    "local"
                };
                self.error(format!("`{}` must be a {wanted} variable here", v.name));
            }
            Some(v) if role == Role::Bound && self.scope.contains(&id) => {
                self.error(format!("`{}` is bound inside itself", v.name));
            }
            Some(_) => {}
        }
        self.scope.push(id);
    }

    fn block(&mut self, block: &[Stmt]) {
        self.scoped(|v| block.iter().for_each(|s| v.stmt(s)));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => {
                let (target, value) = (self.target(place), self.expr(value));
                if let (Some(a), Some(b)) = (target, value) {
                    if a != b {
                        let text = format!("{} is assigned to {}", self.name(b), self.name(a));
                        self.error(text);
                    }
                }
            }
            Stmt::Clear(place) => {
                self.target(place);
            }
            Stmt::Let(id, value) => {
                // The value is judged first: it cannot speak of the variable it begins.
                let kind = value.as_ref().and_then(|e| self.expr(e));
                self.bring(*id, Role::Local);
                if let (Some(kind), Some(v)) = (kind, self.model.variables.get(id.index())) {
                    let wanted = self.model.kind_of_type(v.ty);
                    if kind != wanted {
                        let text = format!(
                            "`{}` is {} but begins with {}",
                            v.name,
                            self.name(wanted),
                            self.name(kind)
                        );
                        self.error(text);
                    }
                }
            }
            Stmt::If(condition, then, otherwise) => {
                self.expect(condition, Kind::Bool, "a condition");
                self.block(then);
                self.block(otherwise);
            }
            Stmt::For(id, body) => self.scoped(|v| {
                v.bring(*id, Role::Bound);
                v.block(body);
            }),
            Stmt::Error(_) => {}
            Stmt::Assert(_, claim) => self.expect(claim, Kind::Bool, "an assertion"),
            Stmt::Note(note) => self.note(note),
        }
    }

    fn note(&mut self, note: &Note) {
        self.expect(&note.agent, Kind::Int, "an agent");
        if let Some(line) = &note.line {
            self.expect(line, Kind::Int, "a line");
        }
        let phrase = match &note.action {
            NoteAction::Send { message, to: other }
            | NoteAction::Receive {
                message,
                from: other,
            } => {
                self.expect(other, Kind::Int, "an agent");
                message
            }
            NoteAction::Does(phrase) | NoteAction::Becomes(phrase) => phrase,
        };
        self.phrase(phrase);
    }

    fn phrase(&mut self, phrase: &[Piece]) {
        for piece in phrase {
            match piece {
                Piece::Text(_) => {}
                Piece::Value(e) => {
                    if let Some(Kind::Aggregate(_)) = self.expr(e) {
                        self.error("a note can tell only simple values");
                    }
                }
                Piece::Agent(e) => self.expect(e, Kind::Int, "an agent"),
                Piece::Choice(c, a, b) => {
                    self.expect(c, Kind::Bool, "a condition");
                    self.phrase(a);
                    self.phrase(b);
                }
            }
        }
    }

    fn target(&mut self, place: &Place) -> Option<Kind> {
        if let Some(v) = self.model.variables.get(place.variable.index()) {
            if v.role == Role::Bound {
                self.error(format!("`{}` is bound and cannot be assigned", v.name));
            }
        }
        self.place(place)
    }

    fn place(&mut self, place: &Place) -> Option<Kind> {
        let model = self.model;
        let Some(variable) = model.variables.get(place.variable.index()) else {
            self.error(format!("there is no variable {}", place.variable.0));
            return None;
        };
        if variable.role != Role::State && !self.scope.contains(&place.variable) {
            self.error(format!("`{}` is used outside its scope", variable.name));
        }
        let mut ty = variable.ty;
        for step in &place.path {
            ty = match (model.ty(ty), step) {
                (Type::Array { index, element }, Step::Index(e)) => {
                    let wanted = model.kind_of_type(*index);
                    self.expect(e, wanted, "an index");
                    *element
                }
                (Type::Record(fields), Step::Field(name)) => match fields
                    .iter()
                    .find(|f| f.0 == *name)
                {
                    Some(field) => field.1,
                    None => {
                        let known: Vec<_> = fields.iter().map(|f| f.0.as_str()).collect();
                        self.error(format!("no field `{name}`; there are {}", known.join(", ")));
                        return None;
                    }
                },
                (_, Step::Index(_)) => {
                    self.error(format!(
                        "a part of `{}` is indexed but is no array",
                        variable.name
                    ));
                    return None;
                }
                (_, Step::Field(name)) => {
                    self.error(format!(
                        "a part of `{}` has no fields, so no `{name}`",
                        variable.name
                    ));
                    return None;
                }
            };
        }
        Some(model.kind_of_type(ty))
    }

    fn expect(&mut self, e: &Expr, wanted: Kind, what: &str) {
        if let Some(kind) = self.expr(e) {
            if kind != wanted {
                let text = format!(
                    "{what} must be {} but is {}",
                    self.name(wanted),
                    self.name(kind)
                );
                self.error(text);
            }
        }
    }

    fn name(&self, kind: Kind) -> String {
        match kind {
            Kind::Bool => "a truth value".into(),
            Kind::Int => "a number".into(),
            Kind::Enum(id) | Kind::Aggregate(id) => {
                format!("a `{}`", self.model.types[id.index()].name)
            }
        }
    }

    /// The kind of an expression; `None` after an error that has been reported.
    fn expr(&mut self, e: &Expr) -> Option<Kind> {
        let model = self.model;
        match e {
            Expr::Int(_) => Some(Kind::Int),
            Expr::Bool(_) => Some(Kind::Bool),
            Expr::Label(ty, label) => match model.types.get(ty.index()) {
                Some(NamedType {
                    ty: Type::Enum(labels),
                    ..
                }) if (*label as usize) < labels.len() => Some(Kind::Enum(*ty)),
                Some(named) => {
                    self.error(format!("type `{}` has no label {label}", named.name));
                    None
                }
                None => {
                    self.error(format!("there is no type {}", ty.0));
                    None
                }
            },
            Expr::Read(place) => self.place(place),
            Expr::Table(id, index) => {
                let Some(table) = model.tables.get(id.index()) else {
                    self.error(format!("there is no table {}", id.0));
                    return None;
                };
                self.expect(index, model.kind_of_type(table.index), "a table's index");
                Some(model.kind_of_type(table.result))
            }
            Expr::Not(a) => {
                self.expect(a, Kind::Bool, "what `not` negates");
                Some(Kind::Bool)
            }
            Expr::Negate(a) => {
                self.expect(a, Kind::Int, "what a minus negates");
                Some(Kind::Int)
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::If(c, a, b) => {
                self.expect(c, Kind::Bool, "a condition");
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                if a != b {
                    let text = format!("the branches are {} and {}", self.name(a), self.name(b));
                    self.error(text);
                }
                if let Kind::Aggregate(_) = a {
                    self.error("a conditional chooses between simple values only");
                }
                Some(a)
            }
            Expr::Forall(id, body) | Expr::Exists(id, body) => {
                self.scoped(|v| {
                    v.bring(*id, Role::Bound);
                    v.expect(body, Kind::Bool, "a quantified claim");
                });
                Some(Kind::Bool)
            }
        }
    }

    fn binary(&mut self, op: Operator, a: &Expr, b: &Expr) -> Option<Kind> {
        use Operator::*;
        match op {
            Add | Subtract | Multiply | Divide | Remainder => {
                self.expect(a, Kind::Int, "an operand");
                self.expect(b, Kind::Int, "an operand");
                Some(Kind::Int)
            }
            Less | LessOrEqual | Greater | GreaterOrEqual => {
                self.expect(a, Kind::Int, "an operand");
                self.expect(b, Kind::Int, "an operand");
                Some(Kind::Bool)
            }
            And | Or | Implies => {
                self.expect(a, Kind::Bool, "an operand");
                self.expect(b, Kind::Bool, "an operand");
                Some(Kind::Bool)
            }
            Equal | NotEqual => {
                let (a, b) = (self.expr(a), self.expr(b));
                if let (Some(a), Some(b)) = (a, b) {
                    if a != b {
                        let text = format!("{} is compared with {}", self.name(a), self.name(b));
                        self.error(text);
                    } else if let Kind::Aggregate(_) = a {
                        self.error("only simple values can be compared");
                    }
                }
                Some(Kind::Bool)
            }
        }
    }
}
