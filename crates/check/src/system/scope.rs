//! The model under construction, as all parts of the lowering add to it.

use cohkit_engine::build::Builder;
use cohkit_engine::model::{
    Expr, Model, ModelError, Number, Rule, TableId, TypeId, VariableId, Violation,
};
use rustc_hash::FxHashMap;
use std::cell::{Cell, Ref, RefCell};

use super::options::SystemError;

/// The model under construction. Shared by all parts of the lowering, so additions need no exclusive access.
pub(super) struct Scope {
    /// Builder of the model; replaced by an empty one at the end.
    build: RefCell<Builder>,
    /// Rule parameters by name and type, so that rules share them. Temporaries have names that begin with
    /// `local`.
    parameters: RefCell<FxHashMap<(String, TypeId), VariableId>>,
    /// Loop and quantifier variables by type and nesting depth.
    bound: RefCell<FxHashMap<(TypeId, usize), VariableId>>,
    /// Number of loops and quantifiers around the expression under construction.
    depth: Cell<usize>,
    /// Types whose values are a remote or none.
    optional: RefCell<Vec<TypeId>>,
    /// True if remotes are symmetric: no stored number stands for several of them.
    interchangeable: Cell<bool>,
    /// Error of the first expression that cannot be lowered.
    unsupported: RefCell<Option<SystemError>>,
}

impl Scope {
    /// Creates an empty model.
    pub fn new(name: String) -> Scope {
        Scope {
            build: RefCell::new(Builder::new(name)),
            parameters: RefCell::default(),
            bound: RefCell::default(),
            depth: Cell::new(0),
            optional: RefCell::default(),
            interchangeable: Cell::new(true),
            unsupported: RefCell::default(),
        }
    }

    /// Changes the model by operations that have no method here.
    pub fn with_builder<T>(&self, change: impl FnOnce(&mut Builder) -> T) -> T {
        change(&mut self.build.borrow_mut())
    }

    /// Returns the model so far.
    pub fn model(&self) -> Ref<'_, Model> {
        Ref::map(self.build.borrow(), Builder::model)
    }

    /// Declares a range of numbers, including both ends.
    pub fn range(&self, name: &str, lo: impl Into<Number>, hi: impl Into<Number>) -> TypeId {
        self.build.borrow_mut().range(name, lo, hi)
    }

    /// Declares an enumeration.
    pub fn enumeration<L: Into<String>>(
        &self,
        name: &str,
        labels: impl IntoIterator<Item = L>,
    ) -> TypeId {
        self.build.borrow_mut().enumeration(name, labels)
    }

    /// Declares a type of arrays.
    pub fn array(&self, name: &str, index: TypeId, element: TypeId) -> TypeId {
        self.build.borrow_mut().array(name, index, element)
    }

    /// Declares a constant table with a value for each index, in order.
    pub fn table(
        &self,
        name: impl Into<String>,
        index: TypeId,
        result: TypeId,
        values: impl IntoIterator<Item = i32>,
    ) -> TableId {
        self.build.borrow_mut().table(name, index, result, values)
    }

    /// Declares a state variable.
    pub fn state(&self, name: impl Into<String>, ty: TypeId) -> VariableId {
        self.build.borrow_mut().state(name, ty)
    }

    /// Declares an agent of charts. Returns the index of its lifeline.
    pub fn agent(&self, name: &str) -> i32 {
        self.build.borrow_mut().agent(name)
    }

    /// Adds a rule.
    pub fn rule(&self, rule: Rule) {
        self.build.borrow_mut().rule(rule);
    }

    /// Adds an invariant: `holds` must be true in every state, or `name` is violated.
    pub fn invariant(&self, name: impl Into<Violation>, holds: impl Into<Expr>) {
        self.build.borrow_mut().invariant(name, holds);
    }

    /// Returns the rule parameter of this name and type. Parameters are never loop variables.
    pub fn parameter(&self, name: &str, ty: TypeId) -> VariableId {
        let declare = || self.build.borrow_mut().bound(name, ty);
        let mut parameters = self.parameters.borrow_mut();
        *(parameters.entry((name.to_string(), ty))).or_insert_with(declare)
    }

    /// Returns the temporary of rule bodies of this name and type.
    pub fn local(&self, name: &str, ty: TypeId) -> VariableId {
        let declare = || self.build.borrow_mut().local(name, ty);
        let mut parameters = self.parameters.borrow_mut();
        *(parameters.entry((format!("local {name}"), ty))).or_insert_with(declare)
    }

    /// Runs `body` with a loop or quantifier variable that is used nowhere around it.
    pub fn with_bound<T>(&self, ty: TypeId, body: impl FnOnce(VariableId) -> T) -> T {
        let depth = self.depth.get() + 1;
        self.depth.set(depth);
        let declare = || {
            let name = format!("i{depth}_{}", ty.index());
            self.build.borrow_mut().bound(name, ty)
        };
        let variable = *(self.bound.borrow_mut().entry((ty, depth))).or_insert_with(declare);
        let result = body(variable);
        self.depth.set(depth - 1);
        result
    }

    /// Records a type whose values are a remote or none.
    pub fn add_optional(&self, ty: TypeId) {
        self.optional.borrow_mut().push(ty);
    }

    /// Records that remotes are not symmetric.
    pub fn forbid_symmetry(&self) {
        self.interchangeable.set(false);
    }

    /// Records that something cannot be lowered, so that [`Scope::finish`] rejects the system. The first error
    /// counts.
    pub fn reject(&self, error: SystemError) {
        self.unsupported.borrow_mut().get_or_insert(error);
    }

    /// Returns the finished model, of symmetric remotes if nothing forbids it.
    ///
    /// # Errors
    /// Something could not be lowered, or the model is not well formed.
    pub fn finish(&self, remote_type: TypeId) -> Result<Model, SystemError> {
        if let Some(error) = self.unsupported.take() {
            return Err(error);
        }
        let mut build = self.build.replace(Builder::new(String::new()));
        // Protocol files compare remotes, store them and send to them. They cannot order remotes, and a loop over
        // several does the same for each.
        if self.interchangeable.get() {
            build.interchangeable(remote_type, self.optional.take());
        }
        let built: Result<Model, Vec<ModelError>> = build.build();
        built.map_err(SystemError::Model)
    }
}
