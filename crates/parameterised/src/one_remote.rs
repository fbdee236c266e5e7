//! Configurations of one remote with its home, which views of pairs do not cover.

use cohkit_base::exploration;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_system::data::Current;
use cohkit_system::state::{
    explore_within, Found, StepError, System, SystemState, DEFAULT_CHANNEL_CAPACITY,
};

use crate::obstacle::Obstacle;
use crate::Limits;

/// Maximum number of states of one remote with its home.
const MAX_STATES: usize = 1_000_000;

/// Explores the configurations of one remote.
///
/// # Errors
/// A violation, a state from which quiescence is not reachable, or a limit of the search.
pub(crate) fn check_one_remote(
    protocol: &Protocol,
    home: &Controller,
    limits: &mut Limits,
) -> Result<(), Obstacle> {
    let mut system = &System::new(protocol, home, 1u16, 1, DEFAULT_CHANNEL_CAPACITY);
    let mut is_interrupted = false;
    let mut should_continue = || {
        let callback = limits.should_continue.as_mut();
        is_interrupted = callback.is_some_and(|should_continue| !should_continue());
        !is_interrupted
    };
    let initial: SystemState<Current> = SystemState::new(system);
    let exploration_limits = exploration::Limits {
        max_states: MAX_STATES,
        should_continue: &mut should_continue,
    };
    match explore_within(&mut system, initial, exploration_limits) {
        Found::Safe {
            stuck_path: None, ..
        } => Ok(()),
        Found::Safe { .. } => Err(Obstacle::general(
            "one remote: quiescence is not always reachable",
        )),
        Found::Violated { errors, .. } => {
            let reason = match &errors[0] {
                StepError::Violated(violation) => {
                    format!(
                        "one remote: {}: {}",
                        violation.property, violation.description
                    )
                }
                StepError::Exceeded(limit) => format!("one remote: {limit}"),
            };
            Err(Obstacle::general(reason))
        }
        Found::LimitReached { .. } if is_interrupted => Err(Obstacle::interrupted()),
        Found::LimitReached { states } => Err(Obstacle::general(format!(
            "one remote has more than {states} states"
        ))),
    }
}
