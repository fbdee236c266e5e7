//! Resolution of the syntax tree to a [`Protocol`]: names, types, and consistency across the file.

use super::ast::{
    AccessOrder, Agent, Block, ChannelItem, EndItem, File, Group, Item, Name, Number,
};
use super::diagnostic::{Code, Diagnostic, Sink};
use super::parser::class_named;
use super::Mention;
use crate::controller::{Controller, MEMORY_WRITES};
use crate::orders::{Issue, Orders};
use crate::protocol as p;
use crate::protocol::{
    Bound, Bounds, ChannelId, Class, End, Guarantee, Home, MessageId, PointOrder, Protocol,
};
use crate::remotes::{Kind, KindId, MAX_KINDS};
use cohkit_diagnostics::{suggestion, Span};
use rustc_hash::FxHashMap;

mod backing_permission;
mod bulk_transition;
mod completions;
pub(super) mod composition;
mod controller;
mod expression;
mod guarantee;
mod input_queues;
mod lineless_messages;
mod loops;
mod pending;
mod permissions;
mod policy;
mod scope;
mod senders;
mod systems;

use scope::Side;

/// Names of one name space with their indices.
struct Names<'a> {
    /// Kind of the named items, as in "unknown state"; its plural ends in s.
    kind: &'static str,
    /// Declared names, by index.
    list: Vec<Name<'a>>,
    /// Index of each name.
    index: FxHashMap<&'a str, u16>,
    /// True if some declarations were not understood. An unknown name is then not reported.
    partial: bool,
}

impl<'a> Names<'a> {
    /// An empty name space. `partial` is true if declarations will be missing from it.
    fn new(kind: &'static str, partial: bool) -> Self {
        Names {
            kind,
            list: Vec::new(),
            index: FxHashMap::default(),
            partial,
        }
    }

    /// Declares a name; returns its index, or `None` after an error.
    fn declare(&mut self, name: Name<'a>, sink: &mut Sink) -> Option<u16> {
        if self.list.len() == usize::from(u16::MAX) {
            report_too_many(self.kind, name.span, usize::from(u16::MAX), sink);
            self.partial = true;
            return None;
        }
        let new = self.list.len() as u16;
        let index = *self.index.entry(name.text).or_insert(new);
        if index != new {
            sink.push(
                Diagnostic::new(
                    Code::DuplicateName,
                    name.span,
                    format!("a second {} `{}`", self.kind, name.text),
                )
                .label("declared again")
                .note_at(self.list[usize::from(index)].span, "declared here"),
            );
            return None;
        }
        self.list.push(name);
        self.record_mention(name.span, new, sink);
        Some(new)
    }

    /// Index of a name, if it is declared.
    fn get(&self, name: Name<'a>, sink: &mut Sink) -> Option<u16> {
        let index = self.index.get(name.text).copied()?;
        self.record_mention(name.span, index, sink);
        Some(index)
    }

    /// Records for editors that the name with this index occurs at a span.
    fn record_mention(&self, span: Span, index: u16, sink: &mut Sink) {
        let declared = self.list[usize::from(index)];
        // Words of the language have no declaration in the file.
        if declared.text == MEMORY_WRITES {
            return;
        }
        sink.mentions.push(Mention {
            span,
            declaration: declared.span,
            kind: self.kind,
        });
    }

    /// As [`Names::get`]; reports a name that is not declared.
    fn find(&self, name: Name<'a>, sink: &mut Sink) -> Option<u16> {
        let index = self.get(name, sink);
        if index.is_none() && !self.partial {
            report_unknown(
                self.kind,
                name,
                self.list.iter().map(|known| known.text),
                sink,
            );
        }
        index
    }
}

/// Reports a name that is not declared, with the known names of its kind.
fn report_unknown<'n>(
    kind: &str,
    name: Name<'_>,
    known: impl Iterator<Item = &'n str> + Clone,
    sink: &mut Sink,
) {
    // The known names are searched only for a diagnostic that will be shown.
    if !sink.would_show(Code::UnknownName, name.span) {
        return sink.push(Diagnostic::new(Code::UnknownName, name.span, ""));
    }
    let mut help = suggestion(name.text, kind, known);
    if kind == "state" && name.text.eq_ignore_ascii_case("stay") {
        help.insert_str(0, "did you mean `stay`? ");
    }
    sink.push(
        Diagnostic::new(
            Code::UnknownName,
            name.span,
            format!("unknown {kind} `{}`", name.text),
        )
        .label("nothing has this name")
        .note(help),
    );
}

/// Reports that there are more than `max` items of a kind, whose plural ends in s.
fn report_too_many(kind: &str, span: Span, max: usize, sink: &mut Sink) {
    sink.push(
        Diagnostic::new(Code::TooMany, span, format!("more than {max} {kind}s"))
            .label("this one is too many"),
    );
}

/// Returns the number if it is in the range from `min` to `max`, both inclusive. Otherwise reports `subject`, the
/// beginning of a sentence.
fn number_in_range(
    number: Number,
    min: u32,
    max: u32,
    subject: &str,
    sink: &mut Sink,
) -> Option<u32> {
    let in_range = (min..=max).contains(&number.value);
    if !in_range {
        sink.push(
            Diagnostic::new(
                Code::OutOfRange,
                number.span,
                format!("{subject} out of range"),
            )
            .label(format!("must be {min} to {max}")),
        );
    }
    in_range.then_some(number.value)
}

/// Resolver of a file: the declarations that rows and policies refer to.
struct Resolver<'a, 's> {
    /// Receiver of errors and mentions.
    sink: &'s mut Sink,
    /// Kinds of remotes, in the order of the file.
    kind_names: Names<'a>,
    /// For each kind, the index of the `remote` block that declares it. Kinds of one block have the same rows.
    tables: Vec<usize>,
    /// Channels, in the order of the file.
    channels: Vec<p::Channel>,
    /// Names of the channels, with the same indices.
    channel_names: Names<'a>,
    /// Message types, in the order of the file.
    messages: Vec<p::Message>,
    /// Names of the messages, with the same indices.
    message_names: Names<'a>,
    /// For each message, true if some agent sends it.
    is_sent: Vec<bool>,
    /// For each message, true if its receiver takes it in some state.
    is_taken: Vec<bool>,
    /// For each message, true if the home sends it.
    is_sent_by_home: Vec<bool>,
    /// Number of homes; 1 if the file does not declare it.
    homes: u16,
    /// True if the file declares the number of homes.
    homes_declared: bool,
    /// For each message, true if the rows that take it are about no line, with the span of the first such row's event.
    taking_rows: Vec<Option<(bool, Span)>>,
    /// Sends of messages about no line, with their spans.
    lineless_sends: Vec<(MessageId, Span)>,
    /// Spans of targets in the remote's rows that are the sender of the current message.
    sender_targets: Vec<Span>,
}

/// Blocks of a file, each at most once.
#[derive(Default)]
struct Blocks<'f, 'a> {
    /// `line`: its number, and the number's span.
    line: Option<(Number, Span)>,
    /// Block `channels`.
    channels: Option<&'f Block<ChannelItem<'a>>>,
    /// Block `messages`.
    messages: Option<&'f Block<Group<'a>>>,
    /// Block `bounds`.
    bounds: Option<&'f Block<(Name<'a>, Number)>>,
    /// Block `accesses`.
    accesses: Option<&'f Block<AccessOrder<'a>>>,
    /// `guarantee`, with the span of the statement.
    guarantee: Option<(Guarantee, Span)>,
    /// Blocks `remote`; the only ones that may be repeated.
    remotes: Vec<&'f Agent<'a>>,
    /// Block `home`.
    home: Option<&'f Agent<'a>>,
}

/// Orders of the channels of a file.
#[derive(Default)]
struct ChannelOrders {
    /// Channels of each order; a network is an order too.
    orders: Vec<Vec<ChannelId>>,
    /// For each order, true if it applies to messages of one line only.
    per_line: Vec<bool>,
    /// Networks, each with the index of its order.
    networks: Vec<p::Network>,
}

/// Stores the first occurrence of an item and reports any other.
fn set_once<T>(
    slot: &mut Option<T>,
    item: T,
    span: impl Fn(&T) -> Span,
    description: &str,
    sink: &mut Sink,
) {
    match slot {
        None => *slot = Some(item),
        Some(first) => sink.push(
            Diagnostic::new(
                Code::Duplicate,
                span(&item),
                format!("a second {description}"),
            )
            .label("may occur only once")
            .note_at(span(first), "the first one"),
        ),
    }
}

/// Collects the blocks of a file; reports duplicate and missing ones.
fn collect_blocks<'f, 'a>(file: &'f File<'a>, sink: &mut Sink) -> Blocks<'f, 'a> {
    let mut blocks = Blocks::default();
    for item in &file.items {
        match item {
            Item::Line(number) => set_once(
                &mut blocks.line,
                (*number, number.span),
                |line| line.1,
                "`line`",
                sink,
            ),
            Item::Channels(block) => set_once(
                &mut blocks.channels,
                block,
                |block| block.keyword,
                "`channels` block",
                sink,
            ),
            Item::Messages(block) => set_once(
                &mut blocks.messages,
                block,
                |block| block.keyword,
                "`messages` block",
                sink,
            ),
            Item::Bounds(block) => set_once(
                &mut blocks.bounds,
                block,
                |block| block.keyword,
                "`bounds` block",
                sink,
            ),
            Item::Remote(agent) => blocks.remotes.push(agent),
            Item::Home(agent) => set_once(
                &mut blocks.home,
                agent,
                |agent| agent.body.keyword,
                "`home` block",
                sink,
            ),
            Item::Accesses(block) => set_once(
                &mut blocks.accesses,
                block,
                |block| block.keyword,
                "`accesses` block",
                sink,
            ),
            Item::Guarantee(guarantee, span) => set_once(
                &mut blocks.guarantee,
                (*guarantee, *span),
                |guarantee| guarantee.1,
                "`guarantee`",
                sink,
            ),
            Item::System(..) | Item::Invariant { .. } => {}
            // Such a file is handled by `compose`.
            Item::Use(_) | Item::Node(..) | Item::JointSystem(..) => {}
        }
    }
    report_missing_blocks(file, &blocks, sink);
    blocks
}

/// Reports required blocks that are missing.
fn report_missing_blocks(file: &File, blocks: &Blocks, sink: &mut Sink) {
    // A block that could not be parsed is not reported as missing too.
    if sink.count() == 0 {
        let missing = [
            ("protocol NAME", file.header.is_none()),
            ("line N bytes", blocks.line.is_none()),
            ("channels { ... }", blocks.channels.is_none()),
            ("messages { ... }", blocks.messages.is_none()),
            ("remote NAME { ... }", blocks.remotes.is_empty()),
            ("home { ... }", blocks.home.is_none()),
        ];
        let missing: Vec<String> = missing
            .iter()
            .filter(|(_, is_missing)| *is_missing)
            .map(|(block, _)| format!("`{block}`"))
            .collect();
        if !missing.is_empty() {
            sink.push(
                Diagnostic::new(
                    Code::MissingBlock,
                    file.end,
                    format!("the file lacks {}", missing.join(", ")),
                )
                .note("every protocol file has these; `docs/language.md` shows them"),
            );
        }
    }
}

/// Resolves a file; returns the protocol if it could be built. Errors go to `sink`.
pub(super) fn resolve(file: &File, sink: &mut Sink) -> Option<Protocol> {
    if let Some(Item::Use(used)) = file.items.iter().find(|item| matches!(item, Item::Use(_))) {
        let text = "a file that composes others is no protocol of its own";
        sink.push(
            Diagnostic::new(Code::Misplaced, used.file.span, text)
                .label("the protocol is in this file")
                .note("`cohkit check` accepts this file; other commands take the protocol files that it uses"),
        );
        return None;
    }
    if file.header.is_none() && file.items.is_empty() && sink.count() == 0 {
        sink.push(
            Diagnostic::new(Code::Empty, Span::default(), "the file is empty")
                .note("a protocol file begins with `protocol NAME` and has the blocks `line`, `channels`, `messages`, `remote` and `home`"),
        );
        return None;
    }
    let blocks = collect_blocks(file, sink);
    let mut resolver = Resolver::new(file, &blocks, sink);
    resolver.declare_kinds(&blocks.remotes);
    let line_bytes = blocks
        .line
        .and_then(|(number, _)| resolver.line_bytes(number));
    let ChannelOrders {
        orders,
        per_line,
        networks,
    } = blocks
        .channels
        .map_or_else(Default::default, |block| resolver.declare_channels(block));
    if let Some(block) = blocks.messages {
        resolver.declare_messages(block);
    }
    let point_orders = blocks
        .channels
        .map_or_else(Vec::new, |block| resolver.point_orders(block, &orders));
    let bounds = blocks
        .bounds
        .map_or_else(Bounds::default, |block| resolver.resolve_bounds(block));
    let program_order = blocks.accesses.map(|block| resolver.program_order(block));
    let remote = (!blocks.remotes.is_empty())
        .then(|| resolver.resolve_controller(&blocks.remotes, None, Side::Remote));
    if let Some((remote, states, _)) = &remote {
        resolver.check_equal_permissions(remote, states);
    }
    let home = blocks.home.map(|agent| {
        let resolved_remote = remote.as_ref().map(|(remote, states, _)| (remote, states));
        resolver.resolve_home(agent, &blocks.remotes, resolved_remote)
    });
    let (remote, states, initial) = match remote {
        Some((remote, states, initial)) => (Some(remote), states, initial),
        None => (None, Names::new("state", true), Vec::new()),
    };
    if let Some(remote) = &remote {
        resolver.check_senders(remote);
        resolver.check_input_queues(remote, &networks, &orders);
    }
    resolver.classify_lineless_messages([
        remote.as_ref(),
        match &home {
            Some(Home::Controller(home)) => Some(home),
            _ => None,
        },
    ]);
    if let Some(Home::Policy(_)) = home {
        resolver.check_supported_by_policy(remote.as_ref(), &networks);
    }
    let guarantee = blocks.guarantee.map(|(guarantee, _)| guarantee);
    let guarantee = guarantee.unwrap_or_default();
    if let (false, Some(agent)) = (guarantee.coherent, blocks.home) {
        resolver.reject_permission_features(agent);
    }
    let kinds = resolver.kind_names.list.iter().zip(&resolver.tables);
    let kinds: Vec<Kind> = kinds
        .map(|(name, &table)| Kind {
            name: name.text.to_string(),
            initial: initial[table],
            span: name.span,
        })
        .collect();
    let (systems, invariants) = resolver.resolve_systems(file, &states);
    // Messages sent and taken by an agent with errors are unknown.
    if resolver.sink.count() == 0 {
        resolver.report_unused_messages(matches!(home, Some(Home::Policy(_))));
    }
    let (name, title) = file.header?;
    let protocol = Protocol {
        name: name.text.to_string(),
        title: title.to_string(),
        line_bytes: line_bytes?,
        channels: resolver.channels,
        orders,
        per_line,
        networks,
        messages: resolver.messages,
        point_orders,
        kinds,
        remote: remote?,
        home: home?,
        bounds,
        homes: file.homes.unwrap_or(1),
        program_order,
        guarantee,
        systems,
        invariants,
    };
    backing_permission::check_parent_any(file, &protocol, sink);
    Some(protocol)
}

impl<'a, 's> Resolver<'a, 's> {
    /// Creates the resolver of a file, before any declaration is resolved.
    fn new(file: &File<'a>, blocks: &Blocks<'_, 'a>, sink: &'s mut Sink) -> Resolver<'a, 's> {
        Resolver {
            sink,
            kind_names: Names::new("kind of remotes", blocks.remotes.is_empty()),
            tables: Vec::new(),
            channels: Vec::new(),
            channel_names: Names::new("channel", blocks.channels.is_none_or(|block| block.broken)),
            messages: Vec::new(),
            message_names: Names::new("message", blocks.messages.is_none_or(|block| block.broken)),
            is_sent: Vec::new(),
            is_taken: Vec::new(),
            is_sent_by_home: Vec::new(),
            homes: file.homes.unwrap_or(1),
            homes_declared: file.homes.is_some(),
            taking_rows: Vec::new(),
            lineless_sends: Vec::new(),
            sender_targets: Vec::new(),
        }
    }
}

impl<'a> Resolver<'a, '_> {
    /// Resolves a home, from its rows or its policy.
    fn resolve_home(
        &mut self,
        agent: &Agent<'a>,
        remote_blocks: &[&Agent<'a>],
        resolved_remote: Option<(&Controller, &Names<'a>)>,
    ) -> Home {
        if !policy::is_policy(agent) {
            let agents = std::slice::from_ref(&agent);
            let (home, ..) = self.resolve_controller(agents, resolved_remote, Side::Home);
            return Home::Controller(home);
        }
        if let [_, second, ..] = remote_blocks[..] {
            let text = "a home written as a policy, and remotes with several tables";
            let diagnostic = Diagnostic::new(Code::Misplaced, agent.body.keyword, text)
                .label("a policy refers to one table")
                .note_at(second.body.keyword, "the second table")
                .note("write the home as rows, or the remotes as one table: `remote A B { ... }`");
            self.sink.push(diagnostic);
        }
        if let Some((remote, _)) = resolved_remote {
            self.reject_split_states(agent, remote);
        }
        Home::Policy(self.resolve_policy(agent, resolved_remote))
    }

    /// Rejects rows about several lines, and networks, which a home that is written as a policy does not support.
    fn check_supported_by_policy(&mut self, remote: Option<&Controller>, networks: &[p::Network]) {
        if let Some(remote) = remote {
            self.reject_several_lines(remote);
        }
        if let Some(network) = networks.first() {
            let text = "a home written as a policy, and a network";
            let diagnostic = Diagnostic::new(Code::Misplaced, network.span, text)
                .label("requests and answers would wait for each other in one queue")
                .note("write the home as rows, or `ordered` in place of the network");
            self.sink.push(diagnostic);
        }
    }

    /// Checks the size of a line, in bytes.
    fn line_bytes(&mut self, number: Number) -> Option<u32> {
        let bytes = number_in_range(number, 8, 4096, "the line size is", self.sink)?;
        if !bytes.is_power_of_two() {
            let message = format!("a line of {bytes} bytes");
            self.sink.push(
                Diagnostic::new(Code::OutOfRange, number.span, message)
                    .label("must be a power of two"),
            );
        }
        Some(bytes)
    }

    /// Resolves the program order that threads preserve.
    fn program_order(&mut self, block: &Block<AccessOrder<'a>>) -> Orders {
        let mut orders = Orders::NONE;
        let mut find = |name: Name<'a>| {
            let entry = Issue::ALL.iter().find(|(_, issue)| *issue == name.text);
            if entry.is_none() {
                let known = Issue::ALL.iter().map(|&(_, issue)| issue);
                report_unknown("access with an order", name, known, self.sink);
            }
            entry.map(|&(issue, _)| issue)
        };
        for item in &block.items {
            let access = find(item.access);
            for (is_before, others) in &item.clauses {
                let named: Vec<Issue> = others.iter().filter_map(|&name| find(name)).collect();
                let others = match others.is_empty() {
                    true => Issue::ALL.map(|(issue, _)| issue).to_vec(),
                    false => named,
                };
                for (access, other) in access
                    .iter()
                    .flat_map(|access| others.iter().map(move |o| (*access, *o)))
                {
                    match is_before {
                        true => orders.keep(access, other),
                        false => orders.keep(other, access),
                    }
                }
            }
        }
        orders
    }

    /// Declares the kinds of remotes.
    fn declare_kinds(&mut self, blocks: &[&Agent<'a>]) {
        for (table, agent) in blocks.iter().enumerate() {
            for &name in &agent.names {
                if self.tables.len() == MAX_KINDS {
                    return report_too_many("kind of remotes", name.span, MAX_KINDS, self.sink);
                }
                if self.kind_names.declare(name, self.sink).is_some() {
                    self.tables.push(table);
                }
            }
        }
    }

    /// Resolves an end of a channel; returns the only kind of remotes allowed there, if any.
    fn resolve_end(&mut self, end: EndItem<'a>) -> (End, Option<KindId>) {
        let name = match end {
            EndItem::Role(end) => return (end, None),
            EndItem::Kind(name) => name,
        };
        let Some(kind) = self.kind_names.get(name, self.sink) else {
            let ends = ["remote", "home", "any"].into_iter();
            let known = ends.chain(self.kind_names.list.iter().map(|kind| kind.text));
            report_unknown("agent", name, known, self.sink);
            return (End::Any, None);
        };
        match self
            .tables
            .iter()
            .filter(|table| **table == self.tables[usize::from(kind)])
            .count()
        {
            1 if self.tables.len() > 1 => (End::Remote, Some(KindId(kind as u8))),
            1 => (End::Remote, None),
            _ => {
                let text = format!("`{}` has the same rows as another kind", name.text);
                let diagnostic = Diagnostic::new(Code::Direction, name.span, text);
                self.sink
                    .push(diagnostic.label("both send and receive the same: write `remote`"));
                (End::Remote, None)
            }
        }
    }

    /// Checks that states of the same name in several tables give the same permission, because policies and local
    /// operations name permissions by states.
    fn check_equal_permissions(&mut self, remote: &Controller, names: &Names<'a>) {
        for (name, state) in names.list.iter().zip(&remote.states) {
            let first = names.index.get(name.text).map(|&first| usize::from(first));
            let Some(first) = first.and_then(|first| remote.states.get(first)) else {
                continue;
            };
            // States split from one state of the file, whose permission is conditional.
            if first.span == state.span {
                continue;
            }
            if first.permission != state.permission && first.is_stable() && state.is_stable() {
                let text = format!(
                    "`{}` gives a different permission in another kind",
                    name.text
                );
                self.sink.push(
                    Diagnostic::new(Code::NotAPermission, name.span, text)
                        .label("a permission is named by the states that give it")
                        .note_at(first.span, "the other one"),
                );
            }
        }
    }

    /// Resolves `ordered M behind N`: the messages that stay behind others.
    fn point_orders(
        &mut self,
        block: &Block<ChannelItem<'a>>,
        orders: &[Vec<ChannelId>],
    ) -> Vec<PointOrder> {
        let mut point_orders: Vec<PointOrder> = Vec::new();
        let mut earlier_spans: FxHashMap<MessageId, Span> = FxHashMap::default();
        for item in &block.items {
            let ChannelItem::OrderedBehind {
                message: name,
                earlier: names,
            } = item
            else {
                continue;
            };
            let message = self.message_named(*name);
            let mut earlier = Vec::new();
            for &earlier_name in names {
                let earlier_message = self.message_named(earlier_name);
                let (Some(message), Some(earlier_message)) = (message, earlier_message) else {
                    continue;
                };
                if let Some(first) = earlier_spans.insert(earlier_message, earlier_name.span) {
                    let text = format!(
                        "`{}` already goes before another message",
                        earlier_name.text
                    );
                    self.sink.push(
                        Diagnostic::new(Code::Duplicate, earlier_name.span, text)
                            .label("may go before one message only")
                            .note_at(first, "goes before one here"),
                    );
                    continue;
                }
                let (channel, earlier_channel) =
                    (self.channel_of(message), self.channel_of(earlier_message));
                let are_disjoint = |a: End, b: End| a != b && a != End::Any && b != End::Any;
                let problem = if message == earlier_message {
                    Some("a message does not stay behind its own kind")
                } else if are_disjoint(channel.from, earlier_channel.from)
                    || are_disjoint(channel.to, earlier_channel.to)
                {
                    Some("the two messages never travel in the same direction")
                } else {
                    None
                };
                if let Some(problem) = problem {
                    self.sink.push(
                        Diagnostic::new(Code::Direction, earlier_name.span, problem)
                            .label(format!("on `{}`", earlier_channel.name)),
                    );
                }
                self.reject_order_between_homes(
                    self.messages[earlier_message.index()].channel,
                    earlier_name.span,
                );
                earlier.push(earlier_message);
            }
            let Some(message) = message else { continue };
            if point_orders.iter().any(|other| other.message == message) {
                let text = format!("`{}` stays behind others already", name.text);
                self.sink.push(
                    Diagnostic::new(Code::Duplicate, name.span, text)
                        .label("list all messages that go before it in one statement"),
                );
                continue;
            }
            for (&member, member_name) in std::iter::once(&message)
                .chain(&earlier)
                .zip(std::iter::once(name).chain(names))
            {
                let channel = self.messages[member.index()].channel;
                if orders.iter().any(|order| order.contains(&channel)) {
                    let text = format!("`{}` has an order already", member_name.text);
                    self.sink.push(
                        Diagnostic::new(Code::Duplicate, member_name.span, text)
                            .label("its channel is in an `ordered` list"),
                    );
                }
            }
            point_orders.push(PointOrder { message, earlier });
        }
        point_orders
    }

    /// Declares the channels. Returns their orders, and the networks.
    fn declare_channels(&mut self, block: &Block<ChannelItem<'a>>) -> ChannelOrders {
        for item in &block.items {
            if let ChannelItem::Channel { .. } = item {
                self.declare_channel(item);
            }
        }
        let mut resolved = ChannelOrders::default();
        let mut ordered_spans: FxHashMap<u16, Span> = FxHashMap::default();
        let mut network_names = Names::new("network", false);
        for item in &block.items {
            let (names, is_per_line) = match item {
                ChannelItem::Ordered(names, is_per_line) => (names, *is_per_line),
                ChannelItem::Network(name, capacity, names) => {
                    let capacity = capacity.and_then(|number| {
                        let max_capacity = u32::from(p::Network::MAX_CAPACITY);
                        number_in_range(number, 1, max_capacity, "a capacity is", self.sink)
                    });
                    if network_names.declare(*name, self.sink).is_some() {
                        resolved.networks.push(p::Network {
                            name: name.text.to_string(),
                            order: resolved.orders.len(),
                            capacity: capacity.map(|capacity| capacity as u16),
                            span: name.span,
                        });
                    }
                    (names, false)
                }
                _ => continue,
            };
            let is_network = matches!(item, ChannelItem::Network(..));
            let members = names.iter().filter_map(|&name| {
                self.resolve_ordered_channel(name, is_network, &mut ordered_spans)
            });
            resolved.orders.push(members.collect());
            resolved.per_line.push(is_per_line);
        }
        resolved
    }

    /// Declares a channel. Does nothing for other items of the block.
    fn declare_channel(&mut self, item: &ChannelItem<'a>) {
        let &ChannelItem::Channel {
            name,
            class,
            from,
            to,
            span,
        } = item
        else {
            return;
        };
        let (from, sender) = self.resolve_end(from);
        let (to, receiver) = self.resolve_end(to);
        if from == End::Home && to == End::Home && !self.homes_declared {
            let message = format!("`{}` leads from the home to the home", name.text);
            self.sink.push(
                Diagnostic::new(Code::Direction, span, message)
                    .label("there is one home; `size homes N` makes several"),
            );
        }
        if self.channel_names.declare(name, self.sink).is_some() {
            let class = class.or(class_named(name.text));
            self.channels.push(p::Channel {
                name: name.text.to_string(),
                from,
                to,
                kinds: [sender, receiver],
                class,
                span: name.span,
            });
        }
    }

    /// Resolves a member of an order or network. `ordered_spans` has the channels that are already in an order, by
    /// index, with the span of their name there.
    fn resolve_ordered_channel(
        &mut self,
        name: Name<'a>,
        is_network: bool,
        ordered_spans: &mut FxHashMap<u16, Span>,
    ) -> Option<ChannelId> {
        let index = self.channel_names.find(name, self.sink)?;
        let channel = &self.channels[usize::from(index)];
        if is_network && (channel.from, channel.to) == (End::Home, End::Home) {
            let text = format!("`{}` is a channel between homes", name.text);
            self.sink.push(
                Diagnostic::new(Code::Direction, name.span, text)
                    .label("a network has channels that remotes send on or receive from"),
            );
            return None;
        }
        if let Some(first) = ordered_spans.insert(index, name.span) {
            self.sink.push(
                Diagnostic::new(
                    Code::DuplicateName,
                    name.span,
                    format!("`{}` is ordered twice", name.text),
                )
                .label("a channel can be in only one order")
                .note_at(first, "ordered here"),
            );
            return None;
        }
        Some(ChannelId(index))
    }

    /// Declares the messages, with their fields.
    fn declare_messages(&mut self, block: &Block<Group<'a>>) {
        for group in &block.items {
            let channel = self.channel_names.find(group.channel, self.sink);
            for item in &group.messages {
                let mut names = Names::new("field", false);
                let mut fields = Vec::new();
                for &(name, ty) in &item.fields {
                    if fields.len() == usize::from(u8::MAX) {
                        report_too_many("field", name.span, fields.len(), self.sink);
                        break;
                    }
                    if ty.is_home_set() {
                        let text = "a field with a set of homes";
                        let diagnostic = Diagnostic::new(Code::Type, name.span, text);
                        self.sink.push(diagnostic.label("fields are single values"));
                        continue;
                    }
                    if names.declare(name, self.sink).is_some() {
                        fields.push(p::Field {
                            name: name.text.to_string(),
                            ty,
                            span: name.span,
                        });
                    }
                }
                let Some(channel) = channel else {
                    // The channel is the error; the message itself is known.
                    self.message_names.partial = true;
                    continue;
                };
                if self.message_names.declare(item.name, self.sink).is_some() {
                    self.messages.push(p::Message {
                        name: item.name.text.to_string(),
                        channel: ChannelId(channel),
                        carries: item.carries,
                        about_line: true,
                        fields,
                        span: item.name.span,
                    });
                }
            }
        }
        self.is_sent = vec![false; self.messages.len()];
        self.is_sent_by_home = vec![false; self.messages.len()];
        self.is_taken = vec![false; self.messages.len()];
        self.taking_rows = vec![None; self.messages.len()];
    }

    /// Returns the message with this name; reports an unknown name.
    fn message_named(&mut self, name: Name<'a>) -> Option<MessageId> {
        self.message_names.find(name, self.sink).map(MessageId)
    }

    /// Returns the channel that a message travels on.
    fn channel_of(&self, message: MessageId) -> &p::Channel {
        &self.channels[self.messages[message.index()].channel.index()]
    }

    /// Class of a message's channel, if it has one.
    fn class(&self, message: MessageId) -> Option<Class> {
        self.channel_of(message).class
    }

    /// Resolves the `bounds` block. Only victims may have a bound of their own; a bound that is wrong or repeated is
    /// left out.
    fn resolve_bounds(&mut self, block: &Block<(Name<'a>, Number)>) -> Bounds {
        let mut bounds = Bounds::default();
        let mut stated: FxHashMap<&str, Span> = FxHashMap::default();
        for &(name, number) in &block.items {
            if let Some(first) = stated.insert(name.text, name.span) {
                let message = format!("a second bound for `{}`", name.text);
                self.sink.push(
                    Diagnostic::new(Code::Duplicate, name.span, message)
                        .note_at(first, "the first one"),
                );
                continue;
            }
            let bound = number_in_range(number, 1, u32::from(u16::MAX), "the bound is", self.sink)
                .map(|limit| Bound {
                    limit: limit as u16,
                    span: name.span.to(number.span),
                });
            if name.text == "in_flight" {
                bounds.in_flight = bound;
            } else if let Some(message) = self.message_named(name) {
                self.require_class(
                    message,
                    name,
                    Class::Victim,
                    "only a victim can be held back by a bound",
                );
                bounds
                    .per_message
                    .extend(bound.map(|bound| (message, bound)));
            }
        }
        bounds
    }

    /// Reports a message that is not of the required class.
    fn require_class(&mut self, message: MessageId, name: Name<'a>, class: Class, reason: &str) {
        let channel = self.channel_of(message);
        if channel.class == Some(class) {
            return;
        }
        let word = super::parser::CLASSES
            .iter()
            .find(|(_, listed)| *listed == class)
            .map_or("", |(word, _)| word);
        let diagnostic = Diagnostic::new(
            Code::WrongClass,
            name.span,
            format!("`{}` is no {word}", name.text),
        )
        .label(reason)
        .note_at(channel.span, format!("it travels on `{}`", channel.name));
        self.sink.push(diagnostic);
    }

    /// Reports messages that no row sends or takes.
    fn report_unused_messages(&mut self, policy: bool) {
        for (index, message) in self.messages.iter().enumerate() {
            let channel = &self.channels[message.channel.index()];
            if !self.is_sent[index] {
                let help = match (policy, channel.class) {
                    (true, Some(Class::Forward)) => {
                        "state its purpose with `reach STATE with ...`, or remove it"
                    }
                    (true, Some(Class::Grant)) => "grant or answer a request with it, acknowledge a victim with it, or remove it",
                    _ => "send it in a row, or remove it",
                };
                self.sink.push(
                    Diagnostic::new(
                        Code::NeverSent,
                        message.span,
                        format!("no agent sends `{}`", message.name),
                    )
                    .label("declared here")
                    .note(help),
                );
            }
            // A constructed home takes every message that can be sent to it.
            let constructed = policy && channel.to == End::Home;
            if self.is_sent[index] && !self.is_taken[index] && !constructed {
                let receiver = match channel.to {
                    End::Remote => "the remote takes",
                    End::Home => "the home takes",
                    End::Any => "any agent takes",
                };
                self.sink.push(
                    Diagnostic::new(
                        Code::NeverReceived,
                        message.span,
                        format!("there is no state in which {receiver} `{}`", message.name),
                    )
                    .label("declared here")
                    .note("write a row for it, or remove it"),
                );
            }
        }
    }
}
