//! Litmus tests: programs of a few threads, and what they may show.
//!
//! * [`program`]: threads, their instructions, and the condition that a test asks about;
//! * [`herd`]: tests in the format of the herd tools, read: those in assembly of several architectures, and in C ([`c`]);
//!   [`mod@print`]: tests written in AArch64 assembly;
//! * [`expectation`]: observations of conditions, and those that files expect;
//! * [`cycles`]: the classic shapes, made from cycles of relations; [`shapes`]: all programs of two small threads;
//! * [`breadth`]: shapes with mixes of orders, and the files of them that the repository has;
//! * [`bursts`]: programs whose threads store several times before they synchronise;
//! * [`warm`]: the same before caches that have had the lines;
//! * [`cores`]: threads as they run: in order, or with a buffer of stores;
//! * [`models`]: what a program may show under a memory model, by running it on memory that acts at once: sequential
//!   consistency where cores are in order, total store order where they buffer stores;
//! * [`executions`], [`axioms`]: the same independently, by axioms on who reads from whom; and release consistency;
//! * [`mixes`]: programs whose writes are made by several accesses of a text;
//! * [`kinds`]: on which kinds of caches threads run; [`symmetry`]: which threads may change places;
//! * [`machine`]: the caches that programs run on, of one level or two;
//! * [`lines`]: single lines of these caches, and what each leads to, worked out once; [`worlds`]: how they are kept;
//!   [`values`]: what stands for their bytes;
//! * [`run`]: what a program shows on a protocol, in every order in which messages arrive and caches give lines up;
//! * [`story`]: what happens on the way to an end, to be drawn;
//! * [`compared`]: many programs on a protocol, and which show what a model forbids;
//! * [`promised`]: whether the classic ones find the model that a text promises;
//! * [`timed`]: what it shows in the simulator, in the orders that random times make.
//!
//! A location is a line of its own.

mod aarch64;
mod assembly;
pub mod axioms;
pub mod breadth;
pub mod bursts;
pub mod c;
pub mod compared;
mod condition;
pub mod cores;
pub mod cycles;
pub mod executions;
pub mod expectation;
pub mod herd;
pub mod kinds;
pub mod lines;
pub mod machine;
pub mod mixes;
pub mod models;
mod piece;
mod power;
pub mod print;
pub mod program;
pub mod promised;
mod riscv;
pub mod run;
pub mod shapes;
pub mod story;
pub mod symmetry;
pub mod timed;
pub mod values;
pub mod warm;
pub mod worlds;
mod x86;
