//! Rows about sets of homes behave the same evaluated by members and unrolled home by home.

use cohkit_protocol::controller::{
    Controller, Effect, Event, Expression, Set, Statement, Target, Value, Variable,
};
use cohkit_protocol::execute::{Changes, Configuration, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{Home, Protocol, Type};
use cohkit_protocol::terms::Element;
use cohkit_protocol::text::parse_sized;
use cohkit_protocol::unroll::Homes;

/// Unrolls a controller with these variables.
struct Writing<'w> {
    homes: Homes,
    variables: &'w [Variable],
}

impl Writing<'_> {
    fn controller(homes: Homes, of: &Controller) -> Controller {
        let writing = Writing {
            homes,
            variables: &of.variables,
        };
        let mut out = of.clone();
        for rule in &mut out.rules {
            rule.guard = rule.guard.as_ref().map(|guard| writing.one(guard));
            if let Effect::Take { body, .. } = &mut rule.effect {
                *body = writing.body(body);
            }
        }
        for variable in &mut out.variables {
            if let Type::Array { of, .. } = &mut variable.ty {
                if *of == Element::Member {
                    *of = Element::Range { max: 1 };
                }
            }
        }
        out
    }

    fn body(&self, body: &[Statement]) -> Vec<Statement> {
        body.iter().map(|one| self.statement(one)).collect()
    }

    fn statement(&self, statement: &Statement) -> Statement {
        if let Some(out) = self.homes.statement(statement, self.variables) {
            return self.statement(&out);
        }
        match statement.clone() {
            Statement::Send {
                message,
                to,
                fields,
            } => Statement::Send {
                message,
                to: match to {
                    Target::HomeAt(home) => Target::HomeAt(self.one(&home)),
                    Target::Remote(remote) => Target::Remote(self.one(&remote)),
                    Target::Each(set) => Target::Each(self.set(&set)),
                    Target::Home => Target::Home,
                },
                fields: (fields.iter())
                    .map(|field| match field {
                        Value::Single(value, ty) => Value::Single(self.one(value), *ty),
                        Value::Set(set) => Value::Set(self.set(set)),
                    })
                    .collect(),
            },
            Statement::Assign(to, value) => Statement::Assign(to, self.one(&value)),
            Statement::AssignSet(to, set) => Statement::AssignSet(to, self.set(&set)),
            Statement::AssignElement(to, at, value) => {
                let at = at.iter().map(|index| self.one(index)).collect();
                Statement::AssignElement(to, at, self.one(&value))
            }
            Statement::ForEach { condition, body } => Statement::ForEach {
                condition: self.one(&condition),
                body: self.body(&body),
            },
            Statement::If {
                condition,
                then,
                otherwise,
            } => Statement::If {
                condition: self.one(&condition),
                then: self.body(&then),
                otherwise: self.body(&otherwise),
            },
            other => other,
        }
    }

    fn one(&self, expression: &Expression) -> Expression {
        let one = |inner: &Expression| Box::new(self.one(inner));
        match expression {
            Expression::Homes(of) => self.one(&self.homes.expression(of)),
            Expression::Element(array, at) => {
                Expression::Element(*array, at.iter().map(|index| self.one(index)).collect())
            }
            Expression::Count(set) => Expression::Count(Box::new(self.set(set))),
            Expression::In(remote, set) => Expression::In(one(remote), Box::new(self.set(set))),
            Expression::Not(inner) => Expression::Not(one(inner)),
            Expression::Round(inner, size) => Expression::Round(one(inner), *size),
            Expression::Binary(operator, a, b) => Expression::Binary(*operator, one(a), one(b)),
            other => other.clone(),
        }
    }

    fn set(&self, set: &Set) -> Set {
        match set {
            Set::Singleton(remote) => Set::Singleton(Box::new(self.one(remote))),
            Set::Union(a, b) => Set::Union(Box::new(self.set(a)), Box::new(self.set(b))),
            Set::Difference(a, b) => Set::Difference(Box::new(self.set(a)), Box::new(self.set(b))),
            other => other.clone(),
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// A random value that a field of this type may have.
    fn value(&mut self, ty: Type, remotes: u16) -> u16 {
        let values = match ty {
            Type::Range { max } => max.min(3) + 1,
            Type::Cycle { size } => size,
            Type::Home { homes } => homes,
            Type::Bool => 2,
            _ => remotes,
        };
        self.below(values.into()) as u16
    }
}

/// Slots of a configuration, with one slot for each home of a set.
fn spread(machine: &Machine, of: &Controller, at: &Configuration, remotes: u16) -> Vec<u16> {
    let mut slots = Vec::new();
    for (index, variable) in (0..).zip(&of.variables) {
        let first = &at.slots[machine.slot(index)..];
        let [one, two] = variable.ty.extent(remotes).map(usize::from);
        match variable.ty {
            Type::RemoteSet => slots.extend(&first[..usize::from(remotes.div_ceil(16))]),
            ty if ty.set_of_homes() => {
                slots.extend((0..one).map(|home| first[home / 16] >> (home % 16) & 1));
            }
            _ => slots.extend(&first[..one * two]),
        }
    }
    slots
}

/// Executes random events on both forms of a controller, and returns the number of steps taken.
fn alike(protocol: &Protocol, of: &Controller, remotes: u16, mut random: Random) -> usize {
    let homes = protocol.homes;
    let out = Writing::controller(Homes(homes), of);
    let (by_members, by_homes) = (Machine::new(of, remotes), Machine::new(&out, remotes));
    let (mut these, mut those) = (by_members.initial(), by_homes.initial());
    let mut changes = Changes::default();
    let mut taken = 0;
    for step in 0..1500 {
        // The event of a row of this state, so that most events are expected.
        let rows: Vec<_> = (of.rules.iter())
            .filter(|rule| rule.state.0 == these.state)
            .collect();
        let event = rows[random.below(rows.len() as u64) as usize].event;
        let fields: Vec<u16> = match event {
            Event::Message(message) => (protocol.message(message).fields.iter())
                .map(|field| random.value(field.ty, remotes) + u16::from(field.ty == Type::Remote))
                .collect(),
            _ => Vec::new(),
        };
        let occasion = Trigger {
            event,
            sender: Some(random.below(remotes.into()) as u16),
            own: Some(random.below(remotes.into()) as u16),
            // Few homes are active at a time, so that many cores use the same ones.
            home: (random.below(6) * random.below(6) % u64::from(homes)) as u16,
            fields: &fields,
        };
        let (mut one, mut other) = (these.clone(), those.clone());
        let mut tables = by_members.controller();
        let found = by_members.step(&mut one, occasion, &mut tables);
        let wanted = by_homes.step(&mut other, occasion, &mut by_homes.controller());
        let place = format!(
            "{} of {}, step {step}: {occasion:?}",
            of.name, protocol.name
        );
        assert_eq!(found, wanted, "{place}");
        // Registers stored separately get the same values, and `undo` restores them.
        let mut apart = these.clone();
        let mut registers = apart.slots.split_off(by_members.registers().start);
        let before = registers.clone();
        changes.clear();
        let lying = (&mut registers[..], &mut changes);
        let found = by_members.step_with(&mut apart, lying, occasion, &mut tables);
        assert_eq!(found, wanted, "{place}");
        changes.undo(&mut registers);
        assert_eq!(registers, before, "{place}");
        if let Ok(Outcome::Taken { .. }) = wanted {
            let differs = changes.redo(&mut registers);
            assert_eq!(differs, registers != before, "{place}");
            apart.slots.extend(registers);
            assert_eq!(apart, one, "{place}");
            let (here, there) = (
                spread(&by_members, of, &one, remotes),
                spread(&by_homes, &out, &other, remotes),
            );
            assert_eq!((one.state, here), (other.state, there), "{place}");
            (these, those) = (one, other);
            taken += 1;
        }
    }
    taken
}

fn texts() -> Vec<(String, String)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ordering");
    let mut found = Vec::new();
    for folder in [
        root.to_string(),
        format!("{root}/tso"),
        format!("{root}/readings"),
    ] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "coh") {
                let name = path.display().to_string();
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn set_loop_matches_unrolled_homes() {
    let mut sets = 0;
    for (name, text) in texts() {
        for (homes, remotes, seed) in [(1, 2, 1), (2, 3, 2), (8, 8, 3), (17, 600, 4), (512, 20, 5)]
        {
            // Tables for several homes, if there are several.
            let several = homes.min(8) * 2;
            let sizes = [
                ("homes", homes),
                ("counters", several),
                ("entries", several),
                ("slots", several),
                ("notes", several),
                ("epochs", several + 1),
            ];
            let sizes: Vec<(String, u16)> = (sizes.into_iter())
                .filter(|(name, _)| text.contains(&format!("size {name} ")))
                .map(|(name, size)| (name.to_string(), size))
                .collect();
            let protocol = parse_sized(&text, &sizes);
            let protocol = protocol.unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
            let Home::Controller(home) = &protocol.home else {
                panic!("{name} has no rows of its home");
            };
            for of in [&protocol.remote, home] {
                sets += usize::from(of.variables.iter().any(|v| v.ty.set_of_homes()));
                let taken = alike(&protocol, of, remotes, Random(seed * 0x9e37_79b9));
                assert!(taken > 50, "{name} {}: {taken} steps", of.name);
            }
        }
    }
    assert!(sets >= 20, "{sets} controllers with sets of homes");
}

/// 512 homes with eight cores each have more counters than a 16-bit slot number distinguishes.
#[test]
fn no_two_registers_share_a_slot_however_many_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ordering/cord.coh");
    let text = std::fs::read_to_string(path).unwrap();
    let sizes = [("homes".into(), 512), ("epochs".into(), 17)];
    let protocol = parse_sized(&text, &sizes).unwrap();
    let Home::Controller(home) = &protocol.home else {
        panic!("the home has no rows");
    };
    let machine = Machine::new(home, 4096);
    let named = |name: &str| {
        let place = home.variables.iter().position(|v| v.name == name);
        machine.slot(place.unwrap() as u16)
    };
    let counts = 4096 * 17;
    assert_eq!(named("told") - named("arrived"), counts);
    assert_eq!(named("served") - named("told"), counts);
    assert_eq!(machine.registers().len(), 2 * counts + 4096);
    // The last counter of the last core has a slot of its own.
    let event = |name: &str| {
        let all = &mut protocol.message_ids();
        Event::Message(all.find(|id| protocol.message(*id).name == name).unwrap())
    };
    let mut at = machine.initial();
    let occasion = Trigger {
        event: event("Notify"),
        sender: None,
        own: None,
        home: 511,
        fields: &[4096, 16],
    };
    let before = at.clone();
    machine
        .step(&mut at, occasion, &mut machine.controller())
        .unwrap();
    let changed: Vec<usize> = (0..at.slots.len())
        .filter(|&slot| at.slots[slot] != before.slots[slot])
        .collect();
    assert_eq!(changed, [named("told") + counts - 1]);
}
