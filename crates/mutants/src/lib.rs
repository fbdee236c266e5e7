//! Mutation of protocol texts: [`mutants`] of a text, each with one change, and a [`Judge`] that says what becomes of each, from
//! systems of a few remotes, their progress, what programs of threads find, and bisimulation with the text.
//!
//! A mutant that is bisimilar to its text cannot be noticed in the systems that were compared. One that survives means
//! the same as its text for another reason, or shows that nothing holds the text to what was changed.
//!
//! It deliberately knows nothing of files, of terminals and of which mutants are known to mean the same.
//!
//! ```
//! use cohkit_mutants::{mutants, Fate, Judge};
//!
//! let text = include_str!("../../../protocols/msi.coh");
//! let all = mutants(text);
//! let what = "IM_AD | Data if acks == early | early := 0 | M: to IS_D";
//! let mutant = all.iter().find(|mutant| mutant.what == what).unwrap();
//! assert_eq!(Judge::new(text).unwrap().fate(mutant), Fate::Refuted);
//! ```

mod bisimulation;
mod expressions;
mod generate;
mod judge;
mod words;

pub use generate::{mutants, Mutant};
pub use judge::{Fate, Judge};
