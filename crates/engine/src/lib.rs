//! Finite models: a small typed language of guarded commands, and exhaustive search over it.
//!
//! A [`model::Model`] has variables of finite types, start states, rules and claims.
//! [`check`] visits every state that can be reached and ends in one of three outcomes: verified, violated with a
//! shortest counterexample, or undecided because a limit was met.
//!
//! The parts:
//!
//! - [`model`] with [`build`]: the form, and how Rust code makes models; [`validate`], [`order`] and [`visit`] judge and walk it;
//! - the interpreter (private): a model resolved to straight code over a flat frame;
//! - machine code (private): the same code, compiled in process for searches that prove large;
//! - [`search`]: breadth first on any number of threads, with counts and counterexamples that do not depend on it;
//! - [`simulate`]: random walks, where there are too many states to visit all;
//! - [`components`]: independent parts of a model are explored apart, exactly;
//! - [`report`] and [`trace`]: verdicts and counterexamples as data and text;
//! - [`replay`], [`explain`], [`coverage`] and [`graph`]: counterexamples stepped again, why nothing leads on from
//!   their end, what a search has exercised, and small models drawn. They walk again, by the interpreter.
//!
//! Who makes models stands above: front ends from texts, and what turns protocols into models.
//! A model may carry [`model::Note`]s and somebody who makes a [`story`] of them and of the states of a trace.
//! To the search a note is nothing.
//! Not known either: time, probability and fairness.
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

pub mod build;
mod compile;
pub mod components;
pub mod coverage;
pub mod explain;
mod explore;
pub mod graph;
mod interpret;
pub mod memory;
pub mod model;
mod native;
mod number;
#[cfg(test)]
mod omissions;
pub mod order;
mod program;
pub mod replay;
pub mod report;
pub mod search;
pub mod simulate;
mod store;
pub mod story;
mod symmetry;
mod threads;
pub mod trace;
pub mod undefined;
pub mod validate;
mod view;
pub mod visit;

pub use report::{check, CheckError, Outcome, Property, Report};
pub use search::Options;
