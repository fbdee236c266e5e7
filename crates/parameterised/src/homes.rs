//! Homes of a protocol: written as rows, or constructed from a policy.

use cohkit_protocol::construct::{construct_until, Construction, ConstructionError, Extent};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::obstacle::Obstacle;
use crate::Limits;

/// Interval at which the construction of a home may be cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Homes of a protocol in systems of one remote, and of any larger number.
pub(crate) struct Homes {
    /// Home of one remote.
    pub(crate) one_remote: Controller,
    /// Home of two remotes and more.
    pub(crate) several_remotes: Controller,
}

/// Returns the homes of a protocol.
///
/// # Errors
/// No home can be constructed, or the construction is cancelled.
pub(crate) fn homes(protocol: &Protocol, limits: &mut Limits) -> Result<Homes, Obstacle> {
    match &protocol.home {
        Home::Controller(home) => Ok(Homes {
            one_remote: home.clone(),
            several_remotes: home.clone(),
        }),
        Home::Policy(policy) => {
            let systems = protocol.systems.iter();
            let has_pair = systems.map(|system| system.remotes.total()).max() >= Some(2);
            if !has_pair {
                let reason = "no system has two remotes, for which the home is constructed";
                return Err(Obstacle::at(policy.span, reason));
            }
            constructed_homes(protocol, limits)
        }
    }
}

/// As [`homes`], for a home that is a policy. The construction runs on a thread of its own, so that it can be
/// cancelled.
///
/// # Errors
/// As [`homes`].
fn constructed_homes(protocol: &Protocol, limits: &mut Limits) -> Result<Homes, Obstacle> {
    let cancel = AtomicBool::new(false);
    let construct = || {
        let construction = construct_until(protocol, Extent::default(), &cancel)?;
        let construction = construction.map(Construction::sound).transpose()?;
        let homes = construction.map(|construction| Homes {
            one_remote: construction.controller(1),
            several_remotes: construction.controller(2),
        });
        Ok::<_, ConstructionError>(homes)
    };
    let constructed = std::thread::scope(|scope| {
        let thread = scope.spawn(construct);
        while !thread.is_finished() {
            let callback = limits.should_continue.as_mut();
            if callback.is_some_and(|should_continue| !should_continue()) {
                cancel.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        thread.join()
    });
    match constructed {
        Ok(Ok(Some(homes))) => Ok(homes),
        Ok(Ok(None)) => Err(Obstacle::interrupted()),
        Ok(Err(ConstructionError::Refused(refusal))) => {
            let reason = format!("no home can be constructed: {}", refusal.obstacle);
            Err(Obstacle::at(refusal.span, reason))
        }
        Ok(Err(ConstructionError::Fault(fault))) => {
            let reason = format!("no home can be constructed: {}", fault.text);
            Err(Obstacle::at(fault.span, reason))
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
