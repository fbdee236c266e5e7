//! Interface of device applications behind a home, and the applications that ship.
//!
//! An [`Application`](interface::Application) observes reads, upgrades and write-backs of its lines, and every change
//! of the CPU's permissions that the home learns of. It has a memory port of its own, and cleans, invalidates, locks
//! and unlocks the CPU's copies. A [`Thread`](interface::Thread) is the program that a core of the CPU runs on the same
//! lines.
//! Both are plain state machines. The same code is therefore simulated with time and real data, and explored by the
//! checker in every order of events. A [`Contract`](contract::Contract) monitors an application from outside.
//!
//! The crate does not know `sim`, `play`, `check` or any protocol by name, and neither clocks nor files: time reaches
//! an application as a number, and lines as words.
//!
//! Example: an application that takes a line back whenever the CPU acquires write permission for it:
//!
//! ```
//! use cohkit_application::interface::{Actions, Application, Event, Line, Operation, Placement};
//! use cohkit_protocol::protocol::Permission;
//!
//! #[derive(Clone, PartialEq, Eq, Hash, Debug)]
//! struct Reclaimer;
//!
//! impl Application for Reclaimer {
//!     fn name(&self) -> &str {
//!         "reclaimer"
//!     }
//!     fn placement(&self) -> Placement {
//!         Placement::Observer
//!     }
//!     fn handle(&mut self, event: Event, actions: &mut Actions) {
//!         match event {
//!             Event::PermissionChange { line, to: Permission::Write, .. } => {
//!                 actions.local(line, Operation::CleanInvalidate, false);
//!             }
//!             Event::LocalCompletion { dirty, .. } => actions.count("written", dirty.into()),
//!             _ => {}
//!         }
//!     }
//! }
//!
//! let mut actions = Actions::new();
//! let gained = Event::PermissionChange { line: 7, from: Permission::None, to: Permission::Write };
//! Reclaimer.handle(gained, &mut actions);
//! assert_eq!(actions.take().count(), 1);
//! ```

pub mod broadcast;
pub mod contract;
pub mod dma;
pub mod exchange;
pub mod gather;
mod graphs;
pub mod hardware;
mod histogram;
pub mod interface;
pub mod invalidation;
pub mod kernel;
pub mod locks;
pub mod matrix_market;
mod messages;
mod padding;
pub mod prefetcher;
pub mod remote_writes;
pub mod rpc;
pub mod rpc_bus;
pub mod shared_table;
pub mod shipped;
mod task_queue;
mod transpose;
pub mod view;
