//! Models printed as TLA+ modules, with a configuration for the model checker TLC.
//!
//! A rule becomes an action, its statements a chain of definitions, and a violated assertion the value of a further
//! variable, `violation`, so that the module has exactly the states and violations of the model. Undefined values are a
//! constant. The module has the states that [`cohkit_engine::check`] reaches without symmetry reduction.
//!
//! Rejected by name: multisets, priorities, functions that call themselves, functions that change the state inside an
//! expression, unions whose members have equal texts, and stores of arrays or records with other ranges. Not printed, since TLA+ cannot state them: [`cohkit_engine::model::Model::liveness`] and the drain to
//! a quiescent state, which claim that some path exists from every state. Covers are printed as predicates. TLC computes
//! with 32 bits. A quantifier must have a value for every element, also for those after the one that decides it.
//!
//! The crate does not know where a model comes from, and neither files nor TLC.
//!
//! ```
//! use cohkit_murphi::{read, Dialect};
//!
//! let text = r#"
//! var count: 0..3;
//! startstate begin count := 0; end;
//! rule "increment" count < 3 ==> begin count := count + 1; end;
//! invariant "at most two" count <= 2;
//! "#;
//! let read = read("counter", text, Dialect::Any).expect("the text has no errors");
//! let export = cohkit_tla::print(&read.model, "counter").expect("all constructs have counterparts");
//! assert!(export.module.contains("increment ==\n  \\E after_ \\in\n"));
//! assert!(export.configuration.contains("INVARIANTS\n  NoViolation\n  TypeOK\n  at_most_two\n"));
//! ```

mod expressions;
mod module;
mod names;
mod sets;
mod statements;
mod translator;

use cohkit_engine::model::{Model, Type};
use module::ModulePrinter;
use names::Names;
use rustc_hash::FxHashSet;
use translator::Translator;

/// A model as TLA+.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Text of the module.
    pub module: String,
    /// Text of the configuration with which TLC checks the module.
    pub configuration: String,
}

/// Returns the module name that resembles a text. A module is read from a file of its name.
pub fn module_name(text: &str) -> String {
    names::identifier(text)
}

/// Prints a valid model as the module `name`, which [`module_name`] has returned.
///
/// # Errors
/// A construct of the model that has no counterpart, in words.
pub fn print(model: &Model, name: &str) -> Result<Export, String> {
    model.with_enough_stack(|| {
        reject_unprintable(model)?;
        let names = Names::new(model);
        let translator = Translator::new(model, &names);
        ModulePrinter { translator }.print(name)
    })
}

/// Rejects constructs without a counterpart that are not found while a body is translated.
fn reject_unprintable(model: &Model) -> Result<(), String> {
    for named in &model.types {
        match &named.ty {
            Type::Multiset { .. } => {
                return Err(format!(
                    "`{}` is a multiset, which is not exported to TLA+",
                    named.name
                ));
            }
            Type::Union(members) => {
                // Values of different members must differ, since they are printed as texts.
                let mut texts = FxHashSet::default();
                for &member in members {
                    let (lo, hi) = model.bounds(member).unwrap_or((0, -1));
                    if let Some(text) = (lo..=hi)
                        .map(|v| model.show(member, v))
                        .find(|text| !texts.insert(text.clone()))
                    {
                        return Err(format!(
                            "two members of the union `{}` have the value `{text}`, which is not exported to TLA+",
                            named.name
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    let first = model.rules.first().map_or(0, |rule| rule.priority);
    match model.rules.iter().find(|rule| rule.priority != first) {
        Some(rule) => Err(format!(
            "`{}` has a priority, which is not exported to TLA+",
            rule.name
        )),
        None => Ok(()),
    }
}
