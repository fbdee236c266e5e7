//! Sets of homes in rows. The cost of an operation depends on the number of words of the set.

use super::members::{is_in, ones, words, Members, WORD_BITS};
use super::{Fault, RuleExecution};
use crate::controller::{Expression, HomeSet, HomeSetQuery, Statement};
use crate::terms::VariableId;

impl RuleExecution<'_, '_, '_> {
    /// Evaluates a query: the number of members, or a truth value as 0 or 1.
    pub(super) fn eval_homes(&mut self, query: &HomeSetQuery) -> Result<i32, Fault> {
        Ok(match query {
            HomeSetQuery::Count(set) => self.count_homes(set)? as i32,
            HomeSetQuery::In(home, set) => {
                let home = self.eval_home(home)?;
                self.has_home(set, home)?.into()
            }
            HomeSetQuery::Equal(a, b) => self
                .eval_home_set(a)?
                .equals(&self.eval_home_set(b)?)
                .into(),
        })
    }

    /// Assigns to a set variable. A union or difference of the variable and one home changes a single word in
    /// place.
    pub(super) fn assign_homes(
        &mut self,
        variable: VariableId,
        set: &HomeSet,
    ) -> Result<(), Fault> {
        let (first, count) = self.home_set_slots(variable);
        // Adding or removing one home changes a single word.
        let is_variable = |set: &HomeSet| *set == HomeSet::Variable(variable);
        let single_change = match set {
            HomeSet::Union(left, right) if is_variable(left) => Some((&**right, true)),
            HomeSet::Difference(left, right) if is_variable(left) => Some((&**right, false)),
            _ => None,
        };
        if let Some((HomeSet::Singleton(home), adds)) = single_change {
            let home = self.eval_home(home)?;
            let slot = first + usize::from(home / WORD_BITS);
            let (word, bit) = (self.values.get(slot), 1 << (home % WORD_BITS));
            let word = if adds { word | bit } else { word & !bit };
            self.values.set(slot, word);
            return Ok(());
        }
        let members = self.eval_home_set(set)?;
        self.values.store_set(first, count, &members);
        Ok(())
    }

    /// Executes `body` for each member of `set` in ascending order. The set is evaluated once, before the
    /// first iteration.
    pub(super) fn for_homes(&mut self, set: &HomeSet, body: &[Statement]) -> Result<(), Fault> {
        for home in self.eval_home_set(set)?.numbers() {
            self.each = home;
            self.execute_body(body)?;
        }
        Ok(())
    }

    /// First slot and number of slots of a variable that is a set of homes.
    fn home_set_slots(&self, variable: VariableId) -> (usize, usize) {
        let ty = self.machine.controller.variables[variable.index()].ty;
        let homes = ty.extent(self.machine.remotes)[0];
        (self.machine.slot(variable.0), words(homes))
    }

    /// Bit masks of a variable that is a set of homes.
    fn home_set_words(&self, variable: VariableId) -> &[u16] {
        let (first, count) = self.home_set_slots(variable);
        self.values.slots(first, count)
    }

    /// Number of a home; [`Fault::Arithmetic`] if the value does not fit.
    fn eval_home(&mut self, home: &Expression) -> Result<u16, Fault> {
        u16::try_from(self.eval(home)?).map_err(|_| Fault::Arithmetic)
    }

    /// Returns a copy of the members of a set.
    fn eval_home_set(&mut self, set: &HomeSet) -> Result<Members, Fault> {
        Ok(match set {
            HomeSet::Empty => Members::empty(),
            HomeSet::Singleton(home) => {
                let mut members = Members::empty();
                members.add(self.eval_home(home)?);
                members
            }
            HomeSet::Variable(variable) => Members::from_words(self.home_set_words(*variable)),
            HomeSet::Union(a, b) => self
                .eval_home_set(a)?
                .combine(&self.eval_home_set(b)?, |a, b| a | b),
            HomeSet::Difference(a, b) => self
                .eval_home_set(a)?
                .combine(&self.eval_home_set(b)?, |a, b| a & !b),
        })
    }

    /// Number of homes in a set. A variable, with or without one more or less home, is counted without a copy.
    fn count_homes(&mut self, set: &HomeSet) -> Result<u32, Fault> {
        let (base, operand, adds) = match set {
            HomeSet::Variable(variable) => return Ok(ones(self.home_set_words(*variable))),
            HomeSet::Union(base, operand) => (base, &**operand, true),
            HomeSet::Difference(base, operand) => (base, &**operand, false),
            HomeSet::Empty | HomeSet::Singleton(_) => return Ok(self.eval_home_set(set)?.count()),
        };
        let HomeSet::Singleton(home) = operand else {
            return Ok(self.eval_home_set(set)?.count());
        };
        let (count, home) = (self.count_homes(base)?, self.eval_home(home)?);
        Ok(match (adds, self.has_home(base, home)?) {
            (true, false) => count + 1,
            (false, true) => count - 1,
            _ => count,
        })
    }

    /// Returns true if a home is in a set.
    fn has_home(&mut self, set: &HomeSet, home: u16) -> Result<bool, Fault> {
        Ok(match set {
            HomeSet::Empty => false,
            HomeSet::Singleton(member) => self.eval_home(member)? == home,
            HomeSet::Variable(variable) => is_in(self.home_set_words(*variable), home),
            // Both operands are evaluated, so that a fault in either is reported.
            HomeSet::Union(a, b) => self.has_home(a, home)? | self.has_home(b, home)?,
            HomeSet::Difference(a, b) => self.has_home(a, home)? & !self.has_home(b, home)?,
        })
    }
}
