//! Mutation testing of protocol specifications: mutants with one change each, and the verdict of the checks on each.
//!
//! [`mutants`] returns the mutants of a specification, and a [`Judge`] gives the [`MutantVerdict`] on one of them. The
//! verdict is based on systems of a few remotes, their progress, litmus programs, and bisimulation with the original. A
//! mutant that is bisimilar to the original cannot be detected in the systems compared. A mutant that survives is
//! equivalent for another reason, or shows that no check covers the changed part.
//!
//! The crate does not know files, terminals, `murphi`, `rtl` or `trace`, and has no list of known equivalent mutants.
//!
//! ```
//! use cohkit_mutants::{mutants, Judge, MutantVerdict};
//!
//! let text = include_str!("../../../protocols/msi.coh");
//! let all = mutants(text);
//! let description = "IM_AD | Data if acks == early | early := 0 | M: to IS_D";
//! let mutant = all.iter().find(|mutant| mutant.description == description).unwrap();
//! assert_eq!(Judge::new(text).unwrap().verdict(mutant), MutantVerdict::Refuted);
//! ```

mod bisimulation;
mod declaration_mutants;
mod expressions;
mod generate;
mod judge;
mod mutation;
mod policy_mutants;
mod row_mutants;
mod source;
mod words;

pub use generate::{mutants, Mutant};
pub use judge::{Judge, MutantVerdict};
