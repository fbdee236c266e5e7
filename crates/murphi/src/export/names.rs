//! Identifiers of printed models.

use cohkit_engine::model::{Model, Role, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// Words that either Murphi checker reserves.
const KEYWORDS: &str = "alias array assert assume begin boolean by case choose clear const cover do else elsif end \
    endalias endchoose endexists endfor endforall endfunction endif endprocedure endrecord endrule endruleset \
    endstartstate endswitch endwhile enum error exists false for forall from function if in interleaved invariant \
    ismember isundefined liveness multiset multisetadd multisetcount multisetremove multisetremovepred of pctl \
    procedure process program put real record return rule ruleset scalarset startstate switch then to traceuntil \
    true type undefine undefined union until var while externfun externproc log log10 exp sin cos tan fabs floor \
    ceil sqrt fmod pow asin acos atan sinh cosh tanh";

/// A unique identifier for everything that Murphi names. Indices are those of the model.
#[derive(Clone)]
pub(super) struct Names {
    /// Names of types.
    pub types: Vec<String>,
    /// Names of variables. State variables keep their own names if possible.
    pub variables: Vec<String>,
    /// Names of the functions that print tables.
    pub tables: Vec<String>,
    /// Names of functions.
    pub functions: Vec<String>,
    /// Names of the values of enumerations, by type and index of the value.
    pub labels: FxHashMap<(u32, u32), String>,
    /// Name of the boolean of [`Style::Drain`].
    pub drain_flag: String,
    /// Name of a constant that makes Rumur compute in 64 bits.
    pub wide_constant: String,
}

/// Returns an identifier that resembles a string, is no keyword and is not in `used_names`, and adds it there.
pub(super) fn identifier(text: &str, used_names: &mut FxHashSet<String>) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = text.chars().map(safe).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'x');
    }
    let base = name.clone();
    let mut number = 1;
    while is_keyword(&name) || !used_names.insert(name.clone()) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

/// True if a Murphi checker reserves the word. Keywords are keywords in any case.
fn is_keyword(word: &str) -> bool {
    KEYWORDS
        .split_whitespace()
        .any(|keyword| keyword.eq_ignore_ascii_case(word))
}

impl Names {
    /// Chooses the names of a model's printed text.
    pub fn new(model: &Model) -> Names {
        let mut used_names = FxHashSet::default();
        let mut labels = FxHashMap::default();
        let mut variables = vec![String::new(); model.variables.len()];
        // Readers look for the names of state variables, so these are the last to be changed.
        for (variable, name) in model.variables.iter().zip(&mut variables) {
            if variable.role == Role::State {
                *name = identifier(&variable.name, &mut used_names);
            }
        }
        for (t, named) in model.types.iter().enumerate() {
            if let Type::Enum(enum_labels) = &named.ty {
                for (i, label) in enum_labels.iter().enumerate() {
                    labels.insert((t as u32, i as u32), identifier(label, &mut used_names));
                }
            }
        }
        let types = model.types.iter().map(|named| match named.ty {
            Type::Bool => "boolean".to_string(),
            _ => identifier(&named.name, &mut used_names),
        });
        let types = types.collect();
        let tables = model
            .tables
            .iter()
            .map(|t| identifier(&t.name, &mut used_names))
            .collect();
        let functions = model
            .functions
            .iter()
            .map(|f| identifier(&f.name, &mut used_names))
            .collect();
        for (variable, name) in model.variables.iter().zip(&mut variables) {
            if variable.role != Role::State {
                *name = identifier(&variable.name, &mut used_names);
            }
        }
        let drain_flag = identifier("draining", &mut used_names);
        let wide_constant = identifier("in_64_bits", &mut used_names);
        Names {
            types,
            variables,
            tables,
            functions,
            labels,
            drain_flag,
            wide_constant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_in_any_case_are_not_identifiers() {
        let mut used_names = FxHashSet::default();
        let names = ["end", "eNd", "Traceuntil", "ended"];
        let names = names.map(|name| identifier(name, &mut used_names));
        assert_eq!(names, ["end_2", "eNd_2", "Traceuntil_2", "ended"]);
    }
}
