//! Knowledge sets: all configurations of one remote that are consistent with the home's observations.

use super::environment::{ConfigurationId, Environment, MoveError};
use crate::protocol::{Carries, Class, MessageId, Permission};
use cohkit_base::interner::Interner;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Index of an interned knowledge set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KnowledgeId(pub u16);

/// Properties of a knowledge set that a policy may read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Facts {
    /// Highest permission that the remote has, or will have by a grant in flight, in any configuration.
    pub permissions: Permission,
    /// In some configuration a message that must replace memory is in flight, or the remote holds a dirty line without
    /// permission, which it sends once its victim is acknowledged.
    pub dirty: bool,
    /// In some configuration a victim is in flight that requests wait for.
    pub victims: bool,
    /// A forward is unanswered.
    pub forward: bool,
    /// In every configuration the remote holds a copy.
    pub held: bool,
    /// In some configuration a grant that must be acknowledged, or its acknowledgement, is in flight.
    pub unacknowledged: bool,
    /// In some configuration an acknowledgement is in flight.
    pub acknowledgements: bool,
    /// For each entry of [`Knowledge::blockings`], true if every configuration is sure to bring the home a message that
    /// is not a request. Messages behind a request stalled in that queue do not count.
    pub must_answer: Vec<bool>,
}

/// Reason why a knowledge set cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KnowledgeError {
    /// The remote's silent moves in this configuration cannot be determined.
    Move(ConfigurationId, MoveError),
    /// A forward is unanswered in the first configuration, and none in the second.
    LostCount(ConfigurationId, ConfigurationId),
}

/// Knowledge sets found so far, their facts, and the transitions between them.
pub struct Knowledge<'a> {
    /// Behaviour of the remote.
    pub environment: Environment<'a>,
    /// Queues that a stalled request may block: none, then each ordered queue that carries requests.
    pub blockings: Vec<Option<usize>>,
    /// Knowledge sets; each is a sorted list of configurations.
    sets: Interner<Vec<ConfigurationId>>,
    /// Facts of each knowledge set, by index.
    facts: Vec<Facts>,
    /// Knowledge after the home receives a message from the remote; `None` if the message cannot arrive.
    received: FxHashMap<(KnowledgeId, MessageId), Option<KnowledgeId>>,
    /// Knowledge after the home sends a message to the remote.
    sent: FxHashMap<(KnowledgeId, MessageId), KnowledgeId>,
}

impl<'a> Knowledge<'a> {
    /// Starts without knowledge sets.
    pub fn new(environment: Environment<'a>) -> Self {
        let mut blockings = vec![None];
        for message in environment.protocol.message_ids() {
            let queue = environment.ordered_queue(message);
            if environment.class(message) == Class::Request && !blockings.contains(&queue) {
                blockings.push(queue);
            }
        }
        Knowledge {
            environment,
            blockings,
            sets: Interner::default(),
            facts: Vec::new(),
            received: FxHashMap::default(),
            sent: FxHashMap::default(),
        }
    }

    /// Number of sets found so far.
    pub fn count(&self) -> usize {
        self.sets.len()
    }

    /// The configurations of a set, in index order.
    pub fn configurations(&self, id: KnowledgeId) -> &[ConfigurationId] {
        &self.sets[id.0.into()]
    }

    /// The facts of a set.
    pub fn facts(&self, id: KnowledgeId) -> &Facts {
        &self.facts[id.0 as usize]
    }

    /// Index into [`Facts::must_answer`] of the entry for a stalled request.
    pub fn blocking(&self, request: MessageId) -> usize {
        let queue = self.environment.ordered_queue(request);
        self.blockings
            .iter()
            .position(|&other| other == queue)
            .expect("every request's queue is listed")
    }

    /// Knowledge set at power-up.
    pub fn initial(&mut self) -> Result<KnowledgeId, KnowledgeError> {
        let configuration = self.environment.initial();
        self.intern_closure(vec![configuration])
    }

    /// Knowledge set after taking a message; `None` if the message cannot arrive.
    pub fn receive(
        &mut self,
        id: KnowledgeId,
        message: MessageId,
    ) -> Result<Option<KnowledgeId>, KnowledgeError> {
        if let Some(&next_set) = self.received.get(&(id, message)) {
            return Ok(next_set);
        }
        let configurations = self.sets[id.0.into()].clone();
        let next_configurations: Vec<_> = configurations
            .iter()
            .filter_map(|&configuration| self.environment.receive(configuration, message))
            .collect();
        let next_set = if next_configurations.is_empty() {
            None
        } else {
            Some(self.intern_closure(next_configurations)?)
        };
        self.received.insert((id, message), next_set);
        Ok(next_set)
    }

    /// Knowledge set after sending a message.
    pub fn send(
        &mut self,
        id: KnowledgeId,
        message: MessageId,
    ) -> Result<KnowledgeId, KnowledgeError> {
        if let Some(&next_set) = self.sent.get(&(id, message)) {
            return Ok(next_set);
        }
        let configurations = self.sets[id.0.into()].clone();
        let next_configurations = configurations
            .iter()
            .map(|&configuration| self.environment.send(configuration, message))
            .collect();
        let next_set = self.intern_closure(next_configurations)?;
        self.sent.insert((id, message), next_set);
        Ok(next_set)
    }

    /// Cached result of a receive: `None` if it was never computed, `Some(None)` if it is impossible.
    pub fn known_receive(
        &self,
        id: KnowledgeId,
        message: MessageId,
    ) -> Option<Option<KnowledgeId>> {
        self.received.get(&(id, message)).copied()
    }

    /// Cached result of a send; `None` if it was never computed.
    pub fn known_send(&self, id: KnowledgeId, message: MessageId) -> Option<KnowledgeId> {
        self.sent.get(&(id, message)).copied()
    }

    /// Closes a set under the remote's silent moves and interns it.
    fn intern_closure(
        &mut self,
        base: Vec<ConfigurationId>,
    ) -> Result<KnowledgeId, KnowledgeError> {
        let mut reached: FxHashSet<ConfigurationId> = base.iter().copied().collect();
        let mut queue: VecDeque<ConfigurationId> = reached.iter().copied().collect();
        queue.make_contiguous().sort_unstable();
        while let Some(configuration) = queue.pop_front() {
            match &*self.environment.moves(configuration) {
                Err(error) => return Err(KnowledgeError::Move(configuration, error.clone())),
                Ok(moves) => {
                    for step in moves {
                        if reached.insert(step.to) {
                            queue.push_back(step.to);
                        }
                    }
                }
            }
        }
        let mut set: Vec<_> = reached.into_iter().collect();
        set.sort_unstable();
        if let Some(number) = self.sets.number(&set) {
            return Ok(KnowledgeId(number as u16));
        }
        let facts = self.find_facts(&set)?;
        self.facts.push(facts);
        Ok(KnowledgeId(self.sets.add(set).0 as u16))
    }

    /// Derives the facts of a set from its configurations. Fails with [`KnowledgeError::LostCount`] if the
    /// configurations disagree on whether a forward is unanswered.
    fn find_facts(&mut self, set: &[ConfigurationId]) -> Result<Facts, KnowledgeError> {
        let policy = self.environment.policy();
        let needs_acknowledgement = |message: &MessageId| {
            policy
                .acknowledgement_rules
                .iter()
                .any(|rule| rule.grants.contains(message))
        };
        let mut facts = Facts {
            permissions: Permission::None,
            dirty: false,
            victims: false,
            forward: false,
            held: true,
            unacknowledged: false,
            acknowledgements: false,
            must_answer: vec![true; self.blockings.len()],
        };
        let (mut unanswered, mut answered) = (None, None);
        for &id in set {
            let configuration = self.environment.configuration(id).clone();
            let state = &self.environment.protocol.remote.states[configuration.state.index()];
            facts.permissions = facts.permissions.max(state.permission);
            facts.held &= state.holds_line;
            facts.dirty |= state.dirty && state.permission == Permission::None;
            let mut forward = false;
            for message in configuration.messages() {
                let carries = self.environment.protocol.message(message).carries;
                facts.unacknowledged |= needs_acknowledgement(&message);
                match self.environment.class(message) {
                    Class::Request => {}
                    Class::Victim => facts.victims |= !policy.serve_past.contains(&message),
                    Class::Answer | Class::Forward => forward = true,
                    // The acknowledgement of a victim raises no permission (`check_victim_answers`).
                    Class::Grant if policy.answers_victim(message) => {}
                    Class::Grant => {
                        facts.permissions = facts.permissions.max(self.environment.granted(message))
                    }
                    Class::Acknowledgement => {
                        facts.acknowledgements = true;
                        facts.unacknowledged = true;
                    }
                }
                facts.dirty |= self.environment.to_home(message) && carries == Carries::DirtyLine;
            }
            match forward {
                true => unanswered = Some(id),
                false => answered = Some(id),
            }
            for index in 0..self.blockings.len() {
                let blocked = self.blockings[index];
                facts.must_answer[index] =
                    facts.must_answer[index] && self.environment.must_answer(id, blocked);
            }
        }
        if let (Some(unanswered), Some(answered)) = (unanswered, answered) {
            return Err(KnowledgeError::LostCount(unanswered, answered));
        }
        facts.forward = unanswered.is_some();
        Ok(facts)
    }
}
