//! What is probably not meant, and shows only as a model runs.

use super::{read_as, Diagnostic, Dialect};
use crate::model::{Deadlock, Model, Type};
use crate::program::{Op, Program, Site};
use crate::report::{compiled, parts, watching};
use crate::search::{search, Broken, Engine, Options, Verdict};
use cohkit_protocol::text::Span;

/// States that are looked at. What is undefined is so from the start, so it shows early if at all.
const MOST_STATES: u64 = 1 << 10;

/// The first read of an undefined value of a scalarset or union among the first states of a text that can be read,
/// as a warning that the dialects disagree about it: for CMurphi such a value is one of its own, and for Rumur an error of
/// the model. So there is none where one of them is asked for.
pub fn undefined_read(text: &str, dialect: Dialect) -> Option<Diagnostic> {
    if dialect != Dialect::Any {
        return None;
    }
    let model = read_as("", text, dialect, true).ok()?.model;
    let site = first_fault(&model)?;
    let line = text.lines().nth((site.line as usize).checked_sub(1)?)?;
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    let words = line.trim();
    let start = start + (line.len() - line.trim_start().len());
    Some(Diagnostic {
        message: format!("`{}` is read while it is undefined", site.what),
        span: Span {
            start: start as u32,
            end: (start + words.len()) as u32,
        },
        label: String::new(),
        notes: vec![(
            None,
            "an undefined value of a scalarset or union is one of its own, as for CMurphi; for Rumur it is an error"
                .into(),
        )],
        warning: true,
    })
}

/// Where the first thing goes wrong in a model, if it is such a read.
fn first_fault(model: &Model) -> Option<Site> {
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
        Verdict::Broken(Broken::Fault(fault), _) => read(&model, &program, fault.at).cloned(),
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
