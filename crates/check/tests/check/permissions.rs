//! A state with permissions that depend on variables is equivalent to one state per permission.

use crate::support::parse_valid;
use cohkit_check::system;
use cohkit_engine::search::Options;
use cohkit_engine::{check, Outcome};
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::{Home, Permission, Protocol};

/// One writer or several readers. Each holds some of three tokens: `%cache%` is the cache's table.
const PROTOCOL_TEMPLATE: &str = r#"protocol p "p"
line 64 bytes
channels { ask remote -> home; give home -> remote; back remote -> home; recall home -> remote
  ordered give, recall per line }
messages { ask: Get; give: Tokens (line); back: Put (line, n: 0..3), Give (line, n: 0..3), None; recall: Recall }
remote cache { %cache% }
home counter {
  states { H; O; B waits Give Put None; C waits None; D waits Put }
  variables { owner: remote; wants: remote }
  H | Get | send Tokens, owner := sender | O
  O | Get if sender == owner | stall |
  O | Get | send Recall to owner, wants := sender | B
  B | Give if n == 3 | write, send Tokens to wants, owner := wants, wants := none | O
  B | Put if n == 3 | write | C
  B | None | | D
  C | None | send Tokens to wants, owner := wants, wants := none | O
  D | Put if n == 3 | write, send Tokens to wants, owner := wants, wants := none | O
  O | Put if n == 3 | write, owner := none | H
  B C D | Get | stall |
}
"#;

/// The cache with one state whose permission depends on a number.
const CONDITIONAL_CACHE: &str = "
  states { T reads if has > 0, writes if has == 3 and not asked; W waits Tokens }
  variables { has: 0..3; asked: bool }
  T | load store if has == 0 | send Get | W
  W | Tokens | has := 3 | T
  T | evict if has == 3 | send Put (n = has), has := 0, asked := false | stay
  T | demote if has == 3 | asked := true | stay
  T | store if asked | asked := false, retry | stay
  T | Recall if has > 0 | send Give (n = has), has := 0, asked := false | stay
  T W | Recall | send None | stay
";
/// The cache with one state per permission.
const SEPARATE_STATES_CACHE: &str = "
  states { N; R reads; M writes; W waits Tokens }
  variables { has: 0..3; asked: bool }
  N | load store | send Get | W
  W | Tokens | has := 3 | M
  M R | evict | send Put (n = has), has := 0, asked := false | N
  M R | demote | asked := true | R
  R | store | asked := false, retry | M
  M R | Recall | send Give (n = has), has := 0, asked := false | N
  N W | Recall | send None | stay
";

/// Returns the protocol with this table of the cache.
fn protocol(cache: &str) -> Protocol {
    parse_valid(&PROTOCOL_TEMPLATE.replace("%cache%", cache))
}

/// Result of a search.
#[derive(PartialEq, Debug)]
struct SearchResult {
    /// Verdict.
    outcome: Outcome,
    /// Number of states.
    states: u128,
    /// Number of transitions.
    transitions: u128,
    /// Largest distance of a state from the initial one, in steps.
    depth: u64,
}

/// Returns the result of a search with this number of caches.
fn search_result(protocol: &Protocol, remotes: u16) -> SearchResult {
    let Home::Controller(home) = &protocol.home else {
        panic!("hand-written home")
    };
    let system_model =
        system::system_model(protocol, home, remotes, 1, &system::Options::default()).unwrap();
    let report = check(&system_model.model, &Options::default()).unwrap();
    SearchResult {
        outcome: report.outcome,
        states: report.states,
        transitions: report.transitions,
        depth: report.depth,
    }
}

/// Both forms of the cache give the same states, transitions and verdict.
#[test]
fn conditional_permission_equals_separate_states() {
    let (conditional, separate_states) =
        (protocol(CONDITIONAL_CACHE), protocol(SEPARATE_STATES_CACHE));
    for remotes in [1, 2, 3] {
        let results =
            [&conditional, &separate_states].map(|protocol| search_result(protocol, remotes));
        assert_eq!(results[0], results[1], "{remotes} caches");
        assert_eq!(results[0].outcome, Outcome::Verified);
    }
}

/// The parser makes one state for each permission, and keeps the rows that apply to the variables there.
#[test]
fn conditional_permission_splits_a_state_per_permission() {
    let protocol = protocol(CONDITIONAL_CACHE);
    let states: Vec<(&str, Permission)> = (protocol.remote.states.iter())
        .map(|state| (state.name.as_str(), state.permission))
        .collect();
    let expected = [
        ("T", Permission::None),
        ("W", Permission::None),
        ("T.reads", Permission::Read),
        ("T.writes", Permission::Write),
    ];
    assert_eq!(states, expected);
    let recall = protocol
        .message_ids()
        .find(|&id| protocol.message(id).name == "Recall")
        .unwrap();
    let matching_rules = |state: usize| {
        let rules = protocol.remote.rules.iter();
        rules
            .filter(|rule| (rule.state.index(), rule.event) == (state, Event::Message(recall)))
            .count()
    };
    // Without tokens only the last row applies, otherwise only the row before it.
    assert_eq!([0, 1, 2, 3].map(matching_rules), [1, 1, 1, 1]);
}
