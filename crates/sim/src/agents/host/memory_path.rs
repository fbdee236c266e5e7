//! Accesses of threads and of the application to the host's memory where that memory is a separate space.

use cohkit_application::interface::{Action, Event, PageFault, Step};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

use super::{Host, HostEnvironment, Transfer};
use crate::agents::port::{AccessOp, Completion, PortRequest, Requester};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::CoreId;
use crate::simulation::Event as KernelEvent;

/// The path to the host's memory.
#[derive(Default)]
pub(crate) struct HostMemoryPath {
    /// Requests since the last hand-over to the other space.
    pub requests: Vec<PortRequest>,
    /// Words that a core has read since the last other activity. Reading one of them again is polling, not progress.
    polled_words: FxHashSet<(CoreId, u32)>,
    /// Bus transfers that have arrived and wait for an outstanding write before them to be performed.
    pub transfers: VecDeque<Transfer>,
    /// True if a write of a transfer has been requested and not performed. Later transfers wait for it.
    write_pending: bool,
}

impl HostMemoryPath {
    /// Appends a request for the other space.
    fn request(&mut self, requester: Requester, first: u32, op: AccessOp) {
        self.requests.push(PortRequest {
            requester,
            first,
            op,
        });
    }
}

impl Host {
    /// Issues a thread's load or store of the host's memory.
    pub(super) fn issue_thread_access(
        &mut self,
        env: &mut HostEnvironment,
        core: CoreId,
        step: Step,
    ) {
        let now = env.context.now();
        let Some(path) = &mut self.path else {
            return;
        };
        let cached = true;
        // Polling does not count as progress.
        let (first, op, is_progress) = match step {
            Step::LoadHost { word } => {
                let op = AccessOp::Load { words: 1, cached };
                (word, op, path.polled_words.insert((core, word)))
            }
            Step::StoreHost { word, value } => {
                path.polled_words.clear();
                let words = [value].into();
                (word, AccessOp::Store { words, cached }, true)
            }
            _ => return,
        };
        path.request(Requester::Thread(core), first, op);
        env.set_reading_since(core, Some(now));
        if is_progress {
            env.context.tally.postpone_watchdog(now);
        }
    }

    /// Issues an access of the application to the host's memory.
    pub(super) fn issue_application_access(&mut self, env: &mut HostEnvironment, action: Action) {
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
        let Some(path) = &mut self.path else {
            let threads = env.frontend.threads.as_ref();
            let name = threads.map_or("", |threads| &threads.scenario.name);
            let text = format!(
                "{name} accesses the host's memory coherently, which is not an address space of this machine"
            );
            return env.context.fail(FailureKind::Incompatible, 0, text);
        };
        path.polled_words.clear();
        path.request(Requester::Application(tag), first, op);
    }

    /// Starts bus transfers in order. A transfer behind a write waits until that write has been performed. The write is
    /// then visible first, and an interrupt handler finds all earlier data.
    pub(super) fn start_bus_transfers(&mut self, env: &mut HostEnvironment) {
        while let Some(path) = self.path.as_mut().filter(|path| !path.write_pending) {
            path.polled_words.clear();
            let cached = false;
            match path.transfers.pop_front() {
                None => return,
                Some(Transfer::Fetch { tag, first, words }) => {
                    let op = AccessOp::Load { words, cached };
                    path.request(Requester::Transfer(tag), first, op);
                }
                Some(Transfer::Store { first, words }) => {
                    path.write_pending = true;
                    let op = AccessOp::Store { words, cached };
                    path.request(Requester::Transfer(0), first, op);
                }
                Some(Transfer::Interrupt { thread }) => self.deliver_interrupt(env, thread),
            }
        }
    }

    /// Delivers a completion from the other space.
    pub fn complete_access(&mut self, env: &mut HostEnvironment, completion: Completion) {
        let time = completion.time;
        if let Some((word, fault)) = completion.refused {
            return match completion.requester {
                Requester::Application(tag) => {
                    env.schedule_event(time, Event::PageFault { tag, word, fault })
                }
                Requester::Thread(core) => refuse_thread_access(env, core, word, fault, time),
                // Transfers use physical addresses.
                Requester::Transfer(_) => {}
            };
        }
        match (completion.requester, completion.words) {
            (Requester::Application(tag), Some(words)) => {
                env.schedule_event(time, Event::CoherentLoadCompletion { tag, words });
            }
            (Requester::Application(tag), None) => {
                env.schedule_event(time, Event::CoherentStoreCompletion { tag })
            }
            (Requester::Transfer(tag), Some(words)) => {
                self.return_fetched_words(env, tag, words, time)
            }
            (Requester::Transfer(_), None) => {
                if let Some(path) = &mut self.path {
                    path.write_pending = false;
                }
                self.start_bus_transfers(env);
            }
            (Requester::Thread(core), words) => {
                if let Some(word) = words.and_then(|words| words.first().copied()) {
                    env.frontend.set_thread_result(core, word);
                }
                env.set_reading_since(core, None);
                env.context.schedule(time, KernelEvent::Thread(core));
            }
        }
    }
}

/// Reports to a thread that the page table of the other space does not permit its access.
fn refuse_thread_access(
    env: &mut HostEnvironment,
    core: CoreId,
    word: u32,
    refusal: PageFault,
    time: Time,
) {
    env.set_reading_since(core, None);
    let address = 8 * u64::from(word);
    let target = format!("word {word} of the host's memory, address {address:#x}");
    (env.frontend).refuse_thread(env.context, core, refusal, (0, &target), time);
}
