//! Files of the repository that the package contains, so that it needs no other folder; and its experiments.

use cohkit_api::shipped::{EXPERIMENTS, LIBRARY, PROTOCOLS};
use pyo3::prelude::*;

/// Expands paths in the repository to pairs of path and contents, which are compiled in.
macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../../", $path))),)*]
    };
}

/// Paths in the repository and contents of the files that the command does not contain.
const FILES: &[(&str, &str)] = files![
    "experiments/published.toml",
    "ordering/cord.coh",
    "ordering/mp.coh",
    "ordering/seq.coh",
    "ordering/so-strict.coh",
    "ordering/so.coh",
    "ordering/tso/cord.coh",
    "ordering/tso/mp.coh",
    "ordering/tso/so.coh",
    "ordering/tso/wb.coh",
    "ordering/wb.coh",
    "tests/construction/base.coh",
];

/// Shipped files: `(path, text)`.
#[pyfunction]
pub(crate) fn shipped() -> Vec<(&'static str, &'static str)> {
    let shipped_files = FILES.iter().chain(LIBRARY).chain(PROTOCOLS);
    shipped_files.copied().collect()
}

/// Experiments: `(name, title)`, in order.
#[pyfunction]
pub(crate) fn experiments() -> Vec<(&'static str, &'static str)> {
    EXPERIMENTS.to_vec()
}
