//! Memory that is lent: the right to it comes and goes.
//!
//! Where a home stands over a cache of another protocol, its memory is that cache's copy (see `levels`). Here the rest of the
//! world is whatever keeps to the same rules, which are those of [`crate::over`]:
//!
//! * a request that needs more than there is waits, and the right grows while one does;
//! * a write of memory needs the right to write it, and no remote has more than is lent;
//! * the right goes under a lock that the home's local operation has ensured enough for, and for no other reason;
//! * what is not lent is written by others.
//!
//! When the right grows, and how far, is not said: an outer access may have begun before, and may bring more than was asked
//! for. So what such a home does below any outer protocol, for any number of caches there, is among what is explored here.

use cohkit_protocol::protocol::Right;

use super::{Lock, System, World};
use crate::agent::Violation;
use crate::data::{Data, Extent};
use crate::over;

impl System<'_> {
    /// The same system with its memory lent.
    #[must_use]
    pub fn lend(mut self) -> Self {
        let messages = self.protocol.message_ids();
        let needs = messages.map(|message| over::needs(self.protocol, message));
        self.lent = Some(needs.collect());
        self
    }
}

impl<D: Data> World<D> {
    /// What a request that could be taken needs of a line, if that is more than is lent.
    fn wanted(&self, system: &System, line: u8) -> Option<Right> {
        let needs = system.lent.as_ref()?;
        let arrivals = self.network.arrivals(system.protocol);
        let flights = arrivals.filter_map(|arrival| self.network.at(arrival));
        let waiting = flights.filter(|flight| flight.line == line && flight.to.is_none());
        let needs = waiting.map(|flight| needs[flight.message.index()]).max()?;
        (needs > self.lines[usize::from(line)].lent).then_some(needs)
    }

    /// Whether what the home is sent has to wait for more of a right.
    pub(super) fn waits_for_memory(
        &self,
        system: &System,
        line: u8,
        message: cohkit_protocol::protocol::MessageId,
    ) -> bool {
        let lent = self.lines[usize::from(line)].lent;
        (system.lent.as_ref()).is_some_and(|needs| needs[message.index()] > lent)
    }

    /// The rights that may be lent next, and those down to which it may be taken back.
    pub(super) fn lending(&self, system: &System, line: u8) -> (Vec<Right>, Vec<Right>) {
        let place = &self.lines[usize::from(line)];
        let all = [Right::None, Right::Read, Right::Write];
        let (more, less) = all
            .into_iter()
            .partition::<Vec<_>, _>(|right| *right > place.lent);
        let more = match self.wanted(system, line) {
            Some(_) => more,
            None => Vec::new(),
        };
        let locked = match place.lock {
            Lock::Held(Right::Write) => Some(Right::None),
            Lock::Held(_) => Some(Right::Read),
            Lock::Open | Lock::GivenBack => None,
        };
        let lets = |right: &Right| locked.is_some_and(|locked| over::lets(locked, *right));
        let less = less
            .into_iter()
            .filter(|right| *right < place.lent && lets(right));
        (more, less.collect())
    }

    /// Whether the outside may ask for a local operation: it takes back what is lent, one thing at a time.
    pub(super) fn may_ask(&self, system: &System, line: u8, local: u8) -> bool {
        let place = &self.lines[usize::from(line)];
        let about = &system.home.locals[usize::from(local)];
        let free = place.asked.is_none() && place.accepted.is_none() && place.lock == Lock::Open;
        system.lent.is_none() || about.locks && free && about.ensures < place.lent
    }

    /// More or less of the right is lent.
    pub(super) fn lends(&mut self, system: &System, line: u8, right: Right) {
        let had = self.lines[usize::from(line)].lent;
        let last = self.data.initial(line);
        let place = self.line(line);
        place.lent = right;
        match (had, right) {
            (_, Right::None) => place.memory = D::Copy::default(),
            (Right::None, _) => place.memory = last,
            _ => {}
        }
        self.lent_writes(system, line);
    }

    /// What `memory writes` is in the guards of the home.
    pub(super) fn lent_writes(&mut self, system: &System, line: u8) {
        if let Some(slot) = system.home_machine().memory_writes() {
            let place = self.line(line);
            place.home.slots[slot] = u16::from(place.lent == Right::Write);
        }
    }

    /// Others write a line that is not lent. False if that changes nothing.
    pub(super) fn others_write(&mut self, system: &System, line: u8) -> bool {
        if !self.another_is_current(system, line, None) {
            return false;
        }
        let (none, what) = (D::Copy::default(), D::Write::default());
        self.write(system, line, &none, Extent::Part, &what);
        true
    }

    /// That memory which is written may be.
    pub(super) fn may_write(&self, line: u8) -> Result<(), Violation> {
        match self.lines[usize::from(line)].lent {
            Right::Write => Ok(()),
            _ => Err(Violation::new("inclusion", WRITES_UNLENT)),
        }
    }
}

/// A home writes its memory while it may not.
pub const WRITES_UNLENT: &str = "the home writes memory that is not lent to be written";
/// A remote has a right that is not lent.
pub const MORE_THAN_LENT: &str = "a remote has a right to a line that is not lent so far";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Current;
    use crate::world::{explore, Found, Wrong};
    use cohkit_protocol::construct;
    use cohkit_protocol::text::parse;

    /// What is broken first, with something of the rules left out.
    fn broken(leave_out: impl FnOnce(&mut System)) -> Option<String> {
        let text = include_str!("../../../../protocols/mesi-l1.coh");
        let protocol = parse(text).expect("it ships");
        let home = construct::home(&protocol, 2).expect("a home");
        let mut system = System::new(&protocol, &home, 2u16, 1, 7).lend();
        leave_out(&mut system);
        match explore(&system, World::<Current>::new(&system), 50_000) {
            Found::Safe { lost: None, .. } => None,
            Found::Safe { .. } => Some("drain".to_string()),
            Found::Wrong { what, .. } => match &what[0] {
                Wrong::Violated(violation) => Some(violation.property.to_string()),
                Wrong::Exceeded(limit) => Some(limit.clone()),
            },
            Found::TooMany { worlds } => Some(format!("{worlds}")),
        }
    }

    #[test]
    fn without_admission_a_remote_has_what_is_not_there_or_more_than_is_lent() {
        assert_eq!(broken(|_| ()), None);
        let admits = |right: Right| {
            move |system: &mut System| {
                let needs = system.lent.iter_mut().flatten();
                needs.for_each(|need| *need = right.min(*need));
            }
        };
        assert_eq!(broken(admits(Right::None)).as_deref(), Some("data value"));
        // A store is let in where the line may only be read.
        assert_eq!(broken(admits(Right::Read)).as_deref(), Some("inclusion"));
    }
}
