//! Machine code in process: a view of a program, made fast.
//!
//! The rules' bodies, what tables cannot judge of their guards, and the invariants become machine
//! code that works on packed states; [`guards`] says by table which rules are enabled.
//! Nothing here reports anything: whatever goes wrong in a state, a fault, a broken
//! invariant, is left to the interpreter, which goes over that state again. So the two cannot differ in what
//! they say, and the interpreter remains the oracle of the rest.

mod code;
mod guards;
mod many;
mod range;
mod ranges;
mod setting;

use crate::model::Number;
use crate::program::*;
use crate::threads::side_by_side;
use crate::view::View;
use code::{Exits, Translation};
use cranelift_codegen::ir::{types, AbiParam, InstBuilder, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{default_libcall_names, FuncId, Module};
pub(crate) use guards::Guards;
use many::{Many, MOST_PARAMETERS};
use setting::{Data, Setting};
use std::sync::Mutex;

/// A function of a packed state: 1 for yes, 0 for no, 2 for a fault.
/// Bodies change the state and say yes.
type Function = unsafe extern "C" fn(*mut u64) -> u32;

/// Invariants are compiled together, up to this many instructions.
const TOGETHER: usize = 400;

/// Functions that are worth a thread to make them.
const WORTH_A_THREAD: usize = if cfg!(debug_assertions) { 1 } else { 8 };

/// The state at hand has something for the interpreter.
pub(crate) struct Plain;

/// Does something for a number of words that is known when it is compiled, the next one for which this is prepared;
/// then copies and comparisons need no loops. Nothing is done for states that are larger than any.
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

/// The number of words of a state for which `W` is prepared: known when it is compiled, if it is small.
#[inline(always)]
pub(crate) fn exact<const W: usize>(words: usize) -> usize {
    match W <= 8 {
        true => W,
        false => words.min(W),
    }
}

/// How much is done for good machine code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum Effort {
    /// Little: it is there sooner.
    Quick,
    /// Much: it is faster.
    Thorough,
}

/// What expanding a state amounts to.
#[derive(Default)]
pub(crate) struct Fired {
    /// Rules that fired.
    pub transitions: u64,
    /// Whether one of them leads to a different state.
    pub moves: bool,
}

/// The fast form of a view.
pub(crate) struct Kernel {
    words: usize,
    guards: Guards,
    /// What tables leave of each guard.
    rests: Vec<Option<Function>>,
    bodies: Vec<Option<Function>>,
    /// In place of a body, what fires a rule for many values of its parameters; empty if there is no such rule.
    many: Vec<Option<Many>>,
    /// For each rule, the end of those that have its priority; nothing if all have the same.
    ends: Vec<u32>,
    /// A bit for each spontaneous rule, in groups like those of the guards.
    spontaneous: Vec<u64>,
    /// What makes a state quiescent.
    quiescent: Vec<Function>,
    /// What a state has to fulfil to be kept.
    assumptions: Vec<Function>,
    claims: Vec<Function>,
}

/// Holds the memory that a kernel's functions lie in and refer to.
pub(crate) struct Native {
    pub kernel: Kernel,
    /// Never locked: threads that share a kernel do not look here.
    modules: Mutex<Vec<JITModule>>,
    _data: Data,
}

impl Drop for Native {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        self.kernel.bodies.clear();
        self.kernel.many.clear();
        self.kernel.claims.clear();
        self.kernel.quiescent.clear();
        self.kernel.assumptions.clear();
        self.kernel.rests.clear();
        for module in self.modules.get_mut().into_iter().flat_map(std::mem::take) {
            // SAFETY: the functions of this module were reachable through the kernel alone, which lives
            // as long as this and hands none of them out.
            unsafe { module.free_memory() }
        }
    }
}

impl Native {
    /// Makes a view fast; `None` where that is not possible: an instruction without machine code, or a machine
    /// that Cranelift does not know. `frame` has the values of slots that are not packed. So many threads share the work.
    pub fn new(
        program: &Program,
        view: &View,
        frame: &[Number],
        effort: Effort,
        threads: usize,
    ) -> Option<Native> {
        let packing = &view.packing;
        // Multisets are sorted by the interpreter alone.
        let prepared = with_words!(packing.words, _W, ()).is_some();
        if !program.bags.is_empty() || !prepared || packing.words == 0 {
            return None;
        }
        let data = Data::new(program, packing, frame);
        let setting = Setting::new(program, packing, &frame[..program.slots.len()], &data);
        let rules = || view.rules.iter().map(|&r| &program.rules[r as usize]);
        let entries = guards::entries(program, view)?;
        let (guards, rests) = Guards::new(&setting, &entries);

        // What each function runs, and the parameters that it takes.
        let mut wanted: Vec<(Vec<u32>, &[Parameter])> = Vec::new();
        let mut want = |entries: Vec<u32>, parameters| {
            wanted.push((entries, parameters));
            wanted.len() - 1
        };
        let rest_ids: Vec<Option<usize>> = (entries.iter().zip(rests))
            .map(|(&entry, rest)| Some(want(vec![entry.filter(|_| rest)?], &[])))
            .collect();
        let mut body_ids = Vec::new();
        let mut many_ids = Vec::new();
        for rule in rules() {
            let Some(every) = &rule.every else {
                body_ids.push(Some(want(vec![rule.body], &[])));
                many_ids.push(None);
                continue;
            };
            if every.parameters.len() > MOST_PARAMETERS {
                return None;
            }
            let mut want = |entry| want(vec![entry], &every.parameters);
            many_ids.push(Some((every, want(every.next), want(rule.body))));
            body_ids.push(None);
        }
        let mut together = |entries: &[u32]| -> Vec<usize> {
            let groups = in_groups(program, entries);
            groups.into_iter().map(|group| want(group, &[])).collect()
        };
        let claims: Vec<u32> = view.invariants.iter().map(|claim| claim.entry).collect();
        let claim_ids = together(&claims);
        let quiescent_ids = together(view.quiescent.as_deref().unwrap_or_default());
        let assumption_ids = together(&program.assumptions);
        let (modules, made) = compile(&setting, &wanted, effort, threads)?;
        let plain = |id: usize| match made[id] {
            Made::Plain(function) => Some(function),
            Made::Many(_) => None,
        };
        let many = |id: usize| match made[id] {
            Made::Many(function) => Some(function),
            Made::Plain(_) => None,
        };
        let all = |ids: Vec<usize>| ids.into_iter().map(plain).collect::<Option<Vec<_>>>();
        let kernel = Kernel {
            words: packing.words,
            guards,
            rests: rest_ids.into_iter().map(|id| plain(id?)).collect(),
            bodies: body_ids.into_iter().map(|id| plain(id?)).collect(),
            many: match many_ids.iter().any(Option::is_some) {
                true => (many_ids.into_iter())
                    .map(|ids| {
                        let (every, next, body) = ids?;
                        Some(Many::new(every, many(next)?, many(body)?))
                    })
                    .collect(),
                false => Vec::new(),
            },
            ends: ends(&rules().map(|rule| rule.priority).collect::<Vec<_>>()),
            spontaneous: (rules().collect::<Vec<_>>().chunks(64))
                .map(|group| {
                    let bit = |(i, rule): (usize, &&Instance)| (rule.spontaneous as u64) << i;
                    group.iter().enumerate().map(bit).sum()
                })
                .collect(),
            quiescent: all(quiescent_ids)?,
            assumptions: all(assumption_ids)?,
            claims: all(claim_ids)?,
        };
        Some(Native {
            kernel,
            modules: Mutex::new(modules),
            _data: data,
        })
    }
}

/// Pieces of code in groups that a function each can run.
fn in_groups(program: &Program, entries: &[u32]) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut size = 0;
    for &entry in entries {
        match groups.last_mut() {
            Some(group) if size < TOGETHER => group.push(entry),
            _ => {
                groups.push(vec![entry]);
                size = 0;
            }
        }
        size += program.piece(entry).len();
    }
    groups
}

/// A finished function, by whether it takes parameters.
#[derive(Clone, Copy)]
enum Made {
    Plain(Function),
    Many(many::Function),
}

/// Functions that each run some pieces of code one after the other as long as each says yes, and the memory that they
/// lie in.
fn compile(
    setting: &Setting,
    wanted: &[(Vec<u32>, &[Parameter])],
    effort: Effort,
    threads: usize,
) -> Option<(Vec<JITModule>, Vec<Made>)> {
    let threads = threads.min(wanted.len() / WORTH_A_THREAD).max(1);
    let made = side_by_side((0..threads).collect(), |thread| {
        let mut compiler = Compiler::new(effort)?;
        let share = || wanted.iter().skip(thread).step_by(threads);
        let ids: Vec<FuncId> = share()
            .map(|(entries, parameters)| compiler.function(setting, entries, parameters))
            .collect::<Option<_>>()?;
        compiler.module.finalize_definitions().ok()?;
        let finished = |(&id, (_, parameters)): (&FuncId, &(_, &[Parameter]))| match parameters {
            [] => Made::Plain(compiler.finished(id)),
            _ => Made::Many(compiler.finished_many(id)),
        };
        let made: Vec<Made> = ids.iter().zip(share()).map(finished).collect();
        Some((compiler.module, made))
    });
    let (modules, made): (Vec<JITModule>, Vec<Vec<Made>>) = made
        .into_iter()
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .unzip();
    let functions = (0..wanted.len()).map(|i| made[i % threads][i / threads]);
    Some((modules, functions.collect()))
}

/// Makes functions.
struct Compiler {
    module: JITModule,
    context: cranelift_codegen::Context,
    builder: FunctionBuilderContext,
}

impl Compiler {
    fn new(effort: Effort) -> Option<Compiler> {
        let mut flags = settings::builder();
        let verify = if cfg!(debug_assertions) {
            "true"
        } else {
            "false"
        };
        let level = match effort {
            Effort::Quick => "none",
            Effort::Thorough => "speed",
        };
        flags.set("opt_level", level).ok()?;
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

    /// A function that runs pieces of code one after the other as long as each says yes. Where there are parameters, it
    /// takes their values, and leaves there what the pieces make of them.
    fn function(
        &mut self,
        setting: &Setting,
        entries: &[u32],
        parameters: &[Parameter],
    ) -> Option<FuncId> {
        if !entries
            .iter()
            .all(|&entry| setting.knows(setting.program.piece(entry)))
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
        let mut b = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let first = b.create_block();
        b.append_block_params_for_function_params(first);
        b.switch_to_block(first);
        let state = b.block_params(first)[0];
        let values = b.block_params(first).get(1).copied();
        let values: Vec<_> = (values.into_iter())
            .flat_map(|values| {
                let places = parameters.iter().zip((0..).step_by(size_of::<i64>()));
                places.map(move |(parameter, at)| (parameter.cell, values, at))
            })
            .collect();
        let (no, fault) = (b.create_block(), b.create_block());
        for &entry in entries {
            let yes = b.create_block();
            let exits = Exits { yes, no, fault };
            Translation::piece(setting, &mut b, (state, &values), entry, exits);
            b.switch_to_block(yes);
        }
        for (i, block) in [None, Some(no), Some(fault)].into_iter().enumerate() {
            if let Some(block) = block {
                b.switch_to_block(block);
            }
            let answer = b.ins().iconst(types::I32, [1, 0, 2][i]);
            b.ins().return_(&[answer]);
        }
        b.seal_all_blocks();
        b.finalize();
        let signature = &self.context.func.signature;
        let id = self.module.declare_anonymous_function(signature).ok()?;
        let defined = self.module.define_function(id, &mut self.context);
        self.module.clear_context(&mut self.context);
        defined.ok().map(|()| id)
    }

    #[allow(unsafe_code)]
    fn finished(&self, id: FuncId) -> Function {
        let code = self.module.get_finalized_function(id);
        // SAFETY: this is the code of a function with this signature, finalized before.
        unsafe { std::mem::transmute::<*const u8, Function>(code) }
    }
}

impl Compiler {
    #[allow(unsafe_code)]
    fn finished_many(&self, id: FuncId) -> many::Function {
        let code = self.module.get_finalized_function(id);
        // SAFETY: this is the code of a function with this signature, finalized before.
        unsafe { std::mem::transmute::<*const u8, many::Function>(code) }
    }
}

impl Kernel {
    /// What a guard or invariant says of a state.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn judge(&self, function: Function, state: &[u64]) -> u32 {
        debug_assert!(state.len() >= self.words);
        // SAFETY: as below, and the functions of guards and invariants do not write to the state:
        // their code has no instruction that does.
        unsafe { function(state.as_ptr().cast_mut()) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn fire(&self, body: Function, state: &mut [u64]) -> u32 {
        debug_assert!(state.len() >= self.words);
        // SAFETY: a function reads and writes the words of a packed state of this kernel's view, all of which are
        // there, and besides only reads memory that lives as long as the kernel.
        unsafe { body(state.as_mut_ptr()) }
    }

    /// Hands all different successors of a state to `reach`, in the order of the rules that lead to them.
    /// A state may be followed by words that are zero. Spontaneous rules fire only if asked for.
    #[inline(always)]
    pub fn expand<const W: usize>(
        &self,
        parent: &[u64; W],
        spontaneous: bool,
        mut reach: impl FnMut(&[u64; W]),
    ) -> Result<Fired, Plain> {
        self.expand_by_rule(parent, spontaneous, |_, child| reach(child))
    }

    /// The same, with the rule that leads to each: the place of its instance in the view, and how far its number is from the
    /// instance's first.
    #[inline(always)]
    pub fn expand_by_rule<const W: usize>(
        &self,
        parent: &[u64; W],
        spontaneous: bool,
        mut reach: impl FnMut((usize, u32), &[u64; W]),
    ) -> Result<Fired, Plain> {
        let mut fired = Fired::default();
        // Rules from here on have a later priority than one that is enabled.
        let mut end = usize::MAX;
        for group in 0..self.guards.groups() {
            let first = group * 64;
            if first >= end {
                break;
            }
            let (mut enabled, mut rest) = self.guards.enabled(group, parent);
            if !spontaneous {
                enabled &= !self.spontaneous[group];
                rest &= enabled;
            }
            while rest != 0 {
                let rule = rest.trailing_zeros();
                rest &= rest - 1;
                let answer = match self.rests[first + rule as usize] {
                    Some(function) => self.judge(function, parent),
                    None => self.any(first + rule as usize, parent),
                };
                match answer {
                    1 => {}
                    0 => enabled &= !(1 << rule),
                    _ => return Err(Plain),
                }
            }
            if enabled != 0 && !self.ends.is_empty() {
                if end == usize::MAX {
                    end = self.ends[first + enabled.trailing_zeros() as usize] as usize;
                }
                if end - first < 64 {
                    enabled &= (1 << (end - first)) - 1;
                }
            }
            while enabled != 0 {
                let rule = enabled.trailing_zeros() as usize;
                enabled &= enabled - 1;
                let Some(body) = self.bodies[first + rule] else {
                    self.expand_many(first + rule, parent, &mut fired, &mut reach)?;
                    continue;
                };
                let mut child = *parent;
                let answer = self.fire(body, &mut child);
                self.arrive(
                    (first + rule, 0),
                    answer,
                    parent,
                    &child,
                    &mut fired,
                    &mut reach,
                )?;
            }
        }
        Ok(fired)
    }

    /// A rule has fired, with this answer and this successor.
    #[inline(always)]
    fn arrive<const W: usize>(
        &self,
        rule: (usize, u32),
        answer: u32,
        parent: &[u64; W],
        child: &[u64; W],
        fired: &mut Fired,
        reach: &mut impl FnMut((usize, u32), &[u64; W]),
    ) -> Result<(), Plain> {
        match answer {
            1 => {}
            // An assumption within the body keeps the rule from firing.
            0 => return Ok(()),
            _ => return Err(Plain),
        }
        fired.transitions += 1;
        if *child != *parent {
            fired.moves = true;
            if self.all(&self.assumptions, child)? {
                reach(rule, child);
            }
        }
        Ok(())
    }

    /// Fires a rule for all values of its parameters for which its guard holds.
    fn expand_many<const W: usize>(
        &self,
        rule: usize,
        parent: &[u64; W],
        fired: &mut Fired,
        reach: &mut impl FnMut((usize, u32), &[u64; W]),
    ) -> Result<(), Plain> {
        let Some(Some(many)) = self.many.get(rule) else {
            return Ok(());
        };
        let mut values = many.first();
        loop {
            match many.next(parent, &mut values) {
                1 => {}
                0 => return Ok(()),
                _ => return Err(Plain),
            }
            let mut child = *parent;
            let answer = many.fire(&mut child, &mut values);
            let place = many.place(&values);
            self.arrive((rule, place), answer, parent, &child, fired, reach)?;
            if !many.advance(&mut values) {
                return Ok(());
            }
        }
    }

    /// Whether the guard of a rule for many values of its parameters holds for any of them; only asked where other rules
    /// depend on it.
    fn any(&self, rule: usize, state: &[u64]) -> u32 {
        match self.many.get(rule) {
            Some(Some(many)) if !self.ends.is_empty() => many.next(state, &mut many.first()),
            _ => 1,
        }
    }

    /// Whether functions all say yes.
    #[inline(always)]
    fn all(&self, functions: &[Function], state: &[u64]) -> Result<bool, Plain> {
        for &function in functions {
            match self.judge(function, state) {
                1 => {}
                0 => return Ok(false),
                _ => return Err(Plain),
            }
        }
        Ok(true)
    }

    /// Whether a state is quiescent.
    pub fn quiescent(&self, state: &[u64]) -> Result<bool, Plain> {
        self.all(&self.quiescent, state)
    }

    /// Whether all invariants hold in a state.
    #[inline(always)]
    pub fn fine(&self, state: &[u64]) -> bool {
        matches!(self.all(&self.claims, state), Ok(true))
    }
}

/// For each rule, the end of those that have its priority; nothing if all have the same.
fn ends(priorities: &[i32]) -> Vec<u32> {
    let end = |p| priorities.partition_point(|&other| other <= p) as u32;
    match priorities.first() == priorities.last() {
        true => Vec::new(),
        false => priorities.iter().map(|&p| end(p)).collect(),
    }
}
