//! Proofs of parts of the RTL by induction. Yosys translates the RTL and the claims in `hardware/formal` to formulas,
//! and an SMT solver searches for a counterexample.
//!
//! A claim is proven in two steps: it holds in the first cycles, and no sequence of cycles in which all claims hold
//! leads to a violation. The sequence may start in an arbitrary state, so a proven claim holds in every cycle.

use crate::lockstep::build::BuildError;
use crate::sources::SOURCES;
use crate::synth::yosys::{find_in, Yosys};
use crate::tool::{self, VersionResult};
use crate::tools::Z3;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Depth of induction in cycles: number of cycles in which all claims are assumed, before the cycle that is proven.
const STEPS: u32 = 4;

/// Time limit for Z3 to print its version.
const LIMIT: Duration = Duration::from_secs(60);

/// A proof about a part of the RTL: claims, and the parameter sets for which they are proven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    /// Module in `hardware/formal` with the claims.
    pub name: &'static str,
    /// SystemVerilog text of that module.
    text: &'static str,
    /// Modules of the RTL that the proof covers, without `.sv`.
    pub modules: &'static [&'static str],
    /// Parameter sets for which the claims are proven.
    pub sizes: &'static [&'static [(&'static str, u32)]],
    /// Assertions of submodules that this proof excludes; other proofs and lockstep cover them.
    excluded_assertions: Option<&'static str>,
}

/// All proofs.
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "fifo_proof",
        text: include_str!("../../../hardware/formal/fifo_proof.sv"),
        modules: &["fifo"],
        sizes: &[
            &[("Depth", 1)],
            &[("Depth", 2)],
            &[("Depth", 4)],
            &[("Depth", 8), ("RegisterValid", 0)],
        ],
        excluded_assertions: None,
    },
    Proof {
        name: "rr_pick_proof",
        text: include_str!("../../../hardware/formal/rr_pick_proof.sv"),
        modules: &["rr_pick"],
        sizes: &[
            &[("Size", 1)],
            &[("Size", 2)],
            &[("Size", 5)],
            &[("Size", 8)],
            &[("Size", 10), ("GroupSize", 4)],
        ],
        excluded_assertions: None,
    },
    Proof {
        name: "stream_arbiter_proof",
        text: include_str!("../../../hardware/formal/stream_arbiter_proof.sv"),
        modules: &["rr_pick", "stream_arbiter"],
        sizes: &[&[("Size", 2)], &[("Size", 4)], &[("Size", 8)]],
        excluded_assertions: None,
    },
    Proof {
        name: "dcs_ingress_proof",
        text: include_str!("../../../hardware/formal/dcs_ingress_proof.sv"),
        modules: &["ram_distributed", "dcs_ingress"],
        sizes: &[&[("Slots", 1)], &[("Slots", 2)]],
        excluded_assertions: None,
    },
    Proof {
        name: "dcs_locals_proof",
        text: include_str!("../../../hardware/formal/dcs_locals_proof.sv"),
        modules: &["rr_pick", "dcs_locals"],
        sizes: &[&[("LocalQueueDepth", 1)], &[("LocalQueueDepth", 3)]],
        excluded_assertions: None,
    },
    Proof {
        name: "dcu_proof",
        text: include_str!("../../../hardware/formal/dcu_proof.sv"),
        modules: &[
            "fifo",
            "rr_pick",
            "ram_block",
            "first_free",
            "dcu_scheduler",
            "dcu_directory",
            "dcu_lookup",
            "dcu_accesses",
            "dcu_messages",
            "dcu_locals",
            "dcu_recall",
            "dcu_tx",
            "dcu",
        ],
        sizes: &[&[]],
        // The contents of the queues depend on the protocol, which is unknown here.
        excluded_assertions: Some("c:*queue*"),
    },
];

/// Result of a proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The claims hold in every cycle.
    Proven,
    /// Claims that are violated, or that induction cannot prove.
    Failed(Vec<String>),
}

/// The tools that proofs need.
#[derive(Clone, Debug)]
pub struct Prover {
    /// Yosys, which translates the claims.
    yosys: Yosys,
    /// Search path in which Yosys and Z3 were found.
    path: OsString,
}

impl Prover {
    /// Searches for the tools in `folder` and then in `PATH`.
    ///
    /// # Errors
    /// [`BuildError::Missing`] with installation instructions if a tool is absent; [`BuildError::Unusable`] if one does
    /// not run.
    pub fn find(folder: Option<&Path>) -> Result<Prover, BuildError> {
        let path = tool::search_path_from(folder);
        let yosys = find_in(&path)?;
        let z3 = tool::version("z3", &["--version"], &path, LIMIT);
        match z3 {
            VersionResult::Output(_) => Ok(Prover { yosys, path }),
            VersionResult::Absent => Err(BuildError::Missing(format!(
                "Z3 is not installed\n  help: {}",
                Z3.install()
            ))),
            VersionResult::Failed(symptom) => Err(BuildError::Unusable(format!(
                "Z3 is installed and does not run: {symptom}\n  help: {}",
                Z3.install()
            ))),
        }
    }

    /// Proves a module's claims for one parameter set, in a folder that receives the necessary files. `size` is an
    /// element of [`Proof::sizes`]. `replacement` is the name of an RTL file and the text that replaces its own, for
    /// fault injection.
    ///
    /// # Errors
    /// [`BuildError::Folder`] if the folder cannot be written; [`BuildError::Failed`] with the output of a tool that
    /// fails without a violated claim.
    pub fn prove(
        &self,
        folder: &Path,
        proof: &Proof,
        size: &[(&str, u32)],
        replacement: Option<(&str, &str)>,
    ) -> Result<Verdict, BuildError> {
        let folder_error =
            |error: std::io::Error| BuildError::Folder(folder.into(), error.to_string());
        fs::create_dir_all(folder).map_err(folder_error)?;
        for &(name, _) in SOURCES {
            let text = replacement.filter(|(file, _)| *file == name);
            let text = text.map_or_else(|| rtl_source(name), |(_, text)| text);
            fs::write(folder.join(name), text).map_err(folder_error)?;
        }
        let claim = format!("{}.sv", proof.name);
        fs::write(folder.join(&claim), proof.text).map_err(folder_error)?;
        fs::write(folder.join("proof.ys"), script(proof, size)).map_err(folder_error)?;
        let run = |command: &mut Command| {
            let output = command
                .current_dir(folder)
                .env("PATH", &self.path)
                .output()
                .map_err(folder_error)?;
            let output_text = [&output.stdout[..], &output.stderr[..]].concat();
            let output_text = String::from_utf8_lossy(&output_text).into_owned();
            Ok::<_, BuildError>((output.status.success(), output_text))
        };
        let (succeeded, output_text) =
            run(Command::new(self.yosys.program()).args(["-q", "proof.ys"]))?;
        if !succeeded {
            return Err(BuildError::Failed(output_text));
        }
        // Base case from reset, then the induction step from an arbitrary state.
        for induction in [false, true] {
            let mut command = Command::new(format!("{}-smtbmc", self.yosys.program()));
            command.args(["-s", "z3", "-t", &STEPS.to_string()]);
            if induction {
                command.arg("-i");
            }
            let (is_proven, output_text) = run(command.arg("proof.smt2"))?;
            let failed_claims: Vec<String> = output_text
                .lines()
                .filter_map(|line| line.split_once("Assert failed in "))
                .map(|(_, claim)| claim.trim().to_string())
                .collect();
            match (is_proven, failed_claims.is_empty()) {
                (true, _) => {}
                (false, false) => return Ok(Verdict::Failed(failed_claims)),
                (false, true) => return Err(BuildError::Failed(output_text)),
            }
        }
        Ok(Verdict::Proven)
    }
}

/// Returns the text of an RTL file; the empty text if no file has the name.
pub fn rtl_source(name: &str) -> &'static str {
    SOURCES
        .iter()
        .find(|(file, _)| *file == name)
        .map_or("", |(_, text)| text)
}

/// Returns the Yosys script that translates one proof to `proof.smt2`.
fn script(proof: &Proof, size: &[(&str, u32)]) -> String {
    let parameters: String = size
        .iter()
        .map(|(name, value)| format!(" -G {name}={value}"))
        .collect();
    let files: String = proof
        .modules
        .iter()
        .map(|name| format!(" {name}.sv"))
        .collect();
    let exclusions = proof
        .excluded_assertions
        .map_or_else(String::new, |pattern| {
            format!("chformal -assert -remove {pattern}\n")
        });
    format!(
        "# Written by Cohkit.
read_slang --threads 1 -D FORMAL --top {name}{parameters} home_pkg.sv{files} {name}.sv
prep -top {name} -flatten
{exclusions}memory_map -formal
opt
async2sync
dffunmap
opt_clean
write_smt2 -wires proof.smt2
",
        name = proof.name,
    )
}
