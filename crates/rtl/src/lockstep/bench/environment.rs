//! The environment of the home: remote, link, device and memory, with the ports at which they wait.

use super::context::Context;
use super::device::Device;
use super::error::Checked;
use super::line::{Direction, Line};
use super::link::{remove_held_message, InFlightMessage, Link};
use super::link_ports::LinkPorts;
use super::memory_ports::MemoryPorts;
use super::remote::Remote;
use super::run::Run;
use super::units::Units;
use crate::lockstep::model::SLICES;
use crate::lockstep::reachability::Move;
use crate::lockstep::setup::Setup;
use cohkit_protocol::controller::Access;

/// The agents around the home.
pub(super) struct Environment<'a> {
    /// Time, lines and report of the run.
    pub context: Context<'a>,
    /// Messages in flight between remote and home.
    pub link: Link,
    /// Resources of the home's units.
    pub units: Units,
    /// Message ports of each slice.
    pub link_ports: [LinkPorts; SLICES],
    /// Device, with its ports of both slices.
    pub device: Device,
    /// Memory ports of each slice.
    pub memory: [MemoryPorts; SLICES],
}

impl<'a> Environment<'a> {
    /// Creates an idle environment, with random contents of the lines.
    pub fn new(setup: &Setup<'a>, run: Run) -> Environment<'a> {
        let context = Context::new(setup, run);
        Environment {
            units: Units::new(&context),
            context,
            link: Link::default(),
            link_ports: std::array::from_fn(LinkPorts::new),
            device: Device::default(),
            memory: std::array::from_fn(MemoryPorts::new),
        }
    }

    /// Borrows the parts that the remote's rows use.
    pub fn remote(&mut self) -> Remote<'_, 'a> {
        Remote {
            context: &mut self.context,
            link: &mut self.link,
            units: &mut self.units,
        }
    }

    /// Starts an access of the remote, if it is possible now.
    pub fn start_access(&mut self, line_index: usize, access: Access) -> Checked {
        self.remote().start_access(line_index, access)
    }

    /// Delivers the messages that arrive in this cycle, to the remote or to the home's ports.
    pub fn deliver(&mut self) -> Checked {
        while let Some(arrival) = self.link.next_arrival(&mut self.context) {
            let InFlightMessage {
                line_index,
                direction,
                message,
            } = arrival;
            match direction {
                Direction::ToHome => {
                    let slice = self.context.slice(line_index);
                    self.link_ports[slice].enqueue(&mut self.context, line_index, message);
                }
                Direction::ToRemote => self.remote().deliver(line_index, message)?,
            }
        }
        Ok(())
    }

    /// Makes a move of a directed line, whose messages are held.
    pub fn make_move(&mut self, line_index: usize, transition: Move) -> Checked {
        let context = &mut self.context;
        let slice = context.slice(line_index);
        match transition {
            Move::Access(access) => self.start_access(line_index, access)?,
            Move::ToRemote(kind) => {
                let message = remove_held_message(context, line_index, Direction::ToRemote, kind);
                self.remote().deliver(line_index, message)?;
            }
            Move::ToHome(kind) => {
                let message = remove_held_message(context, line_index, Direction::ToHome, kind);
                self.link_ports[slice].enqueue(context, line_index, message);
            }
            Move::Local(operation) => self.device.request(context, line_index, operation),
            Move::Unlock => self.device.unlock(context, line_index),
            Move::Memory => {
                let cycle = context.cycle;
                self.memory[slice].resume(context, line_index, |_| cycle);
            }
        }
        Ok(())
    }

    /// Returns a directed line to random traffic: sends its held messages, and lets memory answer.
    pub fn release(&mut self, line_index: usize) {
        let context = &mut self.context;
        let line = &mut context.lines[line_index];
        (line.steering.is_directed, line.steering.is_memory_withheld) = (false, false);
        self.link.release(context, line_index);
        let latest = context.random_completion_cycle(context.run.max_memory_latency);
        let slice = context.slice(line_index);
        self.memory[slice].resume(context, line_index, |cycle| cycle.min(latest));
    }

    /// True if nothing is outstanding at a slice's ports.
    pub fn is_slice_idle(&self, slice: usize) -> bool {
        self.link_ports[slice].is_idle()
            && self.device.is_idle(slice)
            && self.memory[slice].is_idle()
    }

    /// Returns the first line on which something is outstanding.
    pub fn busy_line(&self) -> Option<usize> {
        self.context.lines.iter().position(Line::is_busy)
    }
}
