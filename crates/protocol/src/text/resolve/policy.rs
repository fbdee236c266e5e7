//! Homes written as a policy.

use super::{report_too_many, report_unknown, set_once, Names, Resolver};
use crate::controller::{Controller, State};
use crate::policy::{
    Acceptance, AcknowledgementRule, DowngradeRule, Expectation, Grant, GrantCondition,
    LocalPolicy, LockConflict, Policy, RequestPolicy, Stall, VictimPolicy,
};
use crate::protocol::{Carries, Class, End, MessageId, Permission};
use crate::text::ast::{Agent, AgentItem, Block, Condition, Goal, Name, PolicyItem};
use crate::text::diagnostic::{Code, Diagnostic, Sink};
use cohkit_diagnostics::{suggestion, Span};
use rustc_hash::FxHashMap;

/// Returns true if a home is a policy: it has neither states nor rows.
pub(super) fn is_policy(agent: &Agent) -> bool {
    !agent
        .body
        .items
        .iter()
        .any(|item| matches!(item, AgentItem::Row(_) | AgentItem::States(_)))
}

/// Returns the permission of the stable state of the remote with this name.
fn named_permission(
    name: Name,
    states: &[State],
    names: &Names,
    sink: &mut Sink,
) -> Option<Permission> {
    let kind = "stable state";
    let stable = || {
        names
            .list
            .iter()
            .zip(states)
            .filter(|(_, state)| state.is_stable())
            .map(|(name, _)| name.text)
    };
    let Some(index) = names.get(name, sink) else {
        if !names.partial {
            report_unknown(kind, name, stable(), sink);
        }
        return None;
    };
    let state = states.get(usize::from(index))?;
    let is_other_part =
        |other: &&State| other.span == state.span && other.permission != state.permission;
    if states.iter().any(|other| is_other_part(&other)) {
        let text = format!("the permission of `{}` depends on variables", name.text);
        sink.push(
            Diagnostic::new(Code::NotAPermission, name.span, text)
                .label("name a permission by a state that always gives it"),
        );
        return None;
    }
    if !state.is_stable() {
        sink.push(
            Diagnostic::new(
                Code::NotAPermission,
                name.span,
                format!("`{}` is not a stable state", name.text),
            )
            .label("name a permission by a stable state of the remote")
            .note(suggestion(name.text, kind, stable())),
        );
        return None;
    }
    Some(state.permission)
}

/// Spans of the statements that a policy may have at most once.
#[derive(Default)]
struct StatementSpans {
    /// `stall`.
    stall: Option<Span>,
    /// `accept local`.
    accept: Option<Span>,
    /// `under lock`.
    under_lock: Option<Span>,
    /// `serve under forwards`.
    serve_under_forwards: Option<Span>,
}

/// Results of the statements of a policy that were resolved so far, for checks across statements.
struct PolicyProgress<'n, 'a> {
    /// States of the remotes, which name permissions.
    states: &'n [State],
    /// Names of these states.
    names: &'n Names<'a>,
    /// Statements that may not be repeated.
    spans: StatementSpans,
    /// Served requests and acknowledged victims, with the spans of their names.
    served: FxHashMap<MessageId, Span>,
    /// Permissions that goals ensure, with their spans; each needs a forward.
    goals: Vec<(Permission, Span)>,
}

impl<'a> Resolver<'a, '_> {
    /// Resolves the local operations of a home, one for each form offered.
    pub(super) fn resolve_locals(
        &mut self,
        agent: &Agent<'a>,
        remote: Option<(&Controller, &Names<'a>)>,
    ) -> Vec<LocalPolicy> {
        let Some((remote, names)) = remote else {
            return Vec::new();
        };
        let states = &remote.states;
        let mut locals: Vec<LocalPolicy> = Vec::new();
        let mut unlock = None;
        for item in &agent.body.items {
            if let AgentItem::Unlock(span) = item {
                set_once(
                    &mut unlock,
                    *span,
                    |span| *span,
                    "`local unlock`",
                    self.sink,
                );
            }
            let AgentItem::Local(item) = item else {
                continue;
            };
            let Some(ensure) = named_permission(item.ensure, states, names, self.sink) else {
                continue;
            };
            for &lock in item.forms {
                let suffix = if lock && item.forms.len() > 1 {
                    "_lock"
                } else {
                    ""
                };
                let name = format!("{}{suffix}", item.name.text);
                if self.message_names.index.contains_key(name.as_str()) {
                    let message = format!("`{name}` is a message already");
                    self.sink.push(
                        Diagnostic::new(Code::DuplicateName, item.name.span, message)
                            .label("choose another name"),
                    );
                } else if let Some(first) = locals.iter().find(|local| local.name == name) {
                    let message = format!("a second local operation `{name}`");
                    self.sink.push(
                        Diagnostic::new(Code::DuplicateName, item.name.span, message)
                            .label("declared again")
                            .note_at(first.span, "declared here"),
                    );
                } else if locals.len() == usize::from(u8::MAX) {
                    report_too_many("local operation", item.name.span, locals.len(), self.sink);
                    return locals;
                } else {
                    locals.push(LocalPolicy {
                        name,
                        ensure,
                        lock,
                        span: item.span,
                    });
                }
            }
        }
        let locking = locals.iter().find(|local| local.lock);
        match (locking, unlock) {
            _ if agent.body.broken => {}
            (Some(local), None) => {
                let message = format!("`{}` takes a lock that nothing releases", local.name);
                self.sink.push(
                    Diagnostic::new(Code::Unlock, local.span, message)
                        .label("takes the lock")
                        .note("add `local unlock`"),
                );
            }
            (None, Some(unlock)) => {
                let message = "no local operation takes a lock";
                self.sink.push(
                    Diagnostic::new(Code::Unlock, unlock, message)
                        .label("releases nothing")
                        .note("write `local NAME lock { ... }`, or remove this"),
                );
            }
            _ => {}
        }
        locals
    }

    /// Resolves a home that is written as a policy.
    pub(super) fn resolve_policy(
        &mut self,
        agent: &Agent<'a>,
        remote: Option<(&Controller, &Names<'a>)>,
    ) -> Policy {
        let no_states = Names::new("state", true);
        let (states, names) = remote.map_or((&[][..], &no_states), |(remote, names)| {
            (&remote.states[..], names)
        });
        self.check_policy_channels();
        let mut policy = Policy {
            requests: Vec::new(),
            victims: Vec::new(),
            locals: self.resolve_locals(agent, remote),
            downgrades: Vec::new(),
            stall: Stall::Proven,
            acceptance: Acceptance::Always,
            lock_conflict: LockConflict::Refuse,
            serve_past: Vec::new(),
            serve_under_forwards: false,
            acknowledgement_rules: Vec::new(),
            expectations: Vec::new(),
            span: agent.body.keyword,
        };
        let mut progress = PolicyProgress {
            states,
            names,
            spans: StatementSpans::default(),
            served: FxHashMap::default(),
            goals: Vec::new(),
        };
        for item in &agent.body.items {
            match item {
                AgentItem::Policy(item, span) => {
                    self.resolve_policy_item(item, *span, &mut progress, &mut policy);
                }
                AgentItem::Local(local) => progress.goals.extend(
                    named_permission(local.ensure, states, names, self.sink)
                        .map(|permission| (permission, local.ensure.span)),
                ),
                AgentItem::Variables(block) => {
                    let message = "variables in a policy";
                    self.sink.push(
                        Diagnostic::new(Code::Misplaced, block.keyword, message)
                            .label("only a home with rows has variables"),
                    );
                }
                _ => {}
            }
        }
        if !agent.body.broken {
            self.report_unserved(agent, &progress.served);
            self.report_unreached(&policy, states, &progress.goals);
        }
        policy
    }

    /// Resolves a statement of a policy, and adds it to the policy.
    fn resolve_policy_item(
        &mut self,
        item: &PolicyItem<'a>,
        span: Span,
        progress: &mut PolicyProgress<'_, 'a>,
        policy: &mut Policy,
    ) {
        let permissions = (progress.states, progress.names);
        let spans = &mut progress.spans;
        let span_of = |span: &Span| *span;
        match item {
            PolicyItem::On {
                message: name,
                goals: statements,
            } => {
                self.resolve_on(*name, statements, span, progress, policy);
            }
            PolicyItem::Reach {
                permission,
                forward,
            } => {
                let downgrade = self.resolve_reach(
                    *permission,
                    *forward,
                    span,
                    permissions,
                    &policy.downgrades,
                );
                policy.downgrades.extend(downgrade);
            }
            PolicyItem::Stall(stall) => {
                set_once(&mut spans.stall, span, span_of, "`stall`", self.sink);
                policy.stall = *stall;
            }
            PolicyItem::Accept(acceptance) => {
                set_once(
                    &mut spans.accept,
                    span,
                    span_of,
                    "`accept local`",
                    self.sink,
                );
                policy.acceptance = *acceptance;
            }
            PolicyItem::UnderLock(lock_conflict) => {
                set_once(
                    &mut spans.under_lock,
                    span,
                    span_of,
                    "`under lock`",
                    self.sink,
                );
                policy.lock_conflict = *lock_conflict;
            }
            PolicyItem::ServePast(victims) => {
                let passable = victims
                    .iter()
                    .filter_map(|&victim| self.resolve_passable_victim(victim));
                policy.serve_past.extend(passable);
            }
            PolicyItem::ServeUnderForwards => {
                let description = "`serve under forwards`";
                set_once(
                    &mut spans.serve_under_forwards,
                    span,
                    span_of,
                    description,
                    self.sink,
                );
                policy.serve_under_forwards = true;
            }
            PolicyItem::Await {
                acknowledgement,
                grants,
            } => {
                let rule = self.resolve_await(*acknowledgement, grants, span);
                policy.acknowledgement_rules.extend(rule);
            }
            PolicyItem::Expect { answer, permission } => {
                let expectation = self.resolve_expectation(*answer, *permission, span, permissions);
                policy.expectations.extend(expectation);
            }
        }
    }

    /// Resolves `on MESSAGE(r) { ... }`: a victim that is answered, or a request with its goals.
    fn resolve_on(
        &mut self,
        name: Name<'a>,
        statements: &Block<(Goal<'a>, Span)>,
        span: Span,
        progress: &mut PolicyProgress<'_, 'a>,
        policy: &mut Policy,
    ) {
        let message = self.message_named(name);
        let is_victim = |message| self.class(message) == Some(Class::Victim);
        if let Some(victim) = message.filter(|&message| is_victim(message)) {
            let answered = self.resolve_victim(name, victim, statements, span);
            if self.record_served(name, victim, &mut progress.served) {
                policy.victims.extend(answered);
            }
            return;
        }
        let permissions = (progress.states, progress.names);
        let goals = &mut progress.goals;
        let request = self.resolve_request(name, message, statements, span, permissions, goals);
        let served = &mut progress.served;
        if message.is_none_or(|message| self.record_served(name, message, served)) {
            policy.requests.extend(request);
        }
    }

    /// Resolves `await ACK after GRANT, ...`.
    fn resolve_await(
        &mut self,
        acknowledgement: Name<'a>,
        grants: &[Name<'a>],
        span: Span,
    ) -> Option<AcknowledgementRule> {
        let acknowledgement_reason = "a grant is confirmed by an acknowledgement";
        let grant_reason = "an acknowledgement confirms grants";
        let acknowledgement = self.message_of_class(
            acknowledgement,
            Class::Acknowledgement,
            acknowledgement_reason,
        );
        let grants = grants.iter();
        let grants =
            grants.filter_map(|&grant| self.message_of_class(grant, Class::Grant, grant_reason));
        let grants = grants.collect();
        Some(AcknowledgementRule {
            acknowledgement: acknowledgement?,
            grants,
            span,
        })
    }

    /// Resolves `assert ANSWER implies STATE`.
    fn resolve_expectation(
        &mut self,
        answer: Name<'a>,
        permission: Name<'a>,
        span: Span,
        (states, names): (&[State], &Names<'a>),
    ) -> Option<Expectation> {
        let permission = named_permission(permission, states, names, self.sink);
        let reason = "only an answer implies a permission";
        let answer = self.message_of_class(answer, Class::Answer, reason);
        Some(Expectation {
            answer: answer?,
            permission: permission?,
            span,
        })
    }

    /// Resolves a message of this class; `reason` is the label of the error for another class.
    fn message_of_class(
        &mut self,
        name: Name<'a>,
        class: Class,
        reason: &str,
    ) -> Option<MessageId> {
        let message = self.message_named(name)?;
        self.require_class(message, name, class, reason);
        Some(message)
    }

    /// Records that a request is served, or a victim acknowledged. Returns false if it already was.
    fn record_served(
        &mut self,
        name: Name<'a>,
        message: MessageId,
        served: &mut FxHashMap<MessageId, Span>,
    ) -> bool {
        if let Some(&first) = served.get(&message) {
            let text = match self.class(message) {
                Some(Class::Victim) => format!("`{}` is acknowledged twice", name.text),
                _ => format!("`{}` is served twice", name.text),
            };
            self.sink.push(
                Diagnostic::new(Code::Duplicate, name.span, text)
                    .label("again")
                    .note_at(first, "the first `on` block"),
            );
            return false;
        }
        served.insert(message, name.span);
        if self.class(message) != Some(Class::Victim) {
            let reason = "only requests are served, and only victims acknowledged";
            self.require_class(message, name, Class::Request, reason);
        }
        true
    }

    /// Resolves `reach`: a permission has at most one forward.
    fn resolve_reach(
        &mut self,
        name: Name<'a>,
        forward: Name<'a>,
        span: Span,
        (states, names): (&[State], &Names<'a>),
        existing: &[DowngradeRule],
    ) -> Option<DowngradeRule> {
        let permission = named_permission(name, states, names, self.sink);
        let reason = "a permission is reached with a forward";
        let forward = self.message_of_class(forward, Class::Forward, reason)?;
        self.is_sent[forward.index()] = true;
        let permission = permission?;
        if let Some(first) = existing
            .iter()
            .find(|downgrade| downgrade.permission == permission)
        {
            let text = format!("a second forward for the permission of `{}`", name.text);
            self.sink.push(
                Diagnostic::new(Code::Duplicate, name.span, text)
                    .label("again")
                    .note_at(first.span, "the first one"),
            );
            return None;
        }
        Some(DowngradeRule {
            permission,
            forward,
            span,
        })
    }

    /// Resolves a victim that requests may pass.
    fn resolve_passable_victim(&mut self, name: Name<'a>) -> Option<MessageId> {
        let reason = "requests are served past victims only";
        let message = self.message_of_class(name, Class::Victim, reason)?;
        let kind = &self.messages[message.index()];
        if kind.carries == Carries::DirtyLine {
            let text = format!("requests cannot be served past `{}`", kind.name);
            self.sink.push(
                Diagnostic::new(Code::Carries, name.span, text)
                    .label("carries a dirty line, which has to be written first"),
            );
        }
        Some(message)
    }

    /// Checks the classes and directions of channels, from which a policy knows the purpose of each message.
    fn check_policy_channels(&mut self) {
        for channel in &self.channels {
            let problem = match (channel.class, channel.from, channel.to) {
                (None, ..) => Some("declare its class: `as request`, `victim`, `answer`, `forward`, `grant` or `acknowledgement`"),
                (Some(Class::Forward | Class::Grant), End::Home, End::Remote) => None,
                (Some(Class::Forward | Class::Grant), ..) => Some("this class leads `home -> remote`"),
                (_, End::Remote, End::Home) => None,
                _ => Some("this class leads `remote -> home`"),
            };
            if let Some(problem) = problem {
                let message = format!("a policy cannot use the channel `{}`", channel.name);
                self.sink.push(
                    Diagnostic::new(Code::PolicyChannel, channel.span, message).label(problem),
                );
            }
        }
        for message in &self.messages {
            let class = self.channels[message.channel.index()].class;
            let problem = if let Some(field) = message.fields.first() {
                Some((
                    Code::Fields,
                    field.span,
                    "has fields, which a policy cannot use",
                    "only a home with rows reads fields",
                ))
            } else if message.carries.store() && class.is_some_and(|class| class != Class::Request)
            {
                Some((
                    Code::Carries,
                    message.span,
                    "carries a store but is no request",
                    "only a request brings bytes to write",
                ))
            } else {
                None
            };
            if let Some((code, span, defect, label)) = problem {
                self.sink.push(
                    Diagnostic::new(code, span, format!("`{}` {defect}", message.name))
                        .label(label),
                );
            }
        }
    }

    /// Resolves `on REQUEST(r) { ... }`; records the permissions that it ensures in `goals`.
    fn resolve_request(
        &mut self,
        name: Name<'a>,
        message: Option<MessageId>,
        statements: &Block<(Goal<'a>, Span)>,
        span: Span,
        (states, names): (&[State], &Names<'a>),
        goals: &mut Vec<(Permission, Span)>,
    ) -> Option<RequestPolicy> {
        let (mut ensure, mut write, mut grants) = (None, None, Vec::new());
        for (goal, span) in &statements.items {
            match goal {
                Goal::Ensure(name) => {
                    set_once(
                        &mut ensure,
                        (named_permission(*name, states, names, self.sink), *span),
                        |ensure| ensure.1,
                        "`ensure`",
                        self.sink,
                    );
                    goals.extend(
                        named_permission(*name, states, names, self.sink)
                            .map(|permission| (permission, name.span)),
                    );
                }
                Goal::Write => set_once(&mut write, *span, |span| *span, "`write`", self.sink),
                Goal::Grant {
                    permission,
                    message: grant,
                    when,
                } => {
                    let permission = permission.map_or(Some(Permission::None), |permission| {
                        named_permission(permission, states, names, self.sink)
                    });
                    let condition = match *when {
                        Condition::Always => GrantCondition::Always,
                        Condition::Held => GrantCondition::Held,
                        Condition::Chosen => GrantCondition::Chosen,
                        Condition::Others(name) => {
                            if named_permission(name, states, names, self.sink)
                                .is_some_and(|permission| permission > Permission::None)
                            {
                                let message =
                                    "a grant can depend only on the others having no permission";
                                self.sink.push(
                                    Diagnostic::new(Code::Grants, name.span, message)
                                        .label("a state without permission"),
                                );
                            }
                            GrantCondition::OthersNone
                        }
                    };
                    let Some(message) = self.message_named(*grant) else {
                        continue;
                    };
                    self.require_class(
                        message,
                        *grant,
                        Class::Grant,
                        "a request is answered with a grant",
                    );
                    self.is_sent[message.index()] = true;
                    grants.extend(permission.map(|permission| Grant {
                        message,
                        permission,
                        condition,
                        span: *span,
                    }));
                }
            }
        }
        let is_complete =
            self.is_request_complete(name, message, statements, ensure.is_some(), write);
        let ensure = ensure.and_then(|(permission, _)| permission);
        is_complete.then_some(RequestPolicy {
            message: message?,
            ensure: ensure?,
            write: write.is_some(),
            grants,
            span,
        })
    }

    /// Resolves `on VICTIM(r) { answer r with MESSAGE }`.
    fn resolve_victim(
        &mut self,
        name: Name<'a>,
        message: MessageId,
        statements: &Block<(Goal<'a>, Span)>,
        span: Span,
    ) -> Option<VictimPolicy> {
        let mut answer = None;
        for (goal, span) in &statements.items {
            let misuse = match goal {
                Goal::Ensure(_) => Some("only a request ensures permissions of other remotes"),
                Goal::Write => {
                    Some("the home writes a dirty line to memory without this statement")
                }
                Goal::Grant {
                    permission: Some(_),
                    ..
                } => Some("a victim gains no permission"),
                Goal::Grant {
                    when: Condition::Always,
                    message,
                    ..
                } => {
                    let value = (*message, *span);
                    set_once(&mut answer, value, |answer| answer.1, "`answer`", self.sink);
                    None
                }
                Goal::Grant { .. } => Some("remove the condition"),
            };
            if let Some(label) = misuse {
                let text = format!(
                    "`{}` is a victim: only `answer r with MESSAGE` is possible",
                    name.text
                );
                self.sink
                    .push(Diagnostic::new(Code::Grants, *span, text).label(label));
            }
        }
        let Some((answer, _)) = answer else {
            if statements.items.is_empty() && !statements.broken {
                let text = format!("`{}` is never answered", name.text);
                self.sink.push(
                    Diagnostic::new(Code::Grants, name.span, text)
                        .label("add `answer r with MESSAGE`, or remove the block"),
                );
            }
            return None;
        };
        let reason = "a victim is acknowledged with a message of class grant";
        let answer_id = self.message_of_class(answer, Class::Grant, reason)?;
        self.is_sent[answer_id.index()] = true;
        if self.messages[answer_id.index()].carries.line() {
            let text = format!("`{}` cannot acknowledge a victim", answer.text);
            self.sink.push(
                Diagnostic::new(Code::Carries, answer.span, text)
                    .label("carries the line, which the home does not read for a victim"),
            );
        }
        Some(VictimPolicy {
            message,
            answer: answer_id,
            span,
        })
    }

    /// Checks that a request's policy is complete, and that its order lets every part take effect.
    fn is_request_complete(
        &mut self,
        name: Name<'a>,
        message: Option<MessageId>,
        statements: &Block<(Goal<'a>, Span)>,
        ensure: bool,
        write: Option<Span>,
    ) -> bool {
        let error_count = self.sink.count();
        let grants: Vec<(bool, Span)> = statements
            .items
            .iter()
            .filter_map(|(goal, span)| match goal {
                Goal::Grant { when, .. } => Some((matches!(when, Condition::Always), *span)),
                _ => None,
            })
            .collect();
        let mut report = |code, span, message: String, label: &str| {
            self.sink
                .push(Diagnostic::new(code, span, message).label(label))
        };
        if statements.broken {
            // A missing part may be one that could not be parsed.
            return false;
        }
        if !ensure {
            report(
                Code::Grants,
                name.span,
                format!("`{}` ensures nothing", name.text),
                "add `ensure others(r) <= STATE`",
            );
        }
        match grants.split_last() {
            None => report(
                Code::Grants,
                name.span,
                format!("`{}` is never answered", name.text),
                "add `grant r STATE with GRANT` or `answer r with GRANT`",
            ),
            Some((last, earlier)) => {
                if !last.0 {
                    report(
                        Code::Grants,
                        last.1,
                        "the last grant depends on a condition".into(),
                        "when it does not hold, there is no answer",
                    );
                }
                for (_, span) in earlier.iter().filter(|(always, _)| *always) {
                    report(
                        Code::Grants,
                        *span,
                        "later grants are never reached".into(),
                        "add a condition, or move it to the end",
                    );
                }
            }
        }
        let Some(carries) = message.map(|message| self.messages[message.index()].carries) else {
            return false;
        };
        let mut report = |span, message: String, label: &str| {
            self.sink
                .push(Diagnostic::new(Code::Carries, span, message).label(label))
        };
        match (carries, write) {
            (Carries::Store | Carries::PartialStore, None) => {
                report(
                    name.span,
                    format!("the store that `{}` carries is lost", name.text),
                    "add `write`",
                );
            }
            (Carries::Nothing | Carries::Line | Carries::DirtyLine, Some(span)) => {
                report(
                    span,
                    format!("`{}` carries nothing to write", name.text),
                    "only a `(store)` or `(partial store)` is written",
                );
            }
            _ => {}
        }
        self.sink.count() == error_count
    }

    /// Reports requests without an `on` block.
    fn report_unserved(&mut self, agent: &Agent<'a>, served: &FxHashMap<MessageId, Span>) {
        for index in 0..self.messages.len() {
            let message = MessageId(index as u16);
            if self.class(message) == Some(Class::Request) && !served.contains_key(&message) {
                let (span, name) = (self.messages[index].span, &self.messages[index].name);
                let diagnostic = Diagnostic::new(
                    Code::Unserved,
                    span,
                    format!("the home does not serve `{name}`"),
                )
                .label("a request")
                .note_at(agent.body.keyword, format!("add `on {name}(r) {{ ... }}`"));
                self.sink.push(diagnostic);
            }
        }
    }

    /// Reports goals below the highest permission for which there is no forward.
    fn report_unreached(
        &mut self,
        policy: &Policy,
        states: &[State],
        goals: &[(Permission, Span)],
    ) {
        let highest = states
            .iter()
            .map(|state| state.permission)
            .max()
            .unwrap_or(Permission::None);
        for &(goal, span) in goals {
            if goal < highest
                && !policy
                    .downgrades
                    .iter()
                    .any(|downgrade| downgrade.permission <= goal)
            {
                self.sink.push(
                    Diagnostic::new(
                        Code::Unreached,
                        span,
                        "no forward brings a remote down to this",
                    )
                    .label("cannot be ensured")
                    .note("add `reach STATE with FORWARD`"),
                );
            }
        }
    }
}
