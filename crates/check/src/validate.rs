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
            Type::Enum(_) | Type::Scalarset(_) | Type::Union(_) => Kind::Enum(id),
            Type::Array { .. } | Type::Record(_) | Type::Multiset { .. } => Kind::Aggregate(id),
        }
    }

    /// The type of a place, for a valid model.
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

    /// A place as people write it.
    pub(crate) fn spell(&self, place: &Place) -> String {
        let mut text = self.variable(place.variable).name.clone();
        for step in &place.path {
            match step {
                Step::Field(name) => text = format!("{text}.{name}"),
                Step::Index(e) => text = format!("{text}[{}]", self.spell_index(e)),
            }
        }
        text
    }

    fn spell_index(&self, e: &Expr) -> String {
        match e {
            Expr::Int(n) => n.to_string(),
            Expr::Bool(b) => b.to_string(),
            Expr::Label(ty, n) => self.show(*ty, *n as i32),
            Expr::Read(place) | Expr::Peek(place) => self.spell(place),
            Expr::Line(_, e) | Expr::Convert(_, e) => self.spell_index(e),
            _ => "...".into(),
        }
    }

    /// The type of an expression, as far as it decides how a value is shown; `None` for computed numbers.
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
        callable: 0,
        result: None,
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
    /// How many functions may be called.
    callable: usize,
    /// In a function, the type of what it returns.
    result: Option<Option<TypeId>>,
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
                    } else if named.ty == Type::ANY_NUMBER {
                        // Local variables may have it.
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
                        ((hi as i64 - lo as i64 + 1).max(1) as u64)
                            .saturating_mul(slots[element.index()])
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
                Type::Scalarset(count) => {
                    if !(1..=i32::MAX as u32).contains(count) {
                        self.error("a scalarset has 1 to 2^31 - 1 values");
                    }
                    1
                }
                Type::Union(members) => {
                    let simple = |ty: &Type| matches!(ty, Type::Enum(_) | Type::Scalarset(_));
                    if !members.iter().all(|&m| earlier(m) && simple(model.ty(m))) {
                        self.error("a union is of earlier enumerations and scalarsets");
                    } else if members.is_empty() {
                        self.error("a union needs a member");
                    } else {
                        let count = |&m: &TypeId| model.bounds(m).map_or(0, |b| b.1 as u64 + 1);
                        if members.iter().map(count).sum::<u64>() > i32::MAX as u64 {
                            self.error("a union has more than 2^31 - 1 values");
                        }
                        if (1..members.len()).any(|i| members[..i].contains(&members[i])) {
                            self.error("a union has a member twice");
                        }
                    }
                    1
                }
                Type::Multiset { capacity, element } => {
                    if *capacity == 0 {
                        self.error("a multiset needs room for an element");
                    }
                    if !earlier(*element) {
                        self.error("a multiset may refer only to an earlier type");
                        1
                    } else {
                        (*capacity as u64).saturating_mul(1 + slots[element.index()])
                    }
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
            if variable.role == Role::State && self.wide(variable.ty) {
                self.error("a state variable holds no range as wide as this");
            }
            if variable.role == Role::State && !seen.insert(&variable.name) {
                self.error("another state variable has this name");
            }
        }
    }

    /// Whether a type holds [`Type::ANY_NUMBER`].
    fn wide(&self, ty: TypeId) -> bool {
        match self.model.types.get(ty.index()).map(|named| &named.ty) {
            Some(Type::Array { element, .. } | Type::Multiset { element, .. }) => {
                self.wide(*element)
            }
            Some(Type::Record(fields)) => fields.iter().any(|f| self.wide(f.1)),
            Some(ty) => *ty == Type::ANY_NUMBER,
            None => false,
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
        for (f, function) in model.functions.iter().enumerate() {
            self.place = format!("function `{}`", function.name);
            self.callable = f + 1;
            self.result = Some(function.result);
            self.scoped(|v| {
                for &p in &function.parameters {
                    match v.model.variables.get(p.index()).map(|p| p.role) {
                        Some(role @ (Role::Local | Role::Alias)) => v.bring(p, role),
                        _ => v.error("a parameter is a local variable or an alias"),
                    }
                }
                v.block(&function.body);
            });
        }
        self.result = None;
        self.callable = model.functions.len();
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
            self.scoped(|v| {
                v.parameters(&invariant.parameters);
                v.expect(&invariant.holds, Kind::Bool, "the invariant");
            });
        }
        for cover in &model.covers {
            self.place = format!("cover `{}`", cover.name);
            if let Some(e) = &cover.holds {
                self.expect(e, Kind::Bool, "the cover");
            }
        }
        for claim in model.liveness.iter().chain(&model.assumptions) {
            self.place = format!("claim `{}`", claim.name);
            self.scoped(|v| {
                v.parameters(&claim.parameters);
                v.expect(&claim.holds, Kind::Bool, "the claim");
            });
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
                let wanted = match role {
                    Role::Bound => "bound",
                    Role::Alias => "alias",
                    Role::State | Role::Local => "local",
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
            Stmt::Undefine(place) => {
                self.undefinable();
                self.target(place);
            }
            Stmt::Line(_) => {}
            Stmt::Alias(id, place, body) => self.scoped(|v| {
                v.aliased(*id, place);
                v.block(body);
            }),
            Stmt::ForSteps(id, steps, body) => self.scoped(|v| {
                v.steps(*id, steps);
                v.block(body);
            }),
            Stmt::While(condition, body, most) => {
                self.expect(condition, Kind::Bool, "a condition");
                if i32::try_from(*most).is_err() {
                    self.error("a loop's limit is below 2^31");
                }
                self.block(body);
            }
            Stmt::Switch(subject, cases, otherwise) => {
                let kind = self.expr(subject);
                for (values, body) in cases {
                    for value in values {
                        if let Some(kind) = kind {
                            self.expect(value, kind, "a case");
                        }
                    }
                    self.block(body);
                }
                self.block(otherwise);
            }
            Stmt::Return(value) => {
                let kind = value.as_ref().map(|e| self.expr(e));
                let wanted = self.result.flatten().map(|ty| self.model.kind_of_type(ty));
                match (kind, wanted) {
                    (Some(Some(kind)), Some(wanted)) if kind != wanted => {
                        let text =
                            format!("{} is returned, not {}", self.name(kind), self.name(wanted));
                        self.error(text);
                    }
                    (Some(_), None) => {
                        self.error("a value is returned from where there is no result")
                    }
                    (None, Some(_)) => self.error("a function returns without a value"),
                    _ => {}
                }
            }
            Stmt::Call(id, arguments) => self.call(*id, arguments),
            Stmt::Assume(claim) => self.expect(claim, Kind::Bool, "an assumption"),
            Stmt::Cover(id) => match self.model.covers.get(id.index()) {
                Some(Cover { holds: None, .. }) => {}
                Some(cover) => self.error(format!("the cover `{}` is met by a state", cover.name)),
                None => self.error(format!("there is no cover {}", id.0)),
            },
            Stmt::Insert(place, element) => {
                self.target(place);
                if let Some(ty) = self.multiset(place) {
                    self.expect(element, self.model.kind_of_type(ty), "an element");
                }
            }
            Stmt::Remove(place, index) => {
                self.target(place);
                self.multiset(place);
                self.expect(index, Kind::Int, "a slot");
            }
            Stmt::RemoveWhere(id, place, claim) => {
                self.target(place);
                self.multiset(place);
                self.scoped(|v| {
                    v.bring(*id, Role::Bound);
                    v.expect(claim, Kind::Bool, "a claim");
                });
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

    fn undefinable(&mut self) {
        if !self.model.undefined {
            self.error("every variable of this model always has a value");
        }
    }

    fn aliased(&mut self, id: VariableId, place: &Place) {
        let kind = self.place(place);
        self.bring(id, Role::Alias);
        let alias = self.model.variables.get(id.index());
        if let (Some(kind), Some(alias)) = (kind, alias) {
            if self.model.kind_of_type(alias.ty) != kind {
                self.error(format!("the alias `{}` is of another type", alias.name));
            }
        }
    }

    fn steps(&mut self, id: VariableId, steps: &Steps) {
        for e in [&steps.from, &steps.to, &steps.by] {
            self.expect(e, Kind::Int, "a loop's bound");
        }
        self.bring(id, Role::Bound);
        let bound = self.model.variables.get(id.index());
        if bound.is_some_and(|v| self.model.kind_of_type(v.ty) != Kind::Int) {
            self.error("steps are for numbers");
        }
    }

    /// The type of the elements of a multiset.
    fn multiset(&mut self, place: &Place) -> Option<TypeId> {
        self.place(place)?;
        match self.model.ty(self.model.type_of_place(place)) {
            Type::Multiset { element, .. } => Some(*element),
            _ => {
                let text = format!("`{}` is no multiset", self.model.spell(place));
                self.error(text);
                None
            }
        }
    }

    fn call(&mut self, id: FunctionId, arguments: &[Argument]) {
        let model = self.model;
        let Some(function) = model.functions.get(id.index()) else {
            return self.error(format!("there is no function {}", id.0));
        };
        if id.index() >= self.callable {
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
            let wanted = model.kind_of_type(parameter.ty);
            match (argument, parameter.role) {
                (Argument::Value(e), Role::Local) => self.expect(e, wanted, "an argument"),
                (Argument::Place(place), Role::Alias) => {
                    if self.target(place).is_some_and(|kind| kind != wanted) {
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
            NoteAction::Marks { member, .. } => return self.told(member),
        };
        self.phrase(phrase);
    }

    /// A value that a note tells.
    fn told(&mut self, value: &Expr) {
        if let Some(Kind::Aggregate(_)) = self.expr(value) {
            self.error("a note can tell only simple values");
        }
    }

    fn phrase(&mut self, phrase: &[Piece]) {
        for piece in phrase {
            match piece {
                Piece::Text(_) => {}
                Piece::Value(e) => self.told(e),
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
                (Type::Multiset { element, .. }, Step::Index(e)) => {
                    self.expect(e, Kind::Int, "a slot");
                    *element
                }
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
            Expr::Read(place) | Expr::Peek(place) => self.place(place),
            Expr::Undefined(ty) => {
                self.undefinable();
                Some(model.kind_of_type(*ty))
            }
            Expr::IsUndefined(place) => {
                if let Some(Kind::Aggregate(_)) = self.place(place) {
                    self.error("only simple parts are undefined or not");
                }
                Some(Kind::Bool)
            }
            Expr::ForallSteps(id, steps, body) | Expr::ExistsSteps(id, steps, body) => {
                self.scoped(|v| {
                    v.steps(*id, steps);
                    v.expect(body, Kind::Bool, "a quantified claim");
                });
                Some(Kind::Bool)
            }
            Expr::Call(id, arguments) => {
                self.call(*id, arguments);
                let result = model.functions.get(id.index())?.result;
                if result.is_none() {
                    self.error("a procedure is called where a value is needed");
                }
                result.map(|ty| model.kind_of_type(ty))
            }
            Expr::Alias(id, place, e) => {
                let mut kind = None;
                self.scoped(|v| {
                    v.aliased(*id, place);
                    kind = v.expr(e);
                });
                kind
            }
            Expr::Let(id, value, e) => {
                let mut kind = None;
                let wanted = self.expr(value);
                self.scoped(|v| {
                    v.bring(*id, Role::Local);
                    if let (Some(wanted), Some(local)) = (wanted, model.variables.get(id.index())) {
                        if model.kind_of_type(local.ty) != wanted {
                            v.error(format!("`{}` is given a value of another kind", local.name));
                        }
                    }
                    kind = v.expr(e);
                });
                kind
            }
            Expr::Convert(to, inner) | Expr::IsMember(inner, to) => {
                self.expr(inner)?;
                let from = model.type_of(inner)?;
                let related = from == *to
                    || model.offset_in_union(from, *to).is_some()
                    || model.offset_in_union(*to, from).is_some();
                if !related {
                    self.error("a value is taken for one of a type that shares none with its own");
                }
                Some(match e {
                    Expr::Convert(..) => model.kind_of_type(*to),
                    _ => Kind::Bool,
                })
            }
            Expr::Present(place, index) => {
                self.multiset(place);
                self.expect(index, Kind::Int, "a slot");
                Some(Kind::Bool)
            }
            Expr::Count(id, place, claim) => {
                self.multiset(place);
                self.scoped(|v| {
                    v.bring(*id, Role::Bound);
                    v.expect(claim, Kind::Bool, "a claim");
                });
                Some(Kind::Int)
            }
            Expr::Line(_, e) => self.expr(e),
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
            _ if op.arithmetic() => {
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
            _ => {
                let (a, b) = (self.expr(a), self.expr(b));
                if let (Some(a), Some(b)) = (a, b) {
                    if a != b {
                        let text = format!("{} is compared with {}", self.name(a), self.name(b));
                        self.error(text);
                    }
                }
                Some(Kind::Bool)
            }
        }
    }
}
