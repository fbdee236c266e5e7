//! Properties of charts of arbitrary sequences, whether meaningful or not.

use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_chart::{json, svg, text, Text};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Arbitrary steps of at most eight agents. Agents may be missing from the list, and messages need not match.
fn sequences(name: &'static str) -> impl Strategy<Value = Sequence> {
    let agent = || prop_oneof![40 => 0..9_usize, 1 => Just(usize::MAX)];
    let action = prop_oneof![
        (name, agent(), 0..6_u32).prop_map(|(message, to, flight)| Action::Send {
            message,
            to,
            flight
        }),
        (name, agent(), 0..6_u32).prop_map(|(message, from, flight)| Action::Receive {
            message,
            from,
            flight
        }),
        name.prop_map(|what| Action::Does { what }),
        name.prop_map(|state| Action::Becomes { state }),
    ];
    let step = (agent(), action, option::of(0..3_u32), any::<bool>()).prop_map(
        |(agent, action, line, visible)| Step {
            agent,
            action,
            line,
            visible,
        },
    );
    (vec(name, 0..=8), vec(step, 0..40)).prop_map(|(agents, steps)| Sequence { agents, steps })
}

/// Sequences with matching messages: the k-th message sent is the k-th received, later.
fn matched_sequences() -> impl Strategy<Value = Sequence> {
    let messages = vec(
        (0..8_usize, 0..8_usize, "[A-Z][a-z]{0,12}", 0..12_usize),
        1..20,
    );
    messages.prop_map(|messages| {
        let mut sequence = Sequence {
            agents: (0..8).map(|agent| format!("cpu {agent}")).collect(),
            steps: Vec::new(),
        };
        let mut undelivered: Vec<(usize, Step)> = Vec::new();
        for (flight, (from, to, message, delay)) in messages.into_iter().enumerate() {
            let step = |agent, action| Step {
                agent,
                action,
                line: None,
                visible: agent % 2 == 0,
            };
            let flight = flight as u32;
            sequence.steps.push(step(
                from,
                Action::Send {
                    message: message.clone(),
                    to,
                    flight,
                },
            ));
            undelivered.push((
                delay,
                step(
                    to,
                    Action::Receive {
                        message,
                        from,
                        flight,
                    },
                ),
            ));
            for (delay, step) in std::mem::take(&mut undelivered) {
                match delay.checked_sub(1) {
                    Some(delay) => undelivered.push((delay, step)),
                    None => sequence.steps.push(step),
                }
            }
        }
        sequence
            .steps
            .extend(undelivered.into_iter().map(|(_, step)| step));
        sequence
    })
}

/// Messages between different agents.
fn sent_messages(sequence: &Sequence) -> Vec<&str> {
    let messages = sequence.steps.iter().filter_map(|step| match &step.action {
        Action::Send { message, to, .. } if *to != step.agent => Some(message.as_str()),
        _ => None,
    });
    messages.collect()
}

/// Returns the number of arrowheads in a text chart.
fn arrowheads(chart: &str, heads: [char; 2]) -> usize {
    chart.matches(heads).count()
}

proptest! {
    #[test]
    fn any_sequence_is_drawn_within_its_format(sequence in sequences(".{0,40}"), width in 0..200_usize, ascii: bool) {
        let chart = text(&sequence, &Text { width: Some(width), ascii });
        prop_assert!(!ascii || chart.is_ascii());
        prop_assert!(chart.is_empty() || chart.ends_with('\n'));
        prop_assert!(chart.lines().all(|line| !line.contains(char::is_control)));
    }

    #[test]
    fn every_message_has_its_arrow_and_its_name(sequence in matched_sequences()) {
        let chart = text(&sequence, &Text::default());
        let messages = sent_messages(&sequence);
        prop_assert_eq!(arrowheads(&chart, ['▶', '◀']), messages.len(), "{}", chart);
        for message in &messages {
            prop_assert!(chart.contains(&format!(" {message} ")), "{} in\n{}", message, chart);
        }
        let ascii = text(&sequence, &Text { width: None, ascii: true });
        prop_assert_eq!(arrowheads(&ascii, ['>', '<']), messages.len(), "{}", ascii);
    }

    #[test]
    fn sufficient_width_does_not_change_the_chart(sequence in matched_sequences()) {
        let free = text(&sequence, &Text::default());
        let widest = free.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let limited = text(&sequence, &Text { width: Some(widest + 40), ascii: false });
        prop_assert_eq!(free, limited);
    }

    #[test]
    fn svg_is_well_formed(sequence in sequences(".{0,20}"), title: String) {
        let svg = svg(&sequence, &title);
        let document = roxmltree::Document::parse(&svg);
        prop_assert!(document.is_ok(), "{:?}\n{}", document.err(), svg);
    }

    #[test]
    fn svg_names_every_message(sequence in matched_sequences()) {
        let svg = svg(&sequence, "messages");
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        for message in sent_messages(&sequence) {
            prop_assert!(texts.contains(&message), "{}", message);
        }
        let tips = document.descendants().filter(|node| node.attribute("class") == Some("tip"));
        prop_assert_eq!(tips.count(), sent_messages(&sequence).len());
    }

    #[test]
    fn json_keeps_every_step(sequence in sequences("[a-z]{0,8}")) {
        let value = json(&sequence);
        prop_assert_eq!(value["steps"].as_array().map(Vec::len), Some(sequence.steps.len()));
        prop_assert_eq!(value["agents"].as_array().map(Vec::len), Some(sequence.agents.len()));
    }
}
