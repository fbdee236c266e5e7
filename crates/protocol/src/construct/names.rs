//! Names of constructed home states, derived from their knowledge sets.
//!
//! A name is `permission [> where a grant may not have landed] [_f forward] [_w victims owed] [: or + request known]`,
//! then `.` status. For example, `I>S_fI:GetS` reads: S was granted to a remote in I and has perhaps not landed, a
//! forward to I is unanswered, and the remote waits for the answer to `GetS`.
//!
//! * `permission` is the highest that the remote may have, written as the remote state that represents it.
//! * `I>S`: from I, S was granted and has perhaps not landed.
//! * `_fS`, `_fI`: an unanswered forward that reaches S or I. A `u` follows if the remote may answer as one that was
//!   upgrading, an `x` if another answer of a higher permission is possible.
//! * `_wSI|MI`: victims owed in every configuration.
//! * `:R`: the remote surely waits for the answer to request R.
//! * `+R`: its request R is in flight and it holds no copy; `+R?`: this is possible.

use super::environment::{ConfigurationId, Environment};
use super::explore::HomeGraph;
use super::knowledge::{Knowledge, KnowledgeId};
use super::program::{Slot, CURRENT_REQUEST, LOCAL, LOCKED, MEMORY};
use crate::controller::{Effect, Event, Statement};
use crate::protocol::{Class, MessageId, Permission, Protocol, StateId};
use std::collections::BTreeSet;

/// State of a remote, and the messages in flight between it and the home.
type RemoteConfiguration = (StateId, Vec<MessageId>);

/// Summary of the remote's states that send a message.
#[derive(Clone, Copy)]
struct SenderStates {
    /// Lowest permission of these states.
    lowest_permission: Permission,
    /// True if all of them are transient states with a permission: an upgrade is pending.
    is_upgrading: bool,
}

/// Name parts of a protocol, from which state names are built.
pub struct Namer<'e, 'a> {
    /// Configurations and protocol of the remote.
    environment: &'e Environment<'a>,
    /// Remote state that represents each permission.
    permission_names: [String; 3],
    /// Requests that may have led to each transient state.
    pending_requests: Vec<BTreeSet<MessageId>>,
    /// States that send each message, for answers and requests.
    senders: Vec<SenderStates>,
    /// For each victim, the states before and after, as one word.
    victims: Vec<String>,
}

impl<'e, 'a> Namer<'e, 'a> {
    /// Derives the name parts from the remote's rules.
    pub fn new(environment: &'e Environment<'a>) -> Self {
        let protocol = environment.protocol;
        let state_name = |permission| {
            let states = &protocol.remote.states;
            states
                .iter()
                .find(|state| state.permission == permission && state.is_stable())
                .map_or(String::new(), |state| state.name.clone())
        };
        let unsent = SenderStates {
            lowest_permission: Permission::Write,
            is_upgrading: true,
        };
        let mut senders = vec![unsent; protocol.messages.len()];
        let mut victims = vec![String::new(); protocol.messages.len()];
        for rule in &protocol.remote.rules {
            let Effect::Take { body, next } = &rule.effect else {
                continue;
            };
            let state = &protocol.remote.states[rule.state.index()];
            for message in sent_messages(body) {
                let sender = &mut senders[message.index()];
                sender.lowest_permission = sender.lowest_permission.min(state.permission);
                sender.is_upgrading &= !state.is_stable() && state.permission > Permission::None;
                let word = &mut victims[message.index()];
                if word.is_empty() {
                    let next = &protocol.remote.states[next.unwrap_or(rule.state).index()];
                    *word = format!("{}{}", state.name, next.name);
                }
            }
        }
        Namer {
            environment,
            permission_names: [
                state_name(Permission::None),
                state_name(Permission::Read),
                state_name(Permission::Write),
            ],
            pending_requests: pending_requests(protocol),
            senders,
            victims,
        }
    }

    /// One name per class of states of a graph with one remote: the name of the member with the fewest parts. Equal
    /// names are distinguished by the suffixes a, b, c, ... in order.
    pub fn names(
        &self,
        knowledge: &Knowledge,
        graph: &HomeGraph,
        members: &[Vec<u32>],
    ) -> Vec<String> {
        let name = |&state: &u32| {
            let base = self.knowledge_name(knowledge, graph.knowledge(state, 0));
            format!(
                "{base}{}",
                self.status_suffix(&base, &graph.states()[state as usize].slots)
            )
        };
        let mut names: Vec<String> = members
            .iter()
            .map(|members| {
                // The first of those with the fewest parts.
                let part_count =
                    |name: &String| name.chars().filter(|&c| !c.is_alphanumeric()).count();
                members
                    .iter()
                    .map(name)
                    .min_by_key(part_count)
                    .unwrap_or_default()
            })
            .collect();
        for first in 0..names.len() {
            let name = names[first].clone();
            let duplicates: Vec<usize> = (first..names.len())
                .filter(|&other| names[other] == name)
                .collect();
            if duplicates.len() > 1 {
                for (count, &index) in duplicates.iter().enumerate() {
                    names[index] = format!("{name}~{}", suffix(count));
                }
            }
        }
        names
    }

    /// Returns the part after the dot: memory slot, local operation, lock. A read or store for the request that is
    /// already in the name is `rd` or `st`.
    fn status_suffix(&self, base: &str, slots: &[u16]) -> String {
        let policy = self.environment.policy();
        let protocol = self.environment.protocol;
        let request = |index: u16| {
            let request = &policy.requests[index as usize - 1];
            protocol.message(request.message).name.clone()
        };
        let mut status = String::new();
        if slots[MEMORY.index()] == Slot::Write as u16 {
            status.push_str(".wr");
        }
        if slots[CURRENT_REQUEST.index()] != 0 {
            let request = request(slots[CURRENT_REQUEST.index()]);
            let is_named = base.ends_with(&format!(":{request}"));
            status.push('.');
            let is_store = slots[MEMORY.index()] == Slot::Store as u16;
            status.push_str(match (is_named, is_store) {
                (true, false) => "rd",
                (true, true) => "st",
                (false, _) => &request,
            });
        }
        if slots[LOCAL.index()] != 0 {
            status.push('.');
            status.push_str(&policy.locals[slots[LOCAL.index()] as usize - 1].name);
        }
        if slots[LOCKED.index()] != 0 {
            status.push_str(".lock");
        }
        status
    }

    /// Returns the part before the dot: knowledge about the remote.
    fn knowledge_name(&self, knowledge: &Knowledge, id: KnowledgeId) -> String {
        let environment = self.environment;
        let configurations: Vec<RemoteConfiguration> = knowledge
            .configurations(id)
            .iter()
            .map(|&configuration: &ConfigurationId| {
                let configuration = environment.configuration(configuration);
                (configuration.state, configuration.messages().collect())
            })
            .collect();
        let highest = configurations
            .iter()
            .map(|(state, _)| environment.permission(*state))
            .max()
            .unwrap_or(Permission::None);
        let grant_prefix = self.grant_prefix(&configurations);
        let mut name = format!("{grant_prefix}{}", self.permission_names[highest as usize]);
        if knowledge.facts(id).forward {
            name.push_str(&self.forward_suffix(&configurations, highest));
        }
        name.push_str(&self.victim_suffix(&configurations));
        name.push_str(&self.request_suffix(&configurations, highest, grant_prefix.is_empty()));
        name
    }

    /// Returns the prefix for a grant in flight, `I>`: the permissions that the remote may have before the grant
    /// arrives. Empty if no grant is in flight.
    fn grant_prefix(&self, configurations: &[RemoteConfiguration]) -> String {
        let environment = self.environment;
        let origins: BTreeSet<Permission> = configurations
            .iter()
            .filter(|(_, messages)| {
                let mut messages = messages.iter();
                messages.any(|&message| environment.class(message) == Class::Grant)
            })
            .map(|(state, _)| environment.permission(*state).min(Permission::Read))
            .collect();
        if origins.is_empty() {
            return String::new();
        }
        let names = origins.iter().rev();
        let names = names.map(|&permission| self.permission_names[permission as usize].as_str());
        format!("{}>", names.collect::<String>())
    }

    /// Returns the part for an unanswered forward: `_fS`, `_fIu`, `_f!x`. The `!` means that the forward has arrived.
    fn forward_suffix(
        &self,
        configurations: &[RemoteConfiguration],
        highest: Permission,
    ) -> String {
        let environment = self.environment;
        let in_flight: BTreeSet<MessageId> = configurations
            .iter()
            .flat_map(|(_, messages)| messages)
            .copied()
            .collect();
        let mut suffix = "_f".to_string();
        let mut has_forward = false;
        for downgrade in &environment.policy().downgrades {
            if in_flight.contains(&downgrade.forward) {
                suffix.push_str(&self.permission_names[downgrade.permission as usize]);
                has_forward = true;
            }
        }
        if !has_forward {
            suffix.push('!');
        }
        let answers: Vec<SenderStates> = in_flight
            .iter()
            .filter(|message| environment.class(**message) == Class::Answer)
            .map(|answer| self.senders[answer.index()])
            .collect();
        if answers.iter().any(|answer| answer.is_upgrading) {
            suffix.push('u');
        }
        let is_higher =
            |answer: &SenderStates| !answer.is_upgrading && answer.lowest_permission > highest;
        if answers.iter().any(is_higher) {
            suffix.push('x');
        }
        suffix
    }

    /// Returns the part for victims owed in every configuration, `_wSI|MI`; empty if some configuration owes none.
    fn victim_suffix(&self, configurations: &[RemoteConfiguration]) -> String {
        let owed_victims: BTreeSet<BTreeSet<&str>> = configurations
            .iter()
            .map(|(_, messages)| {
                messages
                    .iter()
                    .filter(|message| self.environment.class(**message) == Class::Victim)
                    .map(|victim| self.victims[victim.index()].as_str())
                    .collect()
            })
            .collect();
        let minimal_sets: Vec<_> = owed_victims
            .iter()
            .filter(|set| {
                let mut others = owed_victims.iter();
                !others.any(|other| other != *set && other.is_subset(set))
            })
            .collect();
        if minimal_sets.iter().any(|set| set.is_empty()) {
            return String::new();
        }
        let words: Vec<String> = minimal_sets
            .iter()
            .map(|set| set.iter().copied().collect::<Vec<_>>().join("+"))
            .collect();
        format!("_w{}", words.join("|"))
    }

    /// Returns the part for the remote's request: `:R`, `+R`, `+R?` or nothing.
    fn request_suffix(
        &self,
        configurations: &[RemoteConfiguration],
        highest: Permission,
        has_no_grant: bool,
    ) -> String {
        let environment = self.environment;
        let request_name =
            |message: &MessageId| environment.protocol.message(*message).name.clone();
        let is_waiting = |(state, messages): &RemoteConfiguration| {
            !self.pending_requests[state.index()].is_empty()
                && !messages.iter().any(|&message| {
                    matches!(environment.class(message), Class::Grant | Class::Request)
                })
        };
        if configurations.iter().all(is_waiting) {
            let requests: BTreeSet<MessageId> = configurations
                .iter()
                .flat_map(|(state, _)| &self.pending_requests[state.index()])
                .copied()
                .collect();
            return format!(
                ":{}",
                requests
                    .iter()
                    .map(request_name)
                    .collect::<Vec<_>>()
                    .join("/")
            );
        }
        let lost_permission = |state: StateId, request: MessageId| {
            // A transient state without permission, for a request that starts in a state with one.
            environment.permission(state) == Permission::None
                && self.pending_requests[state.index()].contains(&request)
        };
        for request in environment.protocol.message_ids() {
            if environment.class(request) != Class::Request || !self.is_upgrade(request) {
                continue;
            }
            if configurations.iter().all(|(state, messages)| {
                messages.contains(&request) || lost_permission(*state, request)
            }) {
                return format!("+{}", request_name(&request));
            }
            if highest == Permission::None
                && has_no_grant
                && configurations
                    .iter()
                    .any(|(state, _)| lost_permission(*state, request))
            {
                return format!("+{}?", request_name(&request));
            }
        }
        String::new()
    }

    /// Returns true if a request is sent only from states with a permission.
    fn is_upgrade(&self, request: MessageId) -> bool {
        self.senders[request.index()].lowest_permission > Permission::None
    }
}

/// Returns the messages that statements send.
fn sent_messages(body: &[Statement]) -> impl Iterator<Item = MessageId> + '_ {
    body.iter().filter_map(|statement| match statement {
        Statement::Send { message, .. } => Some(*message),
        _ => None,
    })
}

/// For each state of the remote, the requests whose answer it may wait for.
fn pending_requests(protocol: &Protocol) -> Vec<BTreeSet<MessageId>> {
    let mut pending = vec![BTreeSet::new(); protocol.remote.states.len()];
    loop {
        let total: usize = pending.iter().map(BTreeSet::len).sum();
        for rule in &protocol.remote.rules {
            let Effect::Take {
                body,
                next: Some(next),
            } = &rule.effect
            else {
                continue;
            };
            if protocol.remote.states[next.index()].is_stable() {
                continue;
            }
            let mut requests = pending[rule.state.index()].clone();
            if matches!(rule.event, Event::Access(_)) {
                requests.extend(
                    sent_messages(body)
                        .filter(|&message| protocol.class(message) == Some(Class::Request)),
                );
            }
            pending[next.index()].extend(requests);
        }
        if pending.iter().map(BTreeSet::len).sum::<usize>() == total {
            return pending;
        }
    }
}

/// Returns the suffix with this number: a, b, ..., z, aa, ab, ...
fn suffix(mut count: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'a' + (count % 26) as u8);
        count /= 26;
        if count == 0 {
            break;
        }
        count -= 1;
    }
    letters.reverse();
    String::from_utf8_lossy(&letters).into_owned()
}
