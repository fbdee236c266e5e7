//! The policy as a controller over knowledge: rules that read facts of knowledge sets through tables.
//!
//! One program serves any number of remotes; knowledge is one index per remote. During the exploration tables are
//! computed on demand ([`LazyTables`]); afterwards they are frozen into constants.

use super::knowledge::{Facts, Knowledge, KnowledgeError, KnowledgeId};
use crate::controller::{
    Controller, Effect, Event, Expression, Initial, Local, Operator, Rule, State, Statement,
    Target, Variable,
};
use crate::execute::{Fault, Tables};
use crate::policy::{Acceptance, GrantCondition, LockConflict, Policy, RequestPolicy, Stall};
use crate::protocol::{Carries, Class, MessageId, Permission, Protocol, StateId, Type, VariableId};
use cohkit_diagnostics::Span;
use Expression as E;
use Statement as S;

/// Knowledge index of each remote.
pub const KNOWN: VariableId = VariableId(0);
/// Request in progress, as its position in the policy plus 1; 0 for none.
pub const CURRENT_REQUEST: VariableId = VariableId(1);
/// Remote whose request is in progress.
pub const REQUESTER: VariableId = VariableId(2);
/// Local operation in progress, as its index plus 1; 0 for none.
pub const LOCAL: VariableId = VariableId(3);
/// Use of the memory slot, as a [`Slot`].
pub const MEMORY: VariableId = VariableId(4);
/// Lock: 1 while the device holds the line, otherwise 0.
pub const LOCKED: VariableId = VariableId(5);

/// Use of the memory slot of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Slot {
    /// No operation.
    Free = 0,
    /// Read for the request in progress.
    Read = 1,
    /// Write-back of a line.
    Write = 2,
    /// Write of the bytes of the request in progress.
    Store = 3,
}

/// Content of a table of the program, for each knowledge set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// [`Facts::permissions`] as 0, 1, 2.
    Permissions,
    /// [`Facts::dirty`].
    Dirty,
    /// [`Facts::forward`].
    Forward,
    /// [`Facts::held`].
    Held,
    /// [`Facts::unacknowledged`].
    Unacknowledged,
    /// [`Facts::victims`] or [`Facts::acknowledgements`].
    Unsettled,
    /// [`Facts::must_answer`] for the blocking with this index.
    MustAnswer(usize),
    /// Index of the set after receiving the message, plus 1; 0 if the message cannot arrive.
    Receive(MessageId),
    /// Index of the set after sending the message, plus 1; 0 if it is never sent there.
    Send(MessageId),
}

impl Entry {
    /// Name of the table.
    fn name(self, protocol: &Protocol) -> String {
        match self {
            Entry::Permissions => "permissions".into(),
            Entry::Dirty => "dirty".into(),
            Entry::Forward => "forward".into(),
            Entry::Held => "held".into(),
            Entry::Unacknowledged => "unacknowledged".into(),
            Entry::Unsettled => "unsettled".into(),
            Entry::MustAnswer(0) => "must_answer".into(),
            Entry::MustAnswer(blocking) => format!("must_answer_{blocking}"),
            Entry::Receive(message) => format!("after_{}", protocol.message(message).name),
            Entry::Send(message) => format!("sending_{}", protocol.message(message).name),
        }
    }

    /// Value of a fact in a table; `None` for transitions between sets.
    pub fn fact_value(self, facts: &Facts) -> Option<u16> {
        Some(match self {
            Entry::Permissions => facts.permissions as u16,
            Entry::Dirty => facts.dirty.into(),
            Entry::Forward => facts.forward.into(),
            Entry::Held => facts.held.into(),
            Entry::Unacknowledged => facts.unacknowledged.into(),
            Entry::Unsettled => (facts.victims || facts.acknowledgements).into(),
            Entry::MustAnswer(blocking) => facts.must_answer[blocking].into(),
            Entry::Receive(_) | Entry::Send(_) => return None,
        })
    }
}

/// Computes tables from knowledge on demand during the exploration.
pub struct LazyTables<'k, 'a> {
    /// Knowledge found so far.
    pub knowledge: &'k mut Knowledge<'a>,
    /// Content of each table, by table number.
    pub entries: &'k [Entry],
    /// Reason why the last look-up failed, if it did.
    pub error: Option<KnowledgeError>,
}

impl Tables for LazyTables<'_, '_> {
    /// Returns a fact as [`Entry::fact_value`] encodes it. For a transition, returns the next knowledge set plus 1,
    /// or 0 if the message cannot occur.
    fn get(&mut self, table: u16, index: u16) -> Result<u16, Fault> {
        let id = KnowledgeId(index);
        let entry = self.entries[table as usize];
        if let Some(value) = entry.fact_value(self.knowledge.facts(id)) {
            return Ok(value);
        }
        let next = match entry {
            Entry::Receive(message) => self.knowledge.receive(id, message),
            Entry::Send(message) => self.knowledge.send(id, message).map(Some),
            _ => unreachable!("facts are tables of their own"),
        };
        next.map(|next| next.map_or(0, |next| next.0 + 1))
            .map_err(|error| {
                self.error = Some(error);
                Fault::Table(table)
            })
    }
}

/// Builder of the program: the controller of a policy over knowledge.
pub struct ProgramBuilder<'a> {
    /// Protocol whose messages the program receives and sends.
    protocol: &'a Protocol,
    /// Goals of the home.
    policy: &'a Policy,
    /// Content of each table, by table number.
    pub entries: Vec<Entry>,
    /// Rules built so far, in the order in which they are tried.
    rules: Vec<Rule>,
}

/// Returns the knowledge set of a remote.
fn knowledge_of(remote: Expression) -> Expression {
    E::Element(KNOWN, vec![remote])
}

/// Applies a binary operator to two expressions.
fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    E::Binary(operator, Box::new(left), Box::new(right))
}

/// Condition that a variable has this value.
fn is(variable: VariableId, value: u16) -> Expression {
    binary(Operator::Equal, E::Variable(variable), E::Constant(value))
}

/// Condition that a variable has another value.
fn is_not(variable: VariableId, value: u16) -> Expression {
    binary(
        Operator::NotEqual,
        E::Variable(variable),
        E::Constant(value),
    )
}

/// Conjunction of two conditions.
fn and(left: Expression, right: Expression) -> Expression {
    binary(Operator::And, left, right)
}

/// Disjunction of two conditions.
fn or(left: Expression, right: Expression) -> Expression {
    binary(Operator::Or, left, right)
}

/// Negation of a condition.
fn not(operand: Expression) -> Expression {
    E::Not(Box::new(operand))
}

/// Statement that executes one of two lists of statements.
fn conditional(
    condition: Expression,
    then: Vec<Statement>,
    otherwise: Vec<Statement>,
) -> Statement {
    S::If {
        condition,
        then,
        otherwise,
    }
}

/// Assignment of a constant to a variable.
fn set(variable: VariableId, value: u16) -> Statement {
    S::Assign(variable, E::Constant(value))
}

impl<'a> ProgramBuilder<'a> {
    /// Builds the controller of a policy, with empty tables. For each request, `blocking` returns the index of its
    /// must-answer table.
    pub fn build(
        protocol: &'a Protocol,
        policy: &'a Policy,
        blocking: impl Fn(MessageId) -> usize,
    ) -> (Controller, Vec<Entry>) {
        let mut builder = ProgramBuilder {
            protocol,
            policy,
            entries: Vec::new(),
            rules: Vec::new(),
        };
        for (position, request) in policy.requests.iter().enumerate() {
            builder.add_request_rules(position, request, blocking(request.message));
        }
        for message in protocol.message_ids() {
            if matches!(
                protocol.class(message),
                Some(Class::Victim | Class::Answer | Class::Acknowledgement)
            ) {
                builder.add_response_rules(message);
            }
        }
        builder.add_local_rules();
        builder.add_memory_rules();
        let variable = |name: &str, ty| Variable {
            register: false,
            name: name.into(),
            ty,
            initial: Initial::Number(0),
            labels: Vec::new(),
            internal: false,
            span: policy.span,
        };
        let choice = |name: &str, labels: Vec<String>| Variable {
            labels: labels.clone(),
            ..variable(
                name,
                Type::Range {
                    max: labels.len() as u16 - 1,
                },
            )
        };
        let no_operation = || std::iter::once("none".to_string());
        let requests = policy.requests.iter().map(|request| request.message);
        let requests = requests.map(|message| protocol.message(message).name.clone());
        let operations = policy.locals.iter().map(|local| local.name.clone());
        let slots = ["free", "read", "write", "store"].map(String::from);
        let controller = Controller {
            name: "home".into(),
            states: vec![State {
                name: "home".into(),
                permission: Permission::None,
                dirty: false,
                holds_line: false,
                waits: Vec::new(),
                span: policy.span,
            }],
            variables: vec![
                Variable {
                    internal: true,
                    ..variable("known", Type::per_remote(u16::MAX))
                },
                choice("hand", no_operation().chain(requests).collect()),
                variable("requester", Type::Remote),
                choice("local", no_operation().chain(operations).collect()),
                choice("memory", slots.into()),
                variable("locked", Type::Bool),
            ],
            tables: Vec::new(),
            rules: builder.rules,
            locals: locals(policy),
            span: policy.span,
        };
        (controller, builder.entries)
    }

    /// Returns the entry of a table for a knowledge set.
    fn table_entry(&mut self, entry: Entry, set: Expression) -> Expression {
        let position = self
            .entries
            .iter()
            .position(|&other| other == entry)
            .unwrap_or_else(|| {
                self.entries.push(entry);
                self.entries.len() - 1
            });
        E::Table(position as u16, Box::new(set))
    }

    /// Returns the knowledge set of a remote after a message.
    fn set_after(&mut self, entry: Entry, remote: Expression) -> Expression {
        let next = self.table_entry(entry, knowledge_of(remote));
        binary(Operator::Subtract, next, E::Constant(1))
    }

    /// Adds a rule. All rules belong to the only state of the program.
    fn add_rule(&mut self, event: Event, guard: Expression, effect: Effect, span: Span) {
        self.rules.push(Rule {
            state: StateId(0),
            event,
            guard: Some(guard),
            effect,
            span,
        });
    }

    /// Adds a rule that takes its event.
    fn add_taking_rule(
        &mut self,
        event: Event,
        guard: Expression,
        body: Vec<Statement>,
        span: Span,
    ) {
        self.add_rule(event, guard, Effect::Take { body, next: None }, span);
    }

    /// Adds the rules of a request: stall it, or start to serve it.
    fn add_request_rules(&mut self, position: usize, request: &RequestPolicy, blocking: usize) {
        let event = Event::Message(request.message);
        let entry = Entry::Receive(request.message);
        let can_arrive = binary(
            Operator::NotEqual,
            self.table_entry(entry, knowledge_of(E::Sender)),
            E::Constant(0),
        );
        let new_set = self.set_after(entry, E::Sender);
        let fact = |builder: &mut Self, fact| builder.table_entry(fact, new_set.clone());
        let is_busy = or(
            or(is_not(MEMORY, 0), is_not(CURRENT_REQUEST, 0)),
            is(LOCKED, 1),
        );
        let unsettled = fact(self, Entry::Unsettled);
        let forward = fact(self, Entry::Forward);
        let dirty = fact(self, Entry::Dirty);
        let must_wait = or(or(unsettled.clone(), is_not(LOCAL, 0)), forward.clone());
        let stall = |builder: &mut Self, condition| {
            builder.add_rule(
                event,
                and(can_arrive.clone(), condition),
                Effect::Stall,
                request.span,
            );
        };
        stall(self, is_busy);
        match self.policy.stall {
            Stall::Possible if self.policy.serve_under_forwards => {
                stall(self, or(unsettled, dirty))
            }
            Stall::Possible => stall(self, or(must_wait, dirty)),
            Stall::Proven => {
                // A local operation that does not wait for this remote makes progress through others.
                let unacknowledged = fact(self, Entry::Unacknowledged);
                let is_uninvolved = not(or(or(forward.clone(), dirty.clone()), unacknowledged));
                stall(self, and(is_not(LOCAL, 0), is_uninvolved));
                let is_proven = fact(self, Entry::MustAnswer(blocking));
                stall(self, and(must_wait, is_proven));
                // Neither served (memory is stale, or the operation in progress comes first) nor sure to be resolved by
                // a message: the construction proves that this never happens.
                let is_stuck = or(dirty, and(is_not(LOCAL, 0), not(forward)));
                self.add_rule(
                    event,
                    and(can_arrive.clone(), is_stuck),
                    Effect::Never,
                    request.span,
                );
            }
        }
        let mut body = vec![
            S::AssignElement(KNOWN, vec![E::Sender], new_set.clone()),
            set(CURRENT_REQUEST, position as u16 + 1),
            S::Assign(REQUESTER, E::Sender),
        ];
        body.extend(self.advance_request());
        self.add_taking_rule(event, can_arrive, body, request.span);
    }

    /// Adds the rules of a victim, an answer or an acknowledgement. A victim is acknowledged before any other message is
    /// sent, so an acknowledgement precedes the forwards that a request in progress then needs.
    fn add_response_rules(&mut self, message: MessageId) {
        let event = Event::Message(message);
        let span = self.protocol.message(message).span;
        let entry = Entry::Receive(message);
        let can_arrive = binary(
            Operator::NotEqual,
            self.table_entry(entry, knowledge_of(E::Sender)),
            E::Constant(0),
        );
        let mut body = vec![S::AssignElement(
            KNOWN,
            vec![E::Sender],
            self.set_after(entry, E::Sender),
        )];
        if let Some(answer) = self.policy.victim_answer(message) {
            let after_answer = self.set_after(Entry::Send(answer), E::Sender);
            body.extend([
                S::Send {
                    message: answer,
                    to: Target::Remote(E::Sender),
                    fields: Vec::new(),
                },
                S::AssignElement(KNOWN, vec![E::Sender], after_answer),
            ]);
        }
        if self.protocol.message(message).carries == Carries::DirtyLine {
            self.add_rule(
                event,
                and(can_arrive.clone(), is_not(MEMORY, 0)),
                Effect::Never,
                span,
            );
            body.extend([S::StartWrite, set(MEMORY, Slot::Write as u16)]);
        } else {
            body.extend(self.advance_request());
        }
        self.add_taking_rule(event, can_arrive, body, span);
    }

    /// Adds the rules of local operations and of the unlock.
    fn add_local_rules(&mut self) {
        for (index, local) in self.policy.locals.iter().enumerate() {
            let event = Event::Local(index as u8);
            if self.policy.lock_conflict == LockConflict::Refuse {
                self.add_rule(event, is(LOCKED, 1), Effect::Refuse, local.span);
            }
            let is_free = and(is(LOCAL, 0), is(LOCKED, 0));
            let guard = match self.policy.acceptance {
                Acceptance::Always => is_free,
                Acceptance::BetweenRequests => and(is_free, is(CURRENT_REQUEST, 0)),
                Acceptance::WhenIdle => and(is_free, and(is(CURRENT_REQUEST, 0), is(MEMORY, 0))),
            };
            let mut body = vec![set(LOCAL, index as u16 + 1)];
            body.extend(self.advance_request());
            self.add_taking_rule(event, guard, body, local.span);
            self.add_rule(event, E::Constant(1), Effect::Stall, local.span);
        }
        if self.policy.locals.iter().any(|local| local.lock) {
            let span = self.policy.span;
            self.add_taking_rule(
                Event::Unlock,
                is(LOCKED, 1),
                vec![set(LOCKED, 0), S::AcknowledgeUnlock],
                span,
            );
            self.add_rule(Event::Unlock, E::Constant(1), Effect::Refuse, span);
        }
    }

    /// Adds the rules of completed memory operations.
    fn add_memory_rules(&mut self) {
        let free_slot = set(MEMORY, Slot::Free as u16);
        for (position, request) in self.policy.requests.iter().enumerate() {
            let is_current = is(CURRENT_REQUEST, position as u16 + 1);
            if request.write {
                let mut body = vec![free_slot.clone()];
                body.extend(self.first_grant(request, |_| true, 0));
                body.extend(self.advance_request());
                let guard = and(is(MEMORY, Slot::Store as u16), is_current);
                self.add_taking_rule(Event::MemoryDone, guard, body, request.span);
                continue;
            }
            let carries_line = |message: MessageId| self.protocol.message(message).carries.line();
            if !request
                .grants
                .iter()
                .any(|grant| carries_line(grant.message))
            {
                continue;
            }
            let choices = u8::from(
                request
                    .grants
                    .iter()
                    .any(|grant| grant.condition == GrantCondition::Chosen),
            );
            for choice in 0..=choices {
                let mut body = vec![free_slot.clone()];
                body.extend(self.first_grant(request, |line| line, choice));
                body.extend(self.advance_request());
                let guard = and(is(MEMORY, Slot::Read as u16), is_current.clone());
                self.add_taking_rule(Event::MemoryData(choice), guard, body, request.span);
            }
        }
        let mut body = vec![free_slot];
        body.extend(self.advance_request());
        self.add_taking_rule(
            Event::MemoryDone,
            is(MEMORY, Slot::Write as u16),
            body,
            self.policy.span,
        );
    }

    /// Returns statements that send the first applicable grant of a request. `eligible` selects grants by whether they
    /// carry the line.
    fn first_grant(
        &mut self,
        request: &RequestPolicy,
        eligible: impl Fn(bool) -> bool,
        choice: u8,
    ) -> Vec<Statement> {
        let mut chain = Vec::new();
        for grant in request.grants.iter().rev() {
            if !eligible(self.protocol.message(grant.message).carries.line()) {
                continue;
            }
            let condition = match grant.condition {
                GrantCondition::Chosen if choice == 0 => continue,
                GrantCondition::Always | GrantCondition::Chosen => None,
                other => Some(self.grant_condition(other)),
            };
            let grant_statements = self.send_grant(grant.message);
            chain = match condition {
                None => grant_statements,
                Some(condition) => vec![conditional(condition, grant_statements, chain)],
            };
        }
        chain
    }

    /// Returns the condition of a grant as an expression over knowledge.
    fn grant_condition(&mut self, condition: GrantCondition) -> Expression {
        match condition {
            GrantCondition::Held => {
                self.table_entry(Entry::Held, knowledge_of(E::Variable(REQUESTER)))
            }
            _ => {
                let has_no_permission = binary(
                    Operator::Equal,
                    self.table_entry(Entry::Permissions, knowledge_of(E::Each)),
                    E::Constant(0),
                );
                let requester = binary(Operator::Equal, E::Each, E::Variable(REQUESTER));
                E::All(Box::new(or(requester, has_no_permission)))
            }
        }
    }

    /// Returns statements that send a grant and complete the request.
    fn send_grant(&mut self, grant: MessageId) -> Vec<Statement> {
        let requester = E::Variable(REQUESTER);
        let new_set = self.set_after(Entry::Send(grant), requester.clone());
        vec![
            S::Send {
                message: grant,
                to: Target::Remote(requester.clone()),
                fields: Vec::new(),
            },
            S::AssignElement(KNOWN, vec![requester], new_set),
            set(CURRENT_REQUEST, 0),
            S::Assign(REQUESTER, E::None),
        ]
    }

    /// Returns the statements that follow every change of knowledge. If the memory slot is free, they pursue the goal
    /// of the request in progress, or else of the local operation in progress.
    fn advance_request(&mut self) -> Vec<Statement> {
        let policy = self.policy;
        let mut locals = Vec::new();
        for (index, local) in policy.locals.iter().enumerate().rev() {
            let mut completion = vec![S::Acknowledge(index as u8), set(LOCAL, 0)];
            if local.lock {
                completion.push(set(LOCKED, 1));
            }
            let goal = self.pursue_goal(local.ensure, None, completion);
            locals = vec![conditional(is(LOCAL, index as u16 + 1), goal, locals)];
        }
        let mut requests = locals.clone();
        for (position, request) in policy.requests.iter().enumerate().rev() {
            let start = self.start_service(request, &locals);
            let goal = self.pursue_goal(request.ensure, Some(E::Variable(REQUESTER)), start);
            requests = vec![conditional(
                is(CURRENT_REQUEST, position as u16 + 1),
                goal,
                requests,
            )];
        }
        vec![conditional(
            is(MEMORY, Slot::Free as u16),
            requests,
            Vec::new(),
        )]
    }

    /// Returns the first step of serving a request whose goal is met: a grant without data, or else a memory operation.
    /// A local operation that waited behind a request served at once is then pursued.
    fn start_service(&mut self, request: &RequestPolicy, locals: &[Statement]) -> Vec<Statement> {
        if request.write {
            let message = self.protocol.message(request.message);
            let whole = message.carries == Carries::Store;
            return vec![S::StartStore { whole }, set(MEMORY, Slot::Store as u16)];
        }
        let mut chain = Vec::new();
        for grant in request.grants.iter().rev() {
            if self.protocol.message(grant.message).carries.line() {
                chain = vec![S::StartRead, set(MEMORY, Slot::Read as u16)];
                continue;
            }
            let mut grant_statements = self.send_grant(grant.message);
            grant_statements.extend_from_slice(locals);
            chain = match grant.condition {
                GrantCondition::Always | GrantCondition::Chosen => grant_statements,
                other => {
                    let condition = self.grant_condition(other);
                    vec![conditional(condition, grant_statements, chain)]
                }
            };
        }
        chain
    }

    /// Returns statements that send the forwards that a goal needs, and run `if_met` if the goal is already met.
    fn pursue_goal(
        &mut self,
        ensure: Permission,
        except: Option<Expression>,
        if_met: Vec<Statement>,
    ) -> Vec<Statement> {
        let forward = self.table_entry(Entry::Forward, knowledge_of(E::Each));
        let permissions = self.table_entry(Entry::Permissions, knowledge_of(E::Each));
        let dirty = self.table_entry(Entry::Dirty, knowledge_of(E::Each));
        let goal = E::Constant(ensure as u16);
        let mut needs_forward = and(
            not(forward.clone()),
            binary(Operator::Greater, permissions.clone(), goal.clone()),
        );
        if !self.policy.acknowledgement_rules.is_empty() {
            let unacknowledged = self.table_entry(Entry::Unacknowledged, knowledge_of(E::Each));
            needs_forward = and(needs_forward, not(unacknowledged));
        }
        let mut is_met = and(
            and(not(forward), not(dirty)),
            binary(Operator::LessOrEqual, permissions, goal),
        );
        if let Some(except) = except {
            needs_forward = and(
                binary(Operator::NotEqual, E::Each, except.clone()),
                needs_forward,
            );
            is_met = or(binary(Operator::Equal, E::Each, except), is_met);
        }
        let mut statements = Vec::new();
        if let Some(message) = forward_for(self.policy, ensure) {
            let new_set = self.set_after(Entry::Send(message), E::Each);
            let body = vec![
                S::Send {
                    message,
                    to: Target::Remote(E::Each),
                    fields: Vec::new(),
                },
                S::AssignElement(KNOWN, vec![E::Each], new_set),
            ];
            statements.push(S::ForEach {
                condition: needs_forward,
                body,
            });
        }
        statements.push(conditional(E::All(Box::new(is_met)), if_met, Vec::new()));
        statements
    }
}

/// Returns the forward that downgrades a remote to a permission: the one that reaches the highest permission not above
/// it.
pub fn forward_for(policy: &Policy, ensure: Permission) -> Option<MessageId> {
    let candidates = policy
        .downgrades
        .iter()
        .filter(|downgrade| downgrade.permission <= ensure);
    candidates
        .max_by_key(|downgrade| downgrade.permission)
        .map(|downgrade| downgrade.forward)
}

/// Local operations of a policy, as listed in a controller.
pub fn locals(policy: &Policy) -> Vec<Local> {
    let to_local = |local: &crate::policy::LocalPolicy| Local {
        name: local.name.clone(),
        ensures: local.ensure,
        locks: local.lock,
    };
    policy.locals.iter().map(to_local).collect()
}

/// Freezes the tables for a list of sets, with one representative per class and one class per set.
pub fn freeze(
    controller: &mut Controller,
    entries: &[Entry],
    knowledge: &Knowledge,
    representatives: &[KnowledgeId],
    class_of: &[u16],
) {
    controller.variables[KNOWN.index()].ty = Type::per_remote(representatives.len() as u16 - 1);
    let class = |next: Option<KnowledgeId>| next.map_or(0, |next| class_of[next.0 as usize] + 1);
    controller.tables = entries
        .iter()
        .map(|&entry| {
            let value = |&id: &KnowledgeId| match entry {
                Entry::Receive(message) => class(knowledge.known_receive(id, message).flatten()),
                Entry::Send(message) => class(knowledge.known_send(id, message)),
                fact => fact.fact_value(knowledge.facts(id)).unwrap_or(0),
            };
            crate::controller::Table {
                name: entry.name(knowledge.environment.protocol),
                values: representatives.iter().map(value).collect(),
            }
        })
        .collect();
}
