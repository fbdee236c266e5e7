//! Generated protocols that apply every operator and every form of assignment to every value of every type, at a home
//! and at a remote, on variables and on message fields.

use std::fmt::Write;

/// Test case of one type: the operations on two of its values, `x` and `y`. A protocol visits all values.
pub struct TypeCase {
    /// Name of the type in the protocol language.
    pub name: &'static str,
    /// Number of remotes; a remote is a value of the types `remote` and `set of remote`.
    remotes: u8,
    /// Successor of each value of `x`: (guard, value), the last without a guard.
    successors: &'static [(&'static str, &'static str)],
    /// Expressions of `x` and `y`, with their types.
    expressions: &'static [(&'static str, &'static str)],
    /// Assignment operators, each with the condition under which its result is within the type's range.
    pub assignments: &'static [(&'static str, &'static str)],
}

const COMPARED: [(&str, &str); 6] = [
    ("x == y", "bool"),
    ("x != y", "bool"),
    ("x < y", "bool"),
    ("x <= y", "bool"),
    ("x > y", "bool"),
    ("x >= y", "bool"),
];

const NUMBERS: &[(&str, &str)] = &[
    ("x", "0..2"),
    ("2 - x", "0..2"),
    ("x + y", "0..4"),
    // An amount below zero is valid.
    ("x - y + 2", "0..4"),
    ("x - y < 0", "bool"),
    ("x - (y - x) == y", "bool"),
    COMPARED[0],
    COMPARED[1],
    COMPARED[2],
    COMPARED[3],
    COMPARED[4],
    COMPARED[5],
];

const TO_TWO: &[(&str, &str)] = &[("x == 0", "1"), ("x == 1", "2"), ("", "0")];

const WITHIN_TWO: &[(&str, &str)] = &[("+", "x + y <= 2"), ("-", "y <= x")];

pub const TYPES: [Tried; 5] = [
    Tried {
        words: "0..2",
        remotes: 1,
        next: TO_TWO,
        values: NUMBERS,
        changes: WITHIN_TWO,
    },
    Tried {
        words: "count",
        remotes: 2,
        next: TO_TWO,
        values: NUMBERS,
        changes: WITHIN_TWO,
    },
    Tried {
        words: "bool",
        remotes: 1,
        next: &[("x", "false"), ("", "true")],
        values: &[
            ("x", "bool"),
            ("x and y", "bool"),
            ("x or y", "bool"),
            ("not x", "bool"),
            ("not (x and not y) or false", "bool"),
            COMPARED[0],
            COMPARED[1],
        ],
        changes: &[],
    },
    Tried {
        words: "remote",
        remotes: 2,
        next: &[("x == none", "sender"), ("", "none")],
        values: &[
            ("x", "remote"),
            COMPARED[0],
            COMPARED[1],
            ("x == none", "bool"),
            // A set that contains only `none` is empty.
            ("x in { y }", "bool"),
            ("count({ x } + { y })", "count"),
            ("{ x } - { y }", "set of remote"),
        ],
        changes: &[],
    },
    Tried {
        words: "set of remote",
        remotes: 2,
        next: &[
            ("x == {}", "{ sender }"),
            ("count(x) == 1 and not sender in x", "x + { sender }"),
            ("", "{}"),
        ],
        values: &[
            ("x", "set of remote"),
            ("x + y", "set of remote"),
            ("x - y", "set of remote"),
            ("x - (y - x) + {}", "set of remote"),
            COMPARED[0],
            COMPARED[1],
            ("count(x)", "count"),
            ("count(x - y) < count(y)", "bool"),
            ("none in x", "bool"),
        ],
        changes: &[("+", "true"), ("-", "true")],
    },
];

/// An assignment to a variable of the type, in its short or long form.
fn change(variable: &str, operator: &str, operand: &str, short: bool) -> String {
    match short {
        true => format!("{variable} {operator}= {operand}"),
        false => format!("{variable} := {variable} {operator} {operand}"),
    }
}

/// Protocol that evaluates every expression at the home and at a remote, where `x` is a variable and `y` a field.
pub fn expression_protocol(tried: &Tried) -> String {
    let mut variables = String::new();
    let mut actions = String::new();
    for (i, (expression, ty)) in tried.values.iter().enumerate() {
        write!(variables, "; r{i}: {ty}").expect("writing to a string succeeds");
        write!(actions, "r{i} := {expression}, ").expect("writing to a string succeeds");
    }
    let remote = format!("  W | Found | x := f, {actions}x := x | I\n");
    let home = format!("  H | Try | {actions}send Found (f = x, y = y) | D\n");
    text(tried, &variables, &remote, &home)
}

/// Protocol that executes one assignment, guarded so that the result is within range.
pub fn assignment_protocol(tried: &Tried, (operator, fits): (&str, &str), short: bool) -> String {
    let action = format!("z := x, {}", change("z", operator, "y", short));
    let of_field = fits.replace('x', "f");
    let remote = format!(
        "  W | Found if {of_field} | x := f, {action} | I
  W | Found | | I\n"
    );
    let home = format!(
        "  H | Try if {fits} | {action}, send Found (f = x, y = y) | D
  H | Try | send Found (f = x, y = y) | D\n"
    );
    text(tried, &format!("; z: {}", tried.words), &remote, &home)
}

/// Protocols with an unguarded assignment that goes out of range: to a home variable, a remote variable, or a field.
pub fn out_of_range_protocols(tried: &Tried, operator: &str, short: bool) -> [String; 3] {
    let action = change("x", operator, "y", short);
    let at_home = format!("  H | Try | {action}, send Found (f = x, y = y) | D\n");
    let at_remote = "  H | Try | send Found (f = x, y = y) | D\n";
    let assigning_row = format!("  W | Found | x := f, {action} | I\n");
    let in_field = format!("  H | Try | send Found (f = x {operator} y, y = y) | D\n");
    let ignoring_row = "  W | Found | | I\n";
    [
        text(tried, "", ignoring_row, &at_home),
        text(tried, "", &assigning_row, at_remote),
        text(tried, "", ignoring_row, &in_field),
    ]
}

/// Formats a protocol in which remotes request that the home advances `x` or `y`, or executes the tested operation.
fn protocol_text(tried: &Tried, variables: &str, remote: &str, home: &str) -> String {
    let ty = tried.words;
    let mut rows = String::new();
    for variable in ["x", "y"] {
        for (guard, value) in tried.next {
            // In these strings, `x` has no other meaning.
            let [guard, value] = [guard, value].map(|words| words.replace('x', variable));
            let guard = match guard.as_str() {
                "" => String::new(),
                guard => format!("if {guard}"),
            };
            writeln!(
                rows,
                "  H | Next_{variable} {guard} | {variable} := {value}, send Ok | stay"
            )
            .expect("text grows");
        }
    }
    format!(
        "protocol operators
line 64 bytes
channels {{ request remote -> home; grant home -> remote }}
messages {{ request: Next_x, Next_y, Try; grant: Ok, Found (f: {ty}, y: {ty}) }}
remote cache {{
  states {{ I; W waits Ok Found }}
  variables {{ x: {ty}{variables} }}
  I | evict  | send Next_x | W
  I | demote | send Next_y | W
  I | clean  | send Try    | W
  W | Ok     |             | I
{remote}}}
home directory {{
  states {{ H; D }}
  variables {{ x: {ty}; y: {ty}{variables} }}
{rows}{home}  D | Next_x Next_y Try | send Ok | stay
}}
system all {{ remotes {}; lines 1 }}
",
        tried.remotes
    )
}
