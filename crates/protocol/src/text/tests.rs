//! Tests of the front end as a whole, from file to protocol.

use super::diagnostic::Code;
use super::{compose, composes, parse};
use crate::controller::{Effect, Event, Expression, Set, Statement, Target, Value};
use crate::policy::GrantCondition;
use crate::protocol::{Carries, Class, Home, Permission, Protocol, Type};

mod aliases;
mod analysis;
mod diagnostics;
mod reference;

/// A shipped protocol whose home is a policy.
const ECI: &str = include_str!("../../../../protocols/eci.coh");
/// A protocol with a hand-written home.
const MSI: &str = include_str!("tests/msi.coh");

/// Returns the protocol, or panics with the diagnostics as a user would see them.
fn parse_valid(text: &str) -> Protocol {
    parse(text).unwrap_or_else(|diagnostics| {
        let rendered: Vec<String> = diagnostics
            .iter()
            .map(|diagnostic| diagnostic.render("test.coh", text, false))
            .collect();
        panic!("{}", rendered.join("\n\n"))
    })
}

/// Samples of each block, among them two forms of each local operation and the systems.
#[test]
fn eci_is_parsed_completely() {
    let eci = parse_valid(ECI);
    assert_eq!(
        (eci.name.as_str(), eci.line_bytes, eci.orders.len()),
        ("eci", 128, 0)
    );
    assert_eq!(eci.channels[0].class, Some(Class::Request));
    assert_eq!(
        eci.messages
            .iter()
            .filter(|message| message.carries == Carries::DirtyLine)
            .count(),
        4
    );
    assert_eq!(eci.remote.states.len(), 11);
    assert_eq!(eci.remote.states[6].permission, Permission::Read);
    assert!(!eci.remote.states[6].is_stable());
    let Home::Policy(policy) = &eci.home else {
        panic!("a policy")
    };
    assert_eq!(policy.requests.len(), 6);
    let locals: Vec<_> = policy
        .locals
        .iter()
        .map(|local| (local.name.as_str(), local.ensure, local.lock))
        .collect();
    assert_eq!(
        locals,
        [
            ("clean", Permission::Read, false),
            ("clean_lock", Permission::Read, true),
            ("clean_invalidate", Permission::None, false),
            ("clean_invalidate_lock", Permission::None, true)
        ]
    );
    assert!(
        policy.requests[4].write
            && policy.requests[4].grants[0].condition == GrantCondition::Always
    );
    assert_eq!(
        eci.systems
            .iter()
            .map(|system| (system.remotes.total(), system.lines))
            .collect::<Vec<_>>(),
        [(1, 1), (1, 2), (2, 1)]
    );
}

/// Folder of the shipped protocol files.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols");

/// Loads a shipped protocol file for one that uses it.
fn load_shipped(file: &str) -> Result<Protocol, String> {
    let text = std::fs::read_to_string(format!("{FOLDER}/{file}"));
    let test_path = format!("{FOLDER}/../tests/homes/{file}");
    let text = text.or_else(|_| std::fs::read_to_string(test_path));
    let text = text.map_err(|_| "there is no such file".to_string())?;
    parse(&text).map_err(|errors| errors[0].message.clone())
}

/// The numbers of a composed system are those that its file states, for each space.
#[test]
fn composition_counts_the_parts_of_each_space() {
    let text = std::fs::read_to_string(format!("{FOLDER}/eci-both.coh")).expect("shipped file");
    let composition = compose(&text, &mut load_shipped).expect("composition without errors");
    let names: Vec<&str> = composition
        .spaces
        .iter()
        .map(|space| space.name.as_str())
        .collect();
    assert_eq!(names, ["far", "near"]);
    let [joint] = &composition.systems[..] else {
        panic!("one system")
    };
    let sizes = |p: &crate::protocol::System| (p.name.clone(), p.remotes.total(), p.lines);
    let parts: Vec<_> = joint.parts.iter().map(sizes).collect();
    assert_eq!(
        parts,
        [
            ("both.far".to_string(), 1, 1),
            ("both.near".to_string(), 2, 1)
        ]
    );
    // A composition is not a protocol of its own.
    assert_eq!(parse(&text).unwrap_err()[0].code, Code::Misplaced);
}

/// Each file has the name of its protocol.
#[test]
fn every_shipped_file_is_parsed() {
    let folder = FOLDER;
    let mut number = 0;
    for entry in std::fs::read_dir(folder).expect("folder of shipped protocols") {
        let path = entry.expect("a folder can be listed").path();
        if path.extension().is_some_and(|extension| extension == "coh") {
            let text = std::fs::read_to_string(&path).expect("protocol file");
            let name = match composes(&text) {
                true => {
                    compose(&text, &mut load_shipped)
                        .expect("composition without errors")
                        .name
                }
                false => parse_valid(&text).name,
            };
            assert_eq!(
                Some(name.replace('_', "-").as_str()),
                path.file_stem().and_then(|stem| stem.to_str())
            );
            number += 1;
        }
    }
    assert!(number >= 5, "{number} files");
}

/// Samples of the rules of a hand-written home.
#[test]
fn rows_of_a_directory_protocol_become_rules() {
    let msi = parse_valid(MSI);
    let Home::Controller(home) = &msi.home else {
        panic!("a controller")
    };
    assert_eq!(
        home.variables
            .iter()
            .map(|variable| variable.ty)
            .collect::<Vec<_>>(),
        [Type::Remote, Type::RemoteSet]
    );
    // A row with several states gives one rule per state.
    let get_m = msi
        .message_ids()
        .find(|&id| msi.message(id).name == "GetM")
        .expect("message GetM");
    let rule = home
        .rules
        .iter()
        .find(|rule| {
            rule.event == Event::Message(get_m) && home.states[rule.state.index()].name == "S"
        })
        .expect("row of GetM in S");
    let Effect::Take { body, next } = &rule.effect else {
        panic!("the row takes GetM")
    };
    assert_eq!(
        next.map(|state| home.states[state.index()].name.as_str()),
        Some("M")
    );
    let Statement::Send {
        to: Target::Remote(Expression::Sender),
        fields,
        ..
    } = &body[0]
    else {
        panic!("{body:?}")
    };
    let Value::Single(Expression::Count(others), Type::Count) = &fields[0] else {
        panic!("{fields:?}")
    };
    assert!(matches!(**others, Set::Difference(..)));
    assert!(matches!(
        body[1],
        Statement::Send {
            to: Target::Each(_),
            ..
        }
    ));
    let stalls = home
        .rules
        .iter()
        .filter(|rule| rule.effect == Effect::Stall)
        .count();
    assert_eq!(stalls, 2);
}
