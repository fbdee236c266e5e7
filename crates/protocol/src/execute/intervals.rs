//! Intervals of remotes with the same truth value of a condition, which is evaluated once per interval.
//!
//! Most of several hundred remotes have the same values, so slots are compared in blocks.

use super::members::WORD_BITS;
use super::RuleExecution;
use crate::controller::{Expression, Operator, Set};
use crate::terms::{IndexDomain, Type, VariableId};

/// Number of slots compared at a time.
const SLOTS_PER_BLOCK: usize = 32;

/// Counts the leading slots, `stride` apart, that equal the first one.
fn equal_slots(slots: &[u16], stride: usize) -> usize {
    let Some(&value) = slots.first() else {
        return 0;
    };
    if stride != 1 {
        let elements = slots.iter().step_by(stride);
        return elements.take_while(|&&slot| slot == value).count();
    }
    let have_difference = |slots: &[u16]| {
        slots
            .iter()
            .fold(0, |differences, slot| differences | (slot ^ value))
            != 0
    };
    let equal_blocks = slots
        .chunks(SLOTS_PER_BLOCK)
        .take_while(|slots| !have_difference(slots));
    let equal_count = equal_blocks.map(<[u16]>::len).sum::<usize>();
    equal_count
        + slots[equal_count..]
            .iter()
            .take_while(|&&slot| slot == value)
            .count()
}

impl RuleExecution<'_, '_, '_> {
    /// Returns the end of the interval: the first remote, counted from 1, for which the condition may differ from its
    /// value for the current remote. Returns the number after the last remote if there is none. Precondition: the
    /// condition has been evaluated, and no value has changed since.
    pub(super) fn interval_end(&mut self, condition: &Expression) -> u32 {
        let next = u32::from(self.each) + 1;
        let end = u32::from(self.machine.remotes) + 1;
        match self.machine.remotes > WORD_BITS {
            true => self.constant_interval_end(condition, end).unwrap_or(next),
            // The few remotes of a checked system are evaluated faster one by one.
            false => next,
        }
    }

    /// Returns the end of an interval, at most `end`, in which the expression has one value. Returns `None` if the
    /// analysis does not cover how the expression depends on the remote.
    fn constant_interval_end(&mut self, expression: &Expression, end: u32) -> Option<u32> {
        match expression {
            Expression::Each | Expression::Homes(_) => None,
            Expression::Constant(_)
            | Expression::None
            | Expression::Own
            | Expression::Sender
            | Expression::Home
            | Expression::State
            | Expression::Variable(_)
            | Expression::Field(_)
            // These bind a remote of their own.
            | Expression::All(_)
            | Expression::Any(_) => Some(end),
            Expression::Element(variable, indices) => self.element_interval_end(*variable, indices, end),
            Expression::Table(_, operand)
            | Expression::Not(operand)
            | Expression::Modulo(operand, _) => self.constant_interval_end(operand, end),
            Expression::Count(set) => self.set_interval_end(set, end),
            Expression::SetsEqual(a, b) | Expression::SetsDiffer(a, b) => {
                let end = self.set_interval_end(a, end)?;
                self.set_interval_end(b, end)
            }
            Expression::In(remote, set) if **remote == Expression::Each => {
                let end = self.set_interval_end(set, end)?;
                let members = self.eval_set(set).ok()?;
                let change = members.next_change(self.each - 1);
                Some(change.map_or(end, |change| end.min(u32::from(change) + 1)))
            }
            Expression::In(remote, set) => {
                let end = self.constant_interval_end(remote, end)?;
                self.set_interval_end(set, end)
            }
            Expression::Binary(operator, left, right) => {
                let compares = matches!(operator, Operator::Equal | Operator::NotEqual);
                match (&**left, &**right) {
                    (Expression::Each, other) | (other, Expression::Each) if compares => {
                        let end = self.constant_interval_end(other, end)?;
                        let current = u32::from(self.each);
                        Some(match u32::try_from(self.eval(other).ok()?) {
                            Ok(number) if number == current => current + 1,
                            Ok(number) if number > current => end.min(number),
                            _ => end,
                        })
                    }
                    (left, right) => {
                        let end = self.constant_interval_end(left, end)?;
                        self.constant_interval_end(right, end)
                    }
                }
            }
        }
    }

    /// As [`RuleExecution::constant_interval_end`], for an element of an array.
    fn element_interval_end(
        &mut self,
        variable: VariableId,
        indices: &[Expression],
        end: u32,
    ) -> Option<u32> {
        let (mut end, mut dimension) = (end, None);
        for (position, index) in indices.iter().enumerate() {
            match index {
                Expression::Each if dimension.is_none() => dimension = Some(position),
                index => end = self.constant_interval_end(index, end)?,
            }
        }
        let Some(dimension) = dimension else {
            return Some(end);
        };
        let Type::Array {
            first_domain,
            second_domain,
            ..
        } = self.machine.controller.variables[variable.index()].ty
        else {
            return None;
        };
        let (indexed, stride) = match (dimension, second_domain) {
            (0, None) => (first_domain, 1),
            (0, Some(second_domain)) => (
                first_domain,
                usize::from(second_domain.count(self.machine.remotes)),
            ),
            (_, second_domain) => (second_domain?, 1),
        };
        if indexed != IndexDomain::Remotes {
            return None;
        }
        let first = self.machine.slot(variable.0) + self.element_offset(variable, indices).ok()?;
        let count = (end - u32::from(self.each)) as usize;
        let slots = self.values.slots(first, (count - 1) * stride + 1);
        Some(u32::from(self.each) + equal_slots(slots, stride) as u32)
    }

    /// As [`RuleExecution::constant_interval_end`], for a set.
    fn set_interval_end(&mut self, set: &Set, end: u32) -> Option<u32> {
        match set {
            Set::Empty | Set::All(_) | Set::Variable(_) | Set::Field(_) => Some(end),
            Set::Singleton(remote) => self.constant_interval_end(remote, end),
            Set::Union(a, b) | Set::Difference(a, b) => {
                let end = self.set_interval_end(a, end)?;
                self.set_interval_end(b, end)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::members::{words, Members};
    use super::super::values::{Registers, Values};
    use super::super::{Machine, RuleExecution, Trigger};
    use crate::controller::Expression as E;
    use crate::controller::{Controller, Event, Initial, Operator, Set, State, Variable};
    use crate::protocol::Permission;
    use crate::terms::{Element, IndexDomain, Type, VariableId};
    use cohkit_diagnostics::Span;
    use proptest::prelude::*;

    const REMOTES: u16 = 45;
    const EPOCHS: u16 = 3;

    fn controller() -> Controller {
        let array = |first_domain, second_domain| Type::Array {
            first_domain,
            second_domain,
            of: Element::Range { max: 3 },
        };
        let types = [
            array(IndexDomain::Remotes, None),
            array(IndexDomain::Remotes, Some(IndexDomain::Numbers(EPOCHS))),
            array(IndexDomain::Numbers(EPOCHS), Some(IndexDomain::Remotes)),
            Type::RemoteSet,
            Type::Remote,
            Type::Range { max: EPOCHS - 1 },
        ];
        let variable = |ty| Variable {
            register: false,
            name: String::new(),
            ty,
            initial: Initial::Number(0),
            labels: Vec::new(),
            internal: false,
            span: Span::default(),
        };
        Controller {
            name: "home".into(),
            states: vec![State {
                name: "home".into(),
                permission: Permission::None,
                dirty: false,
                holds_line: false,
                waits: Vec::new(),
                span: Span::default(),
            }],
            variables: types.map(variable).into(),
            tables: vec![crate::controller::Table {
                name: "even".into(),
                values: vec![1, 0, 1, 0],
            }],
            rules: Vec::new(),
            locals: Vec::new(),
            span: Span::default(),
        }
    }

    fn binary(operator: Operator, left: E, right: E) -> E {
        E::Binary(operator, Box::new(left), Box::new(right))
    }

    /// Conditions on the current remote, one of each form.
    fn conditions() -> Vec<E> {
        let variable = VariableId;
        let state = || E::Element(variable(0), vec![E::Each]);
        let named = || E::Variable(variable(4));
        let epoch = || E::Variable(variable(5));
        let element_below_two = |array, indices| {
            binary(
                Operator::Less,
                E::Element(variable(array), indices),
                E::Constant(2),
            )
        };
        let sharers = || Set::Variable(variable(3));
        let in_set = |set| E::In(Box::new(E::Each), Box::new(set));
        let singleton = |element| Set::Singleton(Box::new(element));
        let even = || E::Table(0, Box::new(state()));
        vec![
            E::Constant(1),
            even(),
            binary(
                Operator::And,
                binary(Operator::NotEqual, E::Each, named()),
                even(),
            ),
            binary(
                Operator::Or,
                binary(Operator::Equal, named(), E::Each),
                E::Not(Box::new(even())),
            ),
            binary(Operator::Equal, E::Each, E::Sender),
            element_below_two(1, vec![E::Each, epoch()]),
            element_below_two(2, vec![epoch(), E::Each]),
            element_below_two(1, vec![E::Each, E::Element(variable(0), vec![E::Each])]),
            in_set(sharers()),
            in_set(Set::Difference(
                Box::new(sharers()),
                Box::new(singleton(named())),
            )),
            in_set(Set::Union(
                Box::new(Set::All(crate::remotes::KindId(0))),
                Box::new(sharers()),
            )),
            binary(Operator::And, E::Not(Box::new(in_set(sharers()))), even()),
            binary(Operator::Greater, E::Count(Box::new(sharers())), state()),
            // Not covered by the analysis: the remote itself is compared, or is an element of the counted set.
            binary(Operator::Less, E::Each, named()),
            binary(
                Operator::Equal,
                E::Count(Box::new(Set::Union(
                    Box::new(sharers()),
                    Box::new(singleton(E::Each)),
                ))),
                E::Constant(3),
            ),
            binary(Operator::Equal, E::Each, state()),
        ]
    }

    /// Runs `action` on a machine with these slots.
    fn with_run<T>(slots: &mut [u16], action: impl FnOnce(&mut RuleExecution) -> T) -> T {
        let controller = controller();
        let machine = Machine::new(&controller, REMOTES);
        let registers = Registers {
            slots: &mut [],
            changes: None,
        };
        let mut values = Values {
            line_slots: slots,
            registers,
        };
        action(&mut RuleExecution {
            machine: &machine,
            state: 0,
            values: &mut values,
            trigger: Trigger {
                event: Event::MemoryDone,
                sender: Some(20),
                executing_remote: None,
                home: 0,
                fields: &[],
            },
            tables: &mut &controller,
            each: 0,
            choice: 0,
            acts: Vec::new(),
            fault: None,
        })
    }

    /// Slots made of runs of equal values, each given by its first index and value; then the set, the remote and the
    /// epoch.
    fn slots(runs: &[(usize, u16)], sharers: &[u16], named: u16, epoch: u16) -> Vec<u16> {
        let arrays = usize::from(REMOTES * (1 + 2 * EPOCHS));
        let mut slots = vec![0; arrays];
        for &(first, value) in runs {
            slots[first % arrays..].fill(value);
        }
        let mut members = Members::empty();
        sharers.iter().for_each(|remote| members.add(*remote));
        let mut set = vec![0; words(REMOTES)];
        members.write_to(&mut set);
        slots.extend(set);
        slots.extend([named, epoch]);
        slots
    }

    proptest! {
        /// A condition has one value in an interval, and quantifiers give the same result as an evaluation of each
        /// remote.
        #[test]
        fn condition_is_constant_in_an_interval(
            runs in prop::collection::vec((0..1000_usize, 0..3_u16), 0..12),
            sharers in prop::collection::vec(0..REMOTES, 0..12),
            named in 0..=REMOTES,
            epoch in 0..EPOCHS,
        ) {
            let mut slots = slots(&runs, &sharers, named, epoch);
            for condition in conditions() {
                with_run(&mut slots, |run| {
                    let mut expected = Vec::new();
                    for remote in 1..=REMOTES {
                        run.each = remote;
                        expected.push(run.eval(&condition).unwrap() != 0);
                    }
                    for remote in 1..=REMOTES {
                        run.each = remote;
                        let end = run.interval_end(&condition);
                        assert!(end > remote.into() && end <= u32::from(REMOTES) + 1);
                        let interval = &expected[usize::from(remote) - 1..end as usize - 1];
                        assert!(interval.iter().all(|truth| *truth == interval[0]), "{condition:?} at {remote}");
                    }
                    let holds_for_all = run.eval(&E::All(Box::new(condition.clone()))).unwrap() != 0;
                    let holds_for_any = run.eval(&E::Any(Box::new(condition.clone()))).unwrap() != 0;
                    assert_eq!(holds_for_all, expected.iter().all(|truth| *truth), "{condition:?}");
                    assert_eq!(holds_for_any, expected.iter().any(|truth| *truth), "{condition:?}");
                });
            }
        }
    }

    /// Remotes with equal values are one interval, or one on each side of a remote that the condition names.
    #[test]
    fn equal_remotes_form_one_interval() {
        let mut slots = slots(&[], &[], 30, 0);
        let conditions = conditions();
        let end = |run: &mut RuleExecution, condition: usize, each| {
            run.each = each;
            run.interval_end(&conditions[condition])
        };
        with_run(&mut slots, |run| {
            let last = u32::from(REMOTES) + 1;
            for condition in [0, 1, 5, 6, 8, 10, 11, 12] {
                assert_eq!(end(run, condition, 1), last, "{condition}");
            }
            for condition in [2, 3] {
                let ends = [1, 30, 31].map(|remote| end(run, condition, remote));
                assert_eq!(ends, [30, 31, last], "{condition}");
            }
        });
    }
}
