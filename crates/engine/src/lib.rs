//! Finite models: a small typed language of guarded commands, and exhaustive search over it.
//!
//! A [`model::Model`] has variables of finite types, start states, rules and claims.
//! [`check`] visits every reachable state. It ends in one of three outcomes: verified, violated with a shortest
//! counterexample, or undecided because a limit was reached.
//!
//! Modules:
//!
//! - [`model`] with [`build`]: the form of models, and their construction in Rust; [`validate`], [`visit`] and
//!   [`bounds`] check, traverse and estimate it;
//! - the interpreter (private): a model resolved to straight code over a flat frame;
//! - machine code (private): the same code, compiled in process for large searches;
//! - [`search`]: breadth-first search; counts and counterexamples do not depend on the number of threads;
//! - [`simulate`]: random walks, for models with too many states to visit all;
//! - `components`: exact, separate exploration of a model's independent parts;
//! - [`report`] and [`trace`]: verdicts and counterexamples as data and text;
//! - [`replay`], [`explain`], [`coverage`] and [`graph`]: replay of counterexamples, the reason why their last state
//!   is a dead end, coverage of a search, and drawings of small models. They repeat the walk with the
//!   interpreter.
//!
//! Higher layers make models: front ends for texts, and the crate that lowers protocols.
//! A model may carry [`model::Note`]s, and a renderer that turns them and the states of a trace into
//! [`trace_events`].
//! The search ignores notes.
//!
//! The crate does not know `protocol` or `murphi`, the two sources of its models, and neither files nor terminals. It
//! does not model time, probability or fairness.
//!
//! # Example
//!
//! Two processes and a lock that one of them forgets to take.
//!
//! ```
//! use cohkit_engine::build::*;
//! use cohkit_engine::{check, Options, Outcome, Property};
//!
//! fn locking(forgetful: bool) -> cohkit_engine::model::Model {
//!     let mut m = Builder::new("lock");
//!     let process = m.range("process", 1, 2);
//!     let inside = m.array("inside", process, cohkit_engine::model::TypeId::BOOL);
//!     let (locked, inside) = (m.state("locked", cohkit_engine::model::TypeId::BOOL), m.state("inside", inside));
//!     let (p, q) = (m.bound("p", process), m.bound("q", process));
//!
//!     m.start("nobody inside", vec![]);
//!     let free = if forgetful { (!locked).or(p.is(2)) } else { !locked };
//!     let enter = Rule::new("{p} enters").over(p).when(!inside.at(p)).when(free);
//!     m.rule(enter.does([locked.set(true), inside.at(p).set(true)]).spontaneously());
//!     let leave = Rule::new("{p} leaves").over(p).when(inside.at(p));
//!     m.rule(leave.does([locked.set(false), inside.at(p).set(false)]));
//!     m.invariant("one inside", p.all(q.all(p.is(q).or(!inside.at(p)).or(!inside.at(q)))));
//!     m.quiescent(!locked);
//!     m.build().expect("the model is sound")
//! }
//! # use cohkit_engine::model::Rule;
//!
//! let report = check(&locking(false), &Options::default()).unwrap();
//! assert_eq!(report.outcome, Outcome::Verified);
//! assert_eq!((report.states, report.transitions), (3, 4));
//!
//! let report = check(&locking(true), &Options::default()).unwrap();
//! let Outcome::Violated { property, trace, .. } = report.outcome else { panic!() };
//! assert_eq!(property, Property::Invariant("one inside".into()));
//! let rules: Vec<_> = trace.steps.iter().map(|step| step.rule.as_str()).collect();
//! assert_eq!(rules, ["1 enters", "2 enters"]);
//! ```

#[cfg(test)]
extern crate self as cohkit_engine;

pub mod bounds;
pub mod build;
#[cfg(test)]
mod compaction_tests;
mod compile;
mod components;
pub mod coverage;
pub mod explain;
mod explore;
pub mod graph;
mod interpret;
pub mod memory;
pub mod model;
mod native;
mod number;
mod program;
pub mod replay;
pub mod report;
pub mod search;
pub mod simulate;
mod store;
mod symmetry;
pub mod symmetry_check;
mod threads;
pub mod trace;
pub mod trace_events;
pub mod undefined;
pub mod validate;
mod view;
pub mod visit;

pub use report::{check, CheckError, Outcome, Property, Report};
pub use search::Options;
