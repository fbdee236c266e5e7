//! Random well-formed protocols: a sound protocol, decorated with variables, fields, guards and assignments of every
//! type and operator that do not change its behaviour. Some protocols have one wrong row.

use super::designs::design;
use super::random::Random;
use super::templates::{blocking, chatter, posted, through, token, Row, SystemSize, Template};

/// Type of a variable or field in the protocol language.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Type {
    /// Numbers from 0 to this one.
    Range(u16),
    /// Numbers from 0 to the number of remotes.
    Count,
    /// `bool`.
    Bool,
    /// A remote, or none.
    Remote,
    /// A set of remotes.
    Set,
}

impl Type {
    /// Returns the type in the protocol language.
    fn format(self) -> String {
        match self {
            Type::Range(max) => format!("0..{max}"),
            Type::Count => "count".into(),
            Type::Bool => "bool".into(),
            Type::Remote => "remote".into(),
            Type::Set => "set of remote".into(),
        }
    }

    /// Parses the type of a template's variable or field; ranges do not occur there.
    fn parse(text: &str) -> Type {
        match text {
            "count" => Type::Count,
            "bool" => Type::Bool,
            "remote" => Type::Remote,
            _ => Type::Set,
        }
    }
}

/// A variable or a field of a message.
#[derive(Clone, Debug)]
struct TypedName {
    /// Name in the protocol file.
    name: String,
    /// Type of its values.
    ty: Type,
}

/// Values that an expression may read.
#[derive(Clone, Default)]
struct Scope {
    /// True for a row of the home.
    home: bool,
    /// True if the row consumes a message, so that `sender` exists.
    message: bool,
    /// Variables of the agent, and fields of the consumed message.
    named: Vec<TypedName>,
}

/// State of the decoration of one protocol.
struct Generator {
    /// Source of all choices.
    random: Random,
    /// Number of remotes of the system.
    remotes: u16,
    /// Variables of the remote and of the home that the decoration may change.
    variables: [Vec<TypedName>; 2],
    /// Variables of the home that the protocol itself has.
    home_variables: Vec<TypedName>,
    /// Further fields of each message.
    fields: Vec<Vec<TypedName>>,
    /// True if the home has arrays: `w` over the remotes, which rows read, set and loop over, and `u` over two numbers.
    has_arrays: bool,
    /// Number of homes, if two lines are coupled: by registers, by messages about no line, and by homes if there are
    /// two.
    coupled_homes: Option<u8>,
    /// True if the variables that a design is decorated with are registers.
    in_registers: bool,
    /// True if homes have numbers, so that the `sender` of a home's message is a home.
    homes_are_numbered: bool,
}

/// First number of the designs of several parts, with less decoration. They have posted, awaited and atomic stores,
/// deferred or not, copies that are passed on, registers that couple lines, several homes, and networks.
pub const COMBINED: u64 = 1 << 36;

/// First number of the protocols with posted stores and atomic accesses, which the home performs correctly or not.
pub const POSTED: u64 = 1 << 35;

/// First number of the protocols with stores that the home defers, and performs in any order with its other writes.
pub const DEFERRED_STORES: u64 = 1 << 34;

/// First number of the protocols with two lines, registers, and one home or two.
pub const COUPLED_LINES: u64 = 1 << 33;

/// First number of the protocols with arrays. Smaller numbers keep their earlier protocols.
pub const ARRAYS: u64 = 1 << 32;

/// Returns the protocol of this number, the same in every version. The ranges of numbers are [`ARRAYS`],
/// [`COUPLED_LINES`], [`DEFERRED_STORES`], [`POSTED`] and [`COMBINED`].
pub fn protocol(seed: u64) -> String {
    let mut random = Random::new(seed);
    let template = match random.below(5) {
        _ if seed >= COMBINED => design(&mut random),
        _ if seed >= POSTED => stores_posted(&mut random),
        _ if seed >= DEFERRED_STORES => defer_store(&mut random),
        0 | 1 => chatter(),
        2 | 3 => token(),
        _ => blocking(),
    };
    let coupled_homes = (COUPLED_LINES..DEFERRED_STORES)
        .contains(&seed)
        .then(|| 1 + (seed % 2) as u8);
    let remotes = match (coupled_homes, template.size) {
        (Some(_), _) => 1,
        (None, Some(size)) => size.remotes,
        (None, None) => 1 + random.of(&[1, 1, 1, 1, 0, 2]),
    };
    let home_variables = template.variables.iter().map(|(name, ty)| TypedName {
        name: (*name).into(),
        ty: Type::parse(ty),
    });
    let in_registers = template.size.is_some() && random.once_in(3);
    let mut generator = Generator {
        random,
        remotes,
        variables: [Vec::new(), Vec::new()],
        home_variables: home_variables.collect(),
        fields: Vec::new(),
        has_arrays: (ARRAYS..COUPLED_LINES).contains(&seed),
        coupled_homes,
        in_registers,
        homes_are_numbered: coupled_homes.is_some()
            || matches!(template.size, Some(SystemSize { homes: 2.., .. })),
    };
    // Registers, lines and networks make enough states by themselves.
    if template.size.is_none() || generator.random.once_in(3) {
        generator.add_variables_and_fields(&template);
    } else {
        generator.fields = vec![Vec::new(); template.messages.len()];
    }
    generator.format_protocol(template)
}

/// Deferred stores, with the writes of memory in any order in every second protocol.
fn defer_store(random: &mut Random) -> Template {
    let mut template = through();
    let has_deferred_write =
        |row: &&mut Row| row.actions.iter().any(|action| action == "write deferred");
    let order = random.below(4);
    let shift = random.below(4);
    for row in template.rows.iter_mut().filter(has_deferred_write) {
        match order {
            0 => row.actions.swap(0, 1),
            1 => row.actions.rotate_left(shift),
            _ => {}
        }
    }
    template
}

/// Posted stores and atomic accesses, with one row of the home that performs a store wrongly in every second protocol.
fn stores_posted(random: &mut Random) -> Template {
    let mut template = posted();
    let fault = random.below(8);
    let event = ["Swap", "Post", "Slow", "Go", "", "", "", ""][fault];
    let mut rows = template.rows.iter_mut();
    let row = rows.find(|row| row.home && row.event == event && !row.next.is_empty());
    if let Some(row) = row {
        match fault {
            // The atomic access finds its own store.
            0 => row.actions.reverse(),
            // The store is performed now, and again when it is no longer deferred.
            1 => row.actions.push("write".into()),
            // The store is acknowledged and lost, or stays deferred.
            _ => {
                row.actions.remove(0);
            }
        }
    }
    template
}

impl Generator {
    /// Draws a type.
    fn ty(&mut self) -> Type {
        match self.random.below(6) {
            0 => Type::Range(1 + self.random.below(3) as u16),
            1 => Type::Count,
            2 => Type::Bool,
            3 => Type::Remote,
            _ => Type::Set,
        }
    }

    /// Draws the variables and fields that the decoration adds.
    fn add_variables_and_fields(&mut self, template: &Template) {
        for side in 0..2 {
            // With three remotes each has few variables, so that the states can be visited.
            let is_limited = template.size.is_some() || (side == 0 && self.remotes > 2);
            let max_count = if is_limited { 1 } else { 2 };
            for i in 0..self.random.below(max_count + 1) {
                let ty = self.ty();
                let name = format!("v{i}");
                self.variables[side].push(TypedName { name, ty });
            }
        }
        let mut remaining = if template.size.is_some() { 1 } else { 3 };
        for (i, _) in template.messages.iter().enumerate() {
            let mut fields = Vec::new();
            while remaining > 0 && self.random.once_in(4) {
                remaining -= 1;
                let ty = self.ty();
                let name = format!("f{i}_{}", fields.len());
                fields.push(TypedName { name, ty });
            }
            self.fields.push(fields);
        }
    }

    /// Returns the text of the decorated protocol. One in five templates gets a wrong row first.
    fn format_protocol(&mut self, mut template: Template) -> String {
        // A design has already been mutated.
        let is_mutated = template.size.is_none() && self.random.once_in(5);
        if is_mutated {
            self.mutate_row(&mut template);
        }
        let mut out = String::from("protocol random\nline 64 bytes\n");
        if self.has_arrays {
            out += "size wide 1\n";
        }
        if let Some(homes) = self.coupled_homes {
            out += &format!("size homes {homes}\n");
        }
        if let Some(SystemSize {
            homes: homes @ 2.., ..
        }) = template.size
        {
            out += &format!("size homes {homes}\n");
        }
        self.append_channels(&template, &mut out);
        self.append_messages(&template, &mut out);
        if self.random.once_in(4) {
            out += &format!("bounds {{ in_flight {} }}\n", 4 + self.random.below(8));
        }
        for home in [false, true] {
            self.append_agent(&template, home, &mut out);
        }
        let lines = match (self.coupled_homes, template.size) {
            (Some(_), _) => 2,
            (None, Some(size)) => size.lines,
            (None, None) => 1,
        };
        out += &format!(
            "system whole {{ remotes {}; lines {lines} }}\n",
            self.remotes
        );
        for claim in template.invariants {
            if self.random.once_in(2) {
                out += &format!("invariant {claim}\n");
            }
        }
        out
    }

    /// Appends the block `channels`, with one of the template's alternatives of orders.
    fn append_channels(&mut self, template: &Template, out: &mut String) {
        *out += "channels {\n";
        if self.coupled_homes.is_some() {
            *out += "  tick remote -> home\n  hand home -> home\n  tock home -> remote\n";
        }
        for (name, ends) in &template.channels {
            *out += &format!("  {name} {ends}\n");
        }
        let order = self.random.of(template.orders);
        if !order.is_empty() {
            // Without another draw, so that a seed keeps its protocol.
            let per_line = match out.len() % 3 {
                0 => " per line",
                _ => "",
            };
            *out += &format!("  ordered {}{per_line}\n", order.join(", "));
        }
        if !template.shared.is_empty() {
            *out += &format!("  {}\n", template.shared.trim());
        }
        *out += "}\n";
    }

    /// Appends the block `messages`, with the fields of the template and those of the decoration.
    fn append_messages(&self, template: &Template, out: &mut String) {
        *out += "messages {\n";
        if self.coupled_homes.is_some() {
            *out += "  tick: Tick (t: 0..1, at: home)\n  hand: Hand (t: 0..1, whose: remote)\n  tock: Tock\n";
        }
        for (message, extra_fields) in template.messages.iter().zip(&self.fields) {
            let carries = (!message.carries.is_empty()).then(|| message.carries.to_string());
            let declared_fields = message
                .fields
                .iter()
                .map(|(name, ty)| format!("{name}: {ty}"));
            let extra_fields = extra_fields
                .iter()
                .map(|field| format!("{}: {}", field.name, field.ty.format()));
            let content: Vec<String> = carries
                .into_iter()
                .chain(declared_fields)
                .chain(extra_fields)
                .collect();
            let content = match content.is_empty() {
                true => String::new(),
                false => format!(" ({})", content.join(", ")),
            };
            *out += &format!("  {}: {}{content}\n", message.channel, message.name);
        }
        *out += "}\n";
    }

    /// Appends the block of the home or of the remote: states, variables, registers and rows.
    fn append_agent(&mut self, template: &Template, home: bool, out: &mut String) {
        let (head, states, declared) = match home {
            false => ("remote cache", &template.remote, &template.remote_variables),
            true => ("home directory", &template.home, &template.variables),
        };
        *out += &format!("{head} {{\n  states {{ {states} }}\n");
        let declared = declared.iter().map(|(name, ty)| format!("{name}: {ty}"));
        let mut variables: Vec<String> = declared.collect();
        let extra = self.variables[usize::from(home)].iter();
        let extra: Vec<String> = extra
            .map(|variable| format!("{}: {}", variable.name, variable.ty.format()))
            .collect();
        let mut append_block = |name: &str, entries: &[String]| {
            if !entries.is_empty() {
                *out += &format!("  {name} {{ {} }}\n", entries.join("; "));
            }
        };
        if self.coupled_homes.is_some() {
            // Variables of each line, and registers that couple lines.
            append_block("variables", &variables);
            *out += &self.format_registers(home, &extra);
        } else {
            let registers = template.registers[usize::from(home)].iter();
            let mut registers: Vec<String> = registers
                .map(|(name, ty)| format!("{name}: {ty}"))
                .collect();
            match self.in_registers {
                true => registers.extend(extra),
                false => variables.extend(extra),
            }
            if self.has_arrays && home {
                variables.push("w: 0..wide per remote = wide; u: 0..wide per 2".to_string());
            }
            append_block("registers", &registers);
            append_block("variables", &variables);
        }
        for row in template.rows.iter().filter(|row| row.home == home) {
            *out += &self.format_rows(row, template);
        }
        *out += "}\n";
    }

    /// Registers, and rows about no line that change them and pass messages on between homes.
    fn format_registers(&mut self, home: bool, extra: &[String]) -> String {
        let (declared, rows) = match home {
            false => {
                let when = self
                    .random
                    .of(&["ticks == 0", "count(mine) > 0", "ticks < 2"]);
                let then = self
                    .random
                    .of(&["mine := {}", "mine -= { far }", "far := far"]);
                let rows = format!(
                    "  - | fence if {when} and ticks < 2 | for h in mine {{ send Tick (t = 1, at = far) to h, ticks += 1 }}, {then}\n\
                     \x20 - | Tock if ticks > 0 | ticks -= 1, far := sender\n  - | Tock |\n"
                );
                (["ticks: 0..2", "mine: set of home", "far: home"], rows)
            }
            true => {
                let when = self
                    .random
                    .of(&["seen[sender] < 2", "seen[sender] == 0", "at != home"]);
                let then = self
                    .random
                    .of(&["seen[whose] := 0", "seen := 0", "lately[home] := 1"]);
                let rows = format!(
                    "  - | Tick if {when} and seen[sender] < 2 | seen[sender] += 1, send Hand (t = t, whose = sender) to at\n\
                     \x20 - | Tick | send Tock to sender, seen[sender] := 0\n\
                     \x20 - | Hand | {then}, lately[home] := t, send Tock to whose\n"
                );
                (
                    [
                        "seen: 0..2 per remote",
                        "lately: 0..1 per home",
                        "pair: 0..1 per remote per 2",
                    ],
                    rows,
                )
            }
        };
        let registers = declared
            .iter()
            .map(|register| (*register).to_string())
            .chain(extra.iter().cloned());
        format!(
            "  registers {{ {} }}\n{rows}",
            registers.collect::<Vec<_>>().join("; ")
        )
    }

    /// Makes one row wrong.
    fn mutate_row(&mut self, template: &mut Template) {
        let index = self.random.below(template.rows.len());
        let next_states: Vec<String> = template.rows.iter().map(|row| row.next.clone()).collect();
        let guards: Vec<String> = (template.rows.iter())
            .filter(|row| {
                row.home == template.rows[index].home && row.event == template.rows[index].event
            })
            .map(|row| row.guard.clone())
            .collect();
        let row = &mut template.rows[index];
        match self.random.below(4) {
            0 if !row.actions.is_empty() && !row.next.is_empty() => {
                let removed = self.random.below(row.actions.len());
                row.actions.remove(removed);
            }
            1 if !row.next.is_empty() => row.next = self.random.of(&next_states),
            2 => row.guard = self.random.of(&guards),
            _ => {
                template.rows.remove(index);
            }
        }
    }

    /// A row once, or twice: the first under an additional guard, each with other decorations.
    fn format_rows(&mut self, row: &Row, template: &Template) -> String {
        if row.states == "-" {
            let actions = row.actions.join(", ");
            let guard = match row.guard.as_str() {
                "" => String::new(),
                guard => format!(" if {guard}"),
            };
            return format!("  - | {}{guard} | {actions}\n", row.event);
        }
        let scope = self.scope(row, template);
        let mut out = String::new();
        // A row that stalls a message would stall it for ever.
        let split = self.random.once_in(3) && !row.next.is_empty() && !scope.named.is_empty();
        if split {
            let (mut guards, mut assignments) = (Vec::new(), Vec::new());
            if let (true, Some((guard, assignment))) = (self.random.below(4) > 0, self.step(&scope))
            {
                guards.push(guard);
                assignments.push(assignment);
            }
            if guards.is_empty() || self.random.once_in(3) {
                guards.push(self.claim(&scope, 2));
            }
            let extra_guard = guards.join(" and ");
            out += &self.row(row, &extra_guard, &scope, assignments, template);
        }
        out + &self.row(row, "", &scope, Vec::new(), template)
    }

    /// Returns the values that expressions in a row may read.
    fn scope(&self, row: &Row, template: &Template) -> Scope {
        let mut named = self.variables[usize::from(row.home)].clone();
        if row.home {
            named.extend(self.home_variables.iter().cloned());
        }
        let message =
            (template.messages.iter()).position(|message| Some(message.name) == row.message);
        if let Some(message) = message {
            named.extend(self.fields[message].iter().cloned());
            let declared = template.messages[message].fields.iter();
            named.extend(declared.map(|(name, ty)| TypedName {
                name: (*name).into(),
                ty: Type::parse(ty),
            }));
        }
        Scope {
            home: row.home,
            message: message.is_some(),
            named,
        }
    }

    /// Returns the text of a row with random assignments at random positions among its actions.
    fn row(
        &mut self,
        row: &Row,
        extra_guard: &str,
        scope: &Scope,
        assignments: Vec<String>,
        template: &Template,
    ) -> String {
        let guard = match (row.guard.as_str(), extra_guard) {
            ("", "") => String::new(),
            ("", only_guard) | (only_guard, "") => format!(" if {only_guard}"),
            (own, extra) => match self.random.once_in(2) {
                true => format!(" if {own} and ({extra})"),
                false => format!(" if ({extra}) and {own}"),
            },
        };
        if row.next.is_empty() {
            return format!("  {} | {}{guard} | stall\n", row.states, row.event);
        }
        let mut actions: Vec<String> = Vec::new();
        for action in &row.actions {
            actions.push(self.action(action, scope, template));
        }
        let mut assignments = assignments;
        for _ in 0..self.random.below(3) {
            assignments.extend(self.assignment(scope));
        }
        for assignment in assignments {
            let position = self.random.below(actions.len() + 1);
            actions.insert(position, assignment);
        }
        if self.coupled_homes.is_some() && !row.next.is_empty() && self.random.once_in(3) {
            actions.push(match row.home {
                false => self.random.of(&["mine += { home }", "far := home"]).into(),
                true => "lately[home] := 0".to_string(),
            });
        }
        if self.has_arrays && row.home && self.random.once_in(2) {
            actions.push(self.change_of_array(scope));
        }
        let (states, event, next) = (&row.states, &row.event, &row.next);
        format!(
            "  {states} | {event}{guard} | {} | {next}\n",
            actions.join(", ")
        )
    }

    /// A change of one element, of all elements, or of those of a set.
    fn change_of_array(&mut self, scope: &Scope) -> String {
        let value = self.random.of(&["0", "1", "wide"]);
        match self.random.below(6) {
            0 => format!("w := {value}"),
            1 => format!("u := {value}"),
            2 if scope.message => "u[w[sender]] := wide - u[1 - w[sender]]".to_string(),
            3 | 4 if scope.message => {
                let change = self.random.of(&[":= wide - w[sender]", ":= 0", ":= 1"]);
                format!("w[sender] {change}")
            }
            _ => {
                let set = self.set(scope, 1);
                let change = self.random.of(&[":= wide - w[r]", ":= 0", ":= 1"]);
                format!("for r in {set} {{ w[r] {change} }}")
            }
        }
    }

    /// An action of the protocol itself; its sends get values for all fields.
    fn action(&mut self, action: &str, scope: &Scope, template: &Template) -> String {
        let Some(send) = action.strip_prefix("send ") else {
            return action.to_string();
        };
        let name = send.split(' ').next().unwrap_or(send);
        let Some(message) = template
            .messages
            .iter()
            .position(|message| message.name == name)
        else {
            return action.to_string();
        };
        let mut fields: Vec<String> = Vec::new();
        let mut rest = send[name.len()..].trim();
        if let Some((declared_fields, remainder)) =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        {
            fields.push(declared_fields.to_string());
            rest = remainder.trim();
        }
        for field in self.fields[message].clone() {
            let value = self.value(field.ty, scope, 1);
            fields.push(format!("{} = {value}", field.name));
        }
        let fields = match fields.is_empty() {
            true => String::new(),
            false => format!(" ({})", fields.join(", ")),
        };
        let space = if rest.is_empty() { "" } else { " " };
        format!("send {name}{fields}{space}{rest}")
    }

    /// A change of a number, with the guard under which the result is in range.
    fn step(&mut self, scope: &Scope) -> Option<(String, String)> {
        let variables = self.variables[usize::from(scope.home)].clone();
        let numbers: Vec<&TypedName> = (variables.iter())
            .filter(|v| matches!(v.ty, Type::Range(_) | Type::Count))
            .collect();
        if numbers.is_empty() {
            return None;
        }
        let TypedName { name, ty } = self.random.of(&numbers).clone();
        let max = self.max(ty);
        let amount = self.number(scope, 1);
        Some(match self.random.below(6) {
            0 => (format!("{name} < {max}"), format!("{name} += 1")),
            1 => (format!("{name} != {max}"), format!("{name} := {name} + 1")),
            2 => (format!("{name} > 0"), format!("{name} -= 1")),
            3 => (
                format!("{name} + ({amount}) <= {max} and {name} + ({amount}) >= 0"),
                format!("{name} += {amount}"),
            ),
            4 => (
                format!("{name} >= {amount} and {name} - ({amount}) <= {max}"),
                format!("{name} -= {amount}"),
            ),
            _ => (
                format!("{amount} <= {max} and not {amount} < 0"),
                format!("{name} := {amount}"),
            ),
        })
    }

    /// The largest value that always fits a number.
    fn max(&self, ty: Type) -> u16 {
        match ty {
            Type::Range(max) => max,
            _ => self.remotes,
        }
    }

    /// Returns an assignment to a variable of the decoration; `None` without variables. In rare cases the value does
    /// not fit.
    fn assignment(&mut self, scope: &Scope) -> Option<String> {
        let variables = self.variables[usize::from(scope.home)].clone();
        if variables.is_empty() {
            return None;
        }
        let TypedName { name, ty } = self.random.of(&variables);
        // Some values need not fit.
        if matches!(ty, Type::Range(_) | Type::Count) && self.random.once_in(60) {
            let sign = self.random.of(&[":=", "+=", "-="]);
            return Some(format!("{name} {sign} {}", self.number(scope, 2)));
        }
        let sign = match ty {
            Type::Set => self.random.of(&[":=", "+=", "+=", "-="]),
            _ => ":=",
        };
        Some(format!("{name} {sign} {}", self.value(ty, scope, 2)))
    }

    /// A value that fits a type.
    fn value(&mut self, ty: Type, scope: &Scope, depth: usize) -> String {
        match ty {
            Type::Bool => match self.random.once_in(3) {
                true => self.random.of(&["true", "false"]).into(),
                false => self.claim(scope, depth),
            },
            Type::Remote => self.remote(scope),
            Type::Set => self.set(scope, depth),
            Type::Range(_) | Type::Count => {
                let max = self.max(ty);
                let fitting = scope.named.iter().filter(|named| match named.ty {
                    Type::Range(limit) => limit <= max,
                    Type::Count => self.remotes <= max,
                    _ => false,
                });
                let mut fitting: Vec<String> = fitting.map(|named| named.name.clone()).collect();
                if self.has_arrays && scope.home && scope.message && max > 0 {
                    fitting.push("w[sender]".into());
                }
                if self.remotes <= max {
                    fitting.push(format!("count({})", self.set(scope, depth)));
                }
                match fitting.is_empty() || self.random.once_in(3) {
                    true => self.random.below(usize::from(max) + 1).to_string(),
                    false => self.random.of(&fitting),
                }
            }
        }
    }

    /// Returns a visible name of an accepted type, if any.
    fn named(&mut self, scope: &Scope, accepts: impl Fn(Type) -> bool) -> Option<String> {
        let matching: Vec<&TypedName> = scope.named.iter().filter(|n| accepts(n.ty)).collect();
        (!matching.is_empty()).then(|| self.random.of(&matching).name.clone())
    }

    /// Returns an expression for a remote.
    fn remote(&mut self, scope: &Scope) -> String {
        let word = match (scope.home, scope.message) {
            (false, true) if self.homes_are_numbered => self.random.of(&["self", "self", "none"]),
            (false, true) => self.random.of(&["self", "sender", "none"]),
            (false, false) => self.random.of(&["self", "self", "none"]),
            (true, true) => self.random.of(&["sender", "sender", "none"]),
            (true, false) => "none",
        };
        let named = self.named(scope, |ty| ty == Type::Remote);
        match named {
            Some(named) if self.random.once_in(2) => named,
            _ => word.into(),
        }
    }

    /// Returns an expression for a set of remotes, with at most `depth` nested operators.
    fn set(&mut self, scope: &Scope, depth: usize) -> String {
        let named = self.named(scope, |ty| ty == Type::Set);
        match (self.random.below(if depth == 0 { 4 } else { 8 }), named) {
            (0, _) => "{}".into(),
            (1..=3, Some(named)) => named,
            (4..=7, _) => {
                let (a, b) = (self.set(scope, depth - 1), self.set(scope, depth - 1));
                let sign = self.random.of(&["+", "-"]);
                match self.random.once_in(2) {
                    true => format!("{a} {sign} ({b})"),
                    false => format!("({a}) {sign} {b}"),
                }
            }
            _ => format!("{{ {} }}", self.remote(scope)),
        }
    }

    /// Returns an expression for a number, with at most `depth` nested operators; its value may be negative or too
    /// large.
    fn number(&mut self, scope: &Scope, depth: usize) -> String {
        let named = self.named(scope, |ty| matches!(ty, Type::Range(_) | Type::Count));
        match (self.random.below(if depth == 0 { 4 } else { 6 }), named) {
            (0 | 1, Some(named)) => named,
            (2, _) => format!("count({})", self.set(scope, depth.min(1))),
            (4 | 5, _) => {
                let (a, b) = (self.number(scope, depth - 1), self.number(scope, depth - 1));
                format!("({a} {} {b})", self.random.of(&["+", "-"]))
            }
            _ => self.random.below(4).to_string(),
        }
    }

    /// Returns a Boolean expression, with at most `depth` nested operators.
    fn claim(&mut self, scope: &Scope, depth: usize) -> String {
        let named = self.named(scope, |ty| ty == Type::Bool);
        let equal = self.random.of(&["==", "!="]);
        if self.has_arrays && scope.home && scope.message && self.random.once_in(3) {
            let read = self.random.of(&["w[sender]", "w[sender]", "u[w[sender]]"]);
            return format!("{read} {equal} {}", self.random.of(&["0", "wide"]));
        }
        match (self.random.below(if depth == 0 { 6 } else { 9 }), named) {
            (0 | 1, Some(named)) => named,
            (0, None) => {
                let (a, b) = (self.remote(scope), self.remote(scope));
                format!("{a} {equal} {b}")
            }
            (2, _) => format!("{} in {}", self.remote(scope), self.set_term(scope)),
            (3, _) => format!("{} {equal} {}", self.set_term(scope), self.set_term(scope)),
            (4, Some(named)) => format!("{named} {equal} {}", self.random.of(&["true", "false"])),
            (6, _) => format!("not ({})", self.claim(scope, depth - 1)),
            (7 | 8, _) => {
                let (a, b) = (self.claim(scope, depth - 1), self.claim(scope, depth - 1));
                let sign = self.random.of(&["and", "or"]);
                format!("({a} {sign} {b})")
            }
            _ => {
                let sign = self.random.of(&["==", "!=", "<", "<=", ">", ">="]);
                format!("{} {sign} {}", self.number(scope, 1), self.number(scope, 1))
            }
        }
    }

    /// A set as an operand of a comparison.
    fn set_term(&mut self, scope: &Scope) -> String {
        format!("({})", self.set(scope, 1))
    }
}
