//! Construction of homes: from a policy to a controller, by way of the home's possible knowledge.
//!
//! A home sees messages, not a remote's cache. Its knowledge about a remote is the *set* of (remote state, messages in
//! flight) that are consistent with all its observations. The construction builds exactly these sets and lets the
//! policy pursue its goals over them:
//!
//! 1. [`environment`]: the remote's rules and the channels as an automaton, silent to the home;
//! 2. [`knowledge`]: sets of its configurations, closed under silent moves, and the facts that a policy reads;
//! 3. [`program`]: the policy as a controller that reads these facts through tables;
//! 4. [`mod@explore`]: every state the home can reach, with the faults found on the way;
//! 5. [`table`] and [`names`]: states with indistinguishable futures are merged and named;
//! 6. [`mod@quiescence`]: quiescence is reachable from every state without new spontaneous actions;
//! 7. [`explain`]: for every fault, the message sequences that show it.
//!
//! Knowledge factors per remote, because remotes interact only through the home. So the constructed home of any number
//! of remotes is one table per remote *kind* plus the transaction in progress; the product is never built.

pub mod construction_cache;
pub mod environment;
pub mod explain;
pub mod explore;
pub mod fault;
pub mod knowledge;
pub mod names;
pub mod permissions;
pub mod program;
pub mod quiescence;
pub mod table;

use crate::controller::Controller;
use crate::policy::{GrantCondition, Policy};
use crate::protocol::{Home, MessageId, Protocol};
use environment::Environment;
use explore::{explore, HomeGraph};
use fault::{Fault, FaultKind, Refusal};
use knowledge::{Knowledge, KnowledgeId};
use program::{freeze, Entry, ProgramBuilder};
use quiescence::{check_quiescence, QuiescenceReport};
use std::sync::atomic::AtomicBool;
use table::{refine, HomeTable};

/// Number of remotes up to which a construction builds the product.
///
/// In every protocol tried, the knowledge sets are the same for any number of remotes from two on (a test compares two
/// with three). If a larger system reaches a set that was not found, its home has no rule there, and the checker
/// reports the message as unexpected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Maximum number of remotes for which home states are explored. A file with smaller systems needs fewer.
    pub max_explored_remotes: u16,
    /// Maximum number of remotes for which the quiescence check runs. The checker's model covers the property for every
    /// system.
    pub max_quiescence_remotes: u16,
}

impl Default for Extent {
    fn default() -> Self {
        Extent {
            max_explored_remotes: 2,
            max_quiescence_remotes: 1,
        }
    }
}

/// Reason why no home was constructed.
#[derive(Clone, PartialEq, Debug)]
pub enum ConstructionError {
    /// The construction does not apply to this form of protocol.
    Refused(Refusal),
    /// The protocol is wrong; the message sequences show it.
    Fault(Box<Fault>),
}

/// A constructed home.
pub struct Construction<'a> {
    /// Knowledge sets of all explorations together.
    pub knowledge: Knowledge<'a>,
    /// For each knowledge set, its class of sets with indistinguishable futures.
    pub class_of: Vec<u32>,
    /// Home for one remote, as the full product.
    pub graph: HomeGraph,
    /// Home for several remotes, if a system of the file has more than one.
    pub multi_remote_graph: Option<HomeGraph>,
    /// Results of the quiescence check, for one remote and up.
    pub quiescence: Vec<QuiescenceReport>,
    /// Content of each table of the program.
    entries: Vec<Entry>,
    /// Controller over knowledge that the exploration executes; `entries` describes its tables.
    program: Controller,
}

/// Constructs the home of a protocol whose home is a policy, to the default [`Extent`].
///
/// The quiescence check is part of the result ([`Construction::fault`]), because the table is useful even if the check
/// fails.
///
/// # Errors
/// [`ConstructionError`], with the message sequences that show a fault.
///
/// # Panics
/// If the protocol's home is a controller written by hand.
pub fn construct(protocol: &Protocol) -> Result<Construction<'_>, ConstructionError> {
    construct_to(protocol, Extent::default())
}

/// As [`construct`], to the given extent.
///
/// # Errors
/// As [`construct`].
///
/// # Panics
/// As [`construct`].
pub fn construct_to(
    protocol: &Protocol,
    extent: Extent,
) -> Result<Construction<'_>, ConstructionError> {
    match construct_until(protocol, extent, &AtomicBool::new(false))? {
        Some(construction) => Ok(construction),
        None => unreachable!("the flag is never set"),
    }
}

/// As [`construct_to`], but cancelled soon after a flag is set; then the result is `None`.
///
/// # Errors
/// As [`construct`].
///
/// # Panics
/// As [`construct`].
pub fn construct_until<'a>(
    protocol: &'a Protocol,
    extent: Extent,
    cancel: &AtomicBool,
) -> Result<Option<Construction<'a>>, ConstructionError> {
    let Home::Policy(policy) = &protocol.home else {
        panic!("the home of this protocol is written by hand")
    };
    let environment = Environment::new(protocol).map_err(ConstructionError::Refused)?;
    check_grants(&environment, policy).map_err(ConstructionError::Fault)?;
    check_victim_answers(&environment, policy).map_err(ConstructionError::Fault)?;
    let mut knowledge = Knowledge::new(environment);
    let (program, entries) =
        ProgramBuilder::build(protocol, policy, |request| knowledge.blocking(request));
    let explore = |knowledge: &mut Knowledge, remotes| {
        let explored = explore(knowledge, &program, &entries, remotes, cancel);
        explored.map_err(ConstructionError::Fault)
    };
    let largest = protocol
        .systems
        .iter()
        .map(|system| system.remotes.total())
        .max()
        .unwrap_or(1);
    let Some(graph) = explore(&mut knowledge, 1)? else {
        return Ok(None);
    };
    let multi_remote_graph = match largest.min(extent.max_explored_remotes) {
        0 | 1 => None,
        remotes => match explore(&mut knowledge, remotes)? {
            Some(graph) => Some(graph),
            None => return Ok(None),
        },
    };
    let mut quiescence = Vec::new();
    match check_quiescence(&mut knowledge.environment, &graph, cancel) {
        Some(report) => quiescence.push(report),
        None => return Ok(None),
    }
    // One remote without a device is never sent a forward, so effects of forwards need a second one.
    let max_checked_remotes = match policy.locals.is_empty() {
        true => extent.max_quiescence_remotes.max(2),
        false => extent.max_quiescence_remotes,
    };
    for remotes in 2..=largest.min(max_checked_remotes) {
        let Some(graph) = explore(&mut knowledge, remotes)? else {
            return Ok(None);
        };
        match check_quiescence(&mut knowledge.environment, &graph, cancel) {
            Some(report) => quiescence.push(report),
            None => return Ok(None),
        }
    }
    let class_of = classes(&knowledge, &entries);
    Ok(Some(Construction {
        knowledge,
        class_of,
        graph,
        multi_remote_graph,
        quiescence,
        entries,
        program,
    }))
}

/// Returns the controller of a protocol's home in systems of this many remotes, written by hand or constructed.
///
/// # Errors
/// No home can be constructed from the policy, or it has a fault: work that cannot complete.
pub fn home(protocol: &Protocol, remotes: u16) -> Result<Controller, ConstructionError> {
    match &protocol.home {
        Home::Controller(home) => Ok(home.clone()),
        Home::Policy(_) => Ok(construction_cache::constructed(protocol, remotes)?
            .0
            .clone()),
    }
}

/// Returns the classes of knowledge sets with equal facts and equivalent futures.
fn classes(knowledge: &Knowledge, entries: &[Entry]) -> Vec<u32> {
    refine(knowledge.count(), |set, class| {
        let id = KnowledgeId(set as u16);
        let class_of = |next: Option<KnowledgeId>| next.map(|next| class[next.0 as usize]);
        let value = |entry: &Entry| match *entry {
            Entry::Receive(message) => {
                (0, class_of(knowledge.known_receive(id, message).flatten()))
            }
            Entry::Send(message) => (0, class_of(knowledge.known_send(id, message))),
            fact => (fact.fact_value(knowledge.facts(id)).unwrap_or(0), None),
        };
        entries.iter().map(value).collect::<Vec<_>>()
    })
}

/// Checks that grants give the permissions that the file states.
fn check_grants(environment: &Environment, policy: &Policy) -> Result<(), Box<Fault>> {
    for grant in policy.requests.iter().flat_map(|request| &request.grants) {
        let granted = environment.granted(grant.message);
        let chosen_without_data = grant.condition == GrantCondition::Chosen
            && !environment.protocol.message(grant.message).carries.line();
        if granted == grant.permission && !chosen_without_data {
            continue;
        }
        let name = &environment.protocol.message(grant.message).name;
        let text = if chosen_without_data {
            format!("`{name}` carries no line: a grant can be a free choice only when memory has been read for it")
        } else {
            format!(
                "`{name}` gives the permission {granted:?}, not {:?}, by the remote's rules",
                grant.permission
            )
        };
        return Err(Box::new(Fault {
            kind: FaultKind::WrongGrant,
            text,
            remedy: None,
            span: grant.span,
            explanations: Vec::new(),
        }));
    }
    Ok(())
}

/// Checks that the acknowledgement of a victim raises no permission in any state of the remote.
fn check_victim_answers(environment: &Environment, policy: &Policy) -> Result<(), Box<Fault>> {
    for victim in &policy.victims {
        let Some((from, to)) = environment.raise_by(victim.answer) else {
            continue;
        };
        let name = |message: MessageId| &environment.protocol.message(message).name;
        let states = &environment.protocol.remote.states;
        return Err(Box::new(Fault {
            kind: FaultKind::WrongGrant,
            text: format!(
                "`{}` acknowledges the victim `{}`, but raises the permission from that of `{}` to that of `{}`",
                name(victim.answer),
                name(victim.message),
                states[from.index()].name,
                states[to.index()].name
            ),
            remedy: Some(
                "acknowledge victims with a message of their own, which raises no permission".into(),
            ),
            span: victim.span,
            explanations: Vec::new(),
        }));
    }
    Ok(())
}

impl Construction<'_> {
    /// Home for one remote as a table. With `merge`, states with indistinguishable futures are merged.
    pub fn table(&self, merge: bool) -> HomeTable {
        HomeTable::new(&self.knowledge, &self.graph, merge)
    }

    /// Home for one remote as a controller of plain rows.
    pub fn flat(&self, merge: bool) -> Controller {
        self.table(merge).controller(&self.knowledge, &self.graph)
    }

    /// Home for any number of remotes: one knowledge index per remote and the transaction in progress.
    pub fn factored(&self, merge: bool) -> Controller {
        let mut controller = self.program.clone();
        let class_of: Vec<u16> = (0..self.knowledge.count())
            .map(|set| match merge {
                true => self.class_of[set] as u16,
                false => set as u16,
            })
            .collect();
        let mut representatives = Vec::new();
        for (set, &class) in class_of.iter().enumerate() {
            if class as usize == representatives.len() {
                representatives.push(KnowledgeId(set as u16));
            }
        }
        freeze(
            &mut controller,
            &self.entries,
            &self.knowledge,
            &representatives,
            &class_of,
        );
        controller
    }

    /// Home that is checked, simulated and printed for systems of this many remotes.
    pub fn controller(&self, remotes: u16) -> Controller {
        match remotes {
            // With one remote, the state includes the knowledge of it, and no index is needed.
            1 => self.flat(true),
            _ => self.factored(true),
        }
    }

    /// Returns the construction if it has no fault. Every use that runs the home must call this.
    ///
    /// # Errors
    /// [`Construction::fault`].
    pub fn sound(self) -> Result<Self, ConstructionError> {
        match self.fault() {
            Some(fault) => Err(ConstructionError::Fault(Box::new(fault.clone()))),
            None => Ok(self),
        }
    }

    /// First fault of the quiescence checks.
    pub fn fault(&self) -> Option<&Fault> {
        self.quiescence
            .iter()
            .find_map(|report| report.fault.as_deref())
    }

    /// Notes: requests served early, doubtful waits, fairness assumptions.
    pub fn notes(&self) -> impl Iterator<Item = &fault::Note> {
        let graphs = std::iter::once(&self.graph).chain(&self.multi_remote_graph);
        graphs.flat_map(|graph| &graph.notes).chain(
            self.quiescence
                .iter()
                .filter_map(|report| report.note.as_ref()),
        )
    }
}
