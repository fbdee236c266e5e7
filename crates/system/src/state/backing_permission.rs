//! Backing permission: the outer level grants and revokes the home's permission to its memory.
//!
//! The memory of a home below a cache of another protocol is that cache's copy (see `levels`). Here an abstract outer
//! level follows the same rules, those of [`crate::hierarchy`]:
//!
//! * a request that needs more permission than the home has waits, and the permission rises only while a request waits;
//! * a write of memory needs write permission, and no remote has more permission than the home;
//! * the permission falls only under a lock whose local operation has ensured it;
//! * a line without permission is written by others.
//!
//! The time and the extent of a grant are open: an outer access may have begun earlier, and may bring more than was
//! requested. The states explored here therefore include every behaviour of the home below any outer protocol with any
//! number of caches.

use cohkit_protocol::protocol::{MessageId, Permission};

use super::{Lock, System, SystemState};
use crate::agent::Violation;
use crate::data::{Data, Extent};
use crate::hierarchy;

impl System<'_> {
    /// The same system with backing permission from an abstract outer level.
    #[must_use]
    pub fn with_backing_permission(mut self) -> Self {
        let messages = self.protocol.message_ids();
        let needs = messages.map(|message| hierarchy::required_permission(self.protocol, message));
        self.backing_needs = Some(needs.collect());
        self
    }
}

impl<D: Data> SystemState<D> {
    /// The permission that the requests of the line that may arrive next need, if it exceeds the backing permission.
    fn needed_permission(&self, system: &System, line: u8) -> Option<Permission> {
        let needs = system.backing_needs.as_ref()?;
        let arrivals = self.network.arrivals(system.protocol);
        let flights = arrivals.filter_map(|arrival| self.network.at(arrival));
        let waiting = flights.filter(|flight| flight.line == line && flight.to.is_none());
        let needs = waiting.map(|flight| needs[flight.message.index()]).max()?;
        (needs > self.lines[usize::from(line)].backing_permission).then_some(needs)
    }

    /// True if a message to the home has to wait for more backing permission.
    pub(super) fn waits_for_memory(&self, system: &System, line: u8, message: MessageId) -> bool {
        let permission = self.lines[usize::from(line)].backing_permission;
        (system.backing_needs.as_ref()).is_some_and(|needs| needs[message.index()] > permission)
    }

    /// The backing permissions that may be granted next, and those to which it may fall.
    pub(super) fn next_backing_permissions(
        &self,
        system: &System,
        line: u8,
    ) -> (Vec<Permission>, Vec<Permission>) {
        let line_state = &self.lines[usize::from(line)];
        let permissions = [Permission::None, Permission::Read, Permission::Write];
        let (higher, lower) = permissions
            .into_iter()
            .partition::<Vec<_>, _>(|permission| *permission > line_state.backing_permission);
        let higher = match self.needed_permission(system, line) {
            Some(_) => higher,
            None => Vec::new(),
        };
        let locked = match line_state.lock {
            Lock::Held(Permission::Write) => Some(Permission::None),
            Lock::Held(_) => Some(Permission::Read),
            Lock::Unlocked | Lock::Unlocking => None,
        };
        let lock_permits = |permission: &Permission| {
            locked.is_some_and(|locked| hierarchy::lock_permits(locked, *permission))
        };
        let lower = lower.into_iter().filter(|permission| {
            *permission < line_state.backing_permission && lock_permits(permission)
        });
        (higher, lower.collect())
    }

    /// True if the device may request a local operation. An outer level does so only to revoke permission, one
    /// operation at a time.
    pub(super) fn may_request(&self, system: &System, line: u8, local: u8) -> bool {
        let line_state = &self.lines[usize::from(line)];
        let operation = &system.home.locals[usize::from(local)];
        let is_unreserved = line_state.requested.is_none()
            && line_state.accepted.is_none()
            && line_state.lock == Lock::Unlocked;
        system.backing_needs.is_none()
            || operation.locks && is_unreserved && operation.ensures < line_state.backing_permission
    }

    /// Sets the backing permission.
    pub(super) fn set_backing_permission(
        &mut self,
        system: &System,
        line: u8,
        permission: Permission,
    ) {
        let old_permission = self.lines[usize::from(line)].backing_permission;
        let initial_copy = self.data.initial(line);
        let line_state = self.line(line);
        line_state.backing_permission = permission;
        match (old_permission, permission) {
            (_, Permission::None) => line_state.memory = D::Copy::default(),
            (Permission::None, _) => line_state.memory = initial_copy,
            _ => {}
        }
        self.set_memory_writes(system, line);
    }

    /// Sets the variable `memory writes`, which the guards of the home read.
    pub(super) fn set_memory_writes(&mut self, system: &System, line: u8) {
        if let Some(slot) = system.home_machine().memory_writes() {
            let line_state = self.line(line);
            line_state.home.slots[slot] =
                u16::from(line_state.backing_permission == Permission::Write);
        }
    }

    /// Records a write of others to a line without permission. Returns false if that changes nothing.
    pub(super) fn record_external_write(&mut self, system: &System, line: u8) -> bool {
        if !self.has_other_current_copy(system, line, None) {
            return false;
        }
        let (copy, value) = (D::Copy::default(), D::Write::default());
        self.write(system, line, &copy, Extent::Part, &value);
        true
    }

    /// Checks that the home may write its memory.
    pub(super) fn may_write(&self, line: u8) -> Result<(), Violation> {
        match self.lines[usize::from(line)].backing_permission {
            Permission::Write => Ok(()),
            _ => Err(Violation::new("inclusion", WRITE_WITHOUT_PERMISSION)),
        }
    }
}

/// Violation: a home writes its memory without write permission.
pub const WRITE_WITHOUT_PERMISSION: &str =
    "the home writes memory without write permission from the outer level";
/// Violation: a remote has more permission than the home has to its memory.
pub const EXCEEDS_BACKING_PERMISSION: &str =
    "a remote has more permission for a line than the outer level grants";

#[cfg(test)]
mod tests {
    use super::super::{System, SystemState};
    use crate::data::Current;
    use crate::state::{explore, Found, StepError};
    use cohkit_protocol::construct;
    use cohkit_protocol::protocol::Permission;
    use cohkit_protocol::text::parse;

    /// The first violated property after `weaken` has weakened the rules.
    fn first_violation(weaken: impl FnOnce(&mut System)) -> Option<String> {
        let text = include_str!("../../../../protocols/mesi-l1.coh");
        let protocol = parse(text).expect("shipped file");
        let home = construct::home(&protocol, 2).expect("a home");
        let mut system = System::new(&protocol, &home, 2u16, 1, 7).with_backing_permission();
        weaken(&mut system);
        match explore(&system, SystemState::<Current>::new(&system), 50_000) {
            Found::Safe {
                stuck_path: None, ..
            } => None,
            Found::Safe { .. } => Some("quiescence".to_string()),
            Found::Violated { errors, .. } => match &errors[0] {
                StepError::Violated(violation) => Some(violation.property.to_string()),
                StepError::Exceeded(limit) => Some(limit.clone()),
            },
            Found::LimitReached { states } => Some(format!("{states}")),
        }
    }

    /// Fails if the exploration does not find a home that takes requests with too little backing permission.
    #[test]
    fn weak_admission_violates_data_value_or_inclusion() {
        assert_eq!(first_violation(|_| ()), None);
        let weaken_admission = |permission: Permission| {
            move |system: &mut System| {
                let needs = system.backing_needs.iter_mut().flatten();
                needs.for_each(|need| *need = permission.min(*need));
            }
        };
        assert_eq!(
            first_violation(weaken_admission(Permission::None)).as_deref(),
            Some("data value")
        );
        // A store is admitted to a line with read permission only.
        assert_eq!(
            first_violation(weaken_admission(Permission::Read)).as_deref(),
            Some("inclusion")
        );
    }
}
