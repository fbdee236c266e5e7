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

/// Comparisons of `x` and `y`, with the type of the result. The first two apply to all types.
const COMPARISONS: [(&str, &str); 6] = [
    ("x == y", "bool"),
    ("x != y", "bool"),
    ("x < y", "bool"),
    ("x <= y", "bool"),
    ("x > y", "bool"),
    ("x >= y", "bool"),
];

/// Expressions for numbers from 0 to 2.
const NUMBER_EXPRESSIONS: &[(&str, &str)] = &[
    ("x", "0..2"),
    ("2 - x", "0..2"),
    ("x + y", "0..4"),
    // An amount below zero is valid.
    ("x - y + 2", "0..4"),
    ("x - y < 0", "bool"),
    ("x - (y - x) == y", "bool"),
    COMPARISONS[0],
    COMPARISONS[1],
    COMPARISONS[2],
    COMPARISONS[3],
    COMPARISONS[4],
    COMPARISONS[5],
];

/// Successors of the values 0, 1 and 2 in turn.
const COUNT_TO_TWO: &[(&str, &str)] = &[("x == 0", "1"), ("x == 1", "2"), ("", "0")];

/// Assignment operators for numbers from 0 to 2, with the condition that the result is in this range.
const NUMBER_ASSIGNMENTS: &[(&str, &str)] = &[("+", "x + y <= 2"), ("-", "y <= x")];

/// One test case for each type of values.
pub const TYPES: [TypeCase; 5] = [
    TypeCase {
        name: "0..2",
        remotes: 1,
        successors: COUNT_TO_TWO,
        expressions: NUMBER_EXPRESSIONS,
        assignments: NUMBER_ASSIGNMENTS,
    },
    TypeCase {
        name: "count",
        remotes: 2,
        successors: COUNT_TO_TWO,
        expressions: NUMBER_EXPRESSIONS,
        assignments: NUMBER_ASSIGNMENTS,
    },
    TypeCase {
        name: "bool",
        remotes: 1,
        successors: &[("x", "false"), ("", "true")],
        expressions: &[
            ("x", "bool"),
            ("x and y", "bool"),
            ("x or y", "bool"),
            ("not x", "bool"),
            ("not (x and not y) or false", "bool"),
            COMPARISONS[0],
            COMPARISONS[1],
        ],
        assignments: &[],
    },
    TypeCase {
        name: "remote",
        remotes: 2,
        successors: &[("x == none", "sender"), ("", "none")],
        expressions: &[
            ("x", "remote"),
            COMPARISONS[0],
            COMPARISONS[1],
            ("x == none", "bool"),
            // A set that contains only `none` is empty.
            ("x in { y }", "bool"),
            ("count({ x } + { y })", "count"),
            ("{ x } - { y }", "set of remote"),
        ],
        assignments: &[],
    },
    TypeCase {
        name: "set of remote",
        remotes: 2,
        successors: &[
            ("x == {}", "{ sender }"),
            ("count(x) == 1 and not sender in x", "x + { sender }"),
            ("", "{}"),
        ],
        expressions: &[
            ("x", "set of remote"),
            ("x + y", "set of remote"),
            ("x - y", "set of remote"),
            ("x - (y - x) + {}", "set of remote"),
            COMPARISONS[0],
            COMPARISONS[1],
            ("count(x)", "count"),
            ("count(x - y) < count(y)", "bool"),
            ("none in x", "bool"),
        ],
        assignments: &[("+", "true"), ("-", "true")],
    },
];

/// An assignment to a variable of the type, in its short or long form.
fn assignment(variable: &str, operator: &str, operand: &str, short: bool) -> String {
    match short {
        true => format!("{variable} {operator}= {operand}"),
        false => format!("{variable} := {variable} {operator} {operand}"),
    }
}

/// Protocol that evaluates every expression at the home and at a remote, where `x` is a variable and `y` a field.
pub fn expression_protocol(case: &TypeCase) -> String {
    let mut variables = String::new();
    let mut actions = String::new();
    for (i, (expression, ty)) in case.expressions.iter().enumerate() {
        write!(variables, "; r{i}: {ty}").expect("writing to a string succeeds");
        write!(actions, "r{i} := {expression}, ").expect("writing to a string succeeds");
    }
    let remote = format!("  W | Found | x := f, {actions}x := x | I\n");
    let home = format!("  H | Try | {actions}send Found (f = x, y = y) | D\n");
    protocol_text(case, &variables, &remote, &home)
}

/// Protocol that executes one assignment, guarded so that the result is within range.
pub fn assignment_protocol(
    case: &TypeCase,
    (operator, range_condition): (&str, &str),
    short: bool,
) -> String {
    let action = format!("z := x, {}", assignment("z", operator, "y", short));
    let of_field = range_condition.replace('x', "f");
    let remote = format!(
        "  W | Found if {of_field} | x := f, {action} | I
  W | Found | | I\n"
    );
    let home = format!(
        "  H | Try if {range_condition} | {action}, send Found (f = x, y = y) | D
  H | Try | send Found (f = x, y = y) | D\n"
    );
    protocol_text(case, &format!("; z: {}", case.name), &remote, &home)
}

/// Protocols with an unguarded assignment that goes out of range: to a home variable, a remote variable, or a field.
pub fn out_of_range_protocols(case: &TypeCase, operator: &str, short: bool) -> [String; 3] {
    let action = assignment("x", operator, "y", short);
    let at_home = format!("  H | Try | {action}, send Found (f = x, y = y) | D\n");
    let at_remote = "  H | Try | send Found (f = x, y = y) | D\n";
    let assigning_row = format!("  W | Found | x := f, {action} | I\n");
    let in_field = format!("  H | Try | send Found (f = x {operator} y, y = y) | D\n");
    let ignoring_row = "  W | Found | | I\n";
    [
        protocol_text(case, "", ignoring_row, &at_home),
        protocol_text(case, "", &assigning_row, at_remote),
        protocol_text(case, "", ignoring_row, &in_field),
    ]
}

/// Formats a protocol in which remotes request that the home advances `x` or `y`, or executes the tested operation.
fn protocol_text(case: &TypeCase, variables: &str, remote: &str, home: &str) -> String {
    let ty = case.name;
    let mut rows = String::new();
    for variable in ["x", "y"] {
        for (guard, value) in case.successors {
            // In these strings, `x` has no other meaning.
            let [guard, value] = [guard, value].map(|text| text.replace('x', variable));
            let guard = match guard.as_str() {
                "" => String::new(),
                guard => format!("if {guard}"),
            };
            writeln!(
                rows,
                "  H | Next_{variable} {guard} | {variable} := {value}, send Ok | stay"
            )
            .expect("writing to a string succeeds");
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
        case.remotes
    )
}
