//! Homes written as a policy.

use super::*;
use crate::controller::{Controller, State};
use crate::policy::{
    Acceptance, Await, Expectation, Grant, LocalPolicy, Policy, Reach, RequestPolicy, Stall,
    UnderLock, When,
};
use crate::protocol::{Carries, Right};

/// Returns true if a home is a policy: it has neither states nor rows.
pub(super) fn is_policy(agent: &Agent) -> bool {
    !agent
        .body
        .items
        .iter()
        .any(|item| matches!(item, AgentItem::Row(_) | AgentItem::States(_)))
}

/// Permission that a name stands for: that of a stable state of the remote.
fn right(name: Name, states: &[State], names: &Names, sink: &mut Sink) -> Option<Right> {
    let kind = "stable state";
    let stable = || {
        names
            .list
            .iter()
            .zip(states)
            .filter(|(_, state)| state.stable())
            .map(|(name, _)| name.text)
    };
    let Some(index) = names.get(name, sink) else {
        if !names.partial {
            unknown(kind, name, stable(), sink);
        }
        return None;
    };
    let state = states.get(usize::from(index))?;
    let same = |other: &&State| other.span == state.span && other.right != state.right;
    if states.iter().any(|other| same(&other)) {
        let text = format!("the permission of `{}` depends on variables", name.text);
        sink.push(
            Diagnostic::new(Code::NotARight, name.span, text)
                .label("name a permission by a state that always gives it"),
        );
        return None;
    }
    if !state.stable() {
        sink.push(
            Diagnostic::new(
                Code::NotARight,
                name.span,
                format!("`{}` is not a stable state", name.text),
            )
            .label("name a permission by a stable state of the remote")
            .note(suggestion(name.text, kind, stable())),
        );
        return None;
    }
    Some(state.right)
}

impl<'a> Resolver<'a, '_> {
    /// Local operations of a home, one for each form offered.
    pub(super) fn locals(
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
                once(
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
            let Some(ensure) = right(item.ensure, states, names, self.sink) else {
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
                            .see(first.span, "declared here"),
                    );
                } else if locals.len() == usize::from(u8::MAX) {
                    too_many("local operation", item.name.span, locals.len(), self.sink);
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

    pub(super) fn policy(
        &mut self,
        agent: &Agent<'a>,
        remote: Option<(&Controller, &Names<'a>)>,
    ) -> Policy {
        let none = Names::new("state", true);
        let (states, names) = remote.map_or((&[][..], &none), |(remote, names)| {
            (&remote.states[..], names)
        });
        self.policy_channels();
        let mut policy = Policy {
            requests: Vec::new(),
            locals: self.locals(agent, remote),
            reach: Vec::new(),
            stall: Stall::Proven,
            acceptance: Acceptance::Always,
            under_lock: UnderLock::Refuse,
            serve_past: Vec::new(),
            serve_under_forwards: false,
            awaits: Vec::new(),
            expectations: Vec::new(),
            span: agent.body.keyword,
        };
        let mut once_only: [Option<Span>; 4] = [None; 4];
        let mut served: FxHashMap<MessageId, Span> = FxHashMap::default();
        // Permissions that goals ensure, with their spans; each needs a forward.
        let mut goals: Vec<(Right, Span)> = Vec::new();
        for item in &agent.body.items {
            let (item, span) = match item {
                AgentItem::Policy(item, span) => (item, *span),
                AgentItem::Local(local) => {
                    goals.extend(
                        right(local.ensure, states, names, self.sink)
                            .map(|right| (right, local.ensure.span)),
                    );
                    continue;
                }
                AgentItem::Variables(block) => {
                    let message = "variables in a policy";
                    self.sink.push(
                        Diagnostic::new(Code::Misplaced, block.keyword, message)
                            .label("only a home with rows has variables"),
                    );
                    continue;
                }
                _ => continue,
            };
            let mut single = |place: usize, what: &str, sink: &mut Sink| {
                once(&mut once_only[place], span, |span| *span, what, sink)
            };
            let rights = (states, names);
            match item {
                PolicyItem::On {
                    message: name,
                    goals: statements,
                } => {
                    let message = self.message_named(*name);
                    let request =
                        self.request(*name, message, statements, span, rights, &mut goals);
                    if message.is_none_or(|message| self.record_served(*name, message, &mut served))
                    {
                        policy.requests.extend(request);
                    }
                }
                PolicyItem::Reach { right, forward } => {
                    let reach = self.reach(*right, *forward, span, rights, &policy.reach);
                    policy.reach.extend(reach);
                }
                PolicyItem::Stall(stall) => {
                    single(0, "`stall`", self.sink);
                    policy.stall = *stall;
                }
                PolicyItem::Accept(acceptance) => {
                    single(1, "`accept local`", self.sink);
                    policy.acceptance = *acceptance;
                }
                PolicyItem::UnderLock(under_lock) => {
                    single(2, "`under lock`", self.sink);
                    policy.under_lock = *under_lock;
                }
                PolicyItem::ServePast(victims) => {
                    let past = victims.iter().filter_map(|&victim| self.serve_past(victim));
                    policy.serve_past.extend(past);
                }
                PolicyItem::ServeUnderForwards => {
                    single(3, "`serve under forwards`", self.sink);
                    policy.serve_under_forwards = true;
                }
                PolicyItem::Await {
                    acknowledgement,
                    grants,
                } => {
                    let awaits = self.awaits(*acknowledgement, grants, span);
                    policy.awaits.extend(awaits);
                }
                PolicyItem::Expect {
                    answer,
                    right: told,
                } => {
                    let expected = self.expectation(*answer, *told, span, rights);
                    policy.expectations.extend(expected);
                }
            }
        }
        if !agent.body.broken {
            self.unserved(agent, &served);
            self.unreached(&policy, states, &goals);
        }
        policy
    }

    fn awaits(
        &mut self,
        acknowledgement: Name<'a>,
        grants: &[Name<'a>],
        span: Span,
    ) -> Option<Await> {
        let confirmed = "a grant is confirmed by an acknowledgement";
        let confirms = "an acknowledgement confirms grants";
        let acknowledgement = self.named(acknowledgement, Class::Acknowledgement, confirmed);
        let grants = grants.iter();
        let grants = grants.filter_map(|&grant| self.named(grant, Class::Grant, confirms));
        let grants = grants.collect();
        Some(Await {
            acknowledgement: acknowledgement?,
            grants,
            span,
        })
    }

    fn expectation(
        &mut self,
        answer: Name<'a>,
        told: Name<'a>,
        span: Span,
        (states, names): (&[State], &Names<'a>),
    ) -> Option<Expectation> {
        let right = right(told, states, names, self.sink);
        let reason = "only an answer implies a permission";
        let answer = self.named(answer, Class::Answer, reason);
        Some(Expectation {
            answer: answer?,
            right: right?,
            span,
        })
    }

    /// Resolves a message of this class; `what` gives the reason for the requirement.
    fn named(&mut self, name: Name<'a>, class: Class, what: &str) -> Option<MessageId> {
        let message = self.message_named(name)?;
        self.require_class(message, name, class, what);
        Some(message)
    }

    /// Records that a request is served. Returns false if it already was.
    fn record_served(
        &mut self,
        name: Name<'a>,
        message: MessageId,
        served: &mut FxHashMap<MessageId, Span>,
    ) -> bool {
        if let Some(&first) = served.get(&message) {
            let text = format!("`{}` is served twice", name.text);
            self.sink.push(
                Diagnostic::new(Code::Duplicate, name.span, text)
                    .label("again")
                    .see(first, "served here"),
            );
            return false;
        }
        served.insert(message, name.span);
        self.require_class(message, name, Class::Request, "only requests are served");
        true
    }

    /// Resolves `reach`: a permission has at most one forward.
    fn reach(
        &mut self,
        reached: Name<'a>,
        forward: Name<'a>,
        span: Span,
        (states, names): (&[State], &Names<'a>),
        others: &[Reach],
    ) -> Option<Reach> {
        let right = right(reached, states, names, self.sink);
        let what = "a permission is reached with a forward";
        let forward = self.named(forward, Class::Forward, what)?;
        self.sent[forward.index()] = true;
        let right = right?;
        if let Some(first) = others.iter().find(|reach| reach.right == right) {
            let text = format!("a second forward for the permission of `{}`", reached.text);
            self.sink.push(
                Diagnostic::new(Code::Duplicate, reached.span, text)
                    .label("again")
                    .see(first.span, "the first one"),
            );
            return None;
        }
        Some(Reach {
            right,
            forward,
            span,
        })
    }

    /// Resolves a victim that requests may pass.
    fn serve_past(&mut self, name: Name<'a>) -> Option<MessageId> {
        let what = "requests are served past victims only";
        let message = self.named(name, Class::Victim, what)?;
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
    fn policy_channels(&mut self) {
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
            if let Some((code, span, what, label)) = problem {
                self.sink.push(
                    Diagnostic::new(code, span, format!("`{}` {what}", message.name)).label(label),
                );
            }
        }
    }

    fn request(
        &mut self,
        name: Name<'a>,
        message: Option<MessageId>,
        statements: &Block<(Goal<'a>, Span)>,
        span: Span,
        (states, names): (&[State], &Names<'a>),
        goals: &mut Vec<(Right, Span)>,
    ) -> Option<RequestPolicy> {
        let (mut ensure, mut write, mut grants) = (None, None, Vec::new());
        for (goal, span) in &statements.items {
            match goal {
                Goal::Ensure(name) => {
                    once(
                        &mut ensure,
                        (right(*name, states, names, self.sink), *span),
                        |it| it.1,
                        "`ensure`",
                        self.sink,
                    );
                    goals.extend(
                        right(*name, states, names, self.sink).map(|right| (right, name.span)),
                    );
                }
                Goal::Write => once(&mut write, *span, |span| *span, "`write`", self.sink),
                Goal::Grant {
                    right: given,
                    message: grant,
                    when,
                } => {
                    let given = given.map_or(Some(Right::None), |given| {
                        right(given, states, names, self.sink)
                    });
                    let when = match *when {
                        Condition::Always => When::Always,
                        Condition::Held => When::Held,
                        Condition::Chosen => When::Chosen,
                        Condition::Others(name) => {
                            if right(name, states, names, self.sink)
                                .is_some_and(|right| right > Right::None)
                            {
                                let message =
                                    "a grant can depend only on the others having no permission";
                                self.sink.push(
                                    Diagnostic::new(Code::Grants, name.span, message)
                                        .label("a state without permission"),
                                );
                            }
                            When::OthersNone
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
                    self.sent[message.index()] = true;
                    grants.extend(given.map(|right| Grant {
                        message,
                        right,
                        when,
                        span: *span,
                    }));
                }
            }
        }
        let complete = self.request_complete(name, message, statements, ensure.is_some(), write);
        let ensure = ensure.and_then(|(right, _)| right);
        complete.then_some(RequestPolicy {
            message: message?,
            ensure: ensure?,
            write: write.is_some(),
            grants,
            span,
        })
    }

    /// Checks that a request's policy is complete, and that its order lets every part take effect.
    fn request_complete(
        &mut self,
        name: Name<'a>,
        message: Option<MessageId>,
        statements: &Block<(Goal<'a>, Span)>,
        ensure: bool,
        write: Option<Span>,
    ) -> bool {
        let before = self.sink.count();
        let grants: Vec<(bool, Span)> = statements
            .items
            .iter()
            .filter_map(|(goal, span)| match goal {
                Goal::Grant { when, .. } => Some((matches!(when, Condition::Always), *span)),
                _ => None,
            })
            .collect();
        let mut wrong = |code, span, message: String, label: &str| {
            self.sink
                .push(Diagnostic::new(code, span, message).label(label))
        };
        if statements.broken {
            // A missing part may be one that could not be parsed.
            return false;
        }
        if !ensure {
            wrong(
                Code::Grants,
                name.span,
                format!("`{}` ensures nothing", name.text),
                "add `ensure others(r) <= STATE`",
            );
        }
        match grants.split_last() {
            None => wrong(
                Code::Grants,
                name.span,
                format!("`{}` is never answered", name.text),
                "add `grant r STATE with GRANT` or `answer r with GRANT`",
            ),
            Some((last, earlier)) => {
                if !last.0 {
                    wrong(
                        Code::Grants,
                        last.1,
                        "the last grant depends on a condition".into(),
                        "when it does not hold, there is no answer",
                    );
                }
                for (_, span) in earlier.iter().filter(|(always, _)| *always) {
                    wrong(
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
        let mut wrong = |span, message: String, label: &str| {
            self.sink
                .push(Diagnostic::new(Code::Carries, span, message).label(label))
        };
        match (carries, write) {
            (Carries::Store | Carries::PartialStore, None) => {
                wrong(
                    name.span,
                    format!("the store that `{}` carries is lost", name.text),
                    "add `write`",
                );
            }
            (Carries::Nothing | Carries::Line | Carries::DirtyLine, Some(span)) => {
                wrong(
                    span,
                    format!("`{}` carries nothing to write", name.text),
                    "only a `(store)` or `(partial store)` is written",
                );
            }
            _ => {}
        }
        self.sink.count() == before
    }

    fn unserved(&mut self, agent: &Agent<'a>, served: &FxHashMap<MessageId, Span>) {
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
                .see(agent.body.keyword, format!("add `on {name}(r) {{ ... }}`"));
                self.sink.push(diagnostic);
            }
        }
    }

    /// Reports goals below the highest permission for which there is no forward.
    fn unreached(&mut self, policy: &Policy, states: &[State], goals: &[(Right, Span)]) {
        let highest = states
            .iter()
            .map(|state| state.right)
            .max()
            .unwrap_or(Right::None);
        for &(goal, span) in goals {
            if goal < highest && !policy.reach.iter().any(|reach| reach.right <= goal) {
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
