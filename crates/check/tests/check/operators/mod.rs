//! Generated protocols that apply every operator and every form of assignment to every value of every type, at a home
//! and at a remote, on variables and on message fields.

use std::fmt::Write;

/// Test case of one type: the operations on two of its values, `x` and `y`. A protocol visits all values.
pub struct TypeCase {
    /// Name of the type in the protocol language.
    pub name: &'static str,
    /// Number of remotes; a remote is a value of the types `remote` and `set of remote`.
    remotes: u8,
    /// Successor of each value of `x`. The first whose guard holds applies; the last has none.
    successors: &'static [Successor],
    /// Expressions of `x` and `y`.
    expressions: &'static [TypedExpression],
    /// Assignment operators.
    pub assignments: &'static [Assignment],
}

/// Successor of some values of `x`.
struct Successor {
    /// Condition for the values; empty without one.
    guard: &'static str,
    /// The successor, as an expression of `x`.
    value: &'static str,
}

/// An expression of `x` and `y`.
#[derive(Clone, Copy)]
struct TypedExpression {
    /// The expression.
    text: &'static str,
    /// Type of its value.
    ty: &'static str,
}

/// An operator of assignments `x OPERATOR= y`.
#[derive(Clone, Copy)]
pub struct Assignment {
    /// The operator: `+` or `-`.
    pub operator: &'static str,
    /// Condition under which the result is within the range of the type.
    range_condition: &'static str,
}

/// Form of an assignment that changes a variable.
#[derive(Clone, Copy, PartialEq)]
pub enum AssignmentForm {
    /// `x += y`.
    Short,
    /// `x := x + y`.
    Long,
}

const fn successor(guard: &'static str, value: &'static str) -> Successor {
    Successor { guard, value }
}

const fn typed(text: &'static str, ty: &'static str) -> TypedExpression {
    TypedExpression { text, ty }
}

const fn assignment(operator: &'static str, range_condition: &'static str) -> Assignment {
    Assignment {
        operator,
        range_condition,
    }
}

/// Comparison that applies to all types.
const EQUAL: TypedExpression = typed("x == y", "bool");

/// Comparison that applies to all types.
const NOT_EQUAL: TypedExpression = typed("x != y", "bool");

/// Expressions for numbers from 0 to 2.
const NUMBER_EXPRESSIONS: &[TypedExpression] = &[
    typed("x", "0..2"),
    typed("2 - x", "0..2"),
    typed("x + y", "0..4"),
    // An amount below zero is valid.
    typed("x - y + 2", "0..4"),
    typed("x - y < 0", "bool"),
    typed("x - (y - x) == y", "bool"),
    EQUAL,
    NOT_EQUAL,
    typed("x < y", "bool"),
    typed("x <= y", "bool"),
    typed("x > y", "bool"),
    typed("x >= y", "bool"),
];

/// Successors of the values 0, 1 and 2 in turn.
const COUNT_TO_TWO: &[Successor] = &[
    successor("x == 0", "1"),
    successor("x == 1", "2"),
    successor("", "0"),
];

/// Assignment operators for numbers from 0 to 2, with the condition that the result is in this range.
const NUMBER_ASSIGNMENTS: &[Assignment] =
    &[assignment("+", "x + y <= 2"), assignment("-", "y <= x")];

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
        successors: &[successor("x", "false"), successor("", "true")],
        expressions: &[
            typed("x", "bool"),
            typed("x and y", "bool"),
            typed("x or y", "bool"),
            typed("not x", "bool"),
            typed("not (x and not y) or false", "bool"),
            EQUAL,
            NOT_EQUAL,
        ],
        assignments: &[],
    },
    TypeCase {
        name: "remote",
        remotes: 2,
        successors: &[successor("x == none", "sender"), successor("", "none")],
        expressions: &[
            typed("x", "remote"),
            EQUAL,
            NOT_EQUAL,
            typed("x == none", "bool"),
            // A set that contains only `none` is empty.
            typed("x in { y }", "bool"),
            typed("count({ x } + { y })", "count"),
            typed("{ x } - { y }", "set of remote"),
        ],
        assignments: &[],
    },
    TypeCase {
        name: "set of remote",
        remotes: 2,
        successors: &[
            successor("x == {}", "{ sender }"),
            successor("count(x) == 1 and not sender in x", "x + { sender }"),
            successor("", "{}"),
        ],
        expressions: &[
            typed("x", "set of remote"),
            typed("x + y", "set of remote"),
            typed("x - y", "set of remote"),
            typed("x - (y - x) + {}", "set of remote"),
            EQUAL,
            NOT_EQUAL,
            typed("count(x)", "count"),
            typed("count(x - y) < count(y)", "bool"),
            typed("none in x", "bool"),
        ],
        assignments: &[assignment("+", "true"), assignment("-", "true")],
    },
];

/// Formats an assignment that changes a variable by `y`.
fn assignment_text(variable: &str, operator: &str, form: AssignmentForm) -> String {
    match form {
        AssignmentForm::Short => format!("{variable} {operator}= y"),
        AssignmentForm::Long => format!("{variable} := {variable} {operator} y"),
    }
}

/// Protocol that evaluates every expression at the home and at a remote, where `x` is a variable and `y` a field.
pub fn expression_protocol(case: &TypeCase) -> String {
    let mut variables = String::new();
    let mut actions = String::new();
    for (index, TypedExpression { text, ty }) in case.expressions.iter().enumerate() {
        write!(variables, "; r{index}: {ty}").expect("writing to a string succeeds");
        write!(actions, "r{index} := {text}, ").expect("writing to a string succeeds");
    }
    let remote = format!("  W | Found | x := f, {actions}x := x | I\n");
    let home = format!("  H | Try | {actions}send Found (f = x, y = y) | D\n");
    protocol_text(case, &variables, &remote, &home)
}

/// Protocol that executes one assignment, guarded so that the result is within range.
pub fn assignment_protocol(
    case: &TypeCase,
    assignment: Assignment,
    form: AssignmentForm,
) -> String {
    let Assignment {
        operator,
        range_condition,
    } = assignment;
    let action = format!("z := x, {}", assignment_text("z", operator, form));
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
pub fn out_of_range_protocols(case: &TypeCase, operator: &str) -> [String; 3] {
    let action = assignment_text("x", operator, AssignmentForm::Short);
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
        for Successor { guard, value } in case.successors {
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
