//! Accesses of threads and of the application to the host's memory where that memory is a separate space.

use cohkit_application::interface::{Action, Event, PageFault, Step};
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
    pub requests: Vec<PortRequest>,
    /// Words that a core has read since the last other activity. Reading one of them again is polling, not progress.
    polled_words: FxHashSet<(u16, u32)>,
    /// Bus transfers that have arrived and wait for an outstanding write before them to be performed.
    pub transfers: VecDeque<Transfer>,
    write_pending: bool,
}

impl Simulation {
    /// Issues a thread's load or store of the host's memory. Returns false if that memory is not a separate space.
    pub(crate) fn issue_host_access(&mut self, core: u16, step: Step) -> bool {
        let now = self.local.now;
        let Some(application) = &mut self.application else {
            return false;
        };
        let Some(host_path) = &mut application.host_path else {
            return false;
        };
        let (first, op) = match step {
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
        let is_progress = match step {
            Step::LoadHost { word } => host_path.polled_words.insert((core, word)),
            _ => {
                host_path.polled_words.clear();
                true
            }
        };
        let requester = Requester::Thread(core);
        host_path.requests.push(PortRequest {
            requester,
            first,
            op,
        });
        application.threads[usize::from(core)].reading_since = Some(now);
        if is_progress {
            self.postpone_watchdog(now);
        }
        true
    }

    /// Issues an access of the application to the host's memory.
    pub(crate) fn issue_application_access(&mut self, action: Action) {
        let (tag, first, op) = match action {
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
        let Some(application) = &mut self.application else {
            return;
        };
        let Some(host_path) = &mut application.host_path else {
            let text = format!(
                "{} accesses the host's memory coherently, which is not an address space of this machine",
                application.name()
            );
            return self.fail(FailureKind::Incompatible, 0, text);
        };
        host_path.polled_words.clear();
        let requester = Requester::Application(tag);
        host_path.requests.push(PortRequest {
            requester,
            first,
            op,
        });
    }

    /// Starts bus transfers in order. A transfer behind a write waits until that write has been performed. The write is
    /// then visible first, and an interrupt handler finds all earlier data.
    pub(crate) fn start_bus_transfers(&mut self) {
        loop {
            let host_path = self
                .application
                .as_mut()
                .and_then(|run| run.host_path.as_mut());
            let Some(host_path) = host_path.filter(|host_path| !host_path.write_pending) else {
                return;
            };
            host_path.polled_words.clear();
            let cached = false;
            let (requester, first, op) = match host_path.transfers.pop_front() {
                None => return,
                Some(Transfer::Fetch { tag, first, words }) => (
                    Requester::Transfer(tag),
                    first,
                    AccessOp::Load { words, cached },
                ),
                Some(Transfer::Store { first, words }) => {
                    host_path.write_pending = true;
                    (
                        Requester::Transfer(0),
                        first,
                        AccessOp::Store { words, cached },
                    )
                }
                Some(Transfer::Interrupt { thread }) => {
                    self.deliver_interrupt(thread);
                    continue;
                }
            };
            host_path.requests.push(PortRequest {
                requester,
                first,
                op,
            });
        }
    }

    /// Delivers a completion from the other space.
    pub(crate) fn complete_host_access(&mut self, completion: Completion) {
        if let Some((word, refusal)) = completion.refused {
            return match completion.requester {
                Requester::Application(tag) => self.schedule_application_event(
                    completion.time,
                    Event::PageFault {
                        tag,
                        word,
                        fault: refusal,
                    },
                ),
                Requester::Thread(core) => {
                    self.reject_host_access(core, word, refusal, completion.time)
                }
                // Transfers use physical addresses.
                Requester::Transfer(_) => {}
            };
        }
        match (completion.requester, completion.words) {
            (Requester::Application(tag), Some(words)) => {
                self.schedule_application_event(
                    completion.time,
                    Event::CoherentLoaded { tag, words },
                );
            }
            (Requester::Application(tag), None) => {
                self.schedule_application_event(completion.time, Event::CoherentStored { tag })
            }
            (Requester::Transfer(tag), Some(words)) => {
                self.return_fetched_words(tag, words, completion.time)
            }
            (Requester::Transfer(_), None) => {
                if let Some(host_path) = self
                    .application
                    .as_mut()
                    .and_then(|run| run.host_path.as_mut())
                {
                    host_path.write_pending = false;
                }
                self.start_bus_transfers();
            }
            (Requester::Thread(core), words) => {
                if let Some(word) = words.and_then(|words| words.first().copied()) {
                    self.set_thread_result(core, word);
                }
                if let Some(application) = &mut self.application {
                    application.threads[usize::from(core)].reading_since = None;
                }
                self.local
                    .queue
                    .push(completion.time, KernelEvent::Thread(core));
            }
        }
    }

    /// Reports to a thread that the page table of the other space does not permit its access.
    fn reject_host_access(&mut self, core: u16, word: u32, refusal: PageFault, time: Time) {
        if let Some(application) = &mut self.application {
            application.threads[usize::from(core)].reading_since = None;
        }
        let address = 8 * u64::from(word);
        let target = format!("word {word} of the host's memory, address {address:#x}");
        self.refuse_thread(core, refusal, &target, 0, time);
    }
}
