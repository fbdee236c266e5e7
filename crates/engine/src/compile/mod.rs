//! Lowering of a [`Model`] to a [`Program`]: parameters become constants, short loops are unrolled, places become
//! cells.

mod assembler;
mod calls;
mod conditions;
mod cost;
mod definedness;
mod instances;
mod loops;
mod multisets;
mod places;
mod statements;
mod values;

use crate::model::{
    Expr, Invariant, Model, Number, Operator, Place, Role, Stmt, Type, TypeId, VariableId,
    UNDEFINED,
};
use crate::program::{
    Cell, Claim, Lookup, LoopOrder, LoopOrders, MultisetLayout, Op, Orbits, Packing, Program, Slot,
};
use crate::symmetry::{Scratch, Symmetry};
use crate::symmetry_check::LoopChecks;
use std::sync::Arc;

use assembler::{Assembler, Label};
use cost::cost;
use places::append_leaves;

/// Maximum number of instructions. Code beyond it is discarded, and the program must not run.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 24;

/// Default of [`crate::Options::max_nodes`]: larger rules have one piece of code for all combinations of parameter
/// values. Separate code runs faster, but takes time to compile.
pub(crate) const MAX_NODES: usize = 1 << 19;

/// Minimum number of nodes counted per combination, since machine code of two functions has a fixed cost.
const MIN_NODES: usize = 1 << 7;

/// Maximum number of combinations with separate code.
const MAX_SEPARATE_COMBINATIONS: usize = 1 << 16;

/// Treatment of [`Stmt::Note`]s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notes {
    /// Notes are compiled, for traces and coverage.
    Compiled,
    /// Notes are left out, for searches.
    Omitted,
}

/// Compiles a valid model.
pub(crate) fn compile(model: &Model, notes: Notes) -> Program {
    compile_with_loop_checks(model, notes, LoopChecks::new())
}

/// As [`compile`], with checks of loops. If iterations of a loop store different values in a place of `loop_checks`,
/// the program compares all orders of the loop. If their results differ, it reports an exceeded limit.
pub(crate) fn compile_with_loop_checks(
    model: &Model,
    notes: Notes,
    loop_checks: LoopChecks,
) -> Program {
    compile_with_node_limit(model, notes, loop_checks, MAX_NODES)
}

/// As [`compile_with_loop_checks`], with a size limit in nodes for rules with separate code for each combination of
/// parameter values.
pub(crate) fn compile_with_node_limit(
    model: &Model,
    notes: Notes,
    loop_checks: LoopChecks,
    max_nodes: usize,
) -> Program {
    model.with_enough_stack(|| compile_recursively(model, notes, loop_checks, max_nodes))
}

/// Scalarsets with several values among the values of a variable: its type, or members of its union.
fn scalarsets_of(model: &Model, variable: VariableId) -> Vec<TypeId> {
    let ty = model.variable(variable).ty;
    let parts = match model.ty(ty) {
        Type::Union(members) => members.clone(),
        _ => vec![ty],
    };
    let is_permuted = |part: &TypeId| matches!(model.ty(*part), Type::Scalarset(2..));
    parts.into_iter().filter(is_permuted).collect()
}

/// Compiles a model on a stack that is large enough for its nesting. A model whose quantifiers over scalarsets may
/// fault is compiled twice; the second time these quantifiers evaluate all values.
fn compile_recursively(
    model: &Model,
    notes: Notes,
    loop_checks: LoopChecks,
    max_nodes: usize,
) -> Program {
    let mut program =
        compile_without_short_circuit(model, notes, loop_checks.clone(), Vec::new(), max_nodes);
    // Values of a scalarset have no order. An error for one value must therefore not depend on whether another value
    // decides a quantifier first. If errors are possible, quantifiers evaluate all values.
    let sites = program.sites.values();
    let mut exhaustive_quantifiers: Vec<VariableId> = sites
        .flat_map(|site| &site.enclosing_quantifiers)
        .copied()
        .collect();
    exhaustive_quantifiers.sort_unstable();
    exhaustive_quantifiers.dedup();
    if !exhaustive_quantifiers.is_empty() {
        let asymmetric_sets = crate::symmetry_check::asymmetric_sets(model);
        let has_symmetry = |id: &VariableId| {
            let mut sets = scalarsets_of(model, *id).into_iter();
            sets.any(|set| !asymmetric_sets.contains(&set))
        };
        exhaustive_quantifiers.retain(has_symmetry);
    }
    if !exhaustive_quantifiers.is_empty() {
        program = compile_without_short_circuit(
            model,
            notes,
            loop_checks,
            exhaustive_quantifiers,
            max_nodes,
        );
    }
    if !program.loop_orders.orders.is_empty() {
        let packing = Packing::new(&program, 0..program.slots.len() as Cell);
        let symmetry = Symmetry::of(model, &program, &packing);
        program.loop_orders.orbits = Some(Arc::new(OrbitsOfModel { packing, symmetry }));
        program.frame[program.loop_orders.postpones_returns as usize] = 1;
    }
    program
}

/// Orbits of a model's whole state.
struct OrbitsOfModel {
    /// Layout of all slots.
    packing: Packing,
    /// Permutations of scalarset values; `None` if the model has no symmetry.
    symmetry: Option<Symmetry>,
}

impl Orbits for OrbitsOfModel {
    fn representative(&self, frame: &[Number]) -> Vec<u64> {
        let mut state = vec![0; self.packing.words];
        self.packing.pack(frame, &mut state);
        if let Some(symmetry) = &self.symmetry {
            symmetry.canonicalise(&mut state, &mut Scratch::default());
        }
        state
    }
}

/// Orders of loops over scalarsets whose iterations may store different values. Their cells begin at `next`.
fn loop_orders(model: &Model, loop_checks: &LoopChecks, next: &mut Cell) -> Vec<LoopOrder> {
    let mut orders: Vec<LoopOrder> = Vec::new();
    let asymmetric_sets = match loop_checks.is_empty() {
        true => return orders,
        false => crate::symmetry_check::asymmetric_sets(model),
    };
    for id in loop_checks.keys() {
        let ty = model.variable(*id).ty;
        let mut members = Vec::new();
        let mut first = 0;
        let parts = match model.ty(ty) {
            Type::Union(parts) => parts.clone(),
            _ => vec![ty],
        };
        for part in parts {
            let count = model.count(part) as u32;
            if matches!(model.ty(part), Type::Scalarset(2..)) && !asymmetric_sets.contains(&part) {
                members.push((first, part, count));
            }
            first += Number::from(count);
        }
        if !members.is_empty() && orders.iter().all(|order| order.ty != ty) {
            orders.push(LoopOrder {
                ty,
                first: *next,
                count: first as u32,
                members,
            });
            *next += first as Cell;
        }
    }
    orders
}

/// As [`compile_with_node_limit`]. Quantifiers that bind variables of `exhaustive_quantifiers` evaluate all values,
/// even once they are decided.
fn compile_without_short_circuit(
    model: &Model,
    notes: Notes,
    loop_checks: LoopChecks,
    exhaustive_quantifiers: Vec<VariableId>,
    max_nodes: usize,
) -> Program {
    let mut compiler = Compiler::new(model, notes, &loop_checks);
    compiler.max_nodes = max_nodes;
    compiler.exhaustive_quantifiers = exhaustive_quantifiers;
    compiler.compute_call_costs();
    // Start states need no checks of loop orders: each is a state like any other.
    compiler.compile_starts();
    compiler.loop_checks = loop_checks;
    compiler.compile_rules();
    for (i, invariant) in model.invariants.iter().enumerate() {
        compiler.for_each_invariant(invariant, |compiler, entries| {
            compiler
                .code
                .program
                .properties
                .invariants
                .extend(entries.iter().map(|&entry| Claim {
                    invariant: i as u32,
                    entry,
                }));
        });
    }
    if let Some(quiescent) = &model.quiescent {
        let mut entries = Vec::new();
        compiler.for_each_conjunct(quiescent, &mut |compiler, e| {
            entries.push(compiler.emit_claim(e, true))
        });
        compiler.code.program.properties.quiescent = Some(entries);
    }
    for cover in &model.covers {
        let entry = cover.holds.as_ref().map(|e| compiler.emit_claim(e, false));
        compiler.code.program.properties.covers.push(entry);
    }
    for (i, property) in model.liveness.iter().enumerate() {
        compiler.for_each_instance(&property.parameters, |compiler, _| {
            let entry = compiler.emit_claim(&property.holds, true);
            compiler
                .code
                .program
                .properties
                .liveness
                .push((i as u32, vec![entry]));
        });
    }
    for assumption in &model.assumptions {
        compiler.for_each_instance(&assumption.parameters, |compiler, _| {
            let entry = compiler.emit_claim(&assumption.holds, true);
            compiler.code.program.properties.assumptions.push(entry);
        });
    }
    compiler.emit_recursive_functions();
    compiler.finish()
}

/// Compiler of one model.
struct Compiler<'a> {
    /// Valid model.
    model: &'a Model,
    /// Program built so far, and the means to add to it.
    code: Assembler,
    /// Treatment of notes.
    notes: Notes,
    /// Size limit of rules with separate code; see [`instances`].
    max_nodes: usize,
    /// Number of cells of each type.
    sizes: Vec<u32>,
    /// First cell of each variable.
    cells: Vec<Cell>,
    /// Values of the bound variables that are constants at this point.
    bound_values: Vec<Option<Number>>,
    /// Locations of the aliases in scope.
    aliases: Vec<Option<Location>>,
    /// The multiset elements that contain each alias, where they may be removed while the alias is bound.
    alias_elements: Vec<Vec<Element>>,
    /// Analysis of each function.
    functions: Vec<calls::FunctionAnalysis>,
    /// Code of recursive functions, one entry per function and combination of passed places. Until the end, calls refer
    /// to these by index.
    recursive_codes: Vec<calls::RecursiveCode>,
    /// Target of [`Stmt::Return`].
    return_target: Option<calls::ReturnTarget>,
    /// Verdict of code whose assumption does not hold.
    without_assumption: bool,
    /// Loops whose order may matter.
    loop_checks: LoopChecks,
    /// Places that must receive equal values in all iterations of the enclosing loops.
    watched_places: Vec<LoopPlaces>,
    /// Watched loops of the current function that a return leaves, outermost first.
    watched_exits: Vec<WatchedExit>,
    /// Within such a loop: true if the code takes the values in the order of [`LoopOrders::orders`].
    uses_loop_order: Option<bool>,
    /// Variables of quantifiers that evaluate all values.
    exhaustive_quantifiers: Vec<VariableId>,
}

/// A cell that holds a simple value, with bounds of the value.
#[derive(Clone, Copy)]
struct Value {
    /// Cell that holds the value.
    cell: Cell,
    /// Least value, or [`UNDEFINED`] if the value may be undefined.
    lo: Number,
    /// Greatest value.
    hi: Number,
}

/// Conversion of a union's value to a member, or the reverse.
struct Conversion {
    /// Number added to the value.
    shift: Number,
    /// Least value that can be converted.
    lo: Number,
    /// Greatest value that can be converted.
    hi: Number,
}

/// Values that replace those of a whole place.
#[derive(Clone, Copy, PartialEq)]
enum FillValue {
    /// The first value of each type.
    First,
    /// The undefined value. Parts of multiset slots get their first values, since they are never undefined.
    Undefined,
}

/// Location of a place in the frame.
#[derive(Clone, Copy)]
struct Location {
    /// First cell of the place, if `offset` is 0 or absent.
    base: Cell,
    /// Computed part of the address, relative to `base`.
    offset: Option<Cell>,
    /// Number of cells from `base` on that the address can reach.
    len: u32,
}

/// Places in which the iterations of a loop may store different values.
struct LoopPlaces {
    /// Spellings of the place in the loop.
    places: Vec<Place>,
    /// Cell that is 1 once an iteration has stored a value there.
    stored_flag: Cell,
    /// Index into [`LoopOrders::orders`].
    order: u32,
}

/// A loop whose order may matter if it is left early.
#[derive(Clone)]
struct WatchedExit {
    /// Instruction that asks for a comparison of all orders.
    disagreement: Op,
    /// Cell that is 1 once an iteration has returned, if the return may be postponed to the end of the loop.
    returned: Option<Cell>,
    /// End of the current iteration.
    next_iteration: Option<Label>,
}

/// An element of a multiset.
#[derive(Clone)]
struct Element {
    /// Cell that is 1 while the element is in its slot.
    present: Location,
    /// The multiset, for messages.
    multiset: String,
}

/// Layout of the frame: slots of the state, argument areas of recursive functions, the reorder flag, loop orders, and
/// local and bound variables. Temporaries and constants follow once their number is known.
struct FrameLayout {
    /// Number of cells of each type.
    sizes: Vec<u32>,
    /// First cell of each variable; 0 for an alias that needs none.
    cells: Vec<Cell>,
    /// Scalars of the state, from cell 0 on.
    slots: Vec<Slot>,
    /// Multisets of the state, inner ones first.
    multisets: Vec<MultisetLayout>,
    /// Analysis of each function, with the cells for its arguments.
    functions: Vec<calls::FunctionAnalysis>,
    /// See [`LoopOrders::reorder_flag`].
    reorder_flag: Cell,
    /// See [`LoopOrders::postpones_returns`].
    postpones_returns: Cell,
    /// See [`LoopOrders::orders`].
    orders: Vec<LoopOrder>,
    /// First of the cells that a recursive call saves.
    first_saved: Cell,
    /// Initial values of all cells so far.
    frame: Vec<Number>,
}

impl FrameLayout {
    /// Assigns cells to the variables of a model.
    fn new(model: &Model, loop_checks: &LoopChecks) -> FrameLayout {
        let sizes = model.sizes();
        let mut leaves = Vec::new();
        let mut multisets = Vec::new();
        let mut cells = vec![0; model.variables.len()];
        for (variable, cell) in model.variables.iter().zip(&mut cells) {
            if variable.role == Role::State {
                *cell = leaves.len() as Cell;
                multisets::append_multisets(model, &sizes, variable.ty, *cell, &mut multisets);
                append_leaves(
                    model,
                    variable.ty,
                    variable.name.clone(),
                    false,
                    &mut leaves,
                );
            }
        }
        let mut next = leaves.len() as Cell;
        let mut frame: Vec<Number> = leaves
            .iter()
            .map(|leaf| leaf.initial_value(model))
            .collect();
        let slots = leaves.into_iter().map(|leaf| Slot {
            undefined: leaf.initial_value(model) == UNDEFINED,
            name: leaf.name,
            ty: leaf.ty,
            lo: leaf.lo,
            hi: leaf.hi,
        });
        let slots = slots.collect();
        let functions = calls::FunctionAnalysis::analyse_all(model, &sizes, &mut next);
        let reorder_flag = next;
        next += 1;
        let postpones_returns = next;
        next += 1;
        let orders = loop_orders(model, loop_checks, &mut next);
        let first_saved = next;
        // In a recursive function, the cell of an alias holds the computed offset of its place.
        let aliases_need_cells = functions.iter().any(|function| function.recursive);
        for (variable, cell) in model.variables.iter().zip(&mut cells) {
            if matches!(variable.role, Role::Local | Role::Bound)
                || (variable.role == Role::Alias && aliases_need_cells)
            {
                *cell = next;
                next += sizes[variable.ty.index()];
            }
        }
        frame.resize(next as usize, 0);
        // Loops first take their values in the order of the model.
        for order in &orders {
            let values = order.first as usize..(order.first + order.count) as usize;
            for (cell, value) in frame[values].iter_mut().zip(0..) {
                *cell = value;
            }
        }
        FrameLayout {
            sizes,
            cells,
            slots,
            multisets,
            functions,
            reorder_flag,
            postpones_returns,
            orders,
            first_saved,
            frame,
        }
    }
}

impl<'a> Compiler<'a> {
    /// Prepares the compilation of a model.
    fn new(model: &'a Model, notes: Notes, loop_checks: &LoopChecks) -> Self {
        let layout = FrameLayout::new(model, loop_checks);
        let tables = model.tables.iter().map(|table| Lookup {
            lo: model.bounds(table.index).map_or(0, |bounds| bounds.0),
            values: table.values.clone(),
        });
        let program = Program {
            slots: layout.slots,
            frame: layout.frame,
            tables: tables.collect(),
            multisets: layout.multisets,
            saved_cells: layout.first_saved..layout.first_saved,
            loop_orders: LoopOrders {
                orders: layout.orders,
                reorder_flag: layout.reorder_flag,
                postpones_returns: layout.postpones_returns,
                orbits: None,
                provisional: Vec::new(),
            },
            number_bits: model.number_bits(),
            ..Program::default()
        };
        Compiler {
            model,
            code: Assembler::new(program),
            notes,
            max_nodes: MAX_NODES,
            sizes: layout.sizes,
            cells: layout.cells,
            bound_values: vec![None; model.variables.len()],
            aliases: vec![None; model.variables.len()],
            alias_elements: vec![Vec::new(); model.variables.len()],
            functions: layout.functions,
            recursive_codes: Vec::new(),
            return_target: None,
            without_assumption: false,
            loop_checks: LoopChecks::new(),
            watched_places: Vec::new(),
            watched_exits: Vec::new(),
            uses_loop_order: None,
            exhaustive_quantifiers: Vec::new(),
        }
    }

    /// Returns the program.
    fn finish(self) -> Program {
        let has_calls = self.functions.iter().any(|f| f.recursive);
        self.code.finish(has_calls)
    }

    /// Calls `f` with the entries of the conjuncts of each instance of an invariant.
    fn for_each_invariant(
        &mut self,
        invariant: &Invariant,
        mut f: impl FnMut(&mut Self, Vec<u32>),
    ) {
        self.for_each_instance(&invariant.parameters, |c, _| {
            let mut entries = Vec::new();
            c.for_each_conjunct(&invariant.holds, &mut |c, e| {
                entries.push(c.emit_claim(e, true))
            });
            f(c, entries);
        });
    }

    /// Values of a bound variable; empty if its type is not simple.
    fn domain(&self, bound: VariableId) -> std::ops::RangeInclusive<Number> {
        let (lo, hi) = self
            .model
            .bounds(self.model.variable(bound).ty)
            .unwrap_or((0, -1));
        lo..=hi
    }

    /// Calls `f` for each conjunct of a claim; short quantifiers are unrolled.
    fn for_each_conjunct(&mut self, e: &Expr, f: &mut dyn FnMut(&mut Self, &Expr)) {
        match e {
            Expr::Bool(true) => {}
            Expr::Line(line, inner) => {
                self.code.first_line = *line;
                self.for_each_conjunct(inner, f);
                self.code.first_line = 0;
            }
            Expr::Binary(Operator::And, a, b) => {
                self.for_each_conjunct(a, f);
                self.for_each_conjunct(b, f);
            }
            Expr::Forall(id, body) if self.is_unrolled(*id, cost(self, body)) => {
                for value in self.domain(*id) {
                    self.bound_values[id.index()] = Some(value);
                    self.for_each_conjunct(body, f);
                }
                self.bound_values[id.index()] = None;
            }
            _ => f(self, e),
        }
    }

    /// Emits code that returns true if a claim holds, and `without_assumption` if an assumption fails. Returns its
    /// entry.
    fn emit_claim(&mut self, e: &Expr, without_assumption: bool) -> u32 {
        self.without_assumption = without_assumption;
        self.emit_piece(|c| {
            let false_label = c.code.new_label();
            c.jump_if(e, false, false_label);
            c.code.emit(Op::Return { verdict: true });
            c.code.bind_label(false_label);
            c.code.emit(Op::Return { verdict: false });
        })
    }

    /// Emits code that runs statements. Returns its entry.
    fn emit_body(&mut self, body: &[Stmt]) -> u32 {
        self.without_assumption = false;
        self.emit_piece(|c| {
            c.emit_block(body);
            c.code.emit(Op::Return { verdict: true });
        })
    }

    /// Emits a piece of code with labels of its own. Returns its entry.
    fn emit_piece(&mut self, f: impl FnOnce(&mut Self)) -> u32 {
        let entry = self.code.begin_piece();
        f(self);
        self.code.end_piece(entry);
        entry
    }
}
