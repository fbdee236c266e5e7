//! Native expansion: a view of a program as machine code, compiled in process.
//!
//! The rules' bodies, the parts of guards that tables cannot decide, and the invariants become machine code that works
//! on packed states; [`guards`] decides the rest of the guards by table.
//! Machine code reports nothing. If a state has a fault or violates an invariant, the interpreter repeats it. Both
//! engines therefore give the same reports, and the interpreter remains the oracle.

mod code;
mod context;
mod guards;
mod multisets;
mod parameterized;
mod range;
mod ranges;

use crate::model::Number;
use crate::program::{Instance, Parameter, ParameterLoop, Program, RuleSelection};
use crate::threads::run_in_parallel;
use crate::view::View;
use code::{Continuations, ParameterValue, Translation};
use context::{Data, TranslationContext};
use cranelift_codegen::ir::{types, AbiParam, InstBuilder, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{default_libcall_names, FuncId, Module};
pub(crate) use guards::Guards;
use multisets::Multisets;
use parameterized::{ParameterizedRule, MAX_PARAMETERS};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

/// A function of a packed state. Returns [`TRUE`], [`FALSE`] or [`FAULT`].
/// Bodies change the state and return [`TRUE`], or [`FALSE`] if an assumption fails.
type Function = unsafe extern "C" fn(*mut u64) -> u32;

/// Result of a compiled function: the condition does not hold.
const FALSE: u32 = 0;
/// Result of a compiled function: the condition holds, or the body has run.
const TRUE: u32 = 1;
/// Result of a compiled function: the interpreter must repeat the step.
const FAULT: u32 = 2;

/// Maximum number of instructions of the claims that share a function.
const MAX_SHARED_INSTRUCTIONS: usize = 400;

/// Minimum number of functions per compiler thread for which another thread pays off.
const MIN_FUNCTIONS_PER_THREAD: usize = if cfg!(debug_assertions) { 1 } else { 8 };

/// Machine code cannot decide a state; the interpreter has to expand it.
pub(crate) struct NeedsInterpreter;

/// Runs code with a constant number of words: the smallest prepared number that holds a state. Copies and comparisons
/// then need no loops. Returns `None` for states larger than 256 words.
macro_rules! with_words {
    ($words:expr, $name:ident, $done:expr) => {
        with_words!($words, $name, $done, 1 2 3 4 5 6 7 8 12 16 24 32 64 128 256)
    };
    ($words:expr, $name:ident, $done:expr, $($count:literal)*) => {
        match $words {
            $(..=$count => { const $name: usize = $count; Some($done) })*
            _ => None,
        }
    };
}
pub(crate) use with_words;

/// Number of words of a state in code prepared for `W` words. A constant if `W` is small, since each number up to 8 is
/// prepared.
#[inline(always)]
pub(crate) fn word_count<const W: usize>(words: usize) -> usize {
    match W <= 8 {
        true => W,
        false => words.min(W),
    }
}

/// Optimisation level of machine code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum OptimisationLevel {
    /// Fast compilation.
    Quick,
    /// Fast code.
    Thorough,
}

/// Statistics of the expansion of a state.
#[derive(Default)]
pub(crate) struct Expansion {
    /// Rules that fired.
    pub transitions: u64,
    /// True if one of them leads to a different state.
    pub moves: bool,
}

/// A rule that fired.
#[derive(Clone, Copy)]
pub(crate) struct FiredRule {
    /// Index of its instance in the view.
    pub instance: usize,
    /// Position of its parameter values among those of the instance; 0 if the instance has separate code.
    pub offset: u32,
}

/// Machine code of a view.
pub(crate) struct Kernel {
    /// Length of a packed state in words.
    words: usize,
    /// Tables that decide guards or parts of them.
    guards: Guards,
    /// Per rule: function for the part of its guard that the tables do not decide.
    remaining_guards: Vec<Option<Function>>,
    /// Per rule: function of its body; `None` if a parameterised function fires it.
    bodies: Vec<Option<Function>>,
    /// Per rule: functions that fire it for many values of its parameters, in place of a body; empty if no rule needs
    /// them.
    parameterized_rules: Vec<Option<ParameterizedRule>>,
    /// Per rule: index of the first rule with a larger priority value; empty if all priorities are equal.
    priority_ends: Vec<u32>,
    /// Bit mask of the spontaneous rules, in groups of 64 like those of the guards.
    spontaneous: Vec<u64>,
    /// Functions that judge whether a state is quiescent.
    quiescent: Vec<Function>,
    /// Functions that judge the assumptions. A state that violates one is not stored.
    assumptions: Vec<Function>,
    /// Functions that judge the invariants, several conjuncts each.
    claims: Vec<Function>,
    /// Multisets, which are sorted after the body of a rule.
    multisets: Multisets,
}

/// A kernel, with the memory of its functions and of the data they read.
pub(crate) struct Native {
    /// Functions, valid while this value lives.
    pub kernel: Kernel,
    /// Memory of the functions. The lock is never contended: threads that share a kernel do not access it.
    modules: Mutex<Vec<JITModule>>,
    /// Data that the functions read by address.
    _data: Data,
}

impl Drop for Native {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        self.kernel.bodies.clear();
        self.kernel.parameterized_rules.clear();
        self.kernel.claims.clear();
        self.kernel.quiescent.clear();
        self.kernel.assumptions.clear();
        self.kernel.remaining_guards.clear();
        for module in self.modules.get_mut().into_iter().flat_map(std::mem::take) {
            // SAFETY: only the kernel refers to functions of this module. It lives as long as this value, and hands no
            // function out.
            unsafe { module.free_memory() }
        }
    }
}

impl Native {
    /// Compiles a view. Returns `None` if an instruction has no machine code, or if Cranelift does not support the
    /// machine. `frame` holds the values of slots that are not packed. Up to `threads` threads share the compilation,
    /// which ends early, without a result, once `cancelled` is true.
    pub fn new(
        program: &Program,
        view: &View,
        frame: &[Number],
        level: OptimisationLevel,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Option<Native> {
        let packing = &view.packing;
        let has_word_count = with_words!(packing.words, _W, ()).is_some();
        if !has_word_count || packing.words == 0 {
            return None;
        }
        let data = Data::new(program, packing, frame);
        let context =
            TranslationContext::new(program, packing, &frame[..program.slots.len()], &data);
        let rules: Vec<&Instance> = (view.rules.iter())
            .map(|&rule| &program.rules[rule as usize])
            .collect();
        let entries = guards::guard_entries(program, view)?;
        let (guards, needs_code) = Guards::with_context(&context, &entries);

        let mut requests = FunctionRequests::default();
        let remaining_guards: Vec<Option<usize>> = (entries.iter().zip(needs_code))
            .map(|(&entry, needs_code)| Some(requests.add(vec![entry.filter(|_| needs_code)?])))
            .collect();
        let rule_requests = requests.add_rules(&rules)?;
        let claims: Vec<u32> = view.invariants.iter().map(|claim| claim.entry).collect();
        let claims = requests.add_groups(program, &claims);
        let quiescent = requests.add_groups(program, view.quiescent.as_deref().unwrap_or_default());
        let assumptions = requests.add_groups(program, &program.properties.assumptions);

        let (modules, compiled) = compile(&context, &requests.0, level, threads, cancelled)?;
        let kernel = Kernel {
            words: packing.words,
            guards,
            remaining_guards: (remaining_guards.into_iter())
                .map(|id| compiled.plain(id?))
                .collect(),
            bodies: (rule_requests.iter())
                .map(|request| compiled.body(request))
                .collect(),
            parameterized_rules: compiled.parameterized_rules(&rule_requests),
            priority_ends: priority_ends(
                &rules.iter().map(|rule| rule.priority).collect::<Vec<_>>(),
            ),
            spontaneous: (rules.chunks(64))
                .map(|group| {
                    let bit = |(i, rule): (usize, &&Instance)| (rule.spontaneous as u64) << i;
                    group.iter().enumerate().map(bit).sum()
                })
                .collect(),
            quiescent: compiled.all_plain(quiescent)?,
            assumptions: compiled.all_plain(assumptions)?,
            claims: compiled.all_plain(claims)?,
            multisets: Multisets::new(program, packing),
        };
        Some(Native {
            kernel,
            modules: Mutex::new(modules),
            _data: data,
        })
    }
}

/// Number of instructions that the machine code of a view is compiled from.
pub(crate) fn instruction_count(program: &Program, view: &View) -> u64 {
    let rules = view.rules.iter().map(|&rule| &program.rules[rule as usize]);
    let rule_entries = rules.flat_map(|rule| {
        let next = rule.parameter_loop.as_ref().map(|values| values.next);
        [Some(rule.body), rule.guard.filter(|_| next.is_none()), next]
    });
    let claims = view.invariants.iter().map(|claim| Some(claim.entry));
    let entries = rule_entries.chain(claims).flatten();
    entries.map(|entry| program.piece(entry).len() as u64).sum()
}

/// A function to be compiled.
struct FunctionRequest<'a> {
    /// Entries of the pieces of code that the function runs, in order.
    entries: Vec<u32>,
    /// Parameters whose values the function reads from memory and leaves there.
    parameters: &'a [Parameter],
}

/// All functions to be compiled for a view. A function is identified by its index in this list.
#[derive(Default)]
struct FunctionRequests<'a>(Vec<FunctionRequest<'a>>);

/// Functions requested for a rule.
enum RuleRequest<'a> {
    /// A rule with separate code for each combination of its parameters' values.
    Plain {
        /// Index of the function of its body.
        body: usize,
    },
    /// A rule with one piece of code for all values of its parameters.
    Parameterized {
        /// Parameters with their ranges.
        parameter_loop: &'a ParameterLoop,
        /// Index of the function that advances to the next values for which the guard holds.
        next: usize,
        /// Index of the function of its body.
        body: usize,
    },
}

impl<'a> FunctionRequests<'a> {
    /// Requests a function without parameters; returns its index.
    fn add(&mut self, entries: Vec<u32>) -> usize {
        self.add_parameterized(entries, &[])
    }

    /// Requests a function with parameters; returns its index.
    fn add_parameterized(&mut self, entries: Vec<u32>, parameters: &'a [Parameter]) -> usize {
        self.0.push(FunctionRequest {
            entries,
            parameters,
        });
        self.0.len() - 1
    }

    /// Requests the bodies of rules; `None` if a rule has more than [`MAX_PARAMETERS`] parameters in a loop.
    fn add_rules(&mut self, rules: &[&'a Instance]) -> Option<Vec<RuleRequest<'a>>> {
        let mut add_rule = |rule: &&'a Instance| {
            let Some(parameter_loop) = &rule.parameter_loop else {
                return Some(RuleRequest::Plain {
                    body: self.add(vec![rule.body]),
                });
            };
            let parameters = &parameter_loop.parameters;
            (parameters.len() <= MAX_PARAMETERS).then(|| RuleRequest::Parameterized {
                parameter_loop,
                next: self.add_parameterized(vec![parameter_loop.next], parameters),
                body: self.add_parameterized(vec![rule.body], parameters),
            })
        };
        rules.iter().map(&mut add_rule).collect()
    }

    /// Requests functions that run these pieces of code, several pieces each; returns the indices.
    fn add_groups(&mut self, program: &Program, entries: &[u32]) -> Vec<usize> {
        let groups = group_pieces(program, entries);
        groups.into_iter().map(|group| self.add(group)).collect()
    }
}

/// Groups pieces of code, one group per function.
fn group_pieces(program: &Program, entries: &[u32]) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut size = 0;
    for &entry in entries {
        match groups.last_mut() {
            Some(group) if size < MAX_SHARED_INSTRUCTIONS => group.push(entry),
            _ => {
                groups.push(vec![entry]);
                size = 0;
            }
        }
        size += program.piece(entry).len();
    }
    groups
}

/// A compiled function, with or without parameters.
#[derive(Clone, Copy)]
enum CompiledFunction {
    /// Function of a state alone.
    Plain(Function),
    /// Function of a state and of parameter values.
    Parameterized(parameterized::Function),
}

/// The compiled functions, in the order of their requests.
struct CompiledFunctions(Vec<CompiledFunction>);

impl CompiledFunctions {
    /// The function with this index; `None` if it has parameters.
    fn plain(&self, id: usize) -> Option<Function> {
        match self.0[id] {
            CompiledFunction::Plain(function) => Some(function),
            CompiledFunction::Parameterized(_) => None,
        }
    }

    /// The function with this index; `None` if it has no parameters.
    fn parameterized(&self, id: usize) -> Option<parameterized::Function> {
        match self.0[id] {
            CompiledFunction::Parameterized(function) => Some(function),
            CompiledFunction::Plain(_) => None,
        }
    }

    /// The functions with these indices; `None` if one of them has parameters.
    fn all_plain(&self, ids: Vec<usize>) -> Option<Vec<Function>> {
        ids.into_iter().map(|id| self.plain(id)).collect()
    }

    /// Function of a rule's body; `None` for a rule with one piece of code for all values of its parameters.
    fn body(&self, request: &RuleRequest) -> Option<Function> {
        match *request {
            RuleRequest::Plain { body } => self.plain(body),
            RuleRequest::Parameterized { .. } => None,
        }
    }

    /// Per rule: its functions, if it has one piece of code for all values of its parameters. Empty if no rule has.
    fn parameterized_rules(&self, requests: &[RuleRequest]) -> Vec<Option<ParameterizedRule>> {
        let is_parameterized = |request| matches!(request, &RuleRequest::Parameterized { .. });
        if !requests.iter().any(is_parameterized) {
            return Vec::new();
        }
        let rule = |request: &RuleRequest| match *request {
            RuleRequest::Plain { .. } => None,
            RuleRequest::Parameterized {
                parameter_loop,
                next,
                body,
            } => Some(ParameterizedRule::new(
                parameter_loop,
                self.parameterized(next)?,
                self.parameterized(body)?,
            )),
        };
        requests.iter().map(rule).collect()
    }
}

/// Compiles functions. Each runs its pieces of code in order, as long as each returns true. Also returns the memory of
/// the functions.
fn compile(
    context: &TranslationContext,
    requests: &[FunctionRequest],
    level: OptimisationLevel,
    threads: usize,
    cancelled: &AtomicBool,
) -> Option<(Vec<JITModule>, CompiledFunctions)> {
    let threads = threads
        .min(requests.len() / MIN_FUNCTIONS_PER_THREAD)
        .max(1);
    let compiled = run_in_parallel((0..threads).collect(), |thread| {
        let mut compiler = Compiler::new(level)?;
        let share = || requests.iter().skip(thread).step_by(threads);
        let ids: Vec<FuncId> = share()
            .map(|request| match cancelled.load(Ordering::Relaxed) {
                true => None,
                false => compiler.compile_function(context, request),
            })
            .collect::<Option<_>>()?;
        compiler.module.finalize_definitions().ok()?;
        let to_function = |(&id, request): (&FuncId, &FunctionRequest)| match request.parameters {
            [] => CompiledFunction::Plain(compiler.function_pointer(id)),
            _ => CompiledFunction::Parameterized(compiler.parameterized_function_pointer(id)),
        };
        let compiled: Vec<CompiledFunction> = ids.iter().zip(share()).map(to_function).collect();
        Some((compiler.module, compiled))
    });
    let (modules, compiled): (Vec<JITModule>, Vec<Vec<CompiledFunction>>) = compiled
        .into_iter()
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .unzip();
    let functions = (0..requests.len()).map(|i| compiled[i % threads][i / threads]);
    Some((modules, CompiledFunctions(functions.collect())))
}

/// Compiler of one thread.
struct Compiler {
    /// Module that receives the functions, and owns their memory.
    module: JITModule,
    /// Reusable context of one function.
    context: cranelift_codegen::Context,
    /// Reusable memory of function builders.
    builder: FunctionBuilderContext,
}

impl Compiler {
    /// Creates a compiler for this machine; `None` if Cranelift does not support it, or its pointers do not have 64
    /// bits.
    fn new(level: OptimisationLevel) -> Option<Compiler> {
        let mut flags = settings::builder();
        let verify = if cfg!(debug_assertions) {
            "true"
        } else {
            "false"
        };
        let opt_level = match level {
            OptimisationLevel::Quick => "none",
            OptimisationLevel::Thorough => "speed",
        };
        flags.set("opt_level", opt_level).ok()?;
        flags.set("enable_verifier", verify).ok()?;
        flags.set("use_colocated_libcalls", "false").ok()?;
        flags.set("is_pic", "false").ok()?;
        let isa = cranelift_native::builder().ok()?;
        let isa = isa.finish(settings::Flags::new(flags)).ok()?;
        if isa.pointer_type() != types::I64 {
            return None;
        }
        let module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        Some(Compiler {
            context: module.make_context(),
            module,
            builder: FunctionBuilderContext::new(),
        })
    }

    /// Compiles a function that runs pieces of code in order, as long as each returns true. A function with parameters
    /// receives their values in memory, and leaves there the values that the pieces compute.
    fn compile_function(
        &mut self,
        context: &TranslationContext,
        request: &FunctionRequest,
    ) -> Option<FuncId> {
        let FunctionRequest {
            entries,
            parameters,
        } = request;
        if !entries
            .iter()
            .all(|&entry| context.is_compilable(context.program.piece(entry)))
        {
            return None;
        }
        let signature = &mut self.context.func.signature;
        signature.params.push(AbiParam::new(types::I64));
        if !parameters.is_empty() {
            signature.params.push(AbiParam::new(types::I64));
        }
        signature.returns.push(AbiParam::new(types::I32));
        signature.call_conv = self.module.isa().default_call_conv();
        self.context.func.name = UserFuncName::default();
        let mut builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let first = builder.create_block();
        builder.append_block_params_for_function_params(first);
        builder.switch_to_block(first);
        let state = builder.block_params(first)[0];
        let values = builder.block_params(first).get(1).copied();
        let values: Vec<ParameterValue> = (values.into_iter())
            .flat_map(|values| {
                let offsets = (0..).step_by(size_of::<i64>());
                (parameters.iter().zip(offsets)).map(move |(parameter, offset)| ParameterValue {
                    cell: parameter.cell,
                    base: values,
                    offset,
                })
            })
            .collect();
        let (false_block, fault_block) = (builder.create_block(), builder.create_block());
        for &entry in entries {
            let on_true = builder.create_block();
            let exits = Continuations {
                on_true,
                on_false: false_block,
                on_fault: fault_block,
            };
            Translation::translate_piece(context, &mut builder, state, &values, entry, exits);
            builder.switch_to_block(on_true);
        }
        // The current block is that of the last piece's verdict true.
        let ends = [
            (None, TRUE),
            (Some(false_block), FALSE),
            (Some(fault_block), FAULT),
        ];
        for (block, result) in ends {
            if let Some(block) = block {
                builder.switch_to_block(block);
            }
            let result = builder.ins().iconst(types::I32, i64::from(result));
            builder.ins().return_(&[result]);
        }
        builder.seal_all_blocks();
        builder.finalize();
        let signature = &self.context.func.signature;
        let id = self.module.declare_anonymous_function(signature).ok()?;
        let defined = self.module.define_function(id, &mut self.context);
        self.module.clear_context(&mut self.context);
        defined.ok().map(|()| id)
    }

    #[allow(unsafe_code)]
    fn function_pointer(&self, id: FuncId) -> Function {
        let code = self.module.get_finalized_function(id);
        // SAFETY: this is the code of a function with this signature, finalized before.
        unsafe { std::mem::transmute::<*const u8, Function>(code) }
    }

    #[allow(unsafe_code)]
    fn parameterized_function_pointer(&self, id: FuncId) -> parameterized::Function {
        let code = self.module.get_finalized_function(id);
        // SAFETY: this is the code of a function with this signature, finalized before.
        unsafe { std::mem::transmute::<*const u8, parameterized::Function>(code) }
    }
}

impl Kernel {
    /// Evaluates a guard or invariant on a state.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn evaluate(&self, function: Function, state: &[u64]) -> u32 {
        debug_assert!(state.len() >= self.words);
        // SAFETY: as in `fire`. In addition, functions of guards and invariants do not write to the state: their code
        // has no instruction that does.
        unsafe { function(state.as_ptr().cast_mut()) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn fire(&self, body: Function, state: &mut [u64]) -> u32 {
        debug_assert!(state.len() >= self.words);
        // SAFETY: a function accesses only the words of a packed state of this kernel's view, all of which exist.
        // Besides, it only reads memory that lives as long as the kernel.
        unsafe { body(state.as_mut_ptr()) }
    }

    /// Passes all different successors of a state to `reach`, in the order of the rules that lead to them.
    /// Words beyond the packed state must be zero.
    #[inline(always)]
    pub fn expand<const W: usize>(
        &self,
        parent: &[u64; W],
        selection: RuleSelection,
        mut reach: impl FnMut(&[u64; W]),
    ) -> Result<Expansion, NeedsInterpreter> {
        self.expand_by_rule(parent, selection, |_, child| reach(child))
    }

    /// As [`Kernel::expand`], with the rule of each successor.
    #[inline(always)]
    pub fn expand_by_rule<const W: usize>(
        &self,
        parent: &[u64; W],
        selection: RuleSelection,
        mut reach: impl FnMut(FiredRule, &[u64; W]),
    ) -> Result<Expansion, NeedsInterpreter> {
        let mut fired = Expansion::default();
        // Rules from here on have a larger priority value than an enabled rule.
        let mut end = usize::MAX;
        for group in 0..self.guards.groups() {
            let first = group * 64;
            if first >= end {
                break;
            }
            let (mut enabled, mut undecided) = self.guards.enabled_rules(group, parent);
            if selection == RuleSelection::NonSpontaneous {
                enabled &= !self.spontaneous[group];
                undecided &= enabled;
            }
            while undecided != 0 {
                let rule = undecided.trailing_zeros();
                undecided &= undecided - 1;
                let result = match self.remaining_guards[first + rule as usize] {
                    Some(function) => self.evaluate(function, parent),
                    None => self.may_be_enabled(first + rule as usize, parent),
                };
                match result {
                    TRUE => {}
                    FALSE => enabled &= !(1 << rule),
                    _ => return Err(NeedsInterpreter),
                }
            }
            if enabled != 0 && !self.priority_ends.is_empty() {
                if end == usize::MAX {
                    end = self.priority_ends[first + enabled.trailing_zeros() as usize] as usize;
                }
                if end - first < 64 {
                    enabled &= (1 << (end - first)) - 1;
                }
            }
            while enabled != 0 {
                let rule = enabled.trailing_zeros() as usize;
                enabled &= enabled - 1;
                let Some(body) = self.bodies[first + rule] else {
                    self.expand_parameterized(first + rule, parent, &mut fired, &mut reach)?;
                    continue;
                };
                let mut child = *parent;
                let result = self.fire(body, &mut child);
                let rule = FiredRule {
                    instance: first + rule,
                    offset: 0,
                };
                self.handle_successor(rule, result, parent, &mut child, &mut fired, &mut reach)?;
            }
        }
        Ok(fired)
    }

    /// Counts a fired rule, given the result of its body and the successor, and passes a different successor to
    /// `reach`.
    #[inline(always)]
    fn handle_successor<const W: usize>(
        &self,
        rule: FiredRule,
        result: u32,
        parent: &[u64; W],
        child: &mut [u64; W],
        fired: &mut Expansion,
        reach: &mut impl FnMut(FiredRule, &[u64; W]),
    ) -> Result<(), NeedsInterpreter> {
        match result {
            TRUE => {}
            // An assumption in the body prevents the rule from firing.
            FALSE => return Ok(()),
            _ => return Err(NeedsInterpreter),
        }
        self.multisets.sort(parent, child);
        fired.transitions += 1;
        if *child != *parent {
            fired.moves = true;
            if self.all_hold(&self.assumptions, child)? {
                reach(rule, child);
            }
        }
        Ok(())
    }

    /// Fires a rule for all values of its parameters for which its guard holds.
    fn expand_parameterized<const W: usize>(
        &self,
        rule: usize,
        parent: &[u64; W],
        fired: &mut Expansion,
        reach: &mut impl FnMut(FiredRule, &[u64; W]),
    ) -> Result<(), NeedsInterpreter> {
        let Some(Some(parameterized_rule)) = self.parameterized_rules.get(rule) else {
            return Ok(());
        };
        let mut values = parameterized_rule.first_values();
        loop {
            match parameterized_rule.next_enabled(parent, &mut values) {
                TRUE => {}
                FALSE => return Ok(()),
                _ => return Err(NeedsInterpreter),
            }
            let mut child = *parent;
            let result = parameterized_rule.fire(&mut child, &mut values);
            let fired_rule = FiredRule {
                instance: rule,
                offset: parameterized_rule.position(&values),
            };
            self.handle_successor(fired_rule, result, parent, &mut child, fired, reach)?;
            if !parameterized_rule.advance(&mut values) {
                return Ok(());
            }
        }
    }

    /// Evaluates whether the guard of a rule with many parameter values holds for any of them. Evaluated only if
    /// priorities make other rules depend on it.
    fn may_be_enabled(&self, rule: usize, state: &[u64]) -> u32 {
        match self.parameterized_rules.get(rule) {
            Some(Some(parameterized_rule)) if !self.priority_ends.is_empty() => {
                parameterized_rule.next_enabled(state, &mut parameterized_rule.first_values())
            }
            _ => TRUE,
        }
    }

    /// True if all functions return true.
    #[inline(always)]
    fn all_hold(&self, functions: &[Function], state: &[u64]) -> Result<bool, NeedsInterpreter> {
        for &function in functions {
            match self.evaluate(function, state) {
                TRUE => {}
                FALSE => return Ok(false),
                _ => return Err(NeedsInterpreter),
            }
        }
        Ok(true)
    }

    /// True if a state is quiescent.
    pub fn is_quiescent(&self, state: &[u64]) -> Result<bool, NeedsInterpreter> {
        self.all_hold(&self.quiescent, state)
    }

    /// True if all invariants hold in a state.
    #[inline(always)]
    pub fn satisfies_invariants(&self, state: &[u64]) -> bool {
        matches!(self.all_hold(&self.claims, state), Ok(true))
    }
}

/// Per rule: index of the first rule with a larger priority value; empty if all priorities are equal.
fn priority_ends(priorities: &[i32]) -> Vec<u32> {
    let end = |p| priorities.partition_point(|&other| other <= p) as u32;
    match priorities.first() == priorities.last() {
        true => Vec::new(),
        false => priorities.iter().map(|&p| end(p)).collect(),
    }
}
