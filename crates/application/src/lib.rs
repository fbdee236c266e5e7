//! What may sit behind a home: the interface of device applications, and the applications that ship.
//!
//! An [`Application`](interface::Application) sees reads, upgrades and write-backs of its lines and every change of
//! the CPU's rights that the home learns of, has a memory port of its own, and cleans, invalidates, locks and unlocks
//! the CPU's copies. A [`Thread`](interface::Thread) is what a core of the CPU does with the same lines.
//! Both are plain state machines, so that one text of each is simulated with time and real data, and explored in
//! every order by the checker. A [`Contract`](contract::Contract) watches an application from outside.
//!
//! The crate does not know the simulator, the checker, files or terminals, and no protocol by name.
//!
//! An application that gives the CPU its lines back as often as the CPU writes them:
//!
//! ```
//! use cohkit_application::interface::{Actions, Application, Event, Line, Operation, Placement};
//! use cohkit_protocol::protocol::Right;
//!
//! #[derive(Clone, PartialEq, Eq, Hash, Debug)]
//! struct Snatcher;
//!
//! impl Application for Snatcher {
//!     fn name(&self) -> &str {
//!         "snatcher"
//!     }
//!     fn placement(&self) -> Placement {
//!         Placement::Beside
//!     }
//!     fn handle(&mut self, event: Event, actions: &mut Actions) {
//!         match event {
//!             Event::Changed { line, to: Right::Write, .. } => {
//!                 actions.local(line, Operation::CleanInvalidate, false);
//!             }
//!             Event::Done { dirty, .. } => actions.count("written", dirty.into()),
//!             _ => {}
//!         }
//!     }
//! }
//!
//! let mut actions = Actions::new();
//! let gained = Event::Changed { line: 7, from: Right::None, to: Right::Write };
//! Snatcher.handle(gained, &mut actions);
//! assert_eq!(actions.take().count(), 1);
//! ```

pub mod broadcast;
pub mod contract;
pub mod dma;
pub mod exchange;
pub mod gather;
pub mod graphs;
pub mod hardware;
pub mod histogram;
pub mod interface;
pub mod invalidation;
pub mod kernel;
pub mod locks;
pub mod matrix_market;
pub mod memory;
pub mod messages;
pub mod padding;
pub mod prefetcher;
pub mod remote_writes;
pub mod rpc;
pub mod rpc_bus;
pub mod shared_table;
pub mod shipped;
pub mod task_queue;
pub mod transpose;
pub mod view;
