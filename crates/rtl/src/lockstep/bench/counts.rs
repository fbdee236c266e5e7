//! Expected values of the home's counters, derived from its pins and from the steps of its units.

use super::link_ports::LinkPorts;
use super::reference::Reference;
use super::units::{MissingResource, RowUse};
use crate::lockstep::model::{Inputs, Outputs, CIRCUITS};
use crate::lockstep::words::Header;
use crate::registers::{counter_position, COUNTER_POSITIONS};
use crate::rom::Effect;
use cohkit_protocol::controller::Event;

/// Groups of counters, by their positions: an event increments one counter of its group, but the pins do not always
/// show which one. First the stall reasons of units, then the two reasons for which a beat waits at each circuit.
pub(super) const GROUPS: [&[usize]; 5] = [
    &[
        counter_position("StallsRoom"),
        counter_position("StallsRead"),
        counter_position("StallsLocal"),
        counter_position("StallsSend"),
        counter_position("StallsWrite"),
    ],
    &[
        counter_position("RxWaitsUnit"),
        counter_position("RxWaitsSlot"),
    ],
    &[
        counter_position("RxWaitsUnit") + 1,
        counter_position("RxWaitsSlot") + 1,
    ],
    &[
        counter_position("RxWaitsUnit") + 2,
        counter_position("RxWaitsSlot") + 2,
    ],
    &[
        counter_position("RxWaitsUnit") + 3,
        counter_position("RxWaitsSlot") + 3,
    ],
];

/// Expected counter values of a slice, by position: a certain minimum, and a possible excess.
#[derive(Clone)]
pub(super) struct Counts {
    /// Minimum of each counter, by position.
    pub certain: [u64; COUNTER_POSITIONS],
    /// Maximum excess of each counter over the minimum.
    pub possible_excess: [u64; COUNTER_POSITIONS],
    /// For each group, the number of events whose counter is ambiguous.
    pub ambiguous: [u64; GROUPS.len()],
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            certain: [0; COUNTER_POSITIONS],
            possible_excess: [0; COUNTER_POSITIONS],
            ambiguous: [0; GROUPS.len()],
        }
    }
}

impl Counts {
    /// Adds `count` events to element `number` of the array of counters at `position`.
    pub fn add(&mut self, position: usize, number: usize, count: u64) {
        self.certain[position + number] += count;
    }

    /// Records an event that increments one of these positions, all of one group.
    fn add_ambiguous(&mut self, positions: &[usize]) {
        if let [position] = *positions {
            return self.add(position, 0, 1);
        }
        for &position in positions {
            self.possible_excess[position] += 1;
        }
        let contains_position = |group: &&[usize]| {
            positions
                .first()
                .is_some_and(|position| group.contains(position))
        };
        if let Some(group) = GROUPS.iter().position(contains_position) {
            self.ambiguous[group] += 1;
        }
    }

    /// Records a slice's activity at the pins of this cycle. `has_illegal` is true for circuits with an illegal
    /// message.
    pub fn record_pins(
        &mut self,
        reference: &Reference,
        slice: usize,
        (inputs, outputs): (&Inputs, &Outputs),
        ports: &LinkPorts,
        has_illegal: [bool; CIRCUITS],
    ) {
        self.record_arrivals(reference, slice, (inputs, outputs), ports, has_illegal);
        self.record_departures(reference, slice, (inputs, outputs), ports);
        let waits = [
            (
                const { counter_position("ArWaits") },
                outputs.ar_valid[slice] & !inputs.ar_ready[slice],
            ),
            (
                const { counter_position("AwWaits") },
                outputs.aw_valid[slice] & !inputs.aw_ready[slice],
            ),
            (
                const { counter_position("WWaits") },
                outputs.w_valid[slice] & !inputs.w_ready[slice],
            ),
            (
                const { counter_position("LocalWaits") },
                inputs.local_req_valid[slice] & !outputs.local_req_ready[slice],
            ),
            (
                const { counter_position("UnlockWaits") },
                inputs.unlock_valid[slice] & !outputs.unlock_ready[slice],
            ),
            (
                const { counter_position("AnswerWaits") },
                outputs.local_rsp_valid[slice] & !inputs.local_rsp_ready[slice],
            ),
        ];
        for (position, waiting) in waits {
            self.add(position, 0, waiting & 1);
        }
        let reported = outputs.change_valid[slice] & inputs.change_ready[slice];
        self.add(const { counter_position("Changes") }, 0, reported);
        let busy = u64::from(outputs.busy[slice].count_ones());
        self.add(const { counter_position("Busy") }, 0, busy);
    }

    /// Records messages that enter or wait at the ports.
    fn record_arrivals(
        &mut self,
        reference: &Reference,
        slice: usize,
        (inputs, outputs): (&Inputs, &Outputs),
        ports: &LinkPorts,
        has_illegal: [bool; CIRCUITS],
    ) {
        let accepted = inputs.rx_valid[slice] & outputs.rx_ready[slice];
        let waiting = inputs.rx_valid[slice] & !outputs.rx_ready[slice];
        for (circuit, port_queue) in ports.queues.iter().enumerate() {
            if waiting >> circuit & 1 != 0 {
                let [unit, slot] = const {
                    [
                        counter_position("RxWaitsUnit"),
                        counter_position("RxWaitsSlot"),
                    ]
                };
                // After a first beat of data, the stream waits for a slot; after a last beat, for the unit.
                match port_queue.previous_beat {
                    Some(beat) if beat.starts_payload && beat.is_last => {
                        self.add_ambiguous(&[unit + circuit, slot + circuit])
                    }
                    Some(beat) if beat.starts_payload => self.add_ambiguous(&[slot + circuit]),
                    _ => self.add_ambiguous(&[unit + circuit]),
                }
            }
            let is_regular = accepted >> circuit & 1 != 0 && !has_illegal[circuit];
            let Some((_, message)) = port_queue.queue.front().filter(|_| is_regular) else {
                continue;
            };
            if message.bytes.is_none() || port_queue.beat + 1 == reference.beats {
                let number = reference.event_number(message.kind);
                let number = number.expect("the message goes to the home");
                self.add(const { counter_position("Events") }, number, 1);
            }
        }
    }

    /// Records messages that leave or wait at the ports.
    fn record_departures(
        &mut self,
        reference: &Reference,
        slice: usize,
        (inputs, outputs): (&Inputs, &Outputs),
        ports: &LinkPorts,
    ) {
        let leaving = outputs.tx_valid[slice] & inputs.tx_ready[slice];
        let waiting = outputs.tx_valid[slice] & !inputs.tx_ready[slice];
        for circuit in 0..CIRCUITS {
            let position = const { counter_position("TxWaits") };
            self.add(position, circuit, waiting >> circuit & 1);
            // Count headers; an unknown message number is reported elsewhere.
            let header = Header::decode(outputs.tx_header[slice][circuit]);
            let number = usize::from(header.message);
            if leaving >> circuit & 1 != 0
                && !ports.is_departing(circuit)
                && number < reference.rom.sends.len()
            {
                self.add(const { counter_position("Sent") }, number, 1);
            }
        }
    }

    /// Records a stalled event. Without missing resources, its line has a pending operation; otherwise, the event lacks
    /// one of the resources.
    pub fn record_stall(&mut self, missing_resources: &[MissingResource]) {
        let counter_of = |resource: &MissingResource| match resource {
            MissingResource::Room => const { counter_position("StallsRoom") },
            MissingResource::Read => const { counter_position("StallsRead") },
            MissingResource::Local => const { counter_position("StallsLocal") },
            MissingResource::Send => const { counter_position("StallsSend") },
            MissingResource::Write => const { counter_position("StallsWrite") },
        };
        let positions: Vec<usize> = missing_resources.iter().map(counter_of).collect();
        match positions.is_empty() {
            true => self.add_ambiguous(&[const { counter_position("StallsLine") }]),
            false => self.add_ambiguous(&positions),
        }
    }

    /// Records a handled event other than a message. Messages are counted on arrival; all of them are handled at
    /// quiescence.
    pub fn record_event(&mut self, number: usize, used: &RowUse, effect: Effect) {
        if used.evict {
            let evictions = u64::from(effect == Effect::Take);
            self.add(const { counter_position("Evictions") }, 0, evictions);
        } else if effect.consumes_event() && !matches!(used.event, Event::Message(_)) {
            self.add(const { counter_position("Events") }, number, 1);
            let refused = u64::from(effect == Effect::Refuse);
            self.add(const { counter_position("Refused") }, 0, refused);
        }
    }

    /// Records lost permission changes.
    pub fn record_lost_changes(&mut self, count: u64) {
        self.add(const { counter_position("ChangesLost") }, 0, count);
    }

    /// True if the counter at this position may have this value.
    pub fn is_possible(&self, position: usize, value: u64) -> bool {
        let certain = self.certain[position];
        (certain..=certain + self.possible_excess[position]).contains(&value)
    }
}
