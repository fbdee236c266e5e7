//! Reader of machine files: TOML tables of quantities, each with a value, its unit, its origin and its plausible range.
//!
//! [`read_document`] passes a [`Reader`] to the caller, who reads the parts of a machine. Errors have their position in
//! the file, and all are reported at once. Quantities may have their former names ([`FORMER_NAMES`]).
//!
//! The crate does not know the parts of any machine (`sim`, `dram`, `nearmemory`) or files: the caller passes their text.
//!
//! ```
//! use cohkit_platform::{read_document, PlatformError, QuantityKind};
//! use cohkit_units::Unit;
//!
//! let check = |picoseconds| match picoseconds {
//!     0 => Err("dram.t_cl must not be 0ps".to_string()),
//!     _ => Ok(()),
//! };
//! let kind = QuantityKind { name: "dram.t_cl", unit: Unit::Picoseconds, check: &check };
//! let read = |text: &str| {
//!     read_document(text, |_| None, |reader, table| {
//!         let quantity = reader.find_quantity(table, kind.name, &mut Vec::new());
//!         if quantity.is_none() {
//!             reader.report_missing(table, kind.name);
//!         }
//!         reader.report_unknown_keys(table, "", &["name", kind.name]);
//!         Some((reader.read_string(table, "name")?, reader.read_quantity(kind, quantity?)?))
//!     })
//! };
//! let text = "name = 'small'\n[dram]\nt_cl = { value = '14ns', range = ['10ns', '20ns'], origin = 'assumed' }\n";
//! let (name, quantity) = read(text).expect("a valid file");
//! assert_eq!((&name[..], quantity.value, quantity.range), ("small", 14_000, (10_000, 20_000)));
//!
//! let wrong = text.replace("t_cl", "t_lc");
//! let errors: Vec<PlatformError> = read(&wrong).unwrap_err();
//! assert_eq!(errors[0].message, "`dram.t_cl` is missing");
//! assert_eq!(errors[1].message, "unknown key `dram.t_lc`; did you mean `dram.t_cl`? there are dram.t_cl");
//! assert_eq!(&wrong[errors[1].span.clone()], "t_lc");
//! ```

mod former_names;
mod reader;

pub use former_names::{
    current_name, former_name, former_name_warning, FORMER_LOWER, FORMER_NAMES, LOWER,
};
pub use reader::{both_names_error, find, read_document, PlatformError, QuantityKind, Reader};
pub use toml::de::{DeTable, DeValue};
pub use toml::Spanned;
