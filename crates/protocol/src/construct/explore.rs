//! Exploration of all reachable states of a home, by running its program on every possible input.

use super::environment::{ConfigurationId, MoveError};
use super::explain::{explain, Input, View, ViewStep};
use super::fault::{Fault, FaultKind, Note};
use super::knowledge::{Knowledge, KnowledgeError, KnowledgeId};
use super::program::{
    Entry, LazyTables, Slot, CURRENT_REQUEST, KNOWN, LOCAL, LOCKED, MEMORY, REQUESTER,
};
use crate::controller::{Controller, Event};
use crate::execute::{Act, Configuration, Machine, Outcome, Receiver, Trigger};
use crate::policy::{GrantCondition, Policy, Stall};
use crate::protocol::{Carries, Class, MessageId, Permission, VariableId};
use cohkit_base::exploration::{Exploration, Limits, Stop};
use cohkit_base::sequence::Sequence;
use cohkit_base::words::counted;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of home states: a limit on memory for policies whose knowledge grows without bound. Three remotes of
/// ECI stay far below it.
const MAX_STATES: usize = 400_000;

/// Reaction of a home to an input in a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    /// The input stalls: the message stays in its channel, the operation at its port.
    Stall,
    /// The operation is rejected.
    Refuse,
    /// The input is taken.
    Take {
        /// Actions, in order.
        acts: Vec<Act>,
        /// Index of the next state.
        to: u32,
    },
}

/// All reachable states of a home with a number of remotes.
pub struct HomeGraph {
    /// Number of remotes.
    pub remotes: u16,
    /// States found so far, and the tree of first visits.
    exploration: Exploration<Configuration>,
    /// For each state, the reaction to each possible input, in the order of [`inputs`].
    pub cells: Vec<Vec<(Input, Cell)>>,
    /// Remarks on requests served while something may still be in flight.
    pub notes: Vec<Note>,
}

impl HomeGraph {
    /// States in breadth-first order; the first is the initial one.
    pub fn states(&self) -> &[Configuration] {
        self.exploration.states().values()
    }

    /// Number of transitions: inputs that are taken.
    pub fn transitions(&self) -> usize {
        let taken_count = |cells: &Vec<(Input, Cell)>| {
            cells
                .iter()
                .filter(|cell| matches!(cell.1, Cell::Take { .. }))
                .count()
        };
        self.cells.iter().map(taken_count).sum()
    }

    /// Inputs and actions of the home on the shortest path to a state.
    pub fn view(&self, state: u32) -> View {
        let step = |pair: &[u32]| {
            let cells = self.cells[pair[0] as usize].iter();
            let mut taken = cells.filter_map(|(input, cell)| match cell {
                Cell::Take { acts, to } if *to == pair[1] => Some((*input, acts.clone())),
                _ => None,
            });
            let (input, acts) = taken.next().expect("a taken input leads on");
            ViewStep { input, acts }
        };
        let states = self.exploration.states_to(state);
        states.windows(2).map(step).collect()
    }

    /// Knowledge set of a remote in a state.
    pub fn knowledge(&self, state: u32, remote: u16) -> KnowledgeId {
        KnowledgeId(self.exploration.states()[state].slots[KNOWN.index() + remote as usize])
    }
}

/// Lists all possible inputs of a policy's home, in a fixed order.
pub fn inputs(knowledge: &Knowledge, remotes: u16) -> Vec<Input> {
    let environment = &knowledge.environment;
    let policy = environment.policy();
    let mut inputs = Vec::new();
    for remote in 0..remotes {
        for class in [
            Class::Request,
            Class::Victim,
            Class::Answer,
            Class::Acknowledgement,
        ] {
            let messages = environment
                .protocol
                .message_ids()
                .filter(|&message| environment.class(message) == class);
            inputs.extend(messages.map(|message| (Event::Message(message), Some(remote))));
        }
    }
    inputs.extend((0..policy.locals.len()).map(|index| (Event::Local(index as u8), None)));
    if policy.locals.iter().any(|local| local.lock) {
        inputs.push((Event::Unlock, None));
    }
    let has_choice = policy
        .requests
        .iter()
        .flat_map(|request| &request.grants)
        .any(|grant| grant.condition == GrantCondition::Chosen);
    inputs.extend((0..=u8::from(has_choice)).map(|choice| (Event::MemoryData(choice), None)));
    inputs.push((Event::MemoryDone, None));
    inputs
}

/// State of the exploration.
struct Explorer<'e, 'a> {
    /// Knowledge sets, extended during the exploration.
    knowledge: &'e mut Knowledge<'a>,
    /// The home's program.
    machine: Machine<'e>,
    /// Content of each table of the program, by table number.
    entries: &'e [Entry],
    /// Policy from which the program was built.
    policy: &'a Policy,
    /// Result so far.
    graph: HomeGraph,
    /// Requests that already have a note; each gets at most one.
    noted: Vec<MessageId>,
}

/// Explores the home for this many remotes. Returns `None` if `cancel` is set in the meantime.
///
/// # Errors
/// The first fault found, breadth first.
pub fn explore(
    knowledge: &mut Knowledge,
    controller: &Controller,
    entries: &[Entry],
    remotes: u16,
    cancel: &AtomicBool,
) -> Result<Option<HomeGraph>, Box<Fault>> {
    let policy = knowledge.environment.policy();
    let machine = Machine::new(controller, remotes);
    let graph = HomeGraph {
        remotes,
        exploration: Exploration::new(machine.initial()),
        cells: Vec::new(),
        notes: Vec::new(),
    };
    let mut explorer = Explorer {
        knowledge,
        machine,
        entries,
        policy,
        graph,
        noted: Vec::new(),
    };
    if let Err(error) = explorer.knowledge.initial() {
        let step = ViewStep {
            input: (Event::Unlock, None),
            acts: Vec::new(),
        };
        return Err(explorer.knowledge_fault(error, Vec::new(), 0, &step));
    }
    let inputs = inputs(explorer.knowledge, remotes);
    let mut limits = Limits {
        max_states: MAX_STATES,
        should_continue: &mut || !cancel.load(Ordering::Relaxed),
    };
    loop {
        let state = match explorer.graph.exploration.next(&mut limits) {
            Ok(Some(state)) => state,
            Ok(None) => return Ok(Some(explorer.graph)),
            Err(Stop::Cancelled) => return Ok(None),
            Err(Stop::StateLimit) => {
                return Err(Box::new(Fault {
                    kind: FaultKind::TooLarge,
                    text: format!(
                        "the home has more than {MAX_STATES} states with {remotes} remotes"
                    ),
                    remedy: Some("use systems with fewer remotes".into()),
                    span: policy.span,
                    explanations: Vec::new(),
                }))
            }
        };
        explorer.graph.cells.push(Vec::new());
        for &input in &inputs {
            explorer.react(state, input)?;
        }
        explorer.graph.exploration.end_expansion();
    }
}

impl Explorer<'_, '_> {
    /// Adds the home's reaction to an input in a state to the graph, and the next state if it is new. An input that
    /// cannot occur, according to the sender's knowledge set, is left out.
    fn react(&mut self, state: u32, input: Input) -> Result<(), Box<Fault>> {
        let (event, sender) = input;
        if let (Event::Message(message), Some(sender)) = input {
            let set = self.graph.knowledge(state, sender);
            match self.knowledge.receive(set, message) {
                Ok(None) => return Ok(()),
                Ok(Some(set_after)) => self.check_expectation(state, input, set_after)?,
                Err(error) => {
                    let step = ViewStep {
                        input,
                        acts: Vec::new(),
                    };
                    return Err(self.knowledge_fault(error, self.graph.view(state), sender, &step));
                }
            }
        }
        let mut next_state = self.graph.exploration.states()[state].clone();
        let trigger = Trigger {
            home: 0,
            event,
            sender,
            executing_remote: None,
            fields: &[],
        };
        let mut lazy = LazyTables {
            knowledge: self.knowledge,
            entries: self.entries,
            error: None,
        };
        let outcome = self.machine.step(&mut next_state, trigger, &mut lazy);
        let error = lazy.error.take();
        let cell = match outcome {
            Err(row_error) => {
                let error = error
                    .unwrap_or_else(|| panic!("the home program faults: {:?}", row_error.fault));
                let receiver = row_error.acts.iter().rev().find_map(|act| match act {
                    Act::Send {
                        to: Receiver::Remote(to),
                        ..
                    } => Some(*to),
                    _ => None,
                });
                let step = ViewStep {
                    input,
                    acts: row_error.acts,
                };
                return Err(self.knowledge_fault(
                    error,
                    self.graph.view(state),
                    receiver.unwrap_or(0),
                    &step,
                ));
            }
            Ok(Outcome::Unexpected) => match event {
                Event::Message(message) => return Err(self.stuck_fault(state, input, message)),
                _ => return Ok(()),
            },
            Ok(Outcome::Stall) => {
                self.note_doubtful_wait(state, input);
                Cell::Stall
            }
            Ok(Outcome::Refuse) => Cell::Refuse,
            Ok(Outcome::Taken { acts, .. }) => {
                self.note_early_service(state, input);
                let (to, is_new) = self.graph.exploration.add(next_state, state);
                self.graph.cells[state as usize].push((input, Cell::Take { acts, to }));
                return match is_new {
                    true => self.check_wait(to),
                    false => Ok(()),
                };
            }
        };
        self.graph.cells[state as usize].push((input, cell));
        Ok(())
    }

    /// Name of a message.
    fn name(&self, message: MessageId) -> &str {
        &self.knowledge.environment.protocol.message(message).name
    }

    /// Value of a variable of the home's program in a state.
    fn slot(&self, state: u32, variable: VariableId) -> u16 {
        self.graph.exploration.states()[state].slots[self.machine.slot(variable.0)]
    }

    /// Draws a run that is consistent with the view and ends with the given remote in the given configuration.
    fn draw_run(&mut self, view: &View, remote: u16, configuration: ConfigurationId) -> Sequence {
        let remotes = self.graph.remotes;
        explain(
            &mut self.knowledge.environment,
            view,
            remotes,
            remote,
            configuration,
            None,
        )
    }

    /// Builds the fault for a knowledge set that could not be built during `step`.
    fn knowledge_fault(
        &mut self,
        error: KnowledgeError,
        mut view: View,
        remote: u16,
        step: &ViewStep,
    ) -> Box<Fault> {
        let has_step = !matches!(step.input.0, Event::Unlock);
        if has_step {
            view.push(step.clone());
        }
        let protocol = self.knowledge.environment.protocol;
        let remotes = self.graph.remotes;
        let agent = &protocol.remote.name;
        match error {
            KnowledgeError::Move(configuration, MoveError::Unexpected(message)) => {
                let state = self
                    .knowledge
                    .environment
                    .configuration(configuration)
                    .state;
                let state = &protocol.remote.states[state.index()].name;
                let name = self.name(message).to_string();
                let text = format!(
                    "`{name}` can reach `{agent}` in state `{state}`, which has no rule for it"
                );
                let sequence = explain(
                    &mut self.knowledge.environment,
                    &view,
                    remotes,
                    remote,
                    configuration,
                    Some(message),
                );
                Box::new(Fault {
                    kind: FaultKind::UnexpectedMessage,
                    text,
                    remedy: Some(format!("give `{state}` a row for it, or keep `{name}` from being overtaken (`ordered`, `await`)")),
                    span: protocol.message(message).span,
                    explanations: vec![sequence],
                })
            }
            KnowledgeError::Move(_, MoveError::TooMany(step)) => {
                let configuration = step.to;
                let limit = self.knowledge.environment.in_flight_limit();
                let state_text = self.knowledge.environment.configuration_text(configuration);
                let sequence = self.draw_run(&view, remote, configuration);
                Box::new(Fault {
                    kind: FaultKind::Unbounded,
                    text: format!("more than {} can be in flight: {state_text}", counted(limit, "message")),
                    remedy: Some("let requests wait for the victims that precede them, or state a bound that the link enforces (`bounds`)".into()),
                    span: self.policy.span,
                    explanations: vec![sequence],
                })
            }
            KnowledgeError::LostCount(unanswered, answered) => {
                let text = format!(
                    "the home no longer knows whether a forward is unanswered: {} and {} are consistent with all messages that it has received",
                    self.knowledge.environment.configuration_text(unanswered),
                    self.knowledge.environment.configuration_text(answered)
                );
                let explanations = vec![
                    self.draw_run(&view, remote, unanswered),
                    self.draw_run(&view, remote, answered),
                ];
                Box::new(Fault {
                    kind: FaultKind::LostCount,
                    text,
                    remedy: Some(
                        "answer every forward, once, with a message of class answer".into(),
                    ),
                    span: self.policy.span,
                    explanations,
                })
            }
        }
    }

    /// Builds the fault for a message that arrived although the program declares it impossible.
    fn stuck_fault(&mut self, state: u32, input: Input, message: MessageId) -> Box<Fault> {
        let remote = input.1.unwrap_or(0);
        let set = self.graph.knowledge(state, remote);
        let set_after = self
            .knowledge
            .receive(set, message)
            .ok()
            .flatten()
            .expect("the message can arrive");
        let name = self.name(message).to_string();
        let mut view = self.graph.view(state);
        view.push(ViewStep {
            input,
            acts: Vec::new(),
        });
        if self.knowledge.environment.class(message) != Class::Request {
            let configuration = self.knowledge.configurations(set_after)[0];
            let sequence = self.draw_run(&view, remote, configuration);
            return Box::new(Fault {
                kind: FaultKind::SlotBusy,
                text: format!(
                    "`{name}` brings dirty data while the memory slot of the line is busy"
                ),
                remedy: Some("let requests wait for the victims that precede them".into()),
                span: self.knowledge.environment.protocol.message(message).span,
                explanations: vec![sequence],
            });
        }
        let blocked = self.knowledge.blockings[self.knowledge.blocking(message)];
        let (owing, free) = self.split_by_answer(set_after, blocked);
        let explanations = [owing, free]
            .into_iter()
            .flatten()
            .map(|configuration| self.draw_run(&view, remote, configuration))
            .collect();
        Box::new(Fault {
            kind: FaultKind::NeitherServedNorStalled,
            text: format!(
                "`{name}` can be neither served (an earlier message may have to come first) nor safely stalled (that message may not exist)"
            ),
            remedy: Some("give the remote different answers for the cases that the charts show".into()),
            span: self.policy.requests.iter().find(|request| request.message == message).map_or(self.policy.span, |request| request.span),
            explanations,
        })
    }

    /// Finds two configurations of a set, if they exist: one that is sure to bring a message, and one that is not.
    fn split_by_answer(
        &mut self,
        set: KnowledgeId,
        blocked: Option<usize>,
    ) -> (Option<ConfigurationId>, Option<ConfigurationId>) {
        let configurations = self.knowledge.configurations(set).to_vec();
        let (owing, free): (Vec<_>, Vec<_>) =
            configurations.into_iter().partition(|&configuration| {
                self.knowledge
                    .environment
                    .must_answer(configuration, blocked)
            });
        (owing.first().copied(), free.first().copied())
    }

    /// Finds a configuration of a set in which dirty data is in flight to the home.
    fn configuration_with_dirty_data(&self, set: KnowledgeId) -> Option<ConfigurationId> {
        let environment = &self.knowledge.environment;
        let is_dirty = |message| {
            environment.to_home(message)
                && environment.protocol.message(message).carries == Carries::DirtyLine
        };
        let configurations = self.knowledge.configurations(set).iter();
        configurations.copied().find(|&configuration| {
            environment
                .configuration(configuration)
                .messages()
                .any(is_dirty)
        })
    }

    /// Checks that goals wait for dirty victims only if these are sure to come.
    fn check_wait(&mut self, state: u32) -> Result<(), Box<Fault>> {
        if self.policy.stall == Stall::Possible || self.slot(state, MEMORY) != Slot::Free as u16 {
            return Ok(());
        }
        let (current_request, local) = (self.slot(state, CURRENT_REQUEST), self.slot(state, LOCAL));
        let (ensure, span) = match (current_request, local) {
            (0, 0) => return Ok(()),
            (0, local) => {
                let local = &self.policy.locals[local as usize - 1];
                (local.ensure, local.span)
            }
            (current_request, _) => {
                let request = &self.policy.requests[current_request as usize - 1];
                (request.ensure, request.span)
            }
        };
        let requester = self.slot(state, REQUESTER);
        for remote in (0..self.graph.remotes).filter(|&remote| remote + 1 != requester) {
            let set = self.graph.knowledge(state, remote);
            let facts = self.knowledge.facts(set);
            let waits = !facts.forward && facts.permissions <= ensure && facts.dirty;
            if waits && !facts.must_answer[0] {
                let view = self.graph.view(state);
                let (owing, free) = self.split_by_answer(set, None);
                let owing = self.configuration_with_dirty_data(set).or(owing);
                let explanations = [owing, free]
                    .into_iter()
                    .flatten()
                    .map(|configuration| self.draw_run(&view, remote, configuration))
                    .collect();
                return Err(Box::new(Fault {
                    kind: FaultKind::MayNotExist,
                    text: "the home waits for dirty data that need not exist".into(),
                    remedy: Some(
                        "give the remote different answers for the cases that the charts show"
                            .into(),
                    ),
                    span,
                    explanations,
                }));
            }
        }
        Ok(())
    }

    /// Checks that an answer implies the permission that the file asserts (`assert`).
    fn check_expectation(
        &mut self,
        state: u32,
        input: Input,
        set_after: KnowledgeId,
    ) -> Result<(), Box<Fault>> {
        let (Event::Message(message), Some(remote)) = input else {
            return Ok(());
        };
        for expectation in self
            .policy
            .expectations
            .iter()
            .filter(|expectation| expectation.answer == message)
        {
            let permission_in = |explorer: &Self, configuration| {
                explorer.knowledge.environment.permission(
                    explorer
                        .knowledge
                        .environment
                        .configuration(configuration)
                        .state,
                )
            };
            let configurations = self.knowledge.configurations(set_after).to_vec();
            let Some(&counterexample) = configurations.iter().find(|&&configuration| {
                permission_in(self, configuration) > expectation.permission
            }) else {
                continue;
            };
            let as_expected = configurations
                .iter()
                .find(|&&configuration| {
                    permission_in(self, configuration) <= expectation.permission
                })
                .copied();
            let mut view = self.graph.view(state);
            view.push(ViewStep {
                input,
                acts: Vec::new(),
            });
            let state_text = self
                .knowledge
                .environment
                .configuration_text(counterexample);
            let explanations = as_expected
                .into_iter()
                .chain([counterexample])
                .map(|configuration| self.draw_run(&view, remote, configuration))
                .collect();
            return Err(Box::new(Fault {
                kind: FaultKind::WrongExpectation,
                text: format!(
                    "`{}` does not imply that the remote has {}: it may be {state_text}",
                    self.name(message),
                    match expectation.permission {
                        Permission::None => "no permission",
                        Permission::Read => "at most read permission",
                        Permission::Write => "any particular permission",
                    }
                ),
                remedy: None,
                span: expectation.span,
                explanations,
            }));
        }
        Ok(())
    }

    /// Notes, once per request, that the request may be served before an earlier message has arrived.
    fn note_early_service(&mut self, state: u32, input: Input) {
        let (Event::Message(message), Some(remote)) = input else {
            return;
        };
        if self.knowledge.environment.class(message) != Class::Request
            || self.noted.contains(&message)
        {
            return;
        }
        let Ok(Some(set_after)) = self
            .knowledge
            .receive(self.graph.knowledge(state, remote), message)
        else {
            return;
        };
        let facts = self.knowledge.facts(set_after);
        if facts.victims || facts.acknowledgements || facts.forward {
            self.noted.push(message);
            let condition = if facts.forward {
                "a forward is unanswered"
            } else {
                "an earlier victim may be in flight"
            };
            let text = format!("`{}` may be served while {condition}", self.name(message));
            self.graph.notes.push(Note {
                text,
                sequence: None,
            });
        }
    }

    /// Notes, once per request, that the request may wait for a message that need not exist (`stall possible`). The
    /// quiescence check decides whether the request is then stuck.
    fn note_doubtful_wait(&mut self, state: u32, input: Input) {
        let (Event::Message(message), Some(remote)) = input else {
            return;
        };
        let is_idle = [MEMORY, CURRENT_REQUEST, LOCAL]
            .iter()
            .all(|&variable| self.slot(state, variable) == 0);
        if self.policy.stall == Stall::Proven || !is_idle || self.noted.contains(&message) {
            return;
        }
        let is_locked = self.slot(state, LOCKED) != 0;
        let Ok(Some(set_after)) = self
            .knowledge
            .receive(self.graph.knowledge(state, remote), message)
        else {
            return;
        };
        let blocking = self.knowledge.blocking(message);
        if is_locked || self.knowledge.facts(set_after).must_answer[blocking] {
            return;
        }
        self.noted.push(message);
        let blocked = self.knowledge.blockings[blocking];
        let (_, free) = self.split_by_answer(set_after, blocked);
        let mut view = self.graph.view(state);
        view.push(ViewStep {
            input,
            acts: Vec::new(),
        });
        let sequence = free.map(|configuration| self.draw_run(&view, remote, configuration));
        let text = format!(
            "`{}` may wait for a victim that need not exist",
            self.name(message)
        );
        self.graph.notes.push(Note { text, sequence });
    }
}
