//! Calls and aliases.
//!
//! A function is inlined at each call: parameters that are constant there are constants in its code. Only recursive
//! functions have separate code that is called. All cells outside the state are saved during such a call, and arguments
//! and results use separate cells.
//! A place in the state is visible to all code. A recursive call therefore passes its position, and each tuple of
//! passed state variables has its own code. Other places have no alias during the call; they are copied in and out.

use super::cost::stmt_cost;
use super::{Compiler, Conversion, Element, Label, Location, Value};
use crate::model::{
    Argument, Expr, Function, FunctionId, Model, Place, Role, Stmt, TypeId, VariableId, Violation,
    UNDEFINED,
};
use crate::program::{Cell, Comparison, Op};
use crate::visit::{self, Node};

/// Analysis of a function.
#[derive(Clone, Default)]
pub(super) struct FunctionAnalysis {
    /// True if the function may call itself.
    pub recursive: bool,
    /// True if it may remove elements from multisets, directly or by a call.
    may_remove: bool,
    /// First cell for the arguments of a recursive function, followed by its result.
    argument_area: Cell,
    /// Parameters that it may assign.
    assigned: Vec<VariableId>,
    /// Cost of its code in nodes, including calls; computed once all earlier functions are known.
    cost: usize,
}

/// Code of a recursive function, for one combination of passed places.
pub(super) struct RecursiveCode {
    /// Function whose code it is.
    function: FunctionId,
    /// Meaning of each parameter.
    passed: Vec<ParameterBinding>,
    /// Entry of the code, once emitted.
    entry: u32,
}

/// Meaning of a parameter of a recursive function.
#[derive(Clone, Copy, PartialEq)]
enum ParameterBinding {
    /// A copy in the parameter's own cells.
    Copied,
    /// The same place as the earlier parameter with this index.
    SameAs(usize),
    /// A place in this part of the state. If its position is computed, the call passes the offset.
    InState {
        base: Cell,
        len: u32,
        computed: bool,
    },
}

/// Target of a function's result, and the label after its code.
#[derive(Clone, Copy)]
pub(super) struct ReturnTarget {
    /// Cells that receive the result.
    to: Location,
    /// Type of the result; `None` for a procedure.
    ty: Option<TypeId>,
    /// Label after the code.
    end: Label,
}

impl FunctionAnalysis {
    /// Analyses all functions. Recursive ones get cells from `next` on.
    pub fn analyse_all(model: &Model, sizes: &[u32], next: &mut Cell) -> Vec<FunctionAnalysis> {
        let mut functions: Vec<FunctionAnalysis> = Vec::new();
        for (index, function) in model.functions.iter().enumerate() {
            let mut analysis = FunctionAnalysis {
                may_remove: may_remove_elements(model, &functions, &function.body),
                argument_area: *next,
                ..FunctionAnalysis::default()
            };
            visit::block(&function.body, &mut |node| match node {
                Node::Target(place) => analysis.assigned.push(place.variable),
                Node::Expr(Expr::Call(id, _)) | Node::Stmt(Stmt::Call(id, _)) => {
                    // Functions call only themselves and earlier ones.
                    analysis.recursive |= id.index() == index;
                }
                _ => {}
            });
            if analysis.recursive {
                let passed = function.parameters.iter().map(|&p| model.variable(p).ty);
                *next += passed
                    .chain(function.result)
                    .map(|ty| sizes[ty.index()])
                    .sum::<u32>();
            }
            functions.push(analysis);
        }
        functions
    }
}

/// An argument that has been evaluated.
enum EvaluatedArgument {
    /// A simple value in a cell.
    Value(Value),
    /// An array, record or multiset, in these cells.
    Aggregate(Location),
    /// A place, with the multiset elements that contain it.
    Place(Location, Vec<Element>),
}

impl Compiler<'_> {
    /// Emits code in which a name is an alias of a place. `may_remove` is true if the code may remove elements from
    /// multisets.
    pub(super) fn with_alias<R>(
        &mut self,
        id: VariableId,
        place: &Place,
        may_remove: bool,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let (location, _, mut elements) = self.locate_in_elements(place);
        if !may_remove {
            elements.clear();
        }
        let outer_alias = self.aliases[id.index()].replace(location);
        let elements_before = std::mem::replace(&mut self.alias_elements[id.index()], elements);
        let result = f(self);
        self.aliases[id.index()] = outer_alias;
        self.alias_elements[id.index()] = elements_before;
        result
    }

    /// True if statements may remove elements from multisets.
    pub(super) fn may_remove_elements(&self, block: &[Stmt]) -> bool {
        may_remove_elements(self.model, &self.functions, block)
    }

    /// Emits the evaluation of two expressions. The first value is saved if the evaluation of the second may change it.
    pub(super) fn emit_two_values(&mut self, a: &Expr, b: &Expr) -> (Value, Value) {
        let mut a = self.emit_value(a);
        if visit::contains_call(b) {
            let dst = self.code.new_temporary();
            self.code.emit_copy(dst, a.cell);
            a.cell = dst;
        }
        (a, self.emit_value(b))
    }

    /// Returns true if the type of an expression is an array, a record or a multiset.
    pub(super) fn is_aggregate(&self, e: &Expr) -> bool {
        let ty = self.model.type_of(e);
        ty.is_some_and(|ty| self.model.bounds(ty).is_none())
    }

    /// Jumps to `to` if the equality of two arrays or records has the value `when`.
    pub(super) fn jump_if_aggregates_equal(&mut self, a: &Expr, b: &Expr, when: bool, to: Label) {
        let Some(ty) = self.model.type_of(a) else {
            return;
        };
        let (a, b) = (self.locate_aggregate(a, ty), self.locate_aggregate(b, ty));
        let end = self.code.new_label();
        let different = if when { end } else { to };
        for cell in 0..self.sizes[ty.index()] {
            let mark = self.code.temporary;
            let (a, b) = (self.emit_load(a.skip(cell)), self.emit_load(b.skip(cell)));
            self.code.temporary = mark;
            self.code
                .emit_jump_if(Comparison::NotEqual, a, b, different);
        }
        if when {
            self.code.emit_jump(to);
        }
        self.code.bind_label(end);
    }

    /// Emits a call; returns the location of its result.
    pub(super) fn emit_call(&mut self, id: FunctionId, arguments: &[Argument]) -> Location {
        let model = self.model;
        let function = &model.functions[id.index()];
        let line = self.code.line;
        let mut passed = Vec::new();
        for (i, (&parameter, argument)) in function.parameters.iter().zip(arguments).enumerate() {
            let ty = model.variable(parameter).ty;
            passed.push(match argument {
                Argument::Place(place) => {
                    let (location, _, mut elements) = self.locate_in_elements(place);
                    if !self.functions[id.index()].may_remove {
                        elements.clear();
                    }
                    EvaluatedArgument::Place(location, elements)
                }
                Argument::Value(e) if model.bounds(ty).is_none() => {
                    EvaluatedArgument::Aggregate(self.locate_aggregate(e, ty))
                }
                Argument::Value(e) => {
                    let mut value = self.emit_value(e);
                    self.emit_check(value, ty, |m| m.variable(parameter).name.clone());
                    // A call in a later argument may overwrite the cell.
                    let has_later_call = arguments[i + 1..]
                        .iter()
                        .any(|a| matches!(a, Argument::Value(e) if visit::contains_call(e)));
                    if has_later_call {
                        let dst = self.code.new_temporary();
                        self.code.emit_copy(dst, value.cell);
                        value.cell = dst;
                    }
                    EvaluatedArgument::Value(value)
                }
            });
        }
        let result = function.result.map_or(0, |ty| self.sizes[ty.index()]);
        let result = self.code.allocate_temporaries(result);
        match self.functions[id.index()].recursive {
            true => self.emit_recursive_call(id, &passed, result),
            false => self.emit_inlined_call(id, passed, result),
        }
        self.code.line = line;
        result
    }

    /// Emits the code of a function in place of a call.
    fn emit_inlined_call(
        &mut self,
        id: FunctionId,
        passed: Vec<EvaluatedArgument>,
        result: Location,
    ) {
        let model = self.model;
        let function = &model.functions[id.index()];
        let mark = self.code.temporary;
        let (mut constant_parameters, mut places) = (Vec::new(), Vec::new());
        for (&parameter, passed) in function.parameters.iter().zip(passed) {
            let p = parameter.index();
            let parameter_location = Location {
                base: self.cells[p],
                offset: None,
                len: self.sizes[model.variable(parameter).ty.index()],
            };
            let assigned = self.functions[id.index()].assigned.contains(&parameter);
            match passed {
                EvaluatedArgument::Place(location, elements) => {
                    self.aliases[p] = Some(location);
                    self.alias_elements[p] = elements;
                    places.push(p);
                }
                EvaluatedArgument::Aggregate(location) => {
                    self.emit_copies(location, parameter_location, parameter_location.len)
                }
                EvaluatedArgument::Value(value) => {
                    if value.lo == value.hi && value.lo != UNDEFINED && !assigned {
                        constant_parameters.push((p, value.lo));
                    } else {
                        self.code.emit_copy(parameter_location.base, value.cell);
                    }
                }
            }
        }
        for &(p, value) in &constant_parameters {
            self.bound_values[p] = Some(value);
        }
        let end = self.code.new_label();
        let outer_exits = std::mem::take(&mut self.watched_exits);
        let outer_return_target = self.return_target.replace(ReturnTarget {
            to: result,
            ty: function.result,
            end,
        });
        self.emit_block(&function.body);
        self.emit_missing_return(function);
        self.code.bind_label(end);
        self.return_target = outer_return_target;
        self.watched_exits = outer_exits;
        for (p, _) in constant_parameters {
            self.bound_values[p] = None;
        }
        for p in places {
            self.aliases[p] = None;
            self.alias_elements[p].clear();
        }
        self.code.temporary = mark;
    }

    /// Emits a violation for a function with a result whose code can end without [`Stmt::Return`].
    fn emit_missing_return(&mut self, function: &Function) {
        if function.result.is_some() && !always_returns(&function.body) {
            let reason = format!("`{}` returns without a value", function.name);
            self.code.emit_violation(&Violation::ill_defined(reason));
        }
    }

    /// Emits a call of the separate code of a recursive function.
    fn emit_recursive_call(
        &mut self,
        id: FunctionId,
        passed: &[EvaluatedArgument],
        result: Location,
    ) {
        let function = &self.model.functions[id.index()];
        let binding: Vec<ParameterBinding> = (0..passed.len())
            .map(|i| self.parameter_binding(passed, i))
            .collect();
        let (argument_locations, returned) = self.argument_area(id);
        let in_element = |passed: &EvaluatedArgument| matches!(passed, EvaluatedArgument::Place(_, e) if !e.is_empty());
        if passed.iter().any(in_element) {
            self.code.emit_violation(&Violation::limit(format!(
                "`{}` calls itself, removes elements from multisets and is passed a part of an element, \
                 which is not supported; pass the value, or the index of the element",
                function.name
            )));
        }
        for ((passed, binding), &argument_location) in
            passed.iter().zip(&binding).zip(&argument_locations)
        {
            match (passed, binding) {
                (&EvaluatedArgument::Value(value), _) => {
                    self.code.emit_copy(argument_location.base, value.cell)
                }
                (&EvaluatedArgument::Aggregate(location), _)
                | (&EvaluatedArgument::Place(location, _), ParameterBinding::Copied) => {
                    self.emit_copies(location, argument_location, argument_location.len)
                }
                (&EvaluatedArgument::Place(location, _), _) => {
                    if let Some(a) = location.offset {
                        self.code.emit_copy(argument_location.base, a);
                    }
                }
            }
        }
        let code = self.recursive_code_index(id, &binding);
        let name = function.name.clone();
        self.code.emit_at(Op::Call { to: code }, name);
        for ((passed, binding), &argument_location) in
            passed.iter().zip(&binding).zip(&argument_locations)
        {
            if let (&EvaluatedArgument::Place(location, _), ParameterBinding::Copied) =
                (passed, binding)
            {
                self.emit_copies(argument_location, location, argument_location.len);
            }
        }
        self.emit_copies(returned, result, result.len);
    }

    /// Meaning of the parameter to which the given argument is passed.
    fn parameter_binding(
        &mut self,
        passed: &[EvaluatedArgument],
        argument: usize,
    ) -> ParameterBinding {
        let EvaluatedArgument::Place(location, _) = passed[argument] else {
            return ParameterBinding::Copied;
        };
        if (location.base as usize) < self.code.program.slots.len() {
            let (base, len) = (location.base, location.len);
            let computed = location.offset.is_some();
            return ParameterBinding::InState {
                base,
                len,
                computed,
            };
        }
        for (i, earlier) in passed[..argument].iter().enumerate() {
            let EvaluatedArgument::Place(earlier_location, _) = *earlier else {
                continue;
            };
            if (earlier_location.base, earlier_location.offset) == (location.base, location.offset)
                && location.offset.is_none()
            {
                return ParameterBinding::SameAs(i);
            }
            if earlier_location.base < location.base + location.len
                && location.base < earlier_location.base + earlier_location.len
            {
                let reason =
                    "two places of one local variable are passed to a function that calls itself";
                self.code
                    .emit_violation(&Violation::ill_defined(reason.to_string()));
            }
        }
        ParameterBinding::Copied
    }

    /// Index of a recursive function's code for these arguments; the code may be emitted later.
    fn recursive_code_index(&mut self, function: FunctionId, passed: &[ParameterBinding]) -> u32 {
        let mut codes = self.recursive_codes.iter();
        let existing = codes.position(|code| code.function == function && code.passed == passed);
        let number = existing.unwrap_or_else(|| {
            self.recursive_codes.push(RecursiveCode {
                function,
                passed: passed.to_vec(),
                entry: 0,
            });
            self.recursive_codes.len() - 1
        });
        number as u32
    }

    /// Locations of a recursive function's arguments, and of its result.
    fn argument_area(&self, id: FunctionId) -> (Vec<Location>, Location) {
        let function = &self.model.functions[id.index()];
        let mut base = self.functions[id.index()].argument_area;
        let mut location_of = |ty: TypeId| {
            let len = self.sizes[ty.index()];
            base += len;
            Location {
                base: base - len,
                offset: None,
                len,
            }
        };
        let arguments = function.parameters.iter();
        let arguments = arguments
            .map(|&p| location_of(self.model.variable(p).ty))
            .collect();
        let no_result = Location {
            base: self.functions[id.index()].argument_area,
            offset: None,
            len: 0,
        };
        (arguments, function.result.map_or(no_result, location_of))
    }

    /// Cost of a function's code in nodes, including calls; see [`FunctionAnalysis::cost`].
    pub(super) fn call_cost(&self, id: FunctionId) -> usize {
        self.functions[id.index()].cost
    }

    /// Computes the cost of each function.
    pub(super) fn compute_call_costs(&mut self) {
        for index in 0..self.functions.len() {
            let body = &self.model.functions[index].body;
            let cost = body.iter().map(|s| stmt_cost(self, s));
            self.functions[index].cost = cost.fold(1, usize::saturating_add);
        }
    }

    /// Emits the code of recursive functions, and resolves the calls to it.
    pub(super) fn emit_recursive_functions(&mut self) {
        // Emitting one may add others to the list.
        let mut next = 0;
        while next < self.recursive_codes.len() {
            self.without_assumption = false;
            self.recursive_codes[next].entry = self.emit_piece(|c| c.emit_recursive_function(next));
            next += 1;
        }
        for op in &mut self.code.program.code {
            if let Op::Call { to } = op {
                *to = self.recursive_codes[*to as usize].entry;
            }
        }
    }

    /// Emits the code of the recursive function with this index into [`Compiler::recursive_codes`].
    fn emit_recursive_function(&mut self, number: usize) {
        let model = self.model;
        let id = self.recursive_codes[number].function;
        let passed = self.recursive_codes[number].passed.clone();
        let function = &model.functions[id.index()];
        let location_of = |c: &Self, p: VariableId| Location {
            base: c.cells[p.index()],
            offset: None,
            len: c.sizes[model.variable(p).ty.index()],
        };
        let (argument_locations, to) = self.argument_area(id);
        for ((&parameter, &binding), &argument_location) in function
            .parameters
            .iter()
            .zip(&passed)
            .zip(&argument_locations)
        {
            let cells = location_of(self, parameter);
            self.aliases[parameter.index()] = match binding {
                ParameterBinding::Copied => {
                    self.emit_copies(argument_location, cells, argument_location.len);
                    None
                }
                ParameterBinding::SameAs(earlier) => {
                    Some(location_of(self, function.parameters[earlier]))
                }
                ParameterBinding::InState {
                    base,
                    len,
                    computed,
                } => {
                    if computed {
                        self.emit_copies(argument_location, cells, 1);
                    }
                    let offset = computed.then_some(cells.base);
                    Some(Location { base, offset, len })
                }
            };
        }
        let end = self.code.new_label();
        let ty = function.result;
        self.return_target = Some(ReturnTarget { to, ty, end });
        self.emit_block(&function.body);
        self.emit_missing_return(function);
        self.code.bind_label(end);
        self.return_target = None;
        for ((&parameter, &binding), &argument_location) in function
            .parameters
            .iter()
            .zip(&passed)
            .zip(&argument_locations)
        {
            self.aliases[parameter.index()] = None;
            if binding == ParameterBinding::Copied && model.variable(parameter).role == Role::Alias
            {
                self.emit_copies(
                    location_of(self, parameter),
                    argument_location,
                    argument_location.len,
                );
            }
        }
        self.code.emit(Op::EndCall);
    }

    /// Emits a return with a value from a function, or the end of the piece.
    pub(super) fn emit_return(&mut self, value: Option<&Expr>) {
        if let (Some(e), Some(ReturnTarget { to, ty, .. })) = (value, self.return_target) {
            match ty {
                Some(ty) if self.model.bounds(ty).is_none() => {
                    let from = self.locate_aggregate(e, ty);
                    self.emit_copies(from, to, to.len);
                }
                Some(ty) => {
                    let value = self.emit_value(e);
                    self.emit_check(value, ty, |_| "the returned value".into());
                    self.emit_store(to, value.cell);
                }
                None => {}
            }
        }
        self.emit_watched_exits();
        self.emit_jump_to_end();
    }

    /// Emits a jump to the end of the current function, or the end of the piece.
    pub(super) fn emit_jump_to_end(&mut self) {
        match self.return_target {
            Some(ReturnTarget { end, .. }) => self.code.emit_jump(end),
            None => self.code.emit(Op::Return { verdict: true }),
        }
    }

    /// Conversion of an expression's value to a type; `None` if neither type is a member of the other.
    pub(super) fn conversion(&self, to: TypeId, e: &Expr) -> Option<Conversion> {
        let from = self.model.type_of(e)?;
        if from == to {
            let (lo, hi) = self.model.bounds(to)?;
            return Some(Conversion { shift: 0, lo, hi });
        }
        if let Some(shift) = self.model.offset_in_union(to, from) {
            let (lo, hi) = self.model.bounds(from)?;
            return Some(Conversion { shift, lo, hi });
        }
        let offset = self.model.offset_in_union(from, to)?;
        let (_, hi) = self.model.bounds(to)?;
        Some(Conversion {
            shift: -offset,
            lo: offset,
            hi: offset + hi,
        })
    }

    /// Emits the conversion of a union's value to a member, or the reverse.
    pub(super) fn emit_conversion(&mut self, to: TypeId, e: &Expr) -> Value {
        let conversion = self.conversion(to, e);
        let from = self.model.type_of(e);
        let value = self.emit_value(e);
        let (min_number, max_number) = self.model.numbers;
        let Conversion { shift, lo, hi } = conversion.unwrap_or(Conversion {
            shift: 0,
            lo: min_number,
            hi: max_number,
        });
        let dst = self.code.new_temporary();
        self.code.emit_copy(dst, value.cell);
        let end = self.code.new_label();
        if value.lo == UNDEFINED {
            let b = self.code.constant(UNDEFINED).cell;
            self.code.emit_jump_if(Comparison::Equal, dst, b, end);
        }
        let is_in_range = value.lo.max(UNDEFINED + 1) >= lo && value.hi <= hi;
        if !is_in_range || value.lo == UNDEFINED && lo > 0 {
            let name = self.model.types[to.index()].name.clone();
            let bounds = self.code.bounds_index(lo, hi);
            self.code
                .emit_at_with_type(Op::Check { a: dst, bounds }, from, name);
        }
        if shift != 0 {
            let b = self.code.constant(shift).cell;
            self.code.emit_add(dst, dst, b);
        }
        self.code.bind_label(end);
        let may_be_undefined = value.lo == UNDEFINED;
        Value {
            cell: dst,
            lo: if may_be_undefined {
                value.lo
            } else {
                lo + shift
            },
            hi: hi + shift,
        }
    }
}

/// True if statements may remove elements from multisets. `functions` are the analysed functions before the one that
/// contains the statements.
fn may_remove_elements(model: &Model, functions: &[FunctionAnalysis], block: &[Stmt]) -> bool {
    let mut may_remove = false;
    visit::block(block, &mut |node| match node {
        Node::Stmt(Stmt::Remove(..) | Stmt::RemoveWhere(..)) => may_remove = true,
        Node::Stmt(Stmt::Assign(to, _) | Stmt::Clear(to) | Stmt::Undefine(to)) => {
            may_remove |= model.holds_multiset(model.type_of_place(to));
        }
        Node::Expr(Expr::Call(id, _)) | Node::Stmt(Stmt::Call(id, _)) => {
            may_remove |= functions.get(id.index()).is_some_and(|f| f.may_remove);
        }
        _ => {}
    });
    may_remove
}

/// True if statements never run to their end.
fn always_returns(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Return(_) | Stmt::Error(_) => true,
        Stmt::If(_, a, b) => always_returns(a) && always_returns(b),
        Stmt::Alias(_, _, body) => always_returns(body),
        Stmt::Switch(_, cases, otherwise) => {
            cases.iter().all(|c| always_returns(&c.1)) && always_returns(otherwise)
        }
        _ => false,
    })
}
