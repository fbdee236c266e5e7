//! What threads and application ask of the host's memory where that is a space of its own.

use cohkit_application::interface::{Action, Event, Refused, Step};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

use super::host::Transfer;
use super::port::{Ask, Told, What, Whose};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::simulation::{Event as KernelEvent, Simulation};

/// The way to the host's memory.
#[derive(Default)]
pub(crate) struct Beyond {
    /// What has been asked for since the other space heard of it last.
    pub asks: Vec<Ask>,
    /// Words that a core has read since anybody did anything else: to read them again is to get nowhere.
    read: FxHashSet<(u16, u32)>,
    /// Transfers of the bus that have come and wait for a write before them to be performed, which is under way.
    pub transfers: VecDeque<Transfer>,
    writes: bool,
}

impl Simulation {
    /// A core's thread loads or stores a word of the host's memory, if that is a space of its own.
    pub(crate) fn asks_beyond(&mut self, core: u16, step: Step) -> bool {
        let now = self.now;
        let Some(behind) = &mut self.behind else {
            return false;
        };
        let Some(beyond) = &mut behind.beyond else {
            return false;
        };
        let (first, what) = match step {
            Step::LoadHost { word } => {
                let (words, cached) = (1, true);
                (word, What::Load { words, cached })
            }
            Step::StoreHost { word, value } => {
                let (words, cached) = ([value].into(), true);
                (word, What::Store { words, cached })
            }
            _ => return false,
        };
        // To poll is to get nowhere.
        let on = match step {
            Step::LoadHost { word } => beyond.read.insert((core, word)),
            _ => {
                beyond.read.clear();
                true
            }
        };
        let whose = Whose::Thread(core);
        beyond.asks.push(Ask { whose, first, what });
        behind.threads[usize::from(core)].reads = Some(now);
        if on {
            self.expect(now);
        }
        true
    }

    /// The application accesses the host's memory.
    pub(crate) fn reaches_beyond(&mut self, action: Action) {
        let (tag, first, what) = match action {
            Action::CoherentLoad {
                tag,
                first,
                words,
                cached,
            } => (tag, first, What::Load { words, cached }),
            Action::CoherentStore {
                tag,
                first,
                words,
                cached,
            } => (tag, first, What::Store { words, cached }),
            Action::CoherentUpdate { tag, word, update } => (tag, word, What::Update(update)),
            _ => return,
        };
        let Some(behind) = &mut self.behind else {
            return;
        };
        let Some(beyond) = &mut behind.beyond else {
            let text = format!(
                "{} accesses the host's memory coherently, which is no space of this machine",
                behind.name()
            );
            return self.fail(FailureKind::Incompatible, 0, text);
        };
        beyond.read.clear();
        let whose = Whose::Application(tag);
        beyond.asks.push(Ask { whose, first, what });
    }

    /// Transfers of the bus begin, in their order: whatever comes behind a write waits until that has been performed, so that
    /// it is seen first, and what is interrupted finds all that was written before.
    pub(crate) fn transfers_beyond(&mut self) {
        loop {
            let beyond = self.behind.as_mut().and_then(|b| b.beyond.as_mut());
            let Some(beyond) = beyond.filter(|beyond| !beyond.writes) else {
                return;
            };
            beyond.read.clear();
            let cached = false;
            let (whose, first, what) = match beyond.transfers.pop_front() {
                None => return,
                Some(Transfer::Fetch { tag, first, words }) => {
                    (Whose::Transfer(tag), first, What::Load { words, cached })
                }
                Some(Transfer::Store { first, words }) => {
                    beyond.writes = true;
                    (Whose::Transfer(0), first, What::Store { words, cached })
                }
                Some(Transfer::Interrupt { thread }) => {
                    self.interrupted(thread);
                    continue;
                }
            };
            beyond.asks.push(Ask { whose, first, what });
        }
    }

    /// The other space has done what was asked for.
    pub(crate) fn told_beyond(&mut self, told: Told) {
        if let Some((word, why)) = told.refused {
            return match told.whose {
                Whose::Application(tag) => self.tell(told.at, Event::Refused { tag, word, why }),
                Whose::Thread(core) => self.refused_beyond(core, word, why, told.at),
                // Transfers have physical addresses.
                Whose::Transfer(_) => {}
            };
        }
        match (told.whose, told.words) {
            (Whose::Application(tag), Some(words)) => {
                self.tell(told.at, Event::CoherentLoaded { tag, words });
            }
            (Whose::Application(tag), None) => self.tell(told.at, Event::CoherentStored { tag }),
            (Whose::Transfer(tag), Some(words)) => self.fetched(tag, words, told.at),
            (Whose::Transfer(_), None) => {
                if let Some(beyond) = self.behind.as_mut().and_then(|b| b.beyond.as_mut()) {
                    beyond.writes = false;
                }
                self.transfers_beyond();
            }
            (Whose::Thread(core), words) => {
                if let Some(word) = words.and_then(|words| words.first().copied()) {
                    self.give(core, word);
                }
                if let Some(behind) = &mut self.behind {
                    behind.threads[usize::from(core)].reads = None;
                }
                self.queue.push(told.at, KernelEvent::Thread(core));
            }
        }
    }

    /// The page table of the other space does not permit what a thread asked for there.
    fn refused_beyond(&mut self, core: u16, word: u32, why: Refused, at: Time) {
        if let Some(behind) = &mut self.behind {
            behind.threads[usize::from(core)].reads = None;
        }
        let address = 8 * u64::from(word);
        let what = format!("word {word} of the host's memory, address {address:#x}");
        self.refuse_thread(core, why, &what, 0, at);
    }
}
