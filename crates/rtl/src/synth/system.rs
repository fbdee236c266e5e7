//! Maps a coherent memory system to UltraScale+ with Yosys.

use super::yosys::{Yosys, MAP_LUTS};
use crate::agents::layout::Agents;
use crate::lockstep::build::BuildError;
use crate::systems::build::File;
use crate::systems::queues::Queues;
use cohkit_protocol::remotes::KindId;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Modules that are mapped separately, so that the size of each is known, beside the step functions.
const SEPARATE_MODULES: [&str; 4] = [
    "cohkit_cache",
    "cohkit_home",
    "cohkit_channel",
    "cohkit_axi_port",
];

/// Distributed RAM of UltraScale+ for memories of the systems: with one port for writes and reads, and with one for each.
/// The library of Yosys declares 64 Ki words for the primitive with 512, so that it has no mapping for 257 words or more.
const LUT_RAMS: &str = "\
ram distributed $__XILINX_LUTRAM_SP_ {
  cost 16;
  widthscale;
  option \"ABITS\" 5 { abits 5; widths 16 global; }
  option \"ABITS\" 6 { abits 6; widths 8 global; }
  option \"ABITS\" 7 { abits 7; widths 4 global; }
  option \"ABITS\" 8 { abits 8; widths 2 global; }
  option \"ABITS\" 9 { abits 9; widths 1 global; }
  init any;
  prune_rom;
  port arsw \"RW\" { clock posedge; }
}
ram distributed $__XILINX_LUTRAM_SDP_ {
  cost 16;
  widthscale;
  option \"ABITS\" 5 { abits 5; widths 14 global; }
  option \"ABITS\" 6 { abits 6; widths 7 global; }
  init any;
  prune_rom;
  port sw \"W\" { clock posedge; }
  port ar \"R\" { }
}
";

/// Maps a system in a folder, which receives the necessary files. `files` are the printed files and the units, in the
/// order of [`file_list`](crate::systems::file_list); `parameters` are set at the top, by their names in [`PARAMETERS`](crate::systems::sizes::PARAMETERS).
/// Returns the netlist as JSON. The run ends soon after `stop` is set.
///
/// # Errors
/// [`BuildError`].
pub fn map(
    yosys: &Yosys,
    folder: &Path,
    agents: &Agents,
    files: &[File],
    parameters: &[(String, u64)],
    stop: &AtomicBool,
) -> Result<String, BuildError> {
    let script = script(agents, files, parameters);
    let ram_library = ("lut_rams.txt", LUT_RAMS);
    let files = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let files: Vec<(&str, &str)> = files.chain([ram_library]).collect();
    yosys.run(folder, &files, &script, stop)
}

/// Name of the top module.
pub fn top(agents: &Agents) -> String {
    format!("{}_system", agents.protocol.name)
}

/// Returns the script that maps a system.
fn script(agents: &Agents, files: &[File], parameters: &[(String, u64)]) -> String {
    let top = top(agents);
    let mut text = format!(
        "# Written by cohkit rtl synth.\nread_slang --threads 1 --keep-hierarchy --ignore-assertions -D SYNTHESIS --top {top}"
    );
    for (name, value) in parameters {
        let _ = write!(text, " -G {name}={value}");
    }
    for (name, _) in files {
        let _ = write!(text, " {name}");
    }
    text += "\n# Map one instance of each group of equal caches, step functions and queues.\n";
    text += &shared_modules(agents, &top);
    let _ = write!(
        text,
        "hierarchy -top {top}\nsetattr -mod -set keep_hierarchy 1"
    );
    let steps = agents
        .agents
        .iter()
        .map(|agent| step_module(agents, &agent.name));
    for module in SEPARATE_MODULES.map(String::from).into_iter().chain(steps) {
        let _ = write!(text, " {module}$*");
    }
    text += "\nsynth_xilinx -family xcup -noiopad -flatten -run begin:map_memory\n\
             memory_libmap -lib lut_rams.txt a:ram_style=distributed\n\
             techmap -map +/xilinx/lutrams_xc5v_map.v\n\
             synth_xilinx -family xcup -noiopad -run map_memory:map_luts\n";
    text + MAP_LUTS
}

/// Name of the module with the step function of an agent.
fn step_module(agents: &Agents, agent: &str) -> String {
    format!("{}_{agent}_step", agents.protocol.name)
}

/// Returns commands that replace the equal modules of several instances by one. In patterns, `?` is a bracket.
fn shared_modules(agents: &Agents, top: &str) -> String {
    let mut text = String::new();
    let mut first = 0;
    for (number, kind) in agents.protocol.kinds.iter().enumerate() {
        let count = agents.remotes.count(KindId(number as u8));
        let Some(agent) = agents.find(&kind.name).filter(|_| count > 0) else {
            continue;
        };
        let step = step_module(agents, &agent.name);
        for (module, instance) in [("cohkit_cache", "u_cache"), (step.as_str(), "u_step")] {
            let name = |open, number, close| {
                format!(
                    "{module}${top}.gen_{}{open}{number}{close}.{instance}",
                    kind.name
                )
            };
            let shared = name("[", first, "]");
            for number in first..first + count {
                let _ = writeln!(text, "chtype -set \\{shared} t:{}", name("?", number, "?"));
            }
        }
        first += count;
    }
    let home = agents.total();
    for (number, queue) in Queues::new(agents.protocol).queues.iter().enumerate() {
        let channel = |sender: &str, receiver: &str, number: &str| {
            format!("cohkit_channel${top}.gen_sender{sender}.gen_receiver{receiver}.gen_queue{number}.gen_used.u_channel")
        };
        let one = |sender: u16, receiver: u16| {
            channel(
                &format!("[{sender}]"),
                &format!("[{receiver}]"),
                &format!("[{number}]"),
            )
        };
        let from = |sender: u16| channel(&format!("?{sender}?"), "?*?", &format!("?{number}?"));
        if queue.up || queue.between {
            let shared = one(0, if queue.up { home } else { 0 });
            for sender in 0..home {
                let _ = writeln!(text, "chtype -set \\{shared} t:{}", from(sender));
            }
        }
        if queue.down {
            let _ = writeln!(text, "chtype -set \\{} t:{}", one(home, 0), from(home));
        }
    }
    text
}
