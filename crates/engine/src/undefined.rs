//! Reads of values that nothing has been stored in yet.

use crate::model::{Deadlock, Model, Type};
use crate::program::{Op, Program, Site};
use crate::report::{compiled, parts, watching};
use crate::search::{search, Broken, Engine, Options, Verdict};

/// States that are looked at. What is undefined is so from the start, so it shows early if at all.
const MOST_STATES: u64 = 1 << 10;

/// A read of an undefined value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndefinedRead {
    /// The variable.
    pub what: String,
    /// On which line of the text; 0 if there is none.
    pub line: u32,
}

/// The first read of an undefined value of a scalarset or union among the first states of a model, if it is the first
/// thing that goes wrong there.
pub fn first_undefined_read(model: &Model) -> Option<UndefinedRead> {
    let mut model = model.clone();
    model.deadlock = Deadlock::Off;
    let options = Options {
        engine: Engine::Interpreter,
        max_states: Some(MOST_STATES),
        decompose: false,
        ..Options::default()
    };
    let program = compiled(&model, watching(&model, &options), &options).ok()?;
    (0..program.code.len() as u32).find_map(|at| read(&model, &program, at))?;
    let view = parts(&model, &program, &options).views.into_iter().next()?;
    let found = search(&program, &view, 0, &options).ok()?;
    match found.verdict {
        Verdict::Broken(Broken::Fault(fault), _) => {
            let site = read(&model, &program, fault.at)?;
            Some(UndefinedRead {
                what: site.what.clone(),
                line: site.line,
            })
        }
        _ => None,
    }
}

/// What an instruction reads, if it is one that refuses undefined values of a scalarset or union.
fn read<'a>(model: &Model, program: &'a Program, at: u32) -> Option<&'a Site> {
    let Op::Defined { .. } = program.code.get(at as usize)? else {
        return None;
    };
    let site = program.sites.get(&at)?;
    matches!(model.ty(site.ty?), Type::Scalarset(_) | Type::Union(_)).then_some(site)
}
