//! Systems and invariants.

use super::{number_in_range, report_unknown, set_once, Names, Resolver};
use crate::protocol as p;
use crate::protocol::StateId;
use crate::remotes::Remotes;
use crate::text::ast::{Amount, Block, Claim, File, Item, Name, Number, SystemItem};
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::parser::{HOMES, MAX_HOMES};
use crate::text::Mention;

/// Subject of diagnostics about the number of remotes.
const REMOTE_COUNT_SUBJECT: &str = "the number of remotes is";

impl<'a> Resolver<'a, '_> {
    /// Resolves the systems and invariants of a file.
    pub(super) fn resolve_systems(
        &mut self,
        file: &File<'a>,
        states: &Names<'a>,
    ) -> (Vec<p::System>, Vec<p::Invariant>) {
        let (mut systems, mut invariants) = (Vec::new(), Vec::new());
        let (mut system_names, mut invariant_names) =
            (Names::new("system", false), Names::new("invariant", false));
        for item in &file.items {
            match item {
                Item::System(name, block) => {
                    let system = self.resolve_system(*name, block, &file.sizes);
                    if let (Some(_), Some(system)) =
                        (system_names.declare(*name, self.sink), system)
                    {
                        systems.push(system);
                    }
                }
                Item::Invariant { name, claim, span } => {
                    let claim = self.resolve_claim(claim, states);
                    if let (Some(_), Some(claim)) =
                        (invariant_names.declare(*name, self.sink), claim)
                    {
                        invariants.push(p::Invariant {
                            name: name.text.to_string(),
                            claim,
                            span: *span,
                        });
                    }
                }
                _ => {}
            }
        }
        (systems, invariants)
    }

    /// Resolves the numbers of agents and lines of a system, and the sizes that it overrides.
    pub(super) fn resolve_system(
        &mut self,
        name: Name<'a>,
        block: &Block<SystemItem<'a>>,
        file_sizes: &[Name<'a>],
    ) -> Option<p::System> {
        let mut parent_any = None;
        let mut counts: Vec<Option<(Name, Number)>> = vec![None; self.tables.len()];
        let (mut remotes, mut lines) = (None, None);
        let several_tables = self.tables.len() > 1;
        let mut sizes: Vec<Option<(String, u16)>> = Vec::new();
        for item in &block.items {
            let (stated, number) = match *item {
                SystemItem::Has(name, number) => (name, number),
                SystemItem::ParentAny(span) => {
                    set_once(
                        &mut parent_any,
                        span,
                        |span| *span,
                        "`parent any`",
                        self.sink,
                    );
                    continue;
                }
            };
            let kind = self.kind_names.get(stated, self.sink);
            let slot = match (stated.text, kind) {
                ("lines", _) => &mut lines,
                ("remotes", _) if !several_tables => &mut remotes,
                (_, Some(kind)) if several_tables => &mut counts[usize::from(kind)],
                (_, Some(_)) => &mut remotes,
                (size, None) if file_sizes.iter().any(|known| known.text == size) => {
                    self.resolve_size(stated, number, file_sizes, &mut sizes);
                    continue;
                }
                _ => {
                    self.report_unknown_part(stated, file_sizes);
                    return None;
                }
            };
            let description = format!("`{}`", stated.text);
            set_once(
                slot,
                (stated, number),
                |(name, _)| name.span,
                &description,
                self.sink,
            );
        }
        if !block.broken {
            let kinds = several_tables.then_some(&counts[..]);
            self.report_missing_counts(name, kinds, remotes.is_none(), lines.is_none());
        }
        let lines = lines.and_then(|(_, number)| {
            number_in_range(
                number,
                1,
                p::System::MAX_LINES.into(),
                "the number of lines is",
                self.sink,
            )
        });
        let stated_homes = sizes.iter().flatten().find(|(size, _)| size == HOMES);
        let homes = stated_homes.map_or(self.homes, |(_, homes)| *homes);
        if lines.is_some_and(|lines| lines < homes.into()) {
            let message = format!("`{}` has fewer lines than homes", name.text);
            self.sink.push(
                Diagnostic::new(Code::OutOfRange, name.span, message).label(format!(
                    "{homes} homes share the lines: each needs at least one"
                )),
            );
        }
        let remotes = match several_tables {
            true => self.remotes_of_each_kind(name, counts)?,
            false => {
                let (_, number) = remotes?;
                let max = p::System::MAX_REMOTES.into();
                Remotes::from(
                    number_in_range(number, 1, max, REMOTE_COUNT_SUBJECT, self.sink)? as u16,
                )
            }
        };
        Some(p::System {
            name: name.text.to_string(),
            remotes,
            lines: lines? as u8,
            parent_any: parent_any.is_some(),
            sizes: sizes.into_iter().collect::<Option<_>>()?,
            resized_protocol: None,
            span: name.span,
        })
    }

    /// Resolves the value of a size of the file in a system, and adds it to `sizes`. A wrong or repeated value is added
    /// as `None`.
    fn resolve_size(
        &mut self,
        size: Name<'a>,
        number: Number,
        file_sizes: &[Name<'a>],
        sizes: &mut Vec<Option<(String, u16)>>,
    ) {
        let (min, max) = match size.text == HOMES {
            true => (1, MAX_HOMES),
            false => (0, u16::MAX.into()),
        };
        let declared = file_sizes.iter().find(|known| known.text == size.text);
        self.sink.mentions.extend(declared.map(|declared| Mention {
            span: size.span,
            declaration: declared.span,
            kind: "size",
        }));
        let value = number_in_range(number, min, max, "the size is", self.sink);
        let mut earlier = sizes.iter().flatten();
        let is_duplicate = earlier.any(|(stated, _)| stated == size.text);
        let value = value.map(|value| (size.text.to_string(), value as u16));
        sizes.push(value.filter(|_| !is_duplicate));
        if is_duplicate {
            let message = format!("a second `{}`", size.text);
            let diagnostic = Diagnostic::new(Code::Duplicate, size.span, message);
            self.sink.push(diagnostic.label("may occur only once"));
        }
    }

    /// Reports a word that is no part of a system.
    fn report_unknown_part(&mut self, name: Name<'a>, file_sizes: &[Name<'a>]) {
        let keywords = match self.tables.len() > 1 {
            true => &["lines", "parent any"][..],
            false => &["remotes", "lines", "parent any"],
        };
        let kinds = self.kind_names.list.iter().map(|kind| kind.text);
        let sizes = file_sizes.iter().map(|size| size.text);
        let known = keywords.iter().copied().chain(kinds).chain(sizes);
        report_unknown("part of a system", name, known, self.sink);
    }

    /// Resolves the number of remotes of each kind in a system.
    fn remotes_of_each_kind(
        &mut self,
        name: Name<'a>,
        counts: Vec<Option<(Name, Number)>>,
    ) -> Option<Remotes> {
        let max = p::System::MAX_REMOTES.into();
        let kind_counts = counts.into_iter().map(|count| {
            let (_, number) = count?;
            number_in_range(number, 0, max, REMOTE_COUNT_SUBJECT, self.sink)
                .map(|count| count as u16)
        });
        let kind_counts: Vec<Option<u16>> = kind_counts.collect();
        let kind_counts: Vec<u16> = kind_counts.into_iter().collect::<Option<_>>()?;
        let total = Number {
            value: kind_counts.iter().map(|&count| u32::from(count)).sum(),
            span: name.span,
        };
        number_in_range(total, 1, max, "the number of all remotes is", self.sink)?;
        Remotes::new(&kind_counts)
    }

    /// Reports numbers that a system lacks: of each kind if there are several, of remotes otherwise, and of lines.
    fn report_missing_counts(
        &mut self,
        name: Name<'a>,
        kinds: Option<&[Option<(Name, Number)>]>,
        lacks_remotes: bool,
        lacks_lines: bool,
    ) {
        let mut missing = Vec::new();
        match kinds {
            Some(counts) => {
                let kinds_with_counts = self.kind_names.list.iter().zip(counts);
                let absent = kinds_with_counts.filter(|(_, count)| count.is_none());
                missing.extend(absent.map(|(kind, _)| format!("`{} N`", kind.text)));
            }
            None => missing.extend(lacks_remotes.then(|| "`remotes N`".to_string())),
        }
        missing.extend(lacks_lines.then(|| "`lines N`".to_string()));
        if !missing.is_empty() {
            let message = format!("`{}` lacks {}", name.text, missing.join(" and "));
            self.sink.push(
                Diagnostic::new(Code::MissingBlock, name.span, message)
                    .label("its size is missing"),
            );
        }
    }

    /// Resolves the claim of an invariant.
    pub(super) fn resolve_claim(
        &mut self,
        claim: &Claim<'a>,
        states: &Names<'a>,
    ) -> Option<p::Claim> {
        let mut resolve_pair = |left: &Claim<'a>, right: &Claim<'a>| {
            let (left, right) = (
                self.resolve_claim(left, states),
                self.resolve_claim(right, states),
            );
            Some((Box::new(left?), Box::new(right?)))
        };
        Some(match claim {
            Claim::And(left, right) => {
                resolve_pair(left, right).map(|(left, right)| p::Claim::And(left, right))?
            }
            Claim::Or(left, right) => {
                resolve_pair(left, right).map(|(left, right)| p::Claim::Or(left, right))?
            }
            Claim::Implies(left, right) => {
                resolve_pair(left, right).map(|(left, right)| p::Claim::Implies(left, right))?
            }
            Claim::Not(inner) => p::Claim::Not(Box::new(self.resolve_claim(inner, states)?)),
            Claim::Locked => p::Claim::Locked,
            Claim::Compare(left, comparison, right) => {
                let (left, right) = (
                    self.resolve_amount(left, states),
                    self.resolve_amount(right, states),
                );
                p::Claim::Compare(left?, *comparison, right?)
            }
        })
    }

    /// Resolves one side of a comparison in a claim.
    pub(super) fn resolve_amount(
        &mut self,
        amount: &Amount<'a>,
        states: &Names<'a>,
    ) -> Option<p::Amount> {
        Some(match amount {
            Amount::Constant(number) => p::Amount::Constant(number_in_range(
                *number,
                0,
                u32::from(u16::MAX),
                "the number is",
                self.sink,
            )? as u16),
            Amount::RemotesIn(names) => {
                // States of several kinds may share a name.
                let mut ids = Vec::new();
                let is_known = |name: &Name<'a>| states.find(*name, self.sink).is_some();
                if names
                    .iter()
                    .map(is_known)
                    .filter(|is_known| !is_known)
                    .count()
                    > 0
                {
                    return None;
                }
                for &name in names {
                    let matching = states.list.iter().enumerate();
                    let matching = matching.filter(|(_, state)| state.text == name.text);
                    ids.extend(matching.map(|(index, _)| StateId(index as u16)));
                }
                p::Amount::RemotesIn(ids)
            }
            Amount::InFlight(names) => {
                let messages: Vec<_> = names.iter().map(|&name| self.message_named(name)).collect();
                p::Amount::InFlight(messages.into_iter().collect::<Option<_>>()?)
            }
        })
    }
}
