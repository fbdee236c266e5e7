//! Permutation of a state's remotes.

use cohkit_protocol::controller::Controller;
use cohkit_protocol::execute::{Configuration, Machine};
use cohkit_protocol::protocol::{Protocol, Type};
use cohkit_protocol::terms::IndexDomain;

use super::network::{InFlightMessage, Network};
use super::{CopyOnWrite, System, SystemState};
use crate::data::Data;

/// New number of each remote.
type Numbers<'n> = &'n [u8];

/// Permutes a value of a type; `none` is 0, and a remote its number plus 1.
fn permute_value(ty: Type, value: u16, numbers: Numbers) -> u16 {
    match ty {
        Type::Remote if value > 0 => u16::from(numbers[usize::from(value) - 1]) + 1,
        Type::RemoteSet => (0..numbers.len())
            .filter(|remote| value >> remote & 1 != 0)
            .map(|remote| 1 << numbers[remote])
            .sum(),
        _ => value,
    }
}

/// Permutes the remotes in an agent's variables.
fn permute_configuration(
    controller: &Controller,
    machine: &Machine,
    original: &Configuration,
    numbers: Numbers,
) -> Configuration {
    let mut permuted = original.clone();
    for (index, variable) in (0..).zip(&controller.variables) {
        let first_slot = machine.slot(index);
        // Members of a set of homes have no other number, so its bits keep their positions.
        if variable.ty.is_home_set() {
            continue;
        }
        let Type::Array {
            first_domain,
            second_domain,
            ..
        } = variable.ty
        else {
            permuted.slots[first_slot] =
                permute_value(variable.ty, original.slots[first_slot], numbers);
            continue;
        };
        let [rows, columns] = variable.ty.extent(numbers.len() as u16).map(usize::from);
        let permuted_index = |domain: IndexDomain, index: usize| match domain {
            IndexDomain::Remotes => usize::from(numbers[index]),
            IndexDomain::Numbers(_) | IndexDomain::Homes(_) => index,
        };
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            let target = permuted_index(first_domain, row) * columns
                + second_domain.map_or(column, |domain| permuted_index(domain, column));
            permuted.slots[first_slot + target] =
                original.slots[first_slot + row * columns + column];
        }
    }
    permuted
}

impl<D: Data> SystemState<D> {
    /// The same state with permuted remotes. Remotes of one kind differ in their numbers only.
    pub fn permuted(&self, system: &System, numbers: Numbers) -> SystemState<D> {
        let mut result = self.clone();
        for (line, original) in result.lines.iter_mut().zip(&self.lines) {
            line.home =
                permute_configuration(system.home, system.home_machine(), &original.home, numbers);
            for (remote, &number) in original.remotes.iter().zip(numbers) {
                let remote_state = &mut line.remotes[usize::from(number)];
                remote_state.clone_from(remote);
                remote_state.configuration = permute_configuration(
                    &system.protocol.remote,
                    system.remote_machine(),
                    &remote.configuration,
                    numbers,
                );
            }
            if let Some(deferred) = &mut line.deferred_store {
                deferred.from = numbers[usize::from(deferred.from)];
            }
        }
        result.network = Network::new();
        // The messages of one order stay together and keep their sequence, as they share sender and receiver.
        for flight in self.network.flights() {
            let flight = permute_message(system.protocol, flight, numbers);
            (result.network).insert_keeping_marks(system.protocol, CopyOnWrite::new(flight));
        }
        result
    }
}

/// Permutes sender, receiver and fields of a message.
fn permute_message<D: Data>(
    protocol: &Protocol,
    flight: &InFlightMessage<D>,
    numbers: Numbers,
) -> InFlightMessage<D> {
    let permute_end = |end: Option<u8>| end.map(|remote| numbers[usize::from(remote)]);
    let fields = &protocol.message(flight.message).fields;
    let fields = fields.iter().zip(&flight.fields);
    InFlightMessage {
        from: permute_end(flight.from),
        to: permute_end(flight.to),
        fields: fields
            .map(|(field, &value)| permute_value(field.ty, value, numbers))
            .collect(),
        ..flight.clone()
    }
}
