//! Detection of reads of values that have not been assigned yet.

use crate::model::{Deadlock, Model, Type};
use crate::program::{Op, Program, Site};
use crate::report::{
    independent_parts, loops_to_check, possibly_lost_symmetry, validate_and_compile,
    without_symmetry,
};
use crate::search::{search, Engine, FailedCheck, Options, Verdict};

/// Maximum number of states visited. Undefined values exist from the start, so such a read occurs early if at all.
const MAX_STATES: u64 = 1 << 10;

/// A read of an undefined value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndefinedRead {
    /// Name of the variable in the model text.
    pub variable: String,
    /// Line in the model text; 0 without text.
    pub line: u32,
}

/// Finds a read of an undefined value of a scalarset or union in the first states of a model. Returns `None` if another
/// violation comes first.
pub fn first_undefined_read(model: &Model) -> Option<UndefinedRead> {
    let mut model = model.clone();
    model.deadlock = Deadlock::Off;
    let options = Options {
        engine: Engine::Interpreter,
        max_states: Some(MAX_STATES),
        decompose: false,
        ..Options::default()
    };
    let lost_symmetry = possibly_lost_symmetry(&model, &options);
    let model = without_symmetry(&model, &lost_symmetry);
    let program = validate_and_compile(&model, loops_to_check(&model, &options), &options).ok()?;
    (0..program.code.len() as u32)
        .find_map(|instruction| undefined_read_site(&model, &program, instruction))?;
    let view = independent_parts(&model, &program, &options)
        .views
        .into_iter()
        .next()?;
    let result = search(&program, &view, 0, &options).ok()?;
    match result.verdict {
        Verdict::FailedCheck(FailedCheck::Fault(fault), _) => {
            let site = undefined_read_site(&model, &program, fault.instruction)?;
            Some(UndefinedRead {
                variable: site.operand.clone(),
                line: site.line,
            })
        }
        _ => None,
    }
}

/// Site of an instruction that rejects undefined values of a scalarset or union; `None` for other instructions.
fn undefined_read_site<'a>(
    model: &Model,
    program: &'a Program,
    instruction: u32,
) -> Option<&'a Site> {
    let Op::Defined { .. } = program.code.get(instruction as usize)? else {
        return None;
    };
    let site = program.sites.get(&instruction)?;
    matches!(model.ty(site.ty?), Type::Scalarset(_) | Type::Union(_)).then_some(site)
}
