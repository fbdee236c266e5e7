//! Faults seeded in traces: a step missing, two steps swapped, one repeated, or a message, receiver, state, access or value
//! replaced. The judge of traces must reject each of them.

use cohkit_base::sequence::{Action, Step};
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::Protocol;
use cohkit_trace::{judge, Summary, Trace};

/// Judges a trace in which nothing is wrong.
pub fn sound(protocol: &Protocol, home: &Controller, trace: &Trace, of: &str) -> Summary {
    let judged = judge(protocol, home, &trace.sequence, trace.at_rest);
    judged.unwrap_or_else(|refused| {
        let last = refused.step.min(trace.sequence.steps.len());
        let steps = &trace.sequence.steps[last.saturating_sub(12)..last];
        panic!("{of}: {refused:?}\n{steps:#?}")
    })
}

/// Numbers that follow from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % end as u64) as usize
    }
}

/// Seeds so many faults in a trace, one at a time; those that are not refused, and make a difference, are told. Gives how
/// many were refused.
pub fn faults_are_refused(
    protocol: &Protocol,
    home: &Controller,
    trace: &Trace,
    (seed, faults): (u64, usize),
    of: &str,
) -> usize {
    let mut chance = Chance(seed);
    let mut refused = 0;
    for _ in 0..faults {
        let mut steps = trace.sequence.steps.clone();
        let Some(fault) = seeded(protocol, home, &mut steps, &mut chance) else {
            continue;
        };
        let mut spoilt = trace.sequence.clone();
        spoilt.steps = steps;
        match judge(protocol, home, &spoilt, trace.at_rest) {
            Err(_) => refused += 1,
            Ok(_) => panic!("{of}: seed {seed}: nobody notices: {fault}"),
        }
    }
    refused
}

/// Seeds a fault; says which. None if what would be said then is the same, or as true.
fn seeded(
    protocol: &Protocol,
    home: &Controller,
    steps: &mut Vec<Step>,
    chance: &mut Chance,
) -> Option<String> {
    let at = chance.below(steps.len());
    let step = steps[at].clone();
    let same = |other: &Step| (other.agent, other.line) == (step.agent, step.line);
    let next = (at + 1..steps.len()).find(|&next| same(&steps[next]));
    let what = match chance.below(4) {
        0 => {
            if says_nothing(steps, at) {
                return None;
            }
            steps.remove(at);
            "lost"
        }
        1 => {
            let next = next?;
            if says_nothing(steps, at) || says_nothing(steps, next) {
                return None;
            }
            // In which order a device hears answers to different things nobody promises.
            let hears = |action: &Action| matches!(action, Action::Does { what } if what.starts_with("is "));
            if steps[next].action == step.action
                || hears(&step.action) && hears(&steps[next].action)
            {
                return None;
            }
            steps.swap(at, next);
            "behind the agent's next step"
        }
        2 => {
            if says_nothing(steps, at) {
                return None;
            }
            steps.insert(at + 1, step.clone());
            "told twice"
        }
        _ => {
            if reads_the_unknown(protocol, steps, at) {
                return None;
            }
            alter(protocol, home, &mut steps[at].action, chance)?;
            // The number of a message that nobody takes is nowhere else.
            if let (Action::Send { flight: now, .. }, Action::Send { flight, .. }) =
                (&steps[at].action, &step.action)
            {
                let takes = |step: &Step| matches!(&step.action, Action::Receive { flight: f, .. } if f == flight);
                if now != flight && !steps.iter().any(takes) {
                    return None;
                }
            }
            "altered"
        }
    };
    let now = steps.get(at).map(|step| &step.action);
    Some(format!("step {}, {what}: {:?}, now {now:?}", at + 1, step))
}

/// Whether a step tells what was read of a word of which nobody has told before what it is.
fn reads_the_unknown(protocol: &Protocol, steps: &[Step], at: usize) -> bool {
    let of_word = |step: &Step| match &step.action {
        Action::Does { what } => {
            let (_, of_word) = what.split_once(" of word ")?;
            Some(of_word.to_string())
        }
        _ => None,
    };
    let Some(read) = of_word(&steps[at]) else {
        return false;
    };
    let writes = |step: &&Step| match &step.action {
        // Under its lock the device may have written.
        Action::Does { what } if what == "takes the unlock" => true,
        Action::Does { what } if what == "write_line" => true,
        Action::Does { what } => what.starts_with("performs a ") && !what.contains("a load"),
        Action::Send { message, .. } => {
            let name = message.split('(').next();
            let mut stores = protocol.messages.iter().filter(|m| m.carries.store());
            stores.any(|m| Some(m.name.as_str()) == name)
        }
        _ => false,
    };
    // Where copies may be old, what others read says nothing of this one's copy.
    let loose = !protocol.guarantee.coherent;
    let own = |step: &&Step| !loose || step.agent == steps[at].agent;
    let takes = |step: &&Step| loose && matches!(step.action, Action::Receive { .. });
    let told = |step: &&Step| of_word(step).is_some_and(|word| word == read);
    let mut before = steps[..at].iter().rev().filter(own);
    let before = before.find(|step| told(step) || writes(step) || takes(step));
    !before.is_some_and(|step| told(&step))
}

/// What memory does.
const OF_MEMORY: [&str; 4] = [
    "is read",
    "is written",
    "takes the store",
    "takes the partial store",
];

/// Whether a step says nothing that is not said without it: that a state stays what it was, or that a copy is used which
/// its agent may use anyway.
fn says_nothing(steps: &[Step], at: usize) -> bool {
    let step = &steps[at];
    let same = |other: &&Step| (other.agent, other.line) == (step.agent, step.line);
    match &step.action {
        Action::Becomes { .. } => {
            let becomes = |step: &Step| match &step.action {
                Action::Becomes { state } => Some(state.clone()),
                _ => None,
            };
            let before = |is_it: &dyn Fn(&&Step) -> bool| {
                let mut before = steps[..at].iter().rev().filter(is_it);
                before.find_map(becomes)
            };
            let Some(last) = before(&same) else {
                return true;
            };
            let now = becomes(step).unwrap_or_default();
            // Registers may have been told of another line since.
            let any = before(&|other| other.agent == step.agent).unwrap_or_default();
            let parts = |state: &str| match state.split_once(' ') {
                Some((name, values)) => (name.to_string(), values.to_string()),
                None => (state.to_string(), String::new()),
            };
            last == now || parts(&last).0 == parts(&now).0 && parts(&any).1 == parts(&now).1
        }
        // What the device asks for, or memory does last, without the home having heard of it.
        Action::Does { what } if what.starts_with("asks for ") => {
            let local = what.strip_prefix("asks for ");
            !steps[at + 1..].iter().any(|step| match &step.action {
                Action::Does { what } => local == what.strip_prefix("takes "),
                _ => false,
            })
        }
        Action::Does { what } if OF_MEMORY.contains(&what.as_str()) => {
            !steps[at + 1..].iter().any(|step| match &step.action {
                Action::Does { what } => OF_MEMORY.contains(&what.as_str()),
                _ => false,
            })
        }
        // A value counts as told where it is told.
        Action::Does { what } if what.contains(" of word ") => true,
        Action::Does { what } => {
            let access = Access::ALL
                .iter()
                .any(|(_, name)| what == name || what.starts_with("performs a "));
            let next = steps[at + 1..].iter().find(same);
            let leads = next.is_some_and(|next| match &next.action {
                Action::Send { .. } => true,
                Action::Becomes { .. } => !says_nothing(steps, at + 1),
                _ => false,
            });
            access && !leads
        }
        _ => false,
    }
}

/// Another value in the place of one of a step.
fn alter(
    protocol: &Protocol,
    home: &Controller,
    action: &mut Action,
    chance: &mut Chance,
) -> Option<()> {
    let another = |names: Vec<&str>, not: &str, chance: &mut Chance| {
        let names: Vec<&str> = names.into_iter().filter(|name| *name != not).collect();
        (!names.is_empty()).then(|| names[chance.below(names.len())].to_string())
    };
    match action {
        Action::Send {
            message,
            to,
            flight,
        } => match chance.below(3) {
            0 => *to += 1,
            1 => *flight += 1_000_000,
            _ => *message = other_message(protocol, message, chance)?,
        },
        Action::Receive {
            message,
            from,
            flight,
        } => match chance.below(3) {
            0 => *from += 1,
            1 => *flight += 1_000_000,
            _ => *message = other_message(protocol, message, chance)?,
        },
        Action::Becomes { state } => {
            let all = protocol.remote.states.iter().chain(&home.states);
            *state = another(
                all.map(|state| state.name.as_str()).collect(),
                state,
                chance,
            )?;
        }
        Action::Does { what } => match what.rsplit_once(": ") {
            // What is read is another value than what was written.
            Some((begin, value)) if what.contains("a load") => {
                *what = format!("{begin}: {}", value.parse::<u64>().ok()?.wrapping_add(1));
            }
            _ => *what = format!("{what} again"),
        },
    }
    Some(())
}

/// Another message, or another value of a field.
fn other_message(protocol: &Protocol, words: &str, chance: &mut Chance) -> Option<String> {
    if let Some((name, fields)) = words.split_once('(') {
        if chance.below(2) == 0 {
            return Some(format!("{name}(not {fields}"));
        }
    }
    let name = words.split('(').next()?;
    let others: Vec<_> = protocol
        .messages
        .iter()
        .filter(|m| m.name != name)
        .collect();
    (!others.is_empty()).then(|| others[chance.below(others.len())].name.clone())
}
