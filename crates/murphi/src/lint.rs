//! Probable mistakes that show only when a model runs.

use super::{read_with, Diagnostic, Dialect, ReadOptions};
use cohkit_diagnostics::Span;
use cohkit_engine::undefined::first_undefined_read;

/// Warns of the first read of an undefined value of a scalarset or union, among the first states of a valid text. The
/// dialects disagree about it: CMurphi treats such a value as one of its own, and Rumur as an error of the model. There
/// is no warning if the caller asks for one of the dialects.
pub fn undefined_read(text: &str, dialect: Dialect) -> Option<Diagnostic> {
    if dialect != Dialect::Any {
        return None;
    }
    let options = ReadOptions {
        dialect,
        is_strict: true,
    };
    let model = read_with("", text, options).ok()?.model;
    let read = model.with_enough_stack(|| first_undefined_read(&model))?;
    let line = text.lines().nth((read.line as usize).checked_sub(1)?)?;
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    let statement = line.trim();
    let start = start + (line.len() - line.trim_start().len());
    Some(Diagnostic {
        message: format!("`{}` is read while it is undefined", read.variable),
        span: Span {
            start: start as u32,
            end: (start + statement.len()) as u32,
        },
        label: String::new(),
        notes: vec![(
            None,
            "an undefined value of a scalarset or union is a distinct value, as in CMurphi; in Rumur it is an error"
                .into(),
        )],
        is_warning: true,
    })
}
