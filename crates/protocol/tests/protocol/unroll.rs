//! Rows about sets of homes behave the same evaluated by members and unrolled home by home.

use cohkit_base::random::SplitMix64;
use cohkit_protocol::controller::{
    Controller, Effect, Event, Expression, Set, Statement, Target, Value, Variable,
};
use cohkit_protocol::execute::{Changes, Configuration, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{Home, Protocol, Type};
use cohkit_protocol::terms::Element;
use cohkit_protocol::text::parse_sized;
use cohkit_protocol::unroll::Homes;

/// Unrolls a controller with these variables.
struct Unroller<'w> {
    homes: Homes,
    variables: &'w [Variable],
}

impl Unroller<'_> {
    /// Returns the controller with every query, loop and assignment on sets of homes unrolled home by home.
    fn controller(homes: Homes, original: &Controller) -> Controller {
        let unroller = Unroller {
            homes,
            variables: &original.variables,
        };
        let mut unrolled = original.clone();
        for rule in &mut unrolled.rules {
            rule.guard = rule
                .guard
                .as_ref()
                .map(|guard| unroller.unroll_expression(guard));
            if let Effect::Take { body, .. } = &mut rule.effect {
                *body = unroller.body(body);
            }
        }
        for variable in &mut unrolled.variables {
            if let Type::Array { of, .. } = &mut variable.ty {
                if *of == Element::Member {
                    *of = Element::Range { max: 1 };
                }
            }
        }
        unrolled
    }

    /// Unrolls each of these statements.
    fn body(&self, body: &[Statement]) -> Vec<Statement> {
        body.iter()
            .map(|statement| self.statement(statement))
            .collect()
    }

    /// Unrolls a statement and everything in it.
    fn statement(&self, statement: &Statement) -> Statement {
        if let Some(unrolled) = self.homes.statement(statement, self.variables) {
            return self.statement(&unrolled);
        }
        match statement.clone() {
            Statement::Send {
                message,
                to,
                fields,
            } => Statement::Send {
                message,
                to: match to {
                    Target::HomeAt(home) => Target::HomeAt(self.unroll_expression(&home)),
                    Target::Remote(remote) => Target::Remote(self.unroll_expression(&remote)),
                    Target::Each(set) => Target::Each(self.set(&set)),
                    Target::Home => Target::Home,
                },
                fields: (fields.iter())
                    .map(|field| match field {
                        Value::Single(value, ty) => {
                            Value::Single(self.unroll_expression(value), *ty)
                        }
                        Value::Set(set) => Value::Set(self.set(set)),
                    })
                    .collect(),
            },
            Statement::Assign(variable, value) => {
                Statement::Assign(variable, self.unroll_expression(&value))
            }
            Statement::AssignSet(variable, set) => Statement::AssignSet(variable, self.set(&set)),
            Statement::AssignElement(variable, indices, value) => {
                let indices = indices
                    .iter()
                    .map(|index| self.unroll_expression(index))
                    .collect();
                Statement::AssignElement(variable, indices, self.unroll_expression(&value))
            }
            Statement::ForEach { condition, body } => Statement::ForEach {
                condition: self.unroll_expression(&condition),
                body: self.body(&body),
            },
            Statement::If {
                condition,
                then,
                otherwise,
            } => Statement::If {
                condition: self.unroll_expression(&condition),
                then: self.body(&then),
                otherwise: self.body(&otherwise),
            },
            other => other,
        }
    }

    /// Unrolls an expression and everything in it.
    fn unroll_expression(&self, expression: &Expression) -> Expression {
        let boxed = |inner: &Expression| Box::new(self.unroll_expression(inner));
        match expression {
            Expression::Homes(query) => self.unroll_expression(&self.homes.expression(query)),
            Expression::Element(array, indices) => Expression::Element(
                *array,
                indices
                    .iter()
                    .map(|index| self.unroll_expression(index))
                    .collect(),
            ),
            Expression::Count(set) => Expression::Count(Box::new(self.set(set))),
            Expression::In(remote, set) => Expression::In(boxed(remote), Box::new(self.set(set))),
            Expression::Not(inner) => Expression::Not(boxed(inner)),
            Expression::Modulo(inner, size) => Expression::Modulo(boxed(inner), *size),
            Expression::Binary(operator, a, b) => Expression::Binary(*operator, boxed(a), boxed(b)),
            other => other.clone(),
        }
    }

    /// Unrolls the expressions in a set of remotes.
    fn set(&self, set: &Set) -> Set {
        match set {
            Set::Singleton(remote) => Set::Singleton(Box::new(self.unroll_expression(remote))),
            Set::Union(a, b) => Set::Union(Box::new(self.set(a)), Box::new(self.set(b))),
            Set::Difference(a, b) => Set::Difference(Box::new(self.set(a)), Box::new(self.set(b))),
            other => other.clone(),
        }
    }
}

/// Pseudorandom numbers and values.
struct Random(SplitMix64);

impl Random {
    /// Returns a number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
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
fn spread_slots(
    machine: &Machine,
    controller: &Controller,
    configuration: &Configuration,
    remotes: u16,
) -> Vec<u16> {
    let mut slots = Vec::new();
    for (index, variable) in (0..).zip(&controller.variables) {
        let values = &configuration.slots[machine.slot(index)..];
        let [rows, columns] = variable.ty.extent(remotes).map(usize::from);
        match variable.ty {
            Type::RemoteSet => slots.extend(&values[..usize::from(remotes.div_ceil(16))]),
            ty if ty.is_home_set() => {
                slots.extend((0..rows).map(|home| values[home / 16] >> (home % 16) & 1));
            }
            _ => slots.extend(&values[..rows * columns]),
        }
    }
    slots
}

/// Executes random events on both forms of a controller, and returns the number of steps taken.
fn compare_forms(
    protocol: &Protocol,
    controller: &Controller,
    remotes: u16,
    mut random: Random,
) -> usize {
    let homes = protocol.homes;
    let unrolled = Unroller::controller(Homes(homes), controller);
    let (by_members, by_homes) = (
        Machine::new(controller, remotes),
        Machine::new(&unrolled, remotes),
    );
    let (mut members_state, mut homes_state) = (by_members.initial(), by_homes.initial());
    let mut changes = Changes::default();
    let mut steps_taken = 0;
    for step in 0..1500 {
        // The event of a row of this state, so that most events are expected.
        let rows: Vec<_> = (controller.rules.iter())
            .filter(|rule| rule.state.0 == members_state.state)
            .collect();
        let event = rows[random.below(rows.len() as u64) as usize].event;
        let fields: Vec<u16> = match event {
            Event::Message(message) => (protocol.message(message).fields.iter())
                .map(|field| random.value(field.ty, remotes) + u16::from(field.ty == Type::Remote))
                .collect(),
            _ => Vec::new(),
        };
        let trigger = Trigger {
            event,
            sender: Some(random.below(remotes.into()) as u16),
            executing_remote: Some(random.below(remotes.into()) as u16),
            // Few homes are active at a time, so that many cores use the same ones.
            home: (random.below(6) * random.below(6) % u64::from(homes)) as u16,
            fields: &fields,
        };
        let (mut after_members, mut after_homes) = (members_state.clone(), homes_state.clone());
        let mut tables = by_members.controller();
        let actual = by_members.step(&mut after_members, trigger, &mut tables);
        let expected = by_homes.step(&mut after_homes, trigger, &mut by_homes.controller());
        let context = format!(
            "{} of {}, step {step}: {trigger:?}",
            controller.name, protocol.name
        );
        assert_eq!(actual, expected, "{context}");
        // Registers stored separately get the same values, and `undo` restores them.
        let mut separate = members_state.clone();
        let mut registers = separate.slots.split_off(by_members.registers().start);
        let saved_registers = registers.clone();
        changes.clear();
        let separate_registers = (&mut registers[..], &mut changes);
        let actual = by_members.step_with(&mut separate, separate_registers, trigger, &mut tables);
        assert_eq!(actual, expected, "{context}");
        changes.undo(&mut registers);
        assert_eq!(registers, saved_registers, "{context}");
        if let Ok(Outcome::Taken { .. }) = expected {
            let differs = changes.redo(&mut registers);
            assert_eq!(differs, registers != saved_registers, "{context}");
            separate.slots.extend(registers);
            assert_eq!(separate, after_members, "{context}");
            let (member_slots, home_slots) = (
                spread_slots(&by_members, controller, &after_members, remotes),
                spread_slots(&by_homes, &unrolled, &after_homes, remotes),
            );
            assert_eq!(
                (after_members.state, member_slots),
                (after_homes.state, home_slots),
                "{context}"
            );
            (members_state, homes_state) = (after_members, after_homes);
            steps_taken += 1;
        }
    }
    steps_taken
}

/// Path and text of each protocol file about store ordering, sorted.
fn protocol_files() -> Vec<(String, String)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ordering");
    let mut files = Vec::new();
    for folder in [
        root.to_string(),
        format!("{root}/tso"),
        format!("{root}/readings"),
    ] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "coh") {
                let name = path.display().to_string();
                files.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Runs (homes, remotes, seed) with sets of one word, of several words, and of more than the 512 members that are
/// stored without allocation.
#[test]
fn set_loop_matches_unrolled_homes() {
    let mut sets = 0;
    for (name, text) in protocol_files() {
        for (homes, remotes, seed) in [(1, 2, 1), (2, 3, 2), (8, 8, 3), (17, 600, 4), (512, 20, 5)]
        {
            // Tables for several homes, if there are several.
            let table_size = homes.min(8) * 2;
            let sizes = [
                ("homes", homes),
                ("counters", table_size),
                ("entries", table_size),
                ("slots", table_size),
                ("notes", table_size),
                ("epochs", table_size + 1),
            ];
            let sizes: Vec<(String, u16)> = (sizes.into_iter())
                .filter(|(name, _)| text.contains(&format!("size {name} ")))
                .map(|(name, size)| (name.to_string(), size))
                .collect();
            let protocol = parse_sized(&text, &sizes);
            let protocol = protocol.unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
            let Home::Controller(home) = &protocol.home else {
                panic!("{name} has no rows of its home");
            };
            for controller in [&protocol.remote, home] {
                sets += usize::from(controller.variables.iter().any(|v| v.ty.is_home_set()));
                let random = Random(SplitMix64::new(seed));
                let steps = compare_forms(&protocol, controller, remotes, random);
                assert!(steps > 50, "{name} {}: {steps} steps", controller.name);
            }
        }
    }
    assert!(sets >= 20, "{sets} controllers with sets of homes");
}

/// 512 homes with eight cores each have more counters than a 16-bit slot number distinguishes.
#[test]
fn registers_have_distinct_slots() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ordering/cord.coh");
    let text = std::fs::read_to_string(path).unwrap();
    let sizes = [("homes".into(), 512), ("epochs".into(), 17)];
    let protocol = parse_sized(&text, &sizes).unwrap();
    let Home::Controller(home) = &protocol.home else {
        panic!("the home has no rows");
    };
    let machine = Machine::new(home, 4096);
    let slot_named = |name: &str| {
        let index = home.variables.iter().position(|v| v.name == name);
        machine.slot(index.unwrap() as u16)
    };
    let counts = 4096 * 17;
    assert_eq!(
        slot_named("notify_count") - slot_named("store_count"),
        counts
    );
    assert_eq!(
        slot_named("expected_sequence") - slot_named("notify_count"),
        counts
    );
    assert_eq!(machine.registers().len(), 2 * counts + 4096);
    // The last counter of the last core has a slot of its own.
    let event = |name: &str| {
        let ids = &mut protocol.message_ids();
        Event::Message(ids.find(|id| protocol.message(*id).name == name).unwrap())
    };
    let mut configuration = machine.initial();
    let trigger = Trigger {
        event: event("Notify"),
        sender: None,
        executing_remote: None,
        home: 511,
        fields: &[4096, 16],
    };
    let saved = configuration.clone();
    machine
        .step(&mut configuration, trigger, &mut machine.controller())
        .unwrap();
    let changed: Vec<usize> = (0..configuration.slots.len())
        .filter(|&slot| configuration.slots[slot] != saved.slots[slot])
        .collect();
    assert_eq!(changed, [slot_named("notify_count") + counts - 1]);
}
