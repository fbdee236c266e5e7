//! Faults seeded in traces: a step missing, two steps swapped, one repeated, or a message, receiver, state, access or
//! value replaced. The judge of traces must reject each of them.

use cohkit_base::random::SplitMix64;
use cohkit_base::sequence::{Action, Step};
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::Protocol;
use cohkit_trace::{judge, Summary, Trace};

/// Judges a trace that must be accepted, and returns its summary. `name` labels the trace in the message of a failure.
///
/// # Panics
/// If the trace is rejected.
pub fn check_sound_trace(
    protocol: &Protocol,
    home: &Controller,
    trace: &Trace,
    name: &str,
) -> Summary {
    let judged = judge(protocol, home, &trace.sequence, trace.ends_quiescent);
    judged.unwrap_or_else(|rejection| {
        let last = rejection.step.min(trace.sequence.steps.len());
        let steps = &trace.sequence.steps[last.saturating_sub(12)..last];
        panic!("{name}: {rejection:?}\n{steps:#?}")
    })
}

/// Pseudo-random numbers of a seed.
struct RandomGenerator(SplitMix64);

impl RandomGenerator {
    /// Returns a number below `end`, which must not be 0.
    fn below(&mut self, end: usize) -> usize {
        self.0.modulo(end as u64) as usize
    }
}

/// Seeds `faults` faults in a trace, one at a time, and returns the number of rejected traces. Faults without an effect
/// are left out.
///
/// # Panics
/// If a trace with an effective fault is accepted.
pub fn count_rejected_faults(
    protocol: &Protocol,
    home: &Controller,
    trace: &Trace,
    (seed, faults): (u64, usize),
    name: &str,
) -> usize {
    let mut random = RandomGenerator(SplitMix64::new(seed));
    let mut rejected = 0;
    for _ in 0..faults {
        let mut steps = trace.sequence.steps.clone();
        let Some(fault) = seed_fault(protocol, home, &mut steps, &mut random) else {
            continue;
        };
        let mut faulty = trace.sequence.clone();
        faulty.steps = steps;
        match judge(protocol, home, &faulty, trace.ends_quiescent) {
            Err(_) => rejected += 1,
            Ok(_) => {
                panic!("{name}: seed {seed}: the judge accepts a trace with this fault: {fault}")
            }
        }
    }
    rejected
}

/// Seeds a fault and describes it. Returns `None` if the changed trace has the same meaning, or is just as correct.
fn seed_fault(
    protocol: &Protocol,
    home: &Controller,
    steps: &mut Vec<Step>,
    random: &mut RandomGenerator,
) -> Option<String> {
    let at = random.below(steps.len());
    let step = steps[at].clone();
    let is_same_agent = |other: &Step| (other.agent, other.line) == (step.agent, step.line);
    let next = (at + 1..steps.len()).find(|&next| is_same_agent(&steps[next]));
    let change = match random.below(4) {
        0 => {
            if is_redundant(steps, at) {
                return None;
            }
            steps.remove(at);
            "removed"
        }
        1 => {
            let next = next?;
            if is_redundant(steps, at) || is_redundant(steps, next) {
                return None;
            }
            // The order in which a device receives answers to different operations is not specified.
            let is_answer = |action: &Action| matches!(action, Action::Does { what } if what.starts_with("is "));
            if steps[next].action == step.action
                || is_answer(&step.action) && is_answer(&steps[next].action)
            {
                return None;
            }
            steps.swap(at, next);
            "after the agent's next step"
        }
        2 => {
            if is_redundant(steps, at) {
                return None;
            }
            steps.insert(at + 1, step.clone());
            "repeated"
        }
        _ => {
            if reads_an_unconstrained_word(protocol, steps, at) {
                return None;
            }
            alter_action(protocol, home, &mut steps[at].action, random)?;
            // The number of a message that is never received occurs nowhere else.
            if let (Action::Send { flight: now, .. }, Action::Send { flight, .. }) =
                (&steps[at].action, &step.action)
            {
                let is_received = |step: &Step| matches!(&step.action, Action::Receive { flight: f, .. } if f == flight);
                if now != flight && !steps.iter().any(is_received) {
                    return None;
                }
            }
            "altered"
        }
    };
    let now = steps.get(at).map(|step| &step.action);
    Some(format!(
        "step {}, {change}: {:?}, now {now:?}",
        at + 1,
        step
    ))
}

/// True if a step reports the value of a word that no earlier step determines.
fn reads_an_unconstrained_word(protocol: &Protocol, steps: &[Step], at: usize) -> bool {
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
    // If copies may be stale, reads by other agents do not constrain this agent's copy.
    let loose = !protocol.guarantee.coherent;
    let is_relevant = |step: &&Step| !loose || step.agent == steps[at].agent;
    let may_update = |step: &&Step| loose && matches!(step.action, Action::Receive { .. });
    let reports = |step: &&Step| of_word(step).is_some_and(|word| word == read);
    let mut before = steps[..at].iter().rev().filter(is_relevant);
    let before = before.find(|step| reports(step) || writes(step) || may_update(step));
    !before.is_some_and(|step| reports(&step))
}

/// Actions of memory.
const MEMORY_ACTIONS: [&str; 4] = [
    "is read",
    "is written",
    "takes the store",
    "takes the partial store",
];

/// True if the trace has the same meaning without a step: the state does not change, or an access hits in a copy that
/// its agent may use.
fn is_redundant(steps: &[Step], at: usize) -> bool {
    let step = &steps[at];
    let same = |other: &&Step| (other.agent, other.line) == (step.agent, step.line);
    match &step.action {
        Action::Becomes { .. } => {
            let becomes = |step: &Step| match &step.action {
                Action::Becomes { state } => Some(state.clone()),
                _ => None,
            };
            let last_state = |matches: &dyn Fn(&&Step) -> bool| {
                let mut before = steps[..at].iter().rev().filter(matches);
                before.find_map(becomes)
            };
            let Some(last) = last_state(&same) else {
                return true;
            };
            let now = becomes(step).unwrap_or_default();
            // A step of another line may have changed the registers since.
            let any = last_state(&|other| other.agent == step.agent).unwrap_or_default();
            let parts = |state: &str| match state.split_once(' ') {
                Some((name, values)) => (name.to_string(), values.to_string()),
                None => (state.to_string(), String::new()),
            };
            last == now || parts(&last).0 == parts(&now).0 && parts(&any).1 == parts(&now).1
        }
        // A request of the device, or the last action of memory, that the home has not received.
        Action::Does { what } if what.starts_with("asks for ") => {
            let local = what.strip_prefix("asks for ");
            !steps[at + 1..].iter().any(|step| match &step.action {
                Action::Does { what } => local == what.strip_prefix("takes "),
                _ => false,
            })
        }
        Action::Does { what } if MEMORY_ACTIONS.contains(&what.as_str()) => {
            !steps[at + 1..].iter().any(|step| match &step.action {
                Action::Does { what } => MEMORY_ACTIONS.contains(&what.as_str()),
                _ => false,
            })
        }
        // The value of a word is reported only here, and its removal leaves a correct trace.
        Action::Does { what } if what.contains(" of word ") => true,
        Action::Does { what } => {
            let access = Access::ALL
                .iter()
                .any(|(_, name)| what == name || what.starts_with("performs a "));
            let next = steps[at + 1..].iter().find(same);
            let leads = next.is_some_and(|next| match &next.action {
                Action::Send { .. } => true,
                Action::Becomes { .. } => !is_redundant(steps, at + 1),
                _ => false,
            });
            access && !leads
        }
        _ => false,
    }
}

/// Replaces a value of a step.
fn alter_action(
    protocol: &Protocol,
    home: &Controller,
    action: &mut Action,
    random: &mut RandomGenerator,
) -> Option<()> {
    let another = |names: Vec<&str>, not: &str, random: &mut RandomGenerator| {
        let names: Vec<&str> = names.into_iter().filter(|name| *name != not).collect();
        (!names.is_empty()).then(|| names[random.below(names.len())].to_string())
    };
    match action {
        Action::Send {
            message,
            to,
            flight,
        } => match random.below(3) {
            0 => *to += 1,
            1 => *flight += 1_000_000,
            _ => *message = other_message(protocol, message, random)?,
        },
        Action::Receive {
            message,
            from,
            flight,
        } => match random.below(3) {
            0 => *from += 1,
            1 => *flight += 1_000_000,
            _ => *message = other_message(protocol, message, random)?,
        },
        Action::Becomes { state } => {
            let all = protocol.remote.states.iter().chain(&home.states);
            *state = another(
                all.map(|state| state.name.as_str()).collect(),
                state,
                random,
            )?;
        }
        Action::Does { what } => match what.rsplit_once(": ") {
            // The read returns a value that was not written.
            Some((begin, value)) if what.contains("a load") => {
                *what = format!("{begin}: {}", value.parse::<u64>().ok()?.wrapping_add(1));
            }
            _ => *what = format!("{what} again"),
        },
    }
    Some(())
}

/// Returns another message, or the same message with another field value.
fn other_message(
    protocol: &Protocol,
    message: &str,
    random: &mut RandomGenerator,
) -> Option<String> {
    if let Some((name, fields)) = message.split_once('(') {
        if random.below(2) == 0 {
            return Some(format!("{name}(not {fields}"));
        }
    }
    let name = message.split('(').next()?;
    let others: Vec<_> = protocol
        .messages
        .iter()
        .filter(|m| m.name != name)
        .collect();
    (!others.is_empty()).then(|| others[random.below(others.len())].name.clone())
}
