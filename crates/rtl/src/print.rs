//! Text forms of a ROM: the SystemVerilog package with its names, and the image that initialises it.

use crate::keywords::is_reserved;
use crate::rom::{Circuit, Rom, Row, MAX_CIRCUITS};
use crate::sources::HOME;
use cohkit_diagnostics::line_column;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Permission, Protocol};
use cohkit_protocol::rows::{rows, Row as DescribedRow};
use std::fmt::Write;

/// Origin of a ROM, for the header of printed files.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Name of the protocol file, without folders.
    pub file: &'a str,
    /// Contents of the protocol file.
    pub text: &'a str,
    /// Version of Cohkit.
    pub version: &'a str,
}

impl Origin<'_> {
    /// Returns the comment at the top of a printed file, with the command that generates it. `options` are its options
    /// besides the folder.
    pub(crate) fn header(&self, title: &str, options: &str) -> String {
        let separator = if options.is_empty() { "" } else { " " };
        format!(
            "// {title}\n//\n// Generated from {0} by `cohkit rtl emit {0}{separator}{options} --out .`, Cohkit {1}; do not \
             edit.\n\n",
            self.file, self.version
        )
    }
}

/// Type of a row of the ROM.
const ROW_TYPE: &str = "
  // A row of the ROM, which is addressed by state and event.
  typedef struct packed {
    home_pkg::effect_e     effect;
    home_pkg::memory_e     memory;
    logic                  acknowledge;  // of the local operation in progress, or of the unlock
    logic                  grant_valid;
    send_e                 grant;
    logic                  forward_valid;
    send_e                 forward;
    home_pkg::permission_e from;         // maximum permission of the remote, as tracked by the home
    home_pkg::permission_e to;
    state_e                next;
  } row_t;

";

/// Prints the SystemVerilog package: enumerations with the protocol's names, the layout of a row, and the properties of
/// messages that the hardware needs. The package's name is the protocol's, followed by `_pkg`.
pub fn package(protocol: &Protocol, rom: &Rom, origin: &Origin) -> String {
    let name = &protocol.name;
    let title = format!("The home of {name}: types and constants of its protocol ROM.");
    let mut text = origin.header(&title, "");
    text += &format!("package {name}_pkg;\n");
    text +=
        "  // States of a line. The first is that of lines which the directory does not hold.\n";
    let state_names = rom.states.iter().map(|name| identifier(name));
    push_enumeration(&mut text, "state_e", rom.state_bits(), state_names);
    text += "\n  // Events of a unit. Messages to the home come first, with their numbers in headers.\n";
    let event_names = rom.events.iter().map(|event| identifier(&event.name));
    push_enumeration(&mut text, "event_e", rom.event_bits(), event_names);
    text += "\n  // Messages to the remote, with their numbers in headers.\n";
    let send_names = rom.sends.iter().map(|sent| identifier(&sent.name));
    push_enumeration(&mut text, "send_e", rom.send_bits(), send_names);
    text += ROW_TYPE;
    text += &format!(
        "  // Circuits to the home: {}; to the remote: {}.\n",
        circuit_list(&rom.rx),
        circuit_list(&rom.tx)
    );
    push_protocol(&mut text, protocol, rom);
    text += &format!("endpackage : {name}_pkg\n");
    text
}

/// Returns the numbers and names of circuits.
fn circuit_list(circuits: &[Circuit]) -> String {
    let names: Vec<String> = circuits
        .iter()
        .enumerate()
        .map(|(index, circuit)| format!("{index} {}", circuit.name))
        .collect();
    names.join(", ")
}

/// Appends the parameter `Protocol`, with the properties of messages that the hardware needs.
fn push_protocol(text: &mut String, protocol: &Protocol, rom: &Rom) {
    *text += "  localparam home_pkg::protocol_t Protocol = '{\n";
    let fields = protocol_fields(protocol, rom);
    for (index, (field, value)) in fields.iter().enumerate() {
        let comma = if index + 1 < fields.len() { "," } else { "" };
        *text += &format!("    {:14}{value}{comma}\n", format!("{field}:"));
    }
    *text += "  };\n";
}

/// Parameters of `home` that one printed package determines.
const PACKAGE_PARAMETERS: [&str; 6] = [
    "Protocol", "state_e", "event_e", "send_e", "row_t", "RomFile",
];

/// Prints the top module `PROTOCOL_home`: the home with the types and the ROM of the printed package. Its other
/// parameters and its ports are copied from the header of `home.sv`.
pub fn top(protocol: &Protocol, origin: &Origin) -> String {
    let name = &protocol.name;
    let title = format!("The home of {name}, with its package's types and its ROM.");
    let mut text = origin.header(&title, "");
    let home = HOME.iter().find(|(file, _)| *file == "home.sv");
    let header = home
        .map_or("", |(_, text)| text)
        .lines()
        .skip_while(|line| !line.starts_with("module "))
        .take_while(|line| *line != ");");
    // Parameters of the top that are passed on to `home`.
    let mut connections = String::new();
    for line in header {
        let parameter = declared_parameter(line);
        if parameter.is_some_and(|parameter| PACKAGE_PARAMETERS.contains(&parameter)) {
            continue;
        }
        if let Some(parameter) = parameter {
            let _ = writeln!(connections, "    .{parameter}({parameter}),");
        }
        let line = line
            .replace("module home", &format!("module {name}_home"))
            .replace("'(Protocol.", &format!("'({name}_pkg::Protocol."));
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(
        text,
        ");
  home #(
{connections}    .Protocol({name}_pkg::Protocol),
    .state_e({name}_pkg::state_e),
    .event_e({name}_pkg::event_e),
    .send_e({name}_pkg::send_e),
    .row_t({name}_pkg::row_t),
    .RomFile(\"{name}.mem\")
  ) u_home (.*);
endmodule : {name}_home
"
    );
    text
}

/// Returns the name of the parameter that a line of a module's header declares, if any.
fn declared_parameter(line: &str) -> Option<&str> {
    let declared = line.trim_start().strip_prefix("parameter ")?;
    declared.split('=').next()?.split_whitespace().next_back()
}

/// Prints the list of a home's files in compilation order, for `verilator -F` and similar tools.
pub fn file_list(protocol: &Protocol) -> String {
    let name = &protocol.name;
    let mut text = String::from("+incdir+.\n");
    let (packages, modules): (Vec<&str>, Vec<&str>) = HOME
        .iter()
        .map(|(file, _)| *file)
        .filter(|file| file.ends_with(".sv"))
        .partition(|file| file.ends_with("_pkg.sv"));
    let (package, top) = (format!("{name}_pkg.sv"), format!("{name}_home.sv"));
    let files = [packages, vec![&package], modules, vec![&top]].concat();
    for file in files {
        let _ = writeln!(text, "{file}");
    }
    text
}

/// Returns a mask of bits as a SystemVerilog literal; the first bit is the lowest of `width` bits.
fn mask(bits: &mut dyn Iterator<Item = bool>, width: usize) -> String {
    let value = bits
        .enumerate()
        .fold(0u64, |value, (index, bit)| value | u64::from(bit) << index);
    format!("{width}'h{value:x}")
}

/// Returns the mask of the messages to the remote that `send_of` selects in a row of the ROM; its width is 16 bits.
fn mask_of_sends(rom: &Rom, send_of: fn(Row) -> Option<u16>) -> String {
    let rows = rom
        .used()
        .filter_map(|(state, event)| send_of(rom.row(state, event)));
    let sent: Vec<u16> = rows.collect();
    mask(
        &mut (0..rom.sends.len()).map(|number| sent.contains(&(number as u16))),
        16,
    )
}

/// Returns the fields of `home_pkg::protocol_t`, the properties of messages that the hardware needs, each with its
/// value.
fn protocol_fields(protocol: &Protocol, rom: &Rom) -> Vec<(&'static str, String)> {
    let number = |value: usize| format!("8'd{value}");
    // For each circuit, the mask of its messages, with the last circuit first as in a packed array.
    let by_circuit = |circuits: Vec<usize>, width: usize| {
        let mask_of = |circuit| mask(&mut circuits.iter().map(|&other| other == circuit), width);
        format!(
            "{{{}}}",
            (0..MAX_CIRCUITS)
                .rev()
                .map(mask_of)
                .collect::<Vec<_>>()
                .join(", ")
        )
    };
    let events = || rom.events.iter();
    let messages = rom.events[..rom.messages].iter();
    vec![
        ("line_bytes", format!("16'd{}", protocol.line_bytes)),
        ("messages", number(rom.messages)),
        ("locals", number(rom.locking.len())),
        ("unlock", number(rom.unlock())),
        ("memory_data", number(rom.memory_data())),
        ("memory_done", number(rom.memory_data() + 1)),
        ("evict", number(rom.local(rom.evict))),
        ("rx_circuits", number(rom.rx.len())),
        ("tx_circuits", number(rom.tx.len())),
        (
            "rx_payload",
            mask(&mut rom.rx.iter().map(|circuit| circuit.payload), 4),
        ),
        (
            "rx_waits",
            mask(&mut rom.rx.iter().map(|circuit| circuit.can_stall), 4),
        ),
        (
            "tx_payload",
            mask(&mut rom.tx.iter().map(|circuit| circuit.payload), 4),
        ),
        ("locking", mask(&mut rom.locking.iter().copied(), 8)),
        (
            "payload",
            mask(&mut events().map(|event| event.payload), 64),
        ),
        (
            "reads",
            mask(
                &mut events().map(|event| event.permission >= Permission::Read),
                64,
            ),
        ),
        (
            "writes",
            mask(
                &mut events().map(|event| event.permission >= Permission::Write),
                64,
            ),
        ),
        (
            "circuit",
            by_circuit(messages.map(|event| event.circuit).collect(), 64),
        ),
        (
            "send_payload",
            mask(&mut rom.sends.iter().map(|sent| sent.payload), 16),
        ),
        ("grants", mask_of_sends(rom, |row| row.grant)),
        ("forwards", mask_of_sends(rom, |row| row.forward)),
        (
            "send_circuit",
            by_circuit(rom.sends.iter().map(|sent| sent.circuit).collect(), 16),
        ),
    ]
}

/// Appends an enumeration type of `bits` bits, whose values are numbered from 0. `values` are identifiers.
pub(crate) fn push_enumeration(
    text: &mut String,
    name: &str,
    bits: u32,
    values: impl Iterator<Item = String>,
) {
    let values: Vec<String> = values.collect();
    let width = values
        .iter()
        .map(|value| value.chars().count())
        .max()
        .unwrap_or(0);
    let _ = writeln!(text, "  typedef enum logic [{}:0] {{", bits - 1);
    for (index, value) in values.iter().enumerate() {
        let comma = if index + 1 < values.len() { "," } else { "" };
        let _ = writeln!(text, "    {value:width$} = {bits}'d{index}{comma}");
    }
    let _ = writeln!(text, "  }} {name};");
}

/// Returns a name in SystemVerilog syntax. A name with characters other than letters, digits and `_`, and a reserved
/// word, is escaped.
pub(crate) fn identifier(name: &str) -> String {
    let is_plain = name
        .chars()
        .all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !name.starts_with(|character: char| character.is_ascii_digit());
    if is_plain && !is_reserved(name) {
        name.to_string()
    } else {
        format!("\\{name} ")
    }
}

/// Prints the ROM's image for `$readmemh`: every row with a rule, with its transition and its line in the protocol
/// file.
pub fn image(protocol: &Protocol, home: &Controller, rom: &Rom, origin: &Origin) -> String {
    let descriptions = rows(protocol, home).rows;
    let title = format!(
        "The protocol ROM of the home of {}: {} rows of {} bits, addressed by state ({} bits) and event ({} bits).",
        protocol.name,
        1u32 << (rom.state_bits() + rom.event_bits()),
        rom.row_bits(),
        rom.state_bits(),
        rom.event_bits(),
    );
    let mut text = origin.header(&title, "");
    text += "// Rows that are not named are 0: the event cannot happen in the state.\n";
    let digits = rom.row_bits().div_ceil(4) as usize;
    for (state, name) in rom.states.iter().enumerate() {
        let _ = write!(text, "\n// {name}\n");
        for event in 0..1usize << rom.event_bits() {
            let rule = rom.events.get(event).and_then(|_| rom.rule(state, event));
            let Some(rule) = rule else {
                continue;
            };
            let address = rom.address(state, event);
            let word = rom.word(rom.row(state, event));
            let (line, _) = line_column(origin.text, home.rules[rule].span.start);
            let _ = writeln!(
                text,
                "@{address:04x} {word:0digits$x}  // {}:{line}: {}",
                origin.file,
                describe(&descriptions[rule])
            );
        }
    }
    text
}

/// Returns a row as text: `EVENT: ACTIONS -> NEXT STATE`.
pub(crate) fn describe(row: &DescribedRow) -> String {
    let mut text = row.event.clone();
    if !row.actions.is_empty() {
        text += &format!(": {}", row.actions.join(", "));
    }
    if let Some(next) = &row.next {
        text += &format!(" -> {next}");
    }
    text
}
