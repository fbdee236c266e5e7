//! Sets of homes in rows. The cost of an operation depends on the number of words of the set.

use super::members::{is_in, ones, words, Members, WORD};
use super::{Fault, Run};
use crate::controller::{Expression, HomeSet, HomeSetQuery, Statement};
use crate::terms::VariableId;

impl Run<'_, '_, '_> {
    pub(super) fn of_homes(&mut self, of: &HomeSetQuery) -> Result<i32, Fault> {
        Ok(match of {
            HomeSetQuery::Count(set) => self.count_homes(set)? as i32,
            HomeSetQuery::In(home, set) => {
                let home = self.home_number(home)?;
                self.has_home(set, home)?.into()
            }
            HomeSetQuery::Equal(a, b) => self.home_set(a)?.is(&self.home_set(b)?).into(),
        })
    }

    pub(super) fn assign_homes(
        &mut self,
        variable: VariableId,
        set: &HomeSet,
    ) -> Result<(), Fault> {
        let (first, count) = self.home_set_slots(variable);
        // Adding or removing one home changes a single word.
        let own = |set: &HomeSet| *set == HomeSet::Variable(variable);
        let one = match set {
            HomeSet::Union(all, one) if own(all) => Some((&**one, true)),
            HomeSet::Difference(all, one) if own(all) => Some((&**one, false)),
            _ => None,
        };
        if let Some((HomeSet::Singleton(home), more)) = one {
            let home = self.home_number(home)?;
            let slot = first + usize::from(home / WORD);
            let (word, bit) = (self.values.get(slot), 1 << (home % WORD));
            let word = if more { word | bit } else { word & !bit };
            self.values.set(slot, word);
            return Ok(());
        }
        let members = self.home_set(set)?;
        self.values.put(first, count, &members);
        Ok(())
    }

    pub(super) fn for_homes(&mut self, set: &HomeSet, body: &[Statement]) -> Result<(), Fault> {
        for home in self.home_set(set)?.numbers() {
            self.each = home;
            self.body(body)?;
        }
        Ok(())
    }

    /// First slot and number of slots of a variable that is a set of homes.
    fn home_set_slots(&self, variable: VariableId) -> (usize, usize) {
        let ty = self.machine.controller.variables[variable.index()].ty;
        let homes = ty.extent(self.machine.remotes)[0];
        (self.machine.slot(variable.0), words(homes))
    }

    fn home_set_words(&self, variable: VariableId) -> &[u16] {
        let (first, count) = self.home_set_slots(variable);
        self.values.of(first, count)
    }

    fn home_number(&mut self, home: &Expression) -> Result<u16, Fault> {
        u16::try_from(self.eval(home)?).map_err(|_| Fault::Arithmetic)
    }

    /// Evaluates a set.
    fn home_set(&mut self, set: &HomeSet) -> Result<Members, Fault> {
        Ok(match set {
            HomeSet::Empty => Members::none(),
            HomeSet::Singleton(home) => {
                let mut members = Members::none();
                members.add(self.home_number(home)?);
                members
            }
            HomeSet::Variable(variable) => Members::of(self.home_set_words(*variable)),
            HomeSet::Union(a, b) => self.home_set(a)?.with(&self.home_set(b)?, |a, b| a | b),
            HomeSet::Difference(a, b) => self.home_set(a)?.with(&self.home_set(b)?, |a, b| a & !b),
        })
    }

    /// Number of homes in a set. A variable, with or without one more or less home, is counted without a copy.
    fn count_homes(&mut self, set: &HomeSet) -> Result<u32, Fault> {
        let (all, one, more) = match set {
            HomeSet::Variable(variable) => return Ok(ones(self.home_set_words(*variable))),
            HomeSet::Union(all, one) => (all, &**one, true),
            HomeSet::Difference(all, one) => (all, &**one, false),
            HomeSet::Empty | HomeSet::Singleton(_) => return Ok(self.home_set(set)?.count()),
        };
        let HomeSet::Singleton(home) = one else {
            return Ok(self.home_set(set)?.count());
        };
        let (count, home) = (self.count_homes(all)?, self.home_number(home)?);
        Ok(match (more, self.has_home(all, home)?) {
            (true, false) => count + 1,
            (false, true) => count - 1,
            _ => count,
        })
    }

    /// Returns true if a home is in a set.
    fn has_home(&mut self, set: &HomeSet, home: u16) -> Result<bool, Fault> {
        Ok(match set {
            HomeSet::Empty => false,
            HomeSet::Singleton(own) => self.home_number(own)? == home,
            HomeSet::Variable(variable) => is_in(self.home_set_words(*variable), home),
            // Both operands are evaluated, so that a fault in either is reported.
            HomeSet::Union(a, b) => self.has_home(a, home)? | self.has_home(b, home)?,
            HomeSet::Difference(a, b) => self.has_home(a, home)? & !self.has_home(b, home)?,
        })
    }
}
