//! Litmus tests: programs of a few threads, and their possible outcomes.
//!
//! * [`program`]: threads, instructions, and conditions of tests;
//! * [`herd`]: reader for the format of the herd tools, in assembly of several architectures and in C (`c`);
//!   [`mod@print`]: printer in AArch64 assembly and in C;
//! * [`expectation`]: herd's observations of conditions, and those that files expect;
//! * [`cycles`]: the classic shapes, generated from cycles of relations; [`shapes`]: all small programs on two
//!   locations;
//! * [`shape_generator`]: shapes with mixed orders, and their files in the repository;
//! * [`bursts`]: programs whose threads store several times before they synchronise;
//! * [`warm_caches`]: programs with warm caches;
//! * [`cores`]: execution of threads in order, with a store buffer, or out of order;
//! * [`models`]: outcomes under a memory model, by running the program on sequentially consistent memory: sequential
//!   consistency with in-order cores, total store order with store buffers;
//! * [`executions`], [`axioms`]: outcomes under a memory model, independently, by axioms on candidate executions; also
//!   for weaker models;
//! * [`store_variants`]: variants of programs by the protocol's access for each write;
//! * [`kinds`]: placement of threads on kinds of caches; `symmetry`: permutations of threads that preserve a program;
//! * [`machine`]: the caches that run programs, of one level or two;
//! * [`lines`]: states of single lines with their steps, computed once; [`state_table`]: their storage; [`values`]: an
//!   abstraction of their data;
//! * [`run`]: outcomes of a program on a protocol, over all orders of messages and all evictions;
//! * `trace_events`: sequence charts of paths to outcomes;
//! * [`conformance_batch`]: batches of programs on a protocol, checked against a memory model;
//! * [`conformance_report`]: conformance of a protocol to its memory model, by the classic programs;
//! * [`timed`]: outcomes in the simulator, with random delays;
//! * [`port_runs`]: outcomes at the processor ports of a memory system, such as hardware.
//!
//! Each location occupies its own line.
//!
//! The crate does not know packed states: it uses neither `engine` nor `check`, and explores programs by itself.
//!
//! ```
//! use cohkit_litmus::run::{run, RunResult, Options};
//! use cohkit_litmus::{cores::CoreKind, herd, models};
//! use cohkit_protocol::{protocol::Home, text::parse};
//!
//! let store_buffering = r"X86 SB
//! { x=0; y=0; }
//!  P0          | P1          ;
//!  MOV [x],$1  | MOV [y],$1  ;
//!  MOV EAX,[y] | MOV EAX,[x] ;
//! exists (0:EAX=0 /\ 1:EAX=0)";
//! let program = herd::read(store_buffering).expect("the test has no errors");
//! // Store buffers add the outcome in which both loads return 0.
//! let consistent = models::outcomes(&program, CoreKind::InOrder);
//! assert_eq!(consistent.len(), 3);
//! assert_eq!(models::outcomes(&program, CoreKind::StoreBuffer).len(), 4);
//!
//! // In-order cores on the caches of a coherent protocol are sequentially consistent.
//! let msi = parse(include_str!("../../../protocols/msi.coh")).expect("the file has no errors");
//! let Home::Controller(home) = &msi.home else { panic!("the home is a policy") };
//! let found = run(&msi, home, &program, &Options::default(), &mut || true);
//! let RunResult::Outcomes { outcomes, .. } = found else { panic!("{found:?}") };
//! assert_eq!(outcomes, consistent);
//! ```

mod aarch64;
mod assembly;
pub mod axioms;
pub mod bursts;
mod c;
mod condition;
pub mod conformance_batch;
pub mod conformance_report;
pub mod cores;
pub mod cycles;
pub mod executions;
pub mod expectation;
pub mod herd;
pub mod kinds;
pub mod lines;
pub mod machine;
pub mod models;
mod piece;
pub mod port_runs;
mod power;
pub mod print;
pub mod program;
mod riscv;
pub mod run;
pub mod shape_generator;
pub mod shapes;
pub mod state_table;
pub mod store_variants;
mod symmetry;
pub mod timed;
mod trace_events;
pub mod values;
pub mod warm_caches;
mod x86;
