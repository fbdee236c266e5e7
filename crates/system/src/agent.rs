//! A row being carried out: what its acts mean around the agent.
//!
//! Rows are executed by [`cohkit_protocol::execute`], which gives their acts. Here it is decided what these mean for
//! bytes, memory, locks and accesses. Whoever plays a system says how that is done, by [`Around`] and [`AroundHome`].

use cohkit_protocol::execute::{Act, Receiver};
use cohkit_protocol::protocol::{Carries, MessageId, Protocol, Right, StateId};
use cohkit_protocol::under_way::Ending;

use crate::plan::{Done, Facts, Plan};
pub use crate::violation::Violation;
use std::borrow::Cow;

/// What a message takes along.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bytes<Copy> {
    /// Nothing.
    None,
    /// A copy of the line.
    Line(Copy),
    /// The bytes of the write under way.
    Write,
}

/// A message that leaves an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sending<Copy> {
    /// Which.
    pub message: MessageId,
    /// To whom.
    pub to: Receiver,
    /// The values of its fields.
    pub fields: Vec<u16>,
    /// What it takes along.
    pub bytes: Bytes<Copy>,
}

/// What stands around a remote: channels, and the accesses of whoever is behind it.
pub trait Around {
    /// A copy of a line, or what stands for it.
    type Copy: Clone + Default;
    /// How it is told that something is wrong.
    type Wrong: From<Violation>;

    /// Whether a copy has the effect of every write so far.
    fn current(&self, copy: &Self::Copy) -> bool;
    /// A message leaves.
    ///
    /// # Errors
    /// If there is no room for it, or it breaks a bound.
    fn send(&mut self, sending: Sending<Self::Copy>) -> Result<(), Self::Wrong>;
    /// The write under way is performed in a copy; gives what the copy is then.
    ///
    /// # Errors
    /// If there is no such write, or it may not be performed there.
    fn write(&mut self, on: &Self::Copy) -> Result<Self::Copy, Self::Wrong>;
    /// The read under way ends with a copy.
    ///
    /// # Errors
    /// If there is no such read, or it should have read something else.
    fn read(&mut self, copy: &Self::Copy) -> Result<(), Self::Wrong>;
    /// The write under way, whose bytes were sent, ends: `found` is what the home found before it, if it tells.
    ///
    /// # Errors
    /// If the home has not performed it.
    fn written(&mut self, found: Option<&Self::Copy>) -> Result<(), Self::Wrong>;
    /// The write under way, whose bytes were sent, is given up.
    fn gives_up(&mut self);
    /// All of the agent's lines that are in one state go to the other, when the row has been carried out.
    ///
    /// # Errors
    /// If an agent has no other lines here.
    fn every(&mut self, from: StateId, to: StateId) -> Result<(), Self::Wrong>;
}

/// Carries out what a row of a remote does. `held` is the agent's copy, the default if it has none; `brought` the one that
/// the message at hand brings. Gives the copy that it has afterwards.
///
/// # Errors
/// What is wrong with that.
pub fn remote<A: Around>(
    protocol: &Protocol,
    facts: &Facts,
    plan: &Plan,
    acts: Vec<Act>,
    held: &A::Copy,
    brought: Option<&A::Copy>,
    around: &mut A,
) -> Result<A::Copy, A::Wrong> {
    let mut copy = brought.unwrap_or(held).clone();
    let mut written = false;
    for act in acts {
        match act {
            Act::Send {
                message,
                to,
                fields,
            } => {
                let carries = protocol.message(message).carries;
                let bytes = match carries {
                    Carries::Nothing => Bytes::None,
                    Carries::Line | Carries::DirtyLine => Bytes::Line(copy.clone()),
                    Carries::Store | Carries::PartialStore => Bytes::Write,
                };
                if facts.used_once[message.index()] && !around.current(&copy) {
                    return Err(used_while_old(protocol, message).into());
                }
                around.send(Sending {
                    message,
                    to,
                    fields,
                    bytes,
                })?;
            }
            Act::Done => match plan.done {
                Done::Ends(Ending::Write) => {
                    if facts.coherent && plan.keeps_a_part && !around.current(&copy) {
                        return Err(Violation::data_value(WRITTEN_WHILE_OLD).into());
                    }
                    copy = around.write(&copy)?;
                    written = true;
                }
                Done::Ends(Ending::Sent) => around.written(brought)?,
                // What a message brings was judged when it was sent.
                Done::Ends(Ending::Read) => {
                    if facts.coherent && brought.is_none() && !around.current(&copy) {
                        return Err(Violation::data_value("a read ends with an old copy").into());
                    }
                    around.read(&copy)?;
                }
                Done::Absent | Done::Unclear => {
                    let what = "`done` does not say what it ends";
                    return Err(Violation::new("no unexpected message", what).into());
                }
            },
            Act::Every { from, to } => around.every(from, to)?,
            other => {
                let what = format!("a remote does what only a home can: {other:?}");
                return Err(Violation::new("no unexpected message", what).into());
            }
        }
    }
    let kept = if !plan.after.holds {
        A::Copy::default()
    } else if plan.performs {
        around.write(held)?
    } else if brought.is_some() || written {
        copy
    } else {
        held.clone()
    };
    if plan.gives_up {
        around.gives_up();
    }
    Ok(kept)
}

/// The property that does not hold where a store is lost, or performed twice. It holds of texts whose copies may be old,
/// too, but is no part of a data value then.
pub fn stores(facts: &Facts) -> &'static str {
    match facts.coherent {
        true => "data value",
        false => "every store is performed once",
    }
}

/// A write of a part of the line, which keeps what other writes left in the rest of it, is performed in an old copy.
pub const WRITTEN_WHILE_OLD: &str = "a store is performed in an old copy";

/// A read begins while an answer to it is on its way that has been old before.
pub const ANSWERED_BEFORE: &str =
    "a read begins while what may answer it is on its way with an old copy";

/// A message brings an old copy, with which an access will be performed.
fn used_while_old(protocol: &Protocol, message: MessageId) -> Violation {
    let name = &protocol.message(message).name;
    Violation::data_value(format!(
        "{name} carries an old copy, which is used without being kept"
    ))
}

/// What memory is asked to do, where it takes its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish<Copy> {
    /// To read the line.
    Read,
    /// To write this copy of it.
    Write(Copy),
    /// To write the bytes of the write at hand, over the whole line or not.
    Store {
        /// Whether they are those of the whole line.
        whole: bool,
    },
}

/// What stands around a home: channels, memory, and the device.
pub trait AroundHome {
    /// A copy of a line, or what stands for it.
    type Copy: Clone + Default;
    /// How it is told that something is wrong.
    type Wrong: From<Violation>;

    /// Whether a copy has the effect of every write so far.
    fn current(&self, copy: &Self::Copy) -> bool;
    /// What a copy at hand is once a store that it does not have is performed in memory.
    fn aged(&self, copy: &Self::Copy) -> Self::Copy;
    /// A message leaves.
    ///
    /// # Errors
    /// If there is no room for it, or it breaks a bound.
    fn send(&mut self, sending: Sending<Self::Copy>) -> Result<(), Self::Wrong>;
    /// What memory holds.
    fn memory(&self) -> Self::Copy;
    /// Memory holds this from now on.
    ///
    /// # Errors
    /// If memory does not act at once here.
    fn set_memory(&mut self, copy: &Self::Copy) -> Result<(), Self::Wrong>;
    /// What the device may do under the lock that it holds.
    fn lock(&self) -> Right;
    /// The write that a message brought from a remote reaches memory. `pending` is the remote that sent it.
    ///
    /// # Errors
    /// If it may not be performed now.
    fn store(&mut self, from: Option<u8>, whole: bool) -> Result<(), Self::Wrong>;
    /// The bytes of the message at hand are kept.
    ///
    /// # Errors
    /// If others are kept.
    fn set_aside(&mut self, from: Option<u8>, whole: bool) -> Result<(), Self::Wrong>;
    /// Takes out what was kept: who sent it, and whether it is of the whole line.
    ///
    /// # Errors
    /// If nothing was kept.
    fn take_aside(&mut self) -> Result<(Option<u8>, bool), Self::Wrong>;
    /// A memory operation begins.
    ///
    /// # Errors
    /// If one is under way.
    fn start(&mut self, wish: Wish<Self::Copy>) -> Result<(), Self::Wrong>;
    /// A local operation is done.
    ///
    /// # Errors
    /// If it was not accepted, or what it says does not hold.
    fn acknowledge(&mut self, local: u8) -> Result<(), Self::Wrong>;
    /// The device's unlock is done.
    fn unlocked(&mut self);
}

/// What a home takes.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'t, Copy> {
    /// The message, if it is one.
    pub message: Option<MessageId>,
    /// Who sent it.
    pub sender: Option<u8>,
    /// The copy of the line that it, or memory, brings.
    pub brought: Option<&'t Copy>,
}

/// Carries out what a row of a home does.
///
/// # Errors
/// What is wrong with that.
pub fn home<A: AroundHome>(
    protocol: &Protocol,
    facts: &Facts,
    acts: Vec<Act>,
    taken: Taken<A::Copy>,
    around: &mut A,
) -> Result<(), A::Wrong> {
    let wrong = |what: &str| A::Wrong::from(Violation::data_value(what));
    let carries = taken.message.map(|m| protocol.message(m).carries);
    let whole = carries == Some(Carries::Store);
    let mut brought = taken.brought.map(Cow::Borrowed);
    for act in acts {
        match act {
            Act::Send {
                message,
                to,
                fields,
            } => {
                let bytes = match protocol.message(message).carries {
                    Carries::Nothing => Bytes::None,
                    Carries::Line | Carries::DirtyLine => {
                        // What memory has read, if that is what is being taken; otherwise memory is read now.
                        let copy = match (&brought, taken.message) {
                            (Some(read), None) => read.as_ref().clone(),
                            _ => around.memory(),
                        };
                        if facts.used_once[message.index()] {
                            if !around.current(&copy) {
                                return Err(used_while_old(protocol, message).into());
                            }
                            // A home whose memory takes its time reads it in a step of its own.
                            if !facts.slot && around.lock() == Right::Write {
                                return Err(read_under_lock().into());
                            }
                        }
                        Bytes::Line(copy)
                    }
                    Carries::Store | Carries::PartialStore => Bytes::Write,
                };
                around.send(Sending {
                    message,
                    to,
                    fields,
                    bytes,
                })?;
            }
            Act::WriteMemory => match (carries, &brought) {
                (Some(Carries::Store | Carries::PartialStore), _) => {
                    around.store(taken.sender, whole)?;
                }
                (_, Some(copy)) => around.set_memory(copy)?,
                _ => return Err(wrong("the home writes memory without bytes")),
            },
            Act::SetAside => match carries {
                Some(Carries::Store | Carries::PartialStore) => {
                    around.set_aside(taken.sender, whole)?;
                }
                _ => return Err(wrong("the home sets nothing aside")),
            },
            Act::WriteAside => {
                let (from, whole) = around.take_aside()?;
                around.store(from, whole)?;
                // The copy that the row takes was made without that store.
                brought = brought.map(|copy| Cow::Owned(around.aged(&copy)));
            }
            Act::StartRead => around.start(Wish::Read)?,
            Act::StartWrite => match &brought {
                Some(copy) => around.start(Wish::Write(copy.as_ref().clone()))?,
                None => return Err(wrong("the home writes memory without a line")),
            },
            Act::StartStore { whole } => around.start(Wish::Store { whole })?,
            Act::Acknowledge(local) => around.acknowledge(local)?,
            Act::Unlocked => around.unlocked(),
            Act::Done => return Err(wrong("the home ends an access")),
            Act::Every { .. } => return Err(wrong("the home gives lines up")),
        }
    }
    Ok(())
}

/// Memory is read for a remote while the device may be changing it.
pub fn read_under_lock() -> Violation {
    let what = "memory is read for a remote while the device may write it under its lock";
    Violation::new("single writer", what)
}

/// A remote's write reaches memory while the device holds a lock.
pub fn store_under_lock() -> Violation {
    let what = "a store reaches memory while the device holds the lock";
    Violation::new("single writer", what)
}

/// Whoever tells violations as sentences tells what is wrong and no more.
impl From<Violation> for String {
    fn from(violation: Violation) -> String {
        violation.what
    }
}
