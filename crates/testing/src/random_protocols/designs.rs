//! Random designs from parts: posted, awaited and atomic stores, deferred at their home or not, copies that are passed
//! on, and sharers of which one is chosen. Designs may have registers that couple lines, several homes and networks,
//! and some have one mutated row.

use super::random::Random;
use super::templates::{
    blocking, chatter, messages, posted, rows, through, token, Row, SystemSize, Template,
};

/// A random design, on one line or two, before it is decorated.
pub fn design(random: &mut Random) -> Template {
    let lines = 1 + u8::from(random.once_in(2));
    let mut template = match random.below(9) {
        0..=3 => memory(random, lines),
        4 | 5 => owner(random, lines),
        6 | 7 => sharers(random),
        _ => template_in_network(random),
    };
    if random.once_in(3) {
        // Some mutations apply to no row.
        for _ in 0..20 {
            if mutate(random, &mut template) {
                break;
            }
        }
    }
    template
}

/// Index of the remote in pairs of the remote and the home.
const REMOTE: usize = 0;
/// Index of the home in such pairs.
const HOME: usize = 1;

/// The controllers of one line of a design while it is put together, in the protocol language.
#[derive(Default)]
struct Parts {
    /// States of the remote with their permissions and expected messages; the first is initial.
    remote_states: Vec<&'static str>,
    /// States of the home with the messages that they wait for; the first is initial.
    home_states: Vec<&'static str>,
    /// Messages as channel, name and contents.
    messages: Vec<(&'static str, &'static str, &'static str)>,
    /// Rows of the remote.
    remote: String,
    /// Rows of the home.
    home: String,
    /// Variables of one line, as name and declaration, of the remote and of the home.
    variables: [Vec<(&'static str, &'static str)>; 2],
    /// Variables that all lines share, of the remote and of the home.
    registers: [Vec<(&'static str, &'static str)>; 2],
}

impl Parts {
    /// Appends rows of the remote.
    fn remote(&mut self, rows: &str) {
        self.remote += rows;
        self.remote += "\n";
    }

    /// Appends rows of the home.
    fn home(&mut self, rows: &str) {
        self.home += rows;
        self.home += "\n";
    }

    /// Declares a variable that the remote ([`REMOTE`]) or the home ([`HOME`]) has for each line.
    fn declare(&mut self, side: usize, variable: (&'static str, &'static str)) {
        self.variables[side].push(variable);
    }

    /// Declares a register: a variable that an agent has once, for all lines.
    fn declare_register(&mut self, side: usize, register: (&'static str, &'static str)) {
        self.registers[side].push(register);
    }

    /// Returns the design as a template. Channels without messages are omitted.
    fn template(
        self,
        channels: &[(&'static str, &'static str)],
        shared: String,
        size: SystemSize,
    ) -> Template {
        let messages = messages(&self.messages);
        let is_used = |name: &str| messages.iter().any(|message| message.channel == name);
        let mut all_rows = rows(&messages, false, &self.remote);
        all_rows.extend(rows(&messages, true, &self.home));
        let [remote_variables, variables] = self.variables;
        Template {
            channels: channels.iter().copied().filter(|c| is_used(c.0)).collect(),
            orders: &[&[]],
            remote: self.remote_states.join("; "),
            home: self.home_states.join("; "),
            variables,
            remote_variables,
            rows: all_rows,
            invariants: &[],
            registers: self.registers,
            shared,
            size: Some(size),
            messages,
        }
    }
}

/// Chooses the numbers of remotes, lines and homes of a design. A `small` design, with few states, may have two remotes
/// on two lines.
fn size(random: &mut Random, lines: u8, small: bool) -> SystemSize {
    let remotes = match (lines, small) {
        (1, _) => random.of(&[1, 2, 2, 2, 2, 3]),
        (_, true) => random.of(&[1, 2, 2]),
        _ => random.of(&[1, 1, 1, 2]),
    };
    SystemSize {
        remotes,
        lines,
        homes: 1 + random.below(usize::from(lines)) as u8,
    }
}

/// Chooses orders and networks, with a capacity in place of `CAP`. Those in `sound` are sufficient for the design;
/// those in `alternatives` may be too weak.
fn shared(random: &mut Random, sound: &[&str], alternatives: &[&str]) -> String {
    let chosen = match random.below(4) {
        0 => random.of(alternatives),
        _ => random.of(sound),
    };
    let capacity = match random.below(6) {
        0 => " capacity 1",
        1 => " capacity 2",
        2 => " capacity 4",
        _ => "",
    };
    chosen.replace("CAP", capacity)
}

/// Choices for a design in which the home performs all stores in memory.
struct MemoryDesign {
    /// True if it has posted stores.
    post: bool,
    /// True if it has stores that are acknowledged, and that their core waits for.
    slow: bool,
    /// True if it has atomic accesses.
    swap: bool,
    /// True if it has loads.
    read: bool,
    /// True if the credits of posted stores are in a register, which all lines share.
    register: bool,
    /// True if the home defers posted stores until the remote confirms them.
    deferred: bool,
    /// True if the home has a single buffer for deferred stores, which all lines share.
    slot: bool,
    /// True if posted stores need credits.
    counted: bool,
    /// Number of credits.
    credits: &'static str,
}

/// Stores that the home performs in memory: posted, awaited, and atomic ones.
fn memory(random: &mut Random, lines: u8) -> Template {
    let (post, slow) = (random.below(4) > 0, random.once_in(2));
    let swap = random.once_in(3) || !(post || slow);
    let read = random.below(4) > 0;
    let register = lines > 1 || random.once_in(2);
    let deferred = post && random.once_in(2);
    let slot = deferred && register && random.once_in(2);
    let design = MemoryDesign {
        post,
        slow,
        swap,
        read,
        register,
        deferred,
        slot,
        // Posted stores without credits need back-pressure.
        counted: random.below(6) > 0,
        credits: random.of(&["1", "1", "2"]),
    };
    let mut parts = design.rows(random);
    let mut requests = Vec::new();
    for (is_present, request) in [
        (post, "Post"),
        (slow, "Slow"),
        (swap, "Swap"),
        (read, "Get"),
    ] {
        if is_present {
            requests.push(request);
        }
    }
    if deferred {
        parts.home(&format!("A | {} | stall", requests.join(" ")));
    }
    let shared = design.shared(random);
    let small = requests.len() < 3 && design.credits == "1" && !slot;
    parts.template(
        &[
            ("put", "remote -> home"),
            ("read", "remote -> home"),
            ("go", "remote -> home"),
            ("reply", "home -> remote"),
        ],
        shared,
        size(random, lines, small),
    )
}

impl MemoryDesign {
    /// Returns the states, messages and rows.
    fn rows(&self, random: &mut Random) -> Parts {
        let mut parts = Parts {
            remote_states: vec!["I"],
            home_states: vec!["L"],
            ..Parts::default()
        };
        for (is_present, state) in [
            (self.read, "R waits Data"),
            (self.slow && self.slot, "T waits Done Nack"),
            (self.slow && !self.slot, "T waits Done"),
            (self.swap, "U waits Old"),
        ] {
            if is_present {
                parts.remote_states.push(state);
            }
        }
        if self.post {
            self.add_posted_stores(&mut parts);
        }
        if self.slow {
            self.add_awaited_stores(random, &mut parts);
        }
        if self.swap {
            parts.messages.push(("put", "Swap", "partial store"));
            parts.messages.push(("reply", "Old", "line"));
            parts.remote("I | atomic | send Swap | U");
            parts.remote("U | Old | done | I");
            parts.home("L | Swap | send Old, write | stay");
        }
        if self.read {
            parts.messages.push(("read", "Get", ""));
            parts.messages.push(("reply", "Data", "line"));
            parts.remote("I | load | send Get | R");
            parts.remote("R | Data | done | I");
            parts.home("L | Get | send Data | stay");
        }
        parts
    }

    /// Adds posted stores, with credits or without, performed at once or deferred.
    fn add_posted_stores(&self, parts: &mut Parts) {
        // The first letter of a declaration is the name of the state.
        let names = parts.remote_states.iter().map(|state| &state[..1]);
        let all_states = names.collect::<Vec<_>>().join(" ");
        let credits = self.credits;
        parts.messages.push(("put", "Post", "partial store"));
        if self.counted {
            parts.messages.push(("reply", "Free", ""));
            let credit = match credits {
                "1" => ("free", "0..1 = 1"),
                _ => ("free", "0..2 = 2"),
            };
            match self.register {
                true => parts.declare_register(REMOTE, credit),
                false => parts.declare(REMOTE, credit),
            }
            parts.remote("I | store if free > 0 | send Post, free -= 1 | stay");
            parts.remote(&format!("{all_states} | Free | free += 1 | stay"));
            if self.register {
                parts.remote(&format!("- | fence if free == {credits} | | -"));
            }
        } else {
            parts.remote("I | store | send Post | stay");
        }
        let [immediate_credit, deferred_credit] = match self.counted {
            true => [", send Free", ", send Free to writer"],
            false => ["", ""],
        };
        if !self.deferred {
            parts.home(&format!("L | Post | write{immediate_credit} | stay"));
            return;
        }
        parts.messages.push(("reply", "Half", ""));
        parts.messages.push(("go", "Go", ""));
        parts.declare(HOME, ("writer", "remote"));
        parts.home_states.push("A waits Go");
        parts.remote(&format!("{all_states} | Half | send Go | stay"));
        let (guard, take_action, release_action) = match self.slot {
            true => {
                parts.declare_register(HOME, ("busy", "bool"));
                (" if not busy", ", busy := true", ", busy := false")
            }
            false => ("", "", ""),
        };
        parts.home(&format!(
            "L | Post{guard} | defer{take_action}, send Half, writer := sender | A"
        ));
        if self.slot {
            parts.home("L | Post | stall");
        }
        parts.home(&format!(
            "A | Go | write deferred{release_action}{deferred_credit}, writer := none | L"
        ));
    }

    /// Adds stores that the home acknowledges. They are rejected while the buffer for deferred stores is in use.
    fn add_awaited_stores(&self, random: &mut Random, parts: &mut Parts) {
        let credits = self.credits;
        parts.messages.push(("put", "Slow", "partial store"));
        parts.messages.push(("reply", "Done", ""));
        parts.remote("I | write_partial | send Slow | T");
        if self.post && self.counted && random.once_in(3) {
            parts.remote(&format!("I | release if free == {credits} | send Slow | T"));
        }
        parts.remote("T | Done | done | I");
        if self.slot {
            parts.messages.push(("reply", "Nack", ""));
            parts.remote("T | Nack | | I");
            parts.home("L | Slow if busy | send Nack | stay");
        }
        parts.home("L | Slow | write, send Done | stay");
    }

    /// Chooses the orders and networks of the channels.
    fn shared(&self, random: &mut Random) -> String {
        let requests = match self.read {
            true => "put, read",
            false => "put",
        };
        let queue = format!("network requests CAP {{ {requests} }}");
        let bounded_queue = queue.replace("CAP", " capacity 2");
        let order = format!("ordered {requests}");
        let per_line = format!("ordered {requests} per line");
        let backed = format!("{queue}\n  network replies CAP {{ reply }}");
        let shared_network = format!("network requests CAP {{ {requests}, go }}");
        let separate_networks = match self.read {
            true => "network puts CAP { put }\n  network gets { read }",
            false => "network puts CAP { put }",
        };
        match (self.post && !self.counted, self.deferred) {
            (true, _) => shared(
                random,
                &[&bounded_queue],
                &[
                    &bounded_queue,
                    &separate_networks.replace("CAP", " capacity 2"),
                ],
            ),
            (_, true) => shared(
                random,
                &[&order, &order, &per_line, &queue],
                &["", &shared_network, separate_networks, &backed],
            ),
            (_, false) => shared(
                random,
                &[&order, &order, &per_line, &queue, &backed],
                &["", separate_networks],
            ),
        }
    }
}

/// One copy with all permissions, which the home recalls.
fn owner(random: &mut Random, lines: u8) -> Template {
    let (evict, atomic) = (random.below(4) > 0, random.once_in(3));
    let has_credit = random.once_in(3);
    // Without evictions, an entry shared by all lines would never be freed.
    let slot = lines > 1 && random.once_in(2);
    let nack = slot && random.below(3) > 0;
    let mut parts = Parts {
        remote_states: vec!["I", "V reads writes dirty"],
        home_states: vec!["I", "V"],
        messages: vec![
            ("ask", "Get", ""),
            ("down", "Data", "line"),
            ("down", "Recall", ""),
            ("back", "Back", "line, dirty"),
        ],
        ..Parts::default()
    };
    parts.remote_states.push(match nack {
        true => "W waits Data Nack",
        false => "W waits Data",
    });
    parts.home_states.push(match evict {
        true => "B waits Back Put",
        false => "B waits Back",
    });
    parts.declare(HOME, ("owner", "remote"));
    parts.declare(HOME, ("wants", "remote"));
    let accesses = match atomic {
        true => "load store atomic",
        false => "load store",
    };
    if atomic {
        parts.remote("V | atomic | | stay");
    }
    let (guard, take_action, release_action) = match has_credit {
        true => {
            parts.declare_register(REMOTE, ("room", "0..1 = 1"));
            (" if room > 0", ", room -= 1", "room += 1")
        }
        false => ("", "", ""),
    };
    parts.remote(&format!(
        "I | {accesses}{guard} | send Get{take_action} | W"
    ));
    parts.remote(&format!("W | Data | {release_action} | V"));
    if nack {
        parts.messages.push(("down", "Nack", ""));
        parts.remote(&format!("W | Nack | {release_action} | I"));
    }
    parts.remote("V | Recall | send Back | I");
    if slot {
        parts.declare_register(HOME, ("entries", "0..1 = 1"));
        parts.home("I | Get if entries > 0 | send Data, entries -= 1, owner := sender | V");
        parts.home(match nack {
            true => "I | Get | send Nack | stay",
            false => "I | Get | stall",
        });
    } else {
        parts.home("I | Get | send Data, owner := sender | V");
    }
    parts.home(
        "V | Get | send Recall to owner, wants := sender | B
         B | Back | write, send Data to wants, owner := wants, wants := none | V
         B | Get | stall",
    );
    if evict {
        parts.messages.push(("back", "Put", "line, dirty"));
        parts.messages.push(("down", "Ack", ""));
        parts.remote_states.push("P holds dirty, waits Ack");
        parts.remote(
            "V | evict | send Put | P
             P | Ack | | I
             P | Recall | | stay",
        );
        parts.home(
            "B | Put | write, send Ack, send Data to wants, owner := wants, wants := none | V",
        );
        parts.home(match slot {
            true => "V | Put | write, send Ack, owner := none, entries += 1 | I",
            false => "V | Put | write, send Ack, owner := none | I",
        });
    }
    let shared = shared(
        random,
        &[
            "ordered down",
            "ordered down",
            "ordered down",
            "ordered down per line",
            "network downs CAP { down }",
            "ordered down\n  network asks CAP { ask }\n  network backs CAP { back }",
            "network downs CAP { down }\n  network backs CAP { back }",
        ],
        &[
            "",
            "ordered down\n  network ups CAP { ask, back }",
            "network asks CAP { ask }",
        ],
    );
    parts.template(
        &[
            ("ask", "remote -> home"),
            ("back", "remote -> home"),
            ("down", "home -> remote"),
        ],
        shared,
        size(random, lines, !evict && !has_credit && !slot),
    )
}

/// Shared copies that one of the sharers passes on, and stores that the home defers until all copies are gone.
fn sharers(random: &mut Random) -> Template {
    let (evict, write) = (random.once_in(2), random.below(3) > 0);
    let mut parts = Parts {
        remote_states: vec!["I", "S reads", "W waits Data"],
        home_states: vec!["A", "B waits Miss Got"],
        messages: vec![
            ("req", "GetS", ""),
            ("snp", "Fetch", ""),
            ("dn", "Data", "line"),
            ("up", "Miss", ""),
            ("up", "Got", ""),
        ],
        ..Parts::default()
    };
    for variable in [
        ("sharers", "set of remote"),
        ("wants", "remote"),
        ("one", "remote"),
    ] {
        parts.declare(HOME, variable);
    }
    let mut stays = vec!["GetS"];
    parts.remote(
        "I | load | send GetS | W
         W | Data | send Got to home | S
         S | Fetch | send Data to requestor | stay",
    );
    parts.home(
        "A | GetS if count(sharers) == 0 | send Data | B
         A | GetS | one := any sharers, send Fetch (requestor = sender) to one, wants := sender | B
         B | Got | sharers += { sender }, wants := none, one := none | A
         B | Miss | send Data to wants | stay",
    );
    if evict {
        parts.messages.push(("req", "Evict", ""));
        parts.messages.push(("snp", "Done", ""));
        stays.push("Evict");
        parts.remote_states.push("E waits Done");
        parts.remote(
            "S | evict | send Evict | E
             E | Done | | I
             E | Fetch | send Miss | stay",
        );
        parts.home("A | Evict | sharers -= { sender }, send Done | stay");
    } else {
        // A sharer that receives no more requests.
        parts.remote("I | Fetch | send Miss | stay");
    }
    if write {
        parts.messages.push(("req", "Part", "partial store"));
        parts.messages.push(("snp", "Inv", ""));
        parts.messages.push(("up", "Gone", ""));
        parts.messages.push(("snp", "Written", ""));
        stays.push("Part");
        parts.remote_states.push("X waits Written");
        parts.home_states.push("D waits Gone");
        parts.declare(HOME, ("left", "count"));
        parts.remote(
            "I | write_partial | send Part | X
             X | Written | done | I
             S | Inv | send Gone | I",
        );
        if evict {
            parts.remote("E | Inv | send Gone | stay");
        }
        parts.home(
            "A | Part if count(sharers) == 0 | write, send Written | stay
             A | Part | defer, send Inv to sharers, left := count(sharers), wants := sender | D
             D | Gone if left == 1 | write deferred, send Written to wants, sharers := {}, left := 0, wants := none | A
             D | Gone | left -= 1 | stay",
        );
        parts.home(&format!("D | {} | stall", stays.join(" ")));
    }
    parts.home(&format!("B | {} | stall", stays.join(" ")));
    let shared = shared(
        random,
        &[
            "",
            "",
            "ordered snp",
            "network requests CAP { req }",
            "network downs CAP { snp, dn }",
            "network requests CAP { req }\n  network downs { snp, dn }",
        ],
        &["network ups CAP { req, up }", "network ups CAP { up }"],
    );
    let remotes = match (evict, write) {
        (true, true) => 2,
        _ => random.of(&[2, 2, 3]),
    };
    parts.template(
        &[
            ("req", "remote -> home"),
            ("up", "remote -> home"),
            ("snp", "home -> remote"),
            ("dn", "any -> remote"),
        ],
        shared,
        SystemSize {
            remotes,
            lines: 1,
            homes: 1,
        },
    )
}

/// One of the other templates, with some of its channels in one network.
fn template_in_network(random: &mut Random) -> Template {
    let mut template = match random.below(5) {
        0 => chatter(),
        1 => token(),
        2 => blocking(),
        3 => through(),
        _ => posted(),
    };
    let channels = template.channels.iter().map(|channel| channel.0);
    let in_network: Vec<&str> = channels.filter(|_| random.once_in(2)).collect();
    let order = random.of(template.orders);
    let in_order: Vec<&str> = (order.iter().copied())
        .filter(|channel| !in_network.contains(channel))
        .collect();
    if !in_network.is_empty() {
        let capacity = random.of(&["", "", " capacity 2", " capacity 3"]);
        template.shared = format!("network some{capacity} {{ {} }}", in_network.join(", "));
    }
    if !in_order.is_empty() {
        template.shared += &format!("\n  ordered {}", in_order.join(", "));
    }
    template.orders = &[&[]];
    template.size = Some(SystemSize {
        remotes: random.of(&[1, 2, 2]),
        lines: 1,
        homes: 1,
    });
    template
}

/// Changes one row. Returns false if the row stays the same.
fn mutate(random: &mut Random, template: &mut Template) -> bool {
    let index = random.below(template.rows.len());
    let original = template.rows[index].clone();
    let same_event = |row: &&Row| (row.home, &row.event) == (original.home, &original.event);
    let same_side = |row: &&Row| row.home == original.home && row.states != "-";
    let guards: Vec<String> = (template.rows.iter().filter(same_event))
        .map(|row| row.guard.clone())
        .collect();
    let nexts: Vec<String> = (template.rows.iter().filter(same_side))
        .map(|row| row.next.clone())
        .collect();
    let agents = template.variables.iter().filter(|v| v.1 == "remote");
    let agents: Vec<&str> = agents.map(|v| v.0).chain(["sender"]).collect();
    let stalls = original.next.is_empty();
    let row = &mut template.rows[index];
    let random_action = |random: &mut Random, row: &Row| random.below(row.actions.len().max(1));
    match random.below(9) {
        0 if !row.actions.is_empty() => {
            let removed = random_action(random, row);
            row.actions.remove(removed);
        }
        1 if !stalls && row.states != "-" => row.next = random.of(&nexts),
        2 => row.guard = random.of(&guards),
        3 => {
            template.rows.remove(index);
            return true;
        }
        4 if row.actions.len() > 1 => {
            let (a, b) = (random_action(random, row), random_action(random, row));
            row.actions.swap(a, b);
        }
        5 if !row.actions.is_empty() => {
            let repeated = random_action(random, row);
            let action = row.actions[repeated].clone();
            row.actions.push(action);
        }
        6 if row.home && !row.actions.is_empty() => {
            let action = random_action(random, row);
            let action = &mut row.actions[action];
            if action.starts_with("send ") {
                let send = action.split(" to ").next().unwrap_or(action);
                *action = format!("{send} to {}", random.of(&agents));
            }
        }
        7 if !row.actions.is_empty() => {
            let action = random_action(random, row);
            let (from, to) = random.of(&[
                (" += 1", " -= 1"),
                (" -= 1", " += 1"),
                (":= none", ":= sender"),
                (":= true", ":= false"),
                (" += {", " -= {"),
                (" := sender", " := none"),
                ("count(sharers)", "count(sharers) - 1"),
            ]);
            row.actions[action] = row.actions[action].replace(from, to);
        }
        8 => {
            let (from, to) = random.of(&[(" > 0", " >= 0"), (" == 1", " >= 1"), ("not ", "")]);
            row.guard = row.guard.replace(from, to);
        }
        _ => {}
    }
    *row != original
}
