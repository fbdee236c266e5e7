//! Inputs, generators and references that the tests, examples and benches of several crates share.
//!
//! Other crates have it as a development dependency only. It does not know `cohkit` or `cohkit-python`: tests of the
//! command start the command.
//!
//! - Inputs: [`setups`] and [`orderings`] (shipped protocols on machines), [`models`] (models with known verdicts),
//!   [`mutations`] (mistakes in protocol files), [`mutants`] (the list of equivalent mutants).
//! - Generators: [`random_protocols`], [`random_models`], [`mutate_text`], [`mutate_murphi`], [`seeded_traces`].
//! - References: [`rumur`] (the independent checker), [`riscv_oracle`] (QEMU), [`orbits`] (symmetry by brute force).
//! - Environment: [`require`] (tools that a test needs), [`processor_time`].
//! - Structure: [`structure`] (limits on the size of types and functions).
//!
//! ```
//! use cohkit_testing::random_protocols::random::Random;
//! let (mut first, mut second) = (Random::new(7), Random::new(7));
//! assert_eq!(first.below(1000), second.below(1000));
//! ```

pub mod models;
pub mod mutants;
pub mod mutate_murphi;
pub mod mutate_text;
pub mod mutations;
pub mod orbits;
pub mod orderings;
pub mod processor_time;
pub mod random_models;
pub mod random_protocols;
pub mod require;
pub mod riscv_oracle;
pub mod rumur;
pub mod seeded_traces;
pub mod setups;
pub mod structure;
