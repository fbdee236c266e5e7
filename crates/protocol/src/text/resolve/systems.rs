//! Systems and invariants.

use super::*;

/// Subject of diagnostics about the number of remotes.
const OF_REMOTES: &str = "the number of remotes is";

impl<'a> Resolver<'a, '_> {
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
                    let system = self.system(*name, block, &file.sizes);
                    if let (Some(_), Some(system)) =
                        (system_names.declare(*name, self.sink), system)
                    {
                        systems.push(system);
                    }
                }
                Item::Invariant { name, claim, span } => {
                    let holds = self.claim(claim, states);
                    if let (Some(_), Some(holds)) =
                        (invariant_names.declare(*name, self.sink), holds)
                    {
                        invariants.push(p::Invariant {
                            name: name.text.to_string(),
                            holds,
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
    pub(super) fn system(
        &mut self,
        name: Name<'a>,
        block: &Block<SystemItem<'a>>,
        of_text: &[Name<'a>],
    ) -> Option<p::System> {
        let mut lent = None;
        let mut counts: Vec<Option<(Name, Number)>> = vec![None; self.tables.len()];
        let (mut remotes, mut lines) = (None, None);
        let several = self.tables.len() > 1;
        let mut sizes: Vec<Option<(String, u16)>> = Vec::new();
        for item in &block.items {
            let part = match *item {
                SystemItem::Has(name, number) => &(name, number),
                SystemItem::ParentAny(span) => {
                    once(&mut lent, span, |span| *span, "`parent any`", self.sink);
                    continue;
                }
            };
            let kind = self.kind_names.get(part.0, self.sink);
            let place = match (part.0.text, kind) {
                ("lines", _) => &mut lines,
                ("remotes", _) if !several => &mut remotes,
                (_, Some(kind)) if several => &mut counts[usize::from(kind)],
                (_, Some(_)) => &mut remotes,
                (size, None) if of_text.iter().any(|known| known.text == size) => {
                    let (least, most) = match size == HOMES {
                        true => (1, MAX_HOMES),
                        false => (0, u16::MAX.into()),
                    };
                    let declared = of_text.iter().find(|known| known.text == size);
                    self.sink.mentions.extend(declared.map(|declared| Mention {
                        span: part.0.span,
                        declaration: declared.span,
                        what: "size",
                    }));
                    let value = ranged(part.1, least, most, "the size is", self.sink);
                    let again = sizes.iter().flatten().any(|(known, _)| known == size);
                    let value = value.map(|value| (size.to_string(), value as u16));
                    sizes.push(value.filter(|_| !again));
                    if again {
                        let message = format!("a second `{size}`");
                        let diagnostic = Diagnostic::new(Code::Duplicate, part.0.span, message);
                        self.sink.push(diagnostic.label("may occur only once"));
                    }
                    continue;
                }
                _ => {
                    let words = if several {
                        &["lines", "parent any"][..]
                    } else {
                        &["remotes", "lines", "parent any"]
                    };
                    let kinds = self.kind_names.list.iter().map(|kind| kind.text);
                    let sizes = of_text.iter().map(|size| size.text);
                    unknown(
                        "part of a system",
                        part.0,
                        words.iter().copied().chain(kinds).chain(sizes),
                        self.sink,
                    );
                    return None;
                }
            };
            let what = format!("`{}`", part.0.text);
            once(place, *part, |part| part.0.span, &what, self.sink);
        }
        if !block.broken {
            let kinds = several.then_some(&counts[..]);
            self.lacks(name, kinds, remotes.is_none(), lines.is_none());
        }
        let lines = lines.and_then(|(_, number)| {
            ranged(
                number,
                1,
                p::System::MAX_LINES.into(),
                "the number of lines is",
                self.sink,
            )
        });
        let own = sizes.iter().flatten().find(|(size, _)| size == HOMES);
        let homes = own.map_or(self.homes, |(_, homes)| *homes);
        if lines.is_some_and(|lines| lines < homes.into()) {
            let message = format!("`{}` has fewer lines than homes", name.text);
            self.sink.push(
                Diagnostic::new(Code::OutOfRange, name.span, message).label(format!(
                    "{homes} homes share the lines: each needs at least one"
                )),
            );
        }
        let remotes = match several {
            true => self.of_each(name, counts)?,
            false => {
                let (_, number) = remotes?;
                let most = p::System::MAX_REMOTES.into();
                Remotes::from(ranged(number, 1, most, OF_REMOTES, self.sink)? as u16)
            }
        };
        Some(p::System {
            name: name.text.to_string(),
            remotes,
            lines: lines? as u8,
            lent: lent.is_some(),
            sizes: sizes.into_iter().collect::<Option<_>>()?,
            sized: None,
            span: name.span,
        })
    }

    /// Resolves the number of remotes of each kind in a system.
    fn of_each(&mut self, name: Name<'a>, counts: Vec<Option<(Name, Number)>>) -> Option<Remotes> {
        let most = p::System::MAX_REMOTES.into();
        let each = counts.into_iter().map(|count| {
            let (_, number) = count?;
            ranged(number, 0, most, OF_REMOTES, self.sink).map(|count| count as u16)
        });
        let each: Vec<Option<u16>> = each.collect();
        let each: Vec<u16> = each.into_iter().collect::<Option<_>>()?;
        let total = Number {
            value: each.iter().map(|&count| u32::from(count)).sum(),
            span: name.span,
        };
        ranged(total, 1, most, "the number of all remotes is", self.sink)?;
        Remotes::new(&each)
    }

    /// Reports numbers that a system lacks: of each kind if there are several, of remotes otherwise, and of lines.
    fn lacks(
        &mut self,
        name: Name<'a>,
        kinds: Option<&[Option<(Name, Number)>]>,
        remotes: bool,
        lines: bool,
    ) {
        let mut missing = Vec::new();
        match kinds {
            Some(counts) => {
                let all = self.kind_names.list.iter().zip(counts);
                let absent = all.filter(|(_, count)| count.is_none());
                missing.extend(absent.map(|(kind, _)| format!("`{} N`", kind.text)));
            }
            None => missing.extend(remotes.then(|| "`remotes N`".to_string())),
        }
        missing.extend(lines.then(|| "`lines N`".to_string()));
        if !missing.is_empty() {
            let message = format!("`{}` lacks {}", name.text, missing.join(" and "));
            self.sink.push(
                Diagnostic::new(Code::MissingBlock, name.span, message)
                    .label("its size is missing"),
            );
        }
    }

    pub(super) fn claim(&mut self, claim: &Claim<'a>, states: &Names<'a>) -> Option<p::Claim> {
        let mut both = |one: &Claim<'a>, other: &Claim<'a>| {
            let (one, other) = (self.claim(one, states), self.claim(other, states));
            Some((Box::new(one?), Box::new(other?)))
        };
        Some(match claim {
            Claim::And(one, other) => {
                both(one, other).map(|(one, other)| p::Claim::And(one, other))?
            }
            Claim::Or(one, other) => {
                both(one, other).map(|(one, other)| p::Claim::Or(one, other))?
            }
            Claim::Implies(one, other) => {
                both(one, other).map(|(one, other)| p::Claim::Implies(one, other))?
            }
            Claim::Not(inner) => p::Claim::Not(Box::new(self.claim(inner, states)?)),
            Claim::Locked => p::Claim::Locked,
            Claim::Compare(left, comparison, right) => {
                let (left, right) = (self.amount(left, states), self.amount(right, states));
                p::Claim::Compare(left?, *comparison, right?)
            }
        })
    }

    pub(super) fn amount(&mut self, amount: &Amount<'a>, states: &Names<'a>) -> Option<p::Amount> {
        Some(match amount {
            Amount::Constant(number) => p::Amount::Constant(ranged(
                *number,
                0,
                u32::from(u16::MAX),
                "the number is",
                self.sink,
            )? as u16),
            Amount::RemotesIn(names) => {
                // States of several kinds may share a name.
                let mut found = Vec::new();
                let known = |name: &Name<'a>| states.find(*name, self.sink).is_some();
                if names.iter().map(known).filter(|known| !known).count() > 0 {
                    return None;
                }
                for &name in names {
                    let named = states.list.iter().enumerate();
                    let named = named.filter(|(_, state)| state.text == name.text);
                    found.extend(named.map(|(index, _)| StateId(index as u16)));
                }
                p::Amount::RemotesIn(found)
            }
            Amount::InFlight(names) => {
                let found: Vec<_> = names.iter().map(|&name| self.message_named(name)).collect();
                p::Amount::InFlight(found.into_iter().collect::<Option<_>>()?)
            }
        })
    }
}
