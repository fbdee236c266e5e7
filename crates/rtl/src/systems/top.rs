//! The flat top of a system: caches, home and network.

use super::directory::Directory;
use super::operations::row_without_atomics;
use super::queues::{Queues, Rooms};
use crate::agents::layout::{bits, Agent, Agents};
use crate::print::Origin;
use crate::rom::Refusal;
use crate::sources::SYSTEM_UNITS;
use cohkit_diagnostics::line_column;
use cohkit_protocol::controller::{Access, Event, Statement};
use std::fmt::Write;

/// Messages that a queue holds by default, at least.
const DEPTH: usize = 16;

/// Ports of the top. `CACHES` is the number of caches, `LAST` that of the last.
const PORTS: &str = "  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Processor ports, one for each cache. An access is answered once, with its tag; accesses to one line are answered in
  // order, others in any order.
  input  logic [LAST:0]                          req_valid_i,
  output logic [LAST:0]                          req_ready_o,
  input  logic [LAST:0][TagWidth-1:0]            req_tag_i,
  input  logic [LAST:0][2:0]                     req_op_i,        // numbers of cohkit_coherent_pkg
  input  logic [LAST:0]                          req_write_i,
  input  logic [LAST:0]                          req_uncached_i,  // does not keep the line, if the protocol allows it
  input  logic [LAST:0][LineWidth-1:0]           req_line_i,
  input  logic [LAST:0][DataWidth-1:0]           req_data_i,
  input  logic [LAST:0][DataWidth/8-1:0]         req_strobe_i,
  input  logic [LAST:0][WordWidth-1:0]           req_compare_i,   // expected word of a compare-and-swap
  output logic [LAST:0]                          rsp_valid_o,
  output logic [LAST:0][TagWidth-1:0]            rsp_tag_o,
  output logic [LAST:0][DataWidth-1:0]           rsp_data_o,
  output logic [LAST:0]                          rsp_error_o,     // the cache has no such operation

  // Memory: AXI4, single beats of a line, one access at a time with the ID 0.
  output logic                                axi_aw_valid_o,
  input  logic                                axi_aw_ready_i,
  output logic [AddrWidth-1:0]                axi_aw_addr_o,
  output logic                                axi_w_valid_o,
  input  logic                                axi_w_ready_i,
  output logic [DataWidth-1:0]                axi_w_data_o,
  output logic [DataWidth/8-1:0]              axi_w_strb_o,
  input  logic                                axi_b_valid_i,
  output logic                                axi_b_ready_o,
  input  logic [1:0]                          axi_b_resp_i,
  output logic                                axi_ar_valid_o,
  input  logic                                axi_ar_ready_i,
  output logic [AddrWidth-1:0]                axi_ar_addr_o,
  input  logic                                axi_r_valid_i,
  output logic                                axi_r_ready_o,
  input  logic [DataWidth-1:0]                axi_r_data_i,
  input  logic [1:0]                          axi_r_resp_i,

  output logic                                error_o,         // memory has answered with an error
  output logic [CACHES:0]                          unexpected_o     // a message has no row; the last bit is the home's
";

/// Types, queues and messages.
const SIGNALS: &str = "  typedef struct packed {
    event_e                 message;
    remote_t                sender;
    logic [LineWidth-1:0]   line;
    fields_t                fields;
    logic [DataWidth-1:0]   data;
    logic [DataWidth/8-1:0] strobe;
  } message_t;

  // Indices: receiver, sender, queue at the receivers; sender, receiver, queue at the senders.
  logic [Agents-1:0][Agents-1:0][Queues-1:0]     valid, take, stall, push, room;
  message_t [Agents-1:0][Agents-1:0][Queues-1:0] offered;
  message_t [Agents-1:0]                         sent;

  for (genvar sender = 0; sender < Agents; sender++) begin : gen_sender
    for (genvar receiver = 0; receiver < Agents; receiver++) begin : gen_receiver
      for (genvar queue = 0; queue < Queues; queue++) begin : gen_queue
        localparam bit Used = sender == Home ? Down[queue] && receiver != Home
                              : receiver == Home ? Up[queue] : Between[queue];
        if (Used) begin : gen_used
          cohkit_channel #(.message_t(message_t), .Ordered(Ordered[queue]), .Depth(Depth),
                           .Room(sender == Home ? HomeRoom : CacheRoom)) u_channel (
            .clk_i, .rst_ni,
            .push_i   (push[sender][receiver][queue]),
            .message_i(sent[sender]),
            .room_o   (room[sender][receiver][queue]),
            .valid_o  (valid[receiver][sender][queue]),
            .message_o(offered[receiver][sender][queue]),
            .take_i   (take[receiver][sender][queue]),
            .stall_i  (stall[receiver][sender][queue])
          );
        end else begin : gen_unused
          logic unused;
          assign unused = ^{push[sender][receiver][queue], take[receiver][sender][queue],
                            stall[receiver][sender][queue]};
          assign room[sender][receiver][queue]    = 1'b1;
          assign valid[receiver][sender][queue]   = 1'b0;
          assign offered[receiver][sender][queue] = '0;
        end
      end
    end
  end
";

/// Caches of one table. Words in angle brackets are replaced.
const CACHE: &str = "
  for (genvar i = <FIRST>; i < <END>; i++) begin : gen_<AGENT>
    <PREFIX>_state_e                       state, next_state, access_state;
    <PREFIX>_variables_t                   variables, next_variables;
    <PREFIX>_send_t [<SENDS>-1:0]            sends;
    logic [<SENDS>-1:0][QueueWidth-1:0]    queues;
    event_e                              step_event, access;
    remote_t                             sender;
    fields_t                             fields;
    effect_e                             effect;
    data_e                               copy;
    done_e                               done;
    logic                                write, uncached, whole, in_place, step, unexpected, perform, abandon;
    logic                                fault, unused;

    always_comb begin
<ACCESSES>    end
    always_comb begin
      for (int unsigned k = 0; k < <SENDS>; k++) queues[k] = QueueOf[channel(sends[k].message)];
    end
    assign unused = ^{abandon, uncached, whole};
    assign unexpected_o[i] = unexpected || step && fault;

    <PREFIX>_step u_step (
      .state_i(state), .variables_i(variables), .event_i(step_event), .sender_i(sender), .self_i(remote_t'(i + 1)),
      .fields_i(fields), .effect_o(effect), .state_o(next_state), .variables_o(next_variables), .sends_o(sends),
      .copy_o(copy), .done_o(done), .perform_o(perform), .abandon_o(abandon), .fault_o(fault)
    );
    cohkit_cache #(
      .message_t(message_t), .event_e(event_e), .remote_t(remote_t), .fields_t(fields_t), .state_e(<PREFIX>_state_e),
      .variables_t(<PREFIX>_variables_t), .send_t(<PREFIX>_send_t), .LineWidth(LineWidth), .DataWidth(DataWidth),
      .SetWidth(SetWidth), .Ways(Ways), .Agents(Agents), .Queues(Queues), .Sends(<SENDS>),
      .Mshrs(Mshrs), .TagWidth(TagWidth), .Atomics(<ATOMICS>), .Replacement(Replacement)
    ) u_cache (
      .clk_i, .rst_ni,
      .in_valid_i(valid[i]), .in_message_i(offered[i]), .in_take_o(take[i]), .in_stall_o(stall[i]),
      .out_message_o(sent[i]), .out_push_o(push[i]), .room_i(room[i]),
      .self_i(remote_t'(i + 1)), .evict_i(<EVICT>), .initial_state_i(<INITIAL>),
      .initial_variables_i(<PREFIX>_initial()),
      .step_state_o(state), .step_variables_o(variables), .step_event_o(step_event), .step_sender_o(sender),
      .step_fields_o(fields), .step_carries_line_i(carries_line(step_event)), .step_reads_i(<PREFIX>_reads(next_state)),
      .step_effect_i(effect), .step_state_i(next_state), .step_variables_i(next_variables), .step_sends_i(sends),
      .step_queues_i(queues), .step_copy_i(copy), .step_done_i(done), .step_perform_i(perform),
      .access_write_o(write), .access_uncached_o(uncached), .access_whole_o(whole), .access_event_i(access),
      .access_in_place_i(in_place),
      .access_state_o(access_state), .access_reads_i(<PREFIX>_reads(access_state)),
      .access_writes_i(<PREFIX>_writes(access_state)), .access_waits_i(<PREFIX>_waits(access_state)),
      .req_valid_i(req_valid_i[i]), .req_ready_o(req_ready_o[i]), .req_tag_i(req_tag_i[i]), .req_op_i(req_op_i[i]),
      .req_write_i(req_write_i[i]), .req_uncached_i(req_uncached_i[i]), .req_line_i(req_line_i[i]), .req_data_i(req_data_i[i]),
      .req_strobe_i(req_strobe_i[i]), .req_compare_i(req_compare_i[i]), .rsp_valid_o(rsp_valid_o[i]), .rsp_tag_o(rsp_tag_o[i]),
      .rsp_data_o(rsp_data_o[i]), .rsp_error_o(rsp_error_o[i]), .step_o(step), .unexpected_o(unexpected)
    );
  end
";

/// The home. Words in angle brackets are replaced.
const HOME: &str = "
  if (1) begin : gen_home
    <PREFIX>_state_e                       state, next_state;
    <PREFIX>_variables_t                   variables, next_variables;
    <PREFIX>_send_t [<SENDS>-1:0]            sends;
    logic [<SENDS>-1:0][QueueWidth-1:0]    queues;
    event_e                              step_event, operation;
    remote_t                             sender;
    fields_t                             fields;
    effect_e                             effect;
    memory_t                             memory;
    logic                                step, unexpected, acknowledge, fault, unused;
    logic                   mem_valid, mem_write, mem_done;
    logic [LineWidth-1:0]   mem_line;
    logic [DataWidth-1:0]   mem_wdata, mem_rdata;
    logic [DataWidth/8-1:0] mem_strobe;

    always_comb begin
      for (int unsigned k = 0; k < <SENDS>; k++) queues[k] = QueueOf[channel(sends[k].message)];
    end
    assign unused = ^operation;
    assign unexpected_o[Home] = unexpected || step && fault;

    <PREFIX>_step u_step (
      .state_i(state), .variables_i(variables), .event_i(step_event), .sender_i(sender), .fields_i(fields),
      .effect_o(effect), .state_o(next_state), .variables_o(next_variables), .sends_o(sends), .memory_o(memory),
      .acknowledge_o(acknowledge), .operation_o(operation), .fault_o(fault)
    );
    cohkit_home #(
      .message_t(message_t), .event_e(event_e), .remote_t(remote_t), .fields_t(fields_t), .state_e(<PREFIX>_state_e),
      .variables_t(<PREFIX>_variables_t), .send_t(<PREFIX>_send_t), .memory_t(memory_t), .LineWidth(LineWidth),
      .DataWidth(DataWidth), .SetWidth(<SET_WIDTH>), .Ways(<WAYS>), .Recalls(<RECALLS>), .Agents(Agents),
      .Queues(Queues), .Sends(<SENDS>), .Defers(<DEFERS>), .Starts(<STARTS>)
    ) u_home (
      .clk_i, .rst_ni,
      .in_valid_i(valid[Home]), .in_message_i(offered[Home]), .in_take_o(take[Home]), .in_stall_o(stall[Home]),
      .out_message_o(sent[Home]), .out_push_o(push[Home]), .room_i(room[Home]),
      .memory_data_i(<MEMORY_DATA>), .memory_done_i(<MEMORY_DONE>), .recall_i(<RECALL>),
      .initial_state_i(<INITIAL>),
      .initial_variables_i(<PREFIX>_initial()),
      .step_state_o(state), .step_variables_o(variables), .step_event_o(step_event), .step_sender_o(sender),
      .step_fields_o(fields), .step_carries_store_i(carries_store(step_event)),
      .step_effect_i(effect), .step_state_i(next_state), .step_variables_i(next_variables), .step_sends_i(sends),
      .step_queues_i(queues), .step_memory_i(memory), .step_acknowledge_i(acknowledge),
      .mem_valid_o(mem_valid), .mem_write_o(mem_write), .mem_line_o(mem_line), .mem_data_o(mem_wdata),
      .mem_strobe_o(mem_strobe), .mem_done_i(mem_done), .mem_data_i(mem_rdata),
      .step_o(step), .unexpected_o(unexpected)
    );

    cohkit_axi_port #(.LineWidth(LineWidth), .DataWidth(DataWidth)) u_axi (
      .clk_i, .rst_ni,
      .mem_valid_i(mem_valid), .mem_write_i(mem_write), .mem_line_i(mem_line), .mem_data_i(mem_wdata),
      .mem_strobe_i(mem_strobe), .mem_done_o(mem_done), .mem_data_o(mem_rdata),
      .aw_valid_o(axi_aw_valid_o),
      .aw_ready_i(axi_aw_ready_i),
      .aw_addr_o(axi_aw_addr_o),
      .w_valid_o(axi_w_valid_o),
      .w_ready_i(axi_w_ready_i),
      .w_data_o(axi_w_data_o),
      .w_strb_o(axi_w_strb_o),
      .b_valid_i(axi_b_valid_i),
      .b_ready_o(axi_b_ready_o),
      .b_resp_i(axi_b_resp_i),
      .ar_valid_o(axi_ar_valid_o),
      .ar_ready_i(axi_ar_ready_i),
      .ar_addr_o(axi_ar_addr_o),
      .r_valid_i(axi_r_valid_i),
      .r_ready_o(axi_r_ready_o),
      .r_data_i(axi_r_data_i),
      .r_resp_i(axi_r_resp_i),
      .error_o
    );
  end
";

/// Names of the package that the text above uses without the protocol's name.
const COMMON: [&str; 9] = [
    "event_e",
    "remote_t",
    "fields_t",
    "effect_e",
    "data_e",
    "done_e",
    "memory_t",
    "carries_line",
    "carries_store",
];

/// Prints the module `PROTOCOL_system`.
///
/// # Errors
/// The home cannot have this directory.
pub fn top(agents: &Agents, origin: &Origin, directory: Directory) -> Result<String, Refusal> {
    let recall = directory.recall(agents)?;
    let name = &agents.protocol.name;
    let total = agents.total();
    let queues = Queues::new(agents.protocol);
    let title = format!("Coherent memory system of {name} with {total} caches.");
    let mut options = format!("--system {}", agents.remotes_option());
    if recall.is_some() {
        let _ = write!(options, " --directory {}", directory.name());
    }
    let mut text = origin.header(&title, &options);
    let rooms = Rooms::new(agents, &queues);
    let _ = write!(
        text,
        "module {name}_system\n  import {name}_agents_pkg::*;\n#(\n  \
         parameter int unsigned LineWidth = 8,    // bits of a line's number; the home has an entry for every line\n  \
         parameter int unsigned DataWidth = {},  // bits of a line\n  \
         parameter int unsigned SetWidth  = 2,    // bits of a set's number in each cache\n  \
         parameter int unsigned Ways      = 4,    // lines of a set\n  \
         parameter int unsigned Mshrs     = 4,    // outstanding accesses of each cache\n  \
         parameter int unsigned Replacement = 0,  // victims of the caches: 0 round robin, 1 tree pseudo-LRU, 2 random\n  \
         parameter int unsigned TagWidth  = 4,    // bits of the tag of an access\n{}  \
         parameter int unsigned Depth     = {},   // messages in each queue, at least {}\n\n  \
         localparam int unsigned AddrWidth = LineWidth + $clog2(DataWidth / 8),\n  \
         localparam int unsigned WordWidth = DataWidth < 64 ? DataWidth : 64\n) (\n",
        8 * agents.protocol.line_bytes,
        directory_parameters(recall.is_some(), total),
        default_depth(rooms),
        rooms.minimum(),
    );
    text += &PORTS
        .replace("LAST", &(total - 1).to_string())
        .replace("CACHES", &total.to_string());
    text += ");\n";
    text += &constants(&queues, total, rooms);
    let mut body = SIGNALS.to_string();
    let mut first = 0;
    for kind in 0..agents.protocol.kinds.len() {
        let kind = &agents.protocol.kinds[kind];
        let Some(agent) = agents.find(&kind.name) else {
            continue;
        };
        let position = agents
            .protocol
            .kinds
            .iter()
            .position(|k| k.name == kind.name)
            .unwrap_or(0);
        let count = agents
            .remotes
            .count(cohkit_protocol::remotes::KindId(position as u8));
        if count > 0 {
            body += &cache(agents, (agent, origin), &kind.name, (first, first + count));
        }
        first += count;
    }
    body += &home(agents, recall);
    for word in COMMON {
        body = replace_word(&body, word, &agents.name(&[word]));
    }
    text += &replace_word(&body, "channel", &agents.name(&["channel"]));
    let _ = writeln!(text, "endmodule : {name}_system");
    Ok(text)
}

/// Prints the parameters of a directory with recalls. By default a set has an entry for each line of that set in caches.
fn directory_parameters(recalls: bool, total: u16) -> String {
    if !recalls {
        return String::new();
    }
    format!(
        "  parameter int unsigned DirectorySetWidth = SetWidth,  // bits of a set's number in the directory\n  \
         parameter int unsigned DirectoryWays = {total} * Ways,  // entries of a set\n"
    )
}

/// Replaces a word that is neither part of a name nor the name of a port or parameter.
fn replace_word(text: &str, word: &str, name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let before = rest[..at]
            .chars()
            .next_back()
            .or(result.chars().next_back());
        let after = rest[at + word.len()..].chars().next();
        result += &rest[..at];
        result += match before.is_some_and(is_part) || after.is_some_and(is_part) {
            true => word,
            false => name,
        };
        rest = &rest[at + word.len()..];
    }
    result + rest
}

/// Prints the number of messages that a queue holds by default.
fn default_depth(rooms: Rooms) -> String {
    let fixed = DEPTH.max(rooms.fixed);
    match rooms.answers {
        None => fixed.to_string(),
        Some(answers) => format!("{answers} > {fixed} ? {answers} : {fixed}"),
    }
}

/// Prints the constants of the network.
fn constants(queues: &Queues, total: u16, rooms: Rooms) -> String {
    let count = queues.queues.len();
    let width = bits(count as u64 - 1);
    let mask = |predicate: &dyn Fn(&super::queues::Queue) -> bool| {
        let bits = queues
            .queues
            .iter()
            .rev()
            .map(|queue| if predicate(queue) { '1' } else { '0' });
        format!("{count}'b{}", bits.collect::<String>())
    };
    let of_channel = queues
        .of_channel
        .iter()
        .rev()
        .map(|queue| format!("{width}'d{queue}"));
    let of_channel: Vec<String> = of_channel.collect();
    let names = queues.queues.iter().enumerate();
    let names: Vec<String> = names
        .map(|(number, queue)| format!("{number} {}", queue.channels.join(" and ")))
        .collect();
    format!(
        "  localparam int unsigned Home   = {total};  // number of the home; caches have the lower ones\n  \
         localparam int unsigned Agents = {};\n\n  \
         // Free places that a step needs in each queue.\n  \
         localparam int unsigned CacheRoom = {};\n  localparam int unsigned HomeRoom  = {};\n\n  \
         if (Depth < {}{}) begin : gen_invalid_depth\n    \
         $error(\"Depth must be at least {}\");\n  end\n\n  \
         // Queues: {}.\n  localparam int unsigned Queues     = {count};\n  \
         localparam int unsigned QueueWidth = {width};\n  \
         localparam logic [{}:0][QueueWidth-1:0] QueueOf = {{{}}};  // of a channel\n  \
         localparam logic [Queues-1:0] Ordered = {};\n  \
         localparam logic [Queues-1:0] Up      = {};  // from caches to the home\n  \
         localparam logic [Queues-1:0] Down    = {};  // from the home to caches\n  \
         localparam logic [Queues-1:0] Between = {};  // from caches to caches\n\n",
        total + 1,
        rooms.cache,
        rooms.home,
        rooms.fixed,
        rooms.answers.as_ref().map_or(String::new(), |answers| format!(" || Depth < {answers}")),
        rooms.minimum(),
        names.join(", "),
        of_channel.len() - 1,
        of_channel.join(", "),
        mask(&|queue| queue.ordered),
        mask(&|queue| queue.up),
        mask(&|queue| queue.down),
        mask(&|queue| queue.between),
    )
}

/// Prints the caches of one kind, with these numbers.
fn cache(
    agents: &Agents,
    (agent, origin): (&Agent, &Origin),
    kind: &str,
    (first, end): (u16, u16),
) -> String {
    let access = |access| {
        let event = Event::Access(access);
        agent
            .events
            .contains(&event)
            .then(|| agents.event_name(event))
    };
    let load = access(Access::Load).unwrap_or_default();
    let store = access(Access::Store).unwrap_or_default();
    let mut accesses =
        format!("      access = write ? {store} : {load};\n      in_place = 1'b1;\n");
    for (condition, event) in [
        ("uncached && !write", access(Access::ReadOnce)),
        ("uncached && write", access(Access::WritePartial)),
        ("uncached && write && whole", access(Access::WriteLine)),
    ] {
        if let Some(event) = event {
            let _ = writeln!(accesses, "      if ({condition}) begin");
            let _ = writeln!(
                accesses,
                "        access = {event};\n        in_place = 1'b0;\n      end"
            );
        }
    }
    let atomics = match row_without_atomics(agents, agent) {
        Some(row) => {
            let (line, _) = line_column(origin.text, row.span.start);
            format!("1'b0 /* {}:{line}: the row sends a store */", origin.file)
        }
        None => "1'b1".to_string(),
    };
    let evict = access(Access::Evict).unwrap_or_else(|| load.clone());
    let initial = cohkit_protocol::terms::StateId(agent.states.start as u16);
    CACHE
        .replace("<AGENT>", kind)
        .replace("<FIRST>", &first.to_string())
        .replace("<END>", &end.to_string())
        .replace("<ACCESSES>", &accesses)
        .replace("<SENDS>", &agent.sends.to_string())
        .replace("<EVICT>", &evict)
        .replace("<INITIAL>", &agents.state_name(agent, initial))
        .replace("<ATOMICS>", &atomics)
        .replace("<PREFIX>", &agents.name(&[&agent.name]))
}

/// Prints the home, with the event that recalls a line if it has sets of entries.
fn home(agents: &Agents, recall: Option<Event>) -> String {
    let agent = &agents.agents[0];
    let event = |event: Event| match agents.events.contains(&event) {
        true => agents.event_name(event),
        false => agents.event_name(agents.events[0]),
    };
    let has = |predicate: &dyn Fn(&Statement) -> bool| {
        let mut rows = agents.home.rules.iter();
        match rows.any(|row| row.has_statement(predicate)) {
            true => "1'b1",
            false => "1'b0",
        }
    };
    let starts = |s: &Statement| matches!(s, Statement::StartStore { .. });
    let defers = |s: &Statement| *s == Statement::DeferStore || starts(s);
    HOME.replace("<SENDS>", &agent.sends.to_string())
        .replace("<DEFERS>", has(&defers))
        .replace("<STARTS>", has(&starts))
        .replace("<RECALL>", &event(recall.unwrap_or(agents.events[0])))
        .replace("<RECALLS>", if recall.is_some() { "1'b1" } else { "1'b0" })
        .replace(
            "<SET_WIDTH>",
            if recall.is_some() {
                "DirectorySetWidth"
            } else {
                "LineWidth"
            },
        )
        .replace(
            "<WAYS>",
            if recall.is_some() {
                "DirectoryWays"
            } else {
                "1"
            },
        )
        .replace("<MEMORY_DATA>", &event(Event::MemoryData(0)))
        .replace("<MEMORY_DONE>", &event(Event::MemoryDone))
        .replace(
            "<INITIAL>",
            &agents.state_name(agent, cohkit_protocol::terms::StateId(0)),
        )
        .replace("<PREFIX>", &agents.name(&[&agent.name]))
}

/// Returns the list of the files of a system, in the order that tools need.
pub fn file_list(agents: &Agents) -> String {
    let name = &agents.protocol.name;
    let mut text = format!("{name}_agents_pkg.sv\n");
    for agent in &agents.agents {
        let _ = writeln!(text, "{name}_{}_step.sv", agent.name);
    }
    for (file, _) in SYSTEM_UNITS {
        let _ = writeln!(text, "{file}");
    }
    let _ = writeln!(text, "{name}_system.sv");
    text
}
