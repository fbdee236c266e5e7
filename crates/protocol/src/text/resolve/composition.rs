//! Resolution of a file that composes protocols to a [`Composition`].

use super::{number_in_range, report_unknown, set_once, Names};
use crate::composition::{Composition, JointSystem, LevelBinding, Node, Place, Space};
use crate::controller::Event;
use crate::protocol as p;
use crate::protocol::{Home, Protocol};
use crate::remotes::{KindId, Remotes};
use crate::text::ast::{AgentCount, Block, File, Item, Name, Number, Part, Use};
use crate::text::diagnostic::{Code, Diagnostic, Sink};
use cohkit_base::words::counted;
use cohkit_diagnostics::suggestion;

/// Loader of used files: returns the protocol of a file, given its name, or a sentence on why it cannot.
pub(in crate::text) type Load<'l> = dyn FnMut(&str) -> Result<Protocol, String> + 'l;

/// Resolver of a composition.
struct Composer<'a, 's> {
    /// Receiver of errors and mentions.
    sink: &'s mut Sink,
    /// Names of the spaces, with the indices of `spaces`.
    space_names: Names<'a>,
    /// `None` for a file that could not be loaded.
    spaces: Vec<Option<Space>>,
    /// Names of the nodes, with the indices of `nodes`.
    node_names: Names<'a>,
    /// Agents at each node.
    nodes: Vec<Vec<Place>>,
    /// Pairs of an inner and an outer space found so far.
    levels: Vec<LevelBinding>,
    /// True if a home over a cache was rejected in the current node.
    has_rejected_level: bool,
    /// Nodes with a rejected level, with the indices of `nodes`. Systems with such a node are not checked.
    has_node_rejected_level: Vec<bool>,
}

/// Resolves a file that composes protocols; `load` returns the protocol of a used file.
pub(in crate::text) fn compose(
    file: &File,
    load: &mut Load,
    sink: &mut Sink,
) -> Option<Composition> {
    let (spaces, nodes) = (
        Names::new("used protocol", false),
        Names::new("node", false),
    );
    let mut composer = Composer {
        sink,
        space_names: spaces,
        spaces: Vec::new(),
        node_names: nodes,
        nodes: Vec::new(),
        levels: Vec::new(),
        has_rejected_level: false,
        has_node_rejected_level: Vec::new(),
    };
    for item in &file.items {
        if let Item::Use(used) = item {
            composer.resolve_use(used, load);
        }
    }
    let mut systems = Vec::new();
    let mut system_names = Names::new("system", false);
    for item in &file.items {
        match item {
            Item::Use(_) => {}
            Item::Node(name, block) => composer.resolve_node(*name, block),
            Item::JointSystem(name, block) => {
                let system = composer.resolve_system(*name, block);
                let is_new = system_names.declare(*name, composer.sink).is_some();
                systems.extend(system.filter(|_| is_new));
            }
            other => composer.report_misplaced(other),
        }
    }
    let Composer {
        sink,
        spaces,
        levels,
        node_names,
        nodes,
        ..
    } = composer;
    let nodes = node_names.list.iter().zip(nodes);
    let nodes = nodes.map(|(name, parts)| Node {
        name: name.text.to_string(),
        parts,
    });
    let Some((name, title)) = file.header else {
        let missing = "the file lacks `protocol NAME`";
        sink.push(Diagnostic::new(Code::MissingBlock, file.end, missing));
        return None;
    };
    if systems.is_empty() && sink.count() == 0 {
        let missing = "the file lacks `system NAME { ... }`";
        sink.push(
            Diagnostic::new(Code::MissingBlock, file.end, missing)
                .note("a file that composes others says how many of each part there are"),
        );
    }
    Some(Composition {
        name: name.text.to_string(),
        title: title.to_string(),
        spaces: spaces.into_iter().collect::<Option<_>>()?,
        levels,
        nodes: nodes.collect(),
        systems,
    })
}

impl<'a> Composer<'a, '_> {
    /// Loads a used file and declares its name.
    fn resolve_use(&mut self, used: &Use<'a>, load: &mut Load) {
        let is_new = self.space_names.declare(used.name, self.sink).is_some();
        let loaded = load(used.file.text).map_err(|reason| {
            let text = format!("`{}` cannot be used", used.file.text);
            self.sink.push(
                Diagnostic::new(Code::Use, used.file.span, text)
                    .label("names the path of a protocol file")
                    .note(reason),
            );
        });
        if is_new {
            self.spaces.push(loaded.ok().map(|protocol| Space {
                name: used.name.text.to_string(),
                file: used.file.text.to_string(),
                protocol,
            }));
        }
    }

    /// Resolves the agents of a node, and declares its name.
    fn resolve_node(&mut self, name: Name<'a>, block: &Block<(Part<'a>, Option<Part<'a>>)>) {
        self.has_rejected_level = false;
        let parts = block.items.iter();
        let places = parts.flat_map(|&(part, backing)| self.resolve_parts(part, backing));
        let places = places.collect();
        if self.node_names.declare(name, self.sink).is_some() {
            self.nodes.push(places);
            self.has_node_rejected_level.push(self.has_rejected_level);
        }
    }

    /// Reports a statement that has no place in a composition.
    fn report_misplaced(&mut self, item: &Item) {
        let (keyword, span) = match item {
            Item::Line(number) => ("line", number.span),
            Item::Channels(block) => ("channels", block.keyword),
            Item::Messages(block) => ("messages", block.keyword),
            Item::Bounds(block) => ("bounds", block.keyword),
            Item::Remote(agent) => ("remote", agent.body.keyword),
            Item::Home(agent) => ("home", agent.body.keyword),
            Item::System(name, _) => ("system", name.span),
            Item::Invariant { span, .. } => ("invariant", *span),
            Item::Accesses(block) => ("accesses", block.keyword),
            Item::Guarantee(_, span) => ("guarantee", *span),
            Item::Use(_) | Item::Node(..) | Item::JointSystem(..) => return,
        };
        let text = format!("`{keyword}` in a file that composes others");
        let help = match item {
            Item::System(..) => "move it behind `use`, which names the protocol that it counts",
            _ => "the protocol files that this file uses define the agents",
        };
        self.sink
            .push(Diagnostic::new(Code::Misplaced, span, text).note(help));
    }

    /// Space with this name, if its file could be loaded.
    fn space(&mut self, name: Name<'a>) -> Option<usize> {
        let space = usize::from(self.space_names.find(name, self.sink)?);
        self.spaces[space].as_ref().map(|_| space)
    }

    /// Resolves `SPACE.PART`.
    fn resolve_place(&mut self, part: Part<'a>) -> Option<Place> {
        let Some(space) = part.space else {
            let text = format!("`{}` does not name its used protocol", part.name.text);
            self.sink.push(
                Diagnostic::new(Code::Syntax, part.name.span, text)
                    .label("write `NAME.PART`")
                    .note(suggestion(
                        part.name.text,
                        "used protocol",
                        self.space_names.list.iter().map(|known| known.text),
                    )),
            );
            return None;
        };
        let space = self.space(space)?;
        let protocol = &self.spaces[space].as_ref()?.protocol;
        if let Some(kind) = (protocol.kinds.iter()).position(|kind| kind.name == part.name.text) {
            return Some(Place::Remotes(space, KindId(kind as u8)));
        }
        let home = match &protocol.home {
            Home::Controller(home) => home.name.as_str(),
            Home::Policy(_) => "home",
        };
        if ["home", home].contains(&part.name.text) {
            return Some(Place::Home(space));
        }
        let kinds = protocol.kinds.iter().map(|kind| kind.name.as_str());
        let home_name = (home != "home").then_some(home);
        let parts = kinds.chain(["home"]).chain(home_name);
        report_unknown("part", part.name, parts, self.sink);
        None
    }

    /// Resolves a part of a node: the part itself, and the cache that backs it, if any.
    fn resolve_parts(&mut self, part: Part<'a>, backing: Option<Part<'a>>) -> Vec<Place> {
        let place = self.resolve_place(part);
        let Some(backing) = backing else {
            return place.into_iter().collect();
        };
        let (Some(place), Some(cache)) = (place, self.resolve_place(backing)) else {
            return Vec::new();
        };
        let reject = |span, text: &str, help: &str| {
            Some(Diagnostic::new(Code::Misplaced, span, text).note(help))
        };
        let error = match (place, cache) {
            (Place::Remotes(..), _) => reject(
                part.name.span,
                "a cache cannot be `over` another agent",
                "only a home can be `over` a cache, whose copy is then its memory: `INNER.home over OUTER.cache`",
            ),
            (_, Place::Home(_)) => reject(
                backing.name.span,
                "a home has no copy that can be the memory of another home",
                "name the remotes of another used protocol: `INNER.home over OUTER.cache`",
            ),
            (Place::Home(inner), Place::Remotes(outer, _)) => {
                let kinds = self.spaces[outer].as_ref().map_or(0, |o| o.protocol.kinds.len());
                let coupled_lines = [inner, outer].iter().find_map(|&space| {
                    let protocol = &self.spaces[space].as_ref()?.protocol;
                    // A row that changes every line is one step of an inner system, which has all lines.
                    let is_inner_without_coherence = space == inner && !protocol.guarantee.coherent;
                    let feature = match is_inner_without_coherence {
                        true => protocol.line_coupling(),
                        false => protocol.joins_lines(),
                    };
                    Some((&protocol.name, feature?))
                });
                let incoherent = self.spaces[outer].as_ref().filter(|used| !used.protocol.guarantee.coherent);
                let incoherent = incoherent.map(|used| &used.protocol.name);
                let level = LevelBinding { inner, outer };
                let shares_space = |l: &LevelBinding| l.inner == outer || l.outer == inner;
                if inner == outer {
                    reject(backing.name.span, "a home over its own caches", "use the protocol a second time, under another name")
                } else if let Some(name) = incoherent {
                    let text = format!("`{name}` has `guarantee none`, and caches at the outer level");
                    reject(backing.name.span, &text, "the outer protocol must be coherent; only an inner one may have `guarantee none`")
                } else if let Some((feature, help)) = self.spaces[inner].as_ref().and_then(|used| untracked_limit(&used.protocol)) {
                    reject(part.name.span, &feature, help)
                } else if let Some((name, feature)) = coupled_lines {
                    let text = format!("`{name}` has {feature}");
                    reject(backing.name.span, &text, "levels are joined line by line")
                } else if kinds > 1 {
                    reject(backing.name.span, "the outer protocol has several kinds of remotes", "the outer protocol must have a single kind")
                } else if self.levels.iter().any(shares_space) {
                    reject(part.name.span, "a third level", "the outer protocol is below no other, and the inner protocol above none")
                } else if self.levels.iter().any(|l| l.inner == inner) {
                    reject(part.name.span, "a second cache for the same home", "use the protocol a second time, under another name")
                } else {
                    self.levels.push(level);
                    return vec![place, cache];
                }
            }
        };
        if let Some(error) = error {
            self.sink.push(error);
            self.has_rejected_level = true;
        }
        Vec::new()
    }

    /// Resolves the numbers of agents and lines of each space in a system.
    fn resolve_system(
        &mut self,
        name: Name<'a>,
        block: &Block<AgentCount<'a>>,
    ) -> Option<JointSystem> {
        let kinds = |space: &Option<Space>| space.as_ref().map_or(0, |s| s.protocol.kinds.len());
        let spaces = self.spaces.iter().map(|space| vec![None; kinds(space)]);
        let mut counts = SystemCounts {
            remotes: spaces.collect(),
            homes: vec![0; self.spaces.len()],
            lines: vec![None; self.spaces.len()],
        };
        for entry in &block.items {
            let (part, number) = (entry.part, entry.number);
            if let (Some(space), "lines") = (part.space, part.name.text) {
                let space = self.space(space)?;
                set_once(
                    &mut counts.lines[space],
                    number,
                    |n| n.span,
                    "`lines`",
                    self.sink,
                );
                continue;
            }
            let places = match part.space {
                Some(_) => vec![self.resolve_place(part)?],
                None => {
                    let node = usize::from(self.node_names.find(part.name, self.sink)?);
                    if *self.has_node_rejected_level.get(node)? {
                        return None;
                    }
                    self.nodes.get(node)?.clone()
                }
            };
            // The number of a kind may be 0; that of a node or home is at least 1.
            let is_required = part.space.is_none() || matches!(places[..], [Place::Home(_)]);
            let count = self.ranged_count(number, is_required.into())?;
            for &place in &places {
                match place {
                    Place::Remotes(space, kind) => counts.add(space, kind, count),
                    Place::Home(space) => counts.homes[space] += count,
                }
            }
            for &(part, number) in entry.each.iter().flat_map(|each| &each.items) {
                let (place, count) = (self.resolve_place(part)?, self.ranged_count(number, 0)?);
                let is_below_place = |l: &LevelBinding| places.contains(&Place::Home(l.inner));
                match place {
                    Place::Remotes(space, kind)
                        if self
                            .levels
                            .iter()
                            .any(|l| l.inner == space && is_below_place(l)) =>
                    {
                        counts.add(space, kind, count);
                    }
                    _ => {
                        let text = "only agents below a cache are counted for each cache";
                        let error = Diagnostic::new(Code::Misplaced, part.name.span, text);
                        self.sink
                            .push(error.note("move it out of the inner braces"));
                        return None;
                    }
                }
            }
        }
        if block.broken
            || block
                .items
                .iter()
                .any(|c| c.each.as_ref().is_some_and(|e| e.broken))
        {
            return None;
        }
        let parts = (0..self.spaces.len()).map(|space| self.system_part(name, &counts, space));
        Some(JointSystem {
            name: name.text.to_string(),
            parts: parts.collect::<Option<_>>()?,
            homes: counts.homes.iter().map(|&homes| homes as u16).collect(),
        })
    }

    /// Checks a number of agents.
    fn ranged_count(&mut self, number: Number, min: u32) -> Option<u32> {
        let max = p::System::MAX_REMOTES.into();
        number_in_range(number, min, max, "the number is", self.sink)
    }

    /// Checks the number of homes of a space: one over each cache of an outer level, and otherwise one. `None` if a file
    /// could not be loaded.
    fn check_homes(&mut self, name: Name<'a>, counts: &SystemCounts, space: usize) -> Option<bool> {
        let used = &self.spaces[space].as_ref()?.name;
        let homes = counts.homes[space];
        let Some(level) = self.levels.iter().find(|level| level.inner == space) else {
            if homes != 1 {
                let text = format!(
                    "`{}` has {homes} homes of `{used}`, but a space has one",
                    name.text
                );
                let error = Diagnostic::new(Code::OutOfRange, name.span, text);
                self.sink
                    .push(error.note(format!("count one node with `{used}.home`")));
            }
            return Some(homes == 1);
        };
        let outer = &self.spaces[level.outer].as_ref()?.name;
        if homes == 0 {
            let text = format!("`{}` has no home of `{used}`", name.text);
            let missing = Diagnostic::new(Code::MissingBlock, name.span, text);
            self.sink.push(missing.note(format!(
                "count the node in which `{used}.home` is over a cache of `{outer}`, or leave out its `use`"
            )));
            return Some(false);
        }
        let over_same_level = self
            .levels
            .iter()
            .filter(|other| other.outer == level.outer);
        let all_homes: u32 = over_same_level.map(|other| counts.homes[other.inner]).sum();
        let caches: u32 = counts.remote_counts(level.outer).iter().sum();
        if all_homes != caches {
            let text = format!(
                "`{}` has {} over caches of `{outer}`, and {} that can hold their memory",
                name.text,
                counted(all_homes, "home"),
                counted(caches, "cache")
            );
            let error = Diagnostic::new(Code::OutOfRange, name.span, text);
            self.sink.push(error.note(
                "count the nodes in which one is over the other, and do not count either outside them",
            ));
        }
        Some(all_homes == caches)
    }

    /// Builds the part of a system in one space.
    fn system_part(
        &mut self,
        name: Name<'a>,
        counts: &SystemCounts,
        space: usize,
    ) -> Option<p::System> {
        let used = self.spaces[space].as_ref()?;
        let kinds = used.protocol.kinds.iter().zip(&counts.remotes[space]);
        let uncounted = kinds.filter(|(_, count)| count.is_none());
        let uncounted: Vec<String> = uncounted
            .map(|(kind, _)| format!("`{}.{} N`", used.name, kind.name))
            .collect();
        // For a single kind, the check of the number of remotes below reports a missing or zero number.
        if !uncounted.is_empty() && counts.remotes[space].len() > 1 {
            let text = format!("`{}` lacks {}", name.text, uncounted.join(" and "));
            let missing = Diagnostic::new(Code::MissingBlock, name.span, text);
            self.sink.push(missing.label("the number is missing"));
            return None;
        }
        let remote_counts = counts.remote_counts(space);
        let subject = format!("the number of remotes of `{}` is", used.name);
        let total = Number {
            value: remote_counts.iter().sum(),
            span: name.span,
        };
        number_in_range(total, 1, p::System::MAX_REMOTES.into(), &subject, self.sink)?;
        let level = self.levels.iter().find(|level| level.inner == space);
        // An inner level has the lines of the outer one.
        let line_space = level.map_or(space, |level| level.outer);
        let number = match (level, counts.lines[space]) {
            (Some(_), Some(number)) => {
                let text = format!("the lines of `{}` are those of the caches above", used.name);
                let error = Diagnostic::new(Code::Misplaced, number.span, text);
                self.sink.push(error.note("leave this out"));
                return None;
            }
            _ => counts.lines[line_space],
        };
        let Some(number) = number else {
            if level.is_none() {
                let text = format!("`{}` lacks `{}.lines N`", name.text, used.name);
                let missing = Diagnostic::new(Code::MissingBlock, name.span, text);
                self.sink
                    .push(missing.label("the number of lines is missing"));
            }
            return None;
        };
        let max = p::System::MAX_LINES.into();
        let lines = number_in_range(number, 1, max, "the number of lines is", self.sink)?;
        let part_name = format!("{}.{}", name.text, used.name);
        if !self.check_homes(name, counts, space)? {
            return None;
        }
        let kind_counts: Vec<u16> = remote_counts.iter().map(|&count| count as u16).collect();
        Some(p::System {
            name: part_name,
            remotes: Remotes::new(&kind_counts)?,
            lines: lines as u8,
            parent_any: false,
            sizes: Vec::new(),
            resized_protocol: None,
            span: name.span,
        })
    }
}

/// Feature of a protocol with `guarantee none` that excludes its home from being over a cache, with help; `None` if
/// there is none. Copies without coherence are not tracked, so the cache above knows of a store only if the home
/// performs it, and a line that is written back may be older than another cluster's store.
fn untracked_limit(protocol: &Protocol) -> Option<(String, &'static str)> {
    if protocol.guarantee.coherent {
        return None;
    }
    let name = &protocol.name;
    let states = &protocol.remote.states;
    if let Some(state) = states
        .iter()
        .find(|state| state.permission == p::Permission::Write)
    {
        let feature = format!(
            "`{name}` has `guarantee none`, and write permission in `{}`",
            state.name
        );
        return Some((
            feature,
            "caches without coherence below another cache must send every store to their home",
        ));
    }
    // The home of such a protocol is written as rows.
    let Home::Controller(home) = &protocol.home else {
        return None;
    };
    let written_back = home.rules.iter().find_map(|row| match row.event {
        Event::Message(id) if protocol.message(id).carries.line() => Some(protocol.message(id)),
        _ => None,
    })?;
    let feature = format!(
        "`{name}` has `guarantee none`, and its home takes lines in `{}`",
        written_back.name
    );
    Some((feature, "a line that is written back may be older than a store of another cluster; send stores instead"))
}

/// Numbers of agents and lines of each space in a system.
struct SystemCounts {
    /// For each space and kind, the number of remotes, if stated. In an inner space, the number below each outer cache.
    remotes: Vec<Vec<Option<u32>>>,
    /// For each space, the number of homes.
    homes: Vec<u32>,
    /// For each space, the stated number of lines.
    lines: Vec<Option<Number>>,
}

impl SystemCounts {
    /// Adds a stated number of remotes of a kind in a space.
    fn add(&mut self, space: usize, kind: KindId, count: u32) {
        *self.remotes[space][kind.index()].get_or_insert(0) += count;
    }

    /// Numbers of remotes of each kind of a space.
    fn remote_counts(&self, space: usize) -> Vec<u32> {
        let kinds = self.remotes[space].iter();
        kinds.map(|count| count.unwrap_or(0)).collect()
    }
}
