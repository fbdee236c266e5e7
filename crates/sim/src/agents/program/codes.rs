//! Compact numbers of events.

use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::protocol::MessageId;

use super::EventCode;

/// Numbers of a controller's events: messages, accesses, local operations, the unlock, and the ends of memory accesses.
pub(super) struct EventCodes {
    /// Number of messages of the protocol: codes below are messages, codes from here on accesses.
    messages: u16,
    /// First code after those of messages, accesses and local operations.
    after_locals: u16,
    /// Number of alternatives after a memory read.
    choices: u8,
}

impl EventCodes {
    /// Numbers the events of a controller in a protocol with this number of messages.
    pub fn new(messages: u16, controller: &Controller) -> EventCodes {
        EventCodes {
            messages,
            after_locals: messages + (Access::ALL.len() + controller.locals.len()) as u16,
            choices: memory_choices(controller),
        }
    }

    /// Logarithm of a power of two that is larger than all codes.
    pub fn bits(&self) -> u32 {
        let codes = usize::from(self.after_locals) + 2 + usize::from(self.choices);
        codes.next_power_of_two().trailing_zeros()
    }

    /// Number of alternatives after a memory read.
    pub fn choices(&self) -> u8 {
        self.choices
    }

    /// Returns the code of an event.
    #[inline]
    pub fn code(&self, event: Event) -> EventCode {
        match event {
            Event::Message(message) => message.0,
            Event::Access(access) => self.messages + access as u16,
            Event::Local(local) => self.messages + Access::ALL.len() as u16 + u16::from(local),
            Event::Unlock => self.after_locals,
            Event::MemoryDone => self.after_locals + 1,
            Event::MemoryData(choice) => self.after_locals + 2 + u16::from(choice),
        }
    }

    /// Returns the event of a code.
    pub fn event(&self, code: EventCode) -> Event {
        let after_accesses = self.messages + Access::ALL.len() as u16;
        if code < self.messages {
            Event::Message(MessageId(code))
        } else if code < after_accesses {
            Event::Access(Access::ALL[usize::from(code - self.messages)].0)
        } else if code < self.after_locals {
            Event::Local((code - after_accesses) as u8)
        } else {
            match code - self.after_locals {
                0 => Event::Unlock,
                1 => Event::MemoryDone,
                choice => Event::MemoryData((choice - 2) as u8),
            }
        }
    }
}

/// Number of alternatives of a controller after a memory read.
fn memory_choices(controller: &Controller) -> u8 {
    let choices = controller.rules.iter().map(|rule| match rule.event {
        Event::MemoryData(choice) => choice + 1,
        _ => 1,
    });
    choices.max().unwrap_or(1)
}
