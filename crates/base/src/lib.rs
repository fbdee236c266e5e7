//! Foundations that all crates share: typed positions in lists, wording of reports, message sequences, memory hints,
//! exploration of transition systems, pseudo-random numbers, a large stack.
//!
//! [`index!`] declares the type of the positions in one list. [`words`] has counts with nouns and suggestions for
//! misspelt names. A [`sequence::Sequence`] is a list of messages and local actions among named agents, before any
//! chart draws it. [`mod@memory`] gives hints about memory to the processor and the operating system. An
//! [`interner::Interner`] numbers distinct values, and an [`exploration::Exploration`] the reachable states of a
//! [`exploration::TransitionSystem`]; [`fair_cycles`] finds infinite paths of their graph. [`random`] generates
//! pseudo-random numbers from a seed. [`deep_stack`] has room for deep recursion.
//!
//! The crate does not know any other crate of the workspace: neither protocols nor models, no time and no files.
//!
//! ```
//! use cohkit_base::words::{counted, did_you_mean};
//!
//! cohkit_base::index!(/** Position of a message in its list. */ MessageId(u16));
//!
//! let messages = ["GetS", "GetM", "PutM"];
//! assert_eq!(messages[MessageId(2).index()], "PutM");
//! assert_eq!(counted(messages.len() as u64, "message"), "3 messages");
//! assert_eq!(counted(1u8, "message"), "1 message");
//! // One letter differs from `PutM`, and at least two from the others.
//! assert_eq!(did_you_mean("PutX", messages), "did you mean `PutM`? ");
//! ```

pub mod deep_stack;
pub mod exploration;
pub mod fair_cycles;
mod index;
pub mod interner;
pub mod memory;
pub mod random;
pub mod sequence;
pub mod words;
