//! Copies in the executor of rows, for every sequence of up to three acts: each message and each agent gets the copy
//! that the row defines, and each holder of a content is kept, sent or released exactly once.

use cohkit_protocol::construct;
use cohkit_protocol::execute::{Act, Receiver};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{Carries, MessageId};
use cohkit_protocol::text;
use cohkit_system::agent::{
    self, Bytes, HomeContext, HomeInput, MemoryOp, OutgoingMessage, RemoteContext, RowContext,
    RowProblem,
};
use cohkit_system::plan::{CompletionEffect, ProtocolFacts, RemoteEffects};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// Number of a content; `None` without a copy.
type Content = Option<usize>;

/// Contents with their holders, and the messages that a row has sent.
struct CountingContext {
    /// Acts of the row.
    acts: std::vec::IntoIter<Act>,
    /// Number of holders of each content.
    holders: Vec<usize>,
    /// Content of each line that was sent, in order.
    sent: Vec<Content>,
    /// Content of memory.
    memory: Content,
    /// Contents whose memory writes have started.
    started: Vec<Content>,
    /// True once a deferred store has been performed, which no earlier content contains.
    is_committed: bool,
    /// Number of problems that the row has.
    problems: usize,
}

impl CountingContext {
    /// Contents `0..contents` with one holder each; memory holds the last one.
    fn new(acts: &[Act], contents: usize) -> CountingContext {
        CountingContext {
            acts: Vec::from(acts).into_iter(),
            holders: vec![1; contents],
            sent: Vec::new(),
            memory: contents.checked_sub(1),
            started: Vec::new(),
            is_committed: false,
            problems: 0,
        }
    }

    /// Replaces a content by a new one.
    fn replace(&mut self, content: Content) -> Content {
        self.release(content);
        self.holders.push(1);
        Some(self.holders.len() - 1)
    }

    /// Panics unless each content has these holders and no others.
    fn check_holders<'h>(&self, holders: impl Iterator<Item = &'h Content>, row: &str) {
        let mut expected = vec![0; self.holders.len()];
        holders
            .flatten()
            .for_each(|&content| expected[content] += 1);
        assert_eq!(self.holders, expected, "{row}");
    }
}

impl RowContext for CountingContext {
    type Copy = Content;
    type Fields = Vec<u16>;
    type Error = Infallible;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn is_current(&self, _copy: &Content) -> bool {
        true
    }

    fn share(&mut self, copy: &Content) -> Content {
        copy.inspect(|&content| self.holders[content] += 1)
    }

    fn release(&mut self, copy: Content) {
        if let Some(content) = copy {
            self.holders[content] -= 1;
        }
    }

    fn report(&mut self, _problem: RowProblem<Content>) -> Result<(), Infallible> {
        self.problems += 1;
        Ok(())
    }

    fn send(&mut self, outgoing: OutgoingMessage<Content>) -> Result<(), Infallible> {
        if let Bytes::Line(content) = outgoing.bytes {
            self.sent.push(content);
        }
        Ok(())
    }
}

impl RemoteContext for CountingContext {
    fn write(&mut self, copy: Content) -> Result<Content, Infallible> {
        Ok(self.replace(copy))
    }

    fn read(&mut self, _copy: &Content) -> Result<(), Infallible> {
        Ok(())
    }

    fn complete_sent_write(&mut self, _returned_copy: Option<&Content>) -> Result<(), Infallible> {
        Ok(())
    }

    fn abandon_write(&mut self) {}

    fn bulk_transition(
        &mut self,
        _from: cohkit_protocol::terms::StateId,
        _to: cohkit_protocol::terms::StateId,
    ) -> Result<(), Infallible> {
        Ok(())
    }
}

impl HomeContext for CountingContext {
    fn mark_stale(&self, copy: &Content) -> Content {
        assert!(self.is_committed, "a copy is stale only after the store");
        *copy
    }

    fn memory(&mut self) -> Content {
        let memory = self.memory;
        self.share(&memory)
    }

    fn may_read_memory(&self) -> bool {
        true
    }

    fn set_memory(&mut self, copy: Content) -> Result<(), Infallible> {
        let old = std::mem::replace(&mut self.memory, copy);
        self.release(old);
        Ok(())
    }

    fn store(&mut self, _whole_line: bool) -> Result<(), Infallible> {
        self.memory = self.replace(self.memory);
        Ok(())
    }

    fn defer_write(&mut self, _whole_line: bool) -> Result<(), Infallible> {
        Ok(())
    }

    fn commit_deferred(&mut self) -> Result<(), Infallible> {
        self.is_committed = true;
        self.store(false)
    }

    fn start(&mut self, operation: MemoryOp<Content>) -> Result<(), Infallible> {
        if let MemoryOp::Write(content) = operation {
            self.started.push(content);
        }
        Ok(())
    }

    fn acknowledge(&mut self, _local: u8) -> Result<(), Infallible> {
        Ok(())
    }

    fn acknowledge_unlock(&mut self) {}
}

/// Returns the facts of MESI, a message with a line and one without data.
fn mesi() -> (ProtocolFacts, MessageId, MessageId) {
    let text = include_str!("../../../../protocols/mesi.coh");
    let protocol = text::parse(text).expect("the file has no errors");
    let home = construct::home(&protocol, 2).expect("the policy has a home");
    let mut ids = protocol.message_ids();
    let line = ids.find(|&id| protocol.message(id).carries.line());
    let mut ids = protocol.message_ids();
    let empty = ids.find(|&id| protocol.message(id).carries == Carries::Nothing);
    let facts = ProtocolFacts::new(&protocol, &home);
    (facts, line.expect("data"), empty.expect("a request"))
}

/// Returns the act that sends a message to the home.
fn send(message: MessageId) -> Act {
    Act::Send {
        message,
        to: Receiver::Home,
        fields: Vec::new(),
    }
}

/// Returns all sequences of up to three of these acts.
fn sequences(acts: &[Act]) -> Vec<Vec<Act>> {
    let mut sequences = vec![Vec::new()];
    let mut begin = 0;
    for _ in 0..3 {
        let end = sequences.len();
        for prefix in begin..end {
            for act in acts {
                let mut sequence = sequences[prefix].clone();
                sequence.push(act.clone());
                sequences.push(sequence);
            }
        }
        begin = end;
    }
    sequences
}

#[test]
fn remote_keeps_sends_or_releases_each_copy_once() {
    let (facts, line, empty) = mesi();
    let acts = sequences(&[send(line), send(empty), Act::Done]);
    assert_eq!(acts.len(), 1 + 3 + 9 + 27);
    let kinds = [
        CompletionKind::Read,
        CompletionKind::Write,
        CompletionKind::Sent,
    ];
    for kind in kinds {
        for options in 0..16 {
            let [is_held, is_carried, holds_after, performs] =
                [0, 1, 2, 3].map(|bit| options >> bit & 1 == 1);
            let effects = RemoteEffects {
                holds_after,
                performs,
                done: CompletionEffect::Completes(kind),
                ..RemoteEffects::NONE
            };
            for acts in &acts {
                let row = format!("{effects:?}, held {is_held}, carried {is_carried}: {acts:?}");
                let own_copy = is_held.then_some(0);
                let carried_copy = is_carried.then_some(usize::from(is_held));
                let mut context =
                    CountingContext::new(acts, usize::from(is_held) + usize::from(is_carried));
                let carried = carried_copy.map(Some);
                let Ok(kept) = agent::remote(&facts, &effects, own_copy, carried, &mut context);

                // The row uses and keeps the carried copy, or else the remote's own. A write makes a new content of it.
                let mut next_content = usize::from(is_held) + usize::from(is_carried);
                let (mut used, mut sent) = (carried_copy.or(own_copy), Vec::new());
                for act in acts {
                    match act {
                        Act::Done if kind == CompletionKind::Write => {
                            used = Some(next_content);
                            next_content += 1;
                        }
                        Act::Send { message, .. } if *message == line => sent.push(used),
                        _ => {}
                    }
                }
                let expected = match (holds_after, performs) {
                    (false, _) => None,
                    (true, true) => Some(next_content),
                    (true, false) => used,
                };
                assert_eq!((kept, &context.sent), (expected, &sent), "{row}");
                context.check_holders(context.sent.iter().chain([&kept]), &row);
            }
        }
    }
}

#[test]
fn home_shares_each_copy_that_it_passes_on() {
    let (facts, line, empty) = mesi();
    let acts = sequences(&[
        send(line),
        send(empty),
        Act::WriteMemory,
        Act::StartWrite,
        Act::CommitDeferred,
    ]);
    // A message with a line, one without data, a memory read, and an event without a copy.
    for (message, carried_copy) in [
        (Some(line), Some(Some(0))),
        (Some(empty), None),
        (None, Some(Some(0))),
        (None, None),
    ] {
        for acts in &acts {
            let row = format!("{message:?} with {carried_copy:?}: {acts:?}");
            let mut context = CountingContext::new(acts, 2);
            let carried_copy = carried_copy.as_ref();
            let input = HomeInput {
                message,
                carried_copy,
            };
            let Ok(()) = agent::home(&facts, input, &mut context);
            let is_write = |act: &&Act| matches!(act, Act::WriteMemory | Act::StartWrite);
            let writes = acts.iter().filter(is_write).count();
            let problems = if carried_copy.is_some() { 0 } else { writes };
            assert_eq!(context.problems, problems, "{row}");
            // A memory completion sends what memory has read, and a message what memory holds now.
            if let (None, Some(read)) = (message, carried_copy) {
                assert!(context.sent.iter().all(|content| content == read), "{row}");
            }
            let first_holders = [Some(0), context.memory];
            // The first content stays with the caller, the second with memory until it is replaced.
            let holders = context.sent.iter().chain(&context.started);
            context.check_holders(holders.chain(&first_holders), &row);
        }
    }
}

/// Adds the sources in a folder and its subfolders that execute an act.
fn collect_executors(folder: &Path, executors: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("source folder") {
        let path = entry.expect("folder entry").path();
        if path.is_dir() {
            collect_executors(&path, executors);
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("source file");
        if source.contains("Act::Done") || source.contains("Act::CommitDeferred") {
            executors.push(path);
        }
    }
}

#[test]
fn acts_are_executed_in_one_file() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = crates.canonicalize().expect("folder of the crates");
    let mut executors = Vec::new();
    for entry in std::fs::read_dir(&crates).expect("folder of the crates") {
        let sources = entry.expect("folder entry").path().join("src");
        // The crate that defines acts also prints them.
        if sources.is_dir() && sources != crates.join("protocol/src") {
            collect_executors(&sources, &mut executors);
        }
    }
    assert_eq!(executors, [crates.join("system/src/agent.rs")]);
}
