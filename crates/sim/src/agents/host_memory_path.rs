//! Accesses of threads and of the application to the host's memory where that memory is a separate space.

use cohkit_application::interface::{Action, Event, Refused, Step};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

use super::host::Transfer;
use super::port::{AccessOp, Completion, PortRequest, Requester};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::simulation::{Event as KernelEvent, Simulation};

/// The path to the host's memory.
#[derive(Default)]
pub(crate) struct HostMemoryPath {
    /// Requests since the last hand-over to the other space.
    pub asks: Vec<PortRequest>,
    /// Words that a core has read since the last other activity. Reading one of them again is polling, not progress.
    read: FxHashSet<(u16, u32)>,
    /// Bus transfers that have arrived and wait for an outstanding write before them to be performed.
    pub transfers: VecDeque<Transfer>,
    writes: bool,
}

impl Simulation {
    /// Issues a thread's load or store of the host's memory. Returns false if that memory is not a separate space.
    pub(crate) fn issue_host_access(&mut self, core: u16, step: Step) -> bool {
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
                (word, AccessOp::Load { words, cached })
            }
            Step::StoreHost { word, value } => {
                let (words, cached) = ([value].into(), true);
                (word, AccessOp::Store { words, cached })
            }
            _ => return false,
        };
        // Polling does not count as progress.
        let on = match step {
            Step::LoadHost { word } => beyond.read.insert((core, word)),
            _ => {
                beyond.read.clear();
                true
            }
        };
        let whose = Requester::Thread(core);
        beyond.asks.push(PortRequest { whose, first, what });
        behind.threads[usize::from(core)].reads = Some(now);
        if on {
            self.expect(now);
        }
        true
    }

    /// Issues an access of the application to the host's memory.
    pub(crate) fn issue_application_access(&mut self, action: Action) {
        let (tag, first, what) = match action {
            Action::CoherentLoad {
                tag,
                first,
                words,
                cached,
            } => (tag, first, AccessOp::Load { words, cached }),
            Action::CoherentStore {
                tag,
                first,
                words,
                cached,
            } => (tag, first, AccessOp::Store { words, cached }),
            Action::CoherentUpdate { tag, word, update } => (tag, word, AccessOp::Update(update)),
            _ => return,
        };
        let Some(behind) = &mut self.behind else {
            return;
        };
        let Some(beyond) = &mut behind.beyond else {
            let text = format!(
                "{} accesses the host's memory coherently, which is not an address space of this machine",
                behind.name()
            );
            return self.fail(FailureKind::Incompatible, 0, text);
        };
        beyond.read.clear();
        let whose = Requester::Application(tag);
        beyond.asks.push(PortRequest { whose, first, what });
    }

    /// Starts bus transfers in order. A transfer behind a write waits until that write has been performed. The write is
    /// then visible first, and an interrupt handler finds all earlier data.
    pub(crate) fn start_bus_transfers(&mut self) {
        loop {
            let beyond = self.behind.as_mut().and_then(|b| b.beyond.as_mut());
            let Some(beyond) = beyond.filter(|beyond| !beyond.writes) else {
                return;
            };
            beyond.read.clear();
            let cached = false;
            let (whose, first, what) = match beyond.transfers.pop_front() {
                None => return,
                Some(Transfer::Fetch { tag, first, words }) => (
                    Requester::Transfer(tag),
                    first,
                    AccessOp::Load { words, cached },
                ),
                Some(Transfer::Store { first, words }) => {
                    beyond.writes = true;
                    (
                        Requester::Transfer(0),
                        first,
                        AccessOp::Store { words, cached },
                    )
                }
                Some(Transfer::Interrupt { thread }) => {
                    self.interrupted(thread);
                    continue;
                }
            };
            beyond.asks.push(PortRequest { whose, first, what });
        }
    }

    /// Delivers a completion from the other space.
    pub(crate) fn complete_host_access(&mut self, told: Completion) {
        if let Some((word, why)) = told.refused {
            return match told.whose {
                Requester::Application(tag) => {
                    self.tell(told.at, Event::Refused { tag, word, why })
                }
                Requester::Thread(core) => self.reject_host_access(core, word, why, told.at),
                // Transfers use physical addresses.
                Requester::Transfer(_) => {}
            };
        }
        match (told.whose, told.words) {
            (Requester::Application(tag), Some(words)) => {
                self.tell(told.at, Event::CoherentLoaded { tag, words });
            }
            (Requester::Application(tag), None) => {
                self.tell(told.at, Event::CoherentStored { tag })
            }
            (Requester::Transfer(tag), Some(words)) => self.fetched(tag, words, told.at),
            (Requester::Transfer(_), None) => {
                if let Some(beyond) = self.behind.as_mut().and_then(|b| b.beyond.as_mut()) {
                    beyond.writes = false;
                }
                self.start_bus_transfers();
            }
            (Requester::Thread(core), words) => {
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

    /// Reports to a thread that the page table of the other space does not permit its access.
    fn reject_host_access(&mut self, core: u16, word: u32, why: Refused, at: Time) {
        if let Some(behind) = &mut self.behind {
            behind.threads[usize::from(core)].reads = None;
        }
        let address = 8 * u64::from(word);
        let what = format!("word {word} of the host's memory, address {address:#x}");
        self.refuse_thread(core, why, &what, 0, at);
    }
}
