//! Compositions: protocol files read together with the files that they use, and checked part by part.

use crate::joint_exploration::{self, JointOptions, JointVerdict};
use crate::outcome::{ExitStatus, Failure};
use crate::source::{diagnostics_failure, InputError, Source};
use crate::{files, shipped};
use cohkit_diagnostics::{line_column, suggestion};
use cohkit_protocol::composition::{Composition, JointSystem, LevelBinding};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::{self, Diagnostic};
use cohkit_sim::platform::Platform;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A composition, with the protocol files that it uses.
#[derive(Clone, Debug)]
pub struct CompositionSource {
    /// Path of the composition's file.
    path: PathBuf,
    /// Resolved composition: its spaces, levels and systems.
    composition: Composition,
    /// Files used, one per space and in the order of spaces, without the systems that they declare.
    sources: Vec<Source>,
}

/// A level of caches whose homes are over the caches of another protocol.
#[derive(Clone, Debug)]
pub struct LowerLevel {
    /// Name of the protocol in the composition.
    pub name: String,
    /// File of the protocol.
    pub source: Source,
    /// Number of clusters with this protocol in the composition's largest system.
    pub clusters: u16,
}

/// A protocol file that a composition uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsedFile {
    /// File name as the composition gives it.
    pub file: String,
    /// Path of the file; for a shipped protocol, its name.
    pub path: PathBuf,
    /// Contents of the file.
    pub text: String,
}

impl CompositionSource {
    /// Reads the files that the composition uses: those in its folder, or shipped ones. `colour` is true for error
    /// messages with terminal colours.
    ///
    /// # Errors
    /// The composition is invalid, or a file that it uses cannot be read.
    pub fn read(path: &Path, text: &str, colour: bool) -> Result<CompositionSource, Failure> {
        CompositionSource::parse(path, text, &[])
            .map_err(|diagnostics| diagnostics_failure(path, text, &diagnostics, colour))
    }

    /// Parses the composition at `path`, and the files that it uses. Each is taken from `provided_files`, from the
    /// folder of `path`, or from the shipped files, in this order.
    ///
    /// # Errors
    /// All errors of the composition; an error in a used file is reported at its use.
    pub fn parse(
        path: &Path,
        text: &str,
        provided_files: &[UsedFile],
    ) -> Result<CompositionSource, Vec<Diagnostic>> {
        let mut texts = Vec::new();
        let composition = text::compose(text, &mut |file| {
            let (path, text) = match provided_files.iter().find(|used| used.file == file) {
                Some(used) => (used.path.clone(), used.text.clone()),
                None => find_used_file(path, file)?,
            };
            let protocol = parse_used_file(file, &text)?;
            texts.push((path, text));
            Ok(protocol)
        })?;
        let spaces = composition.spaces.iter().zip(texts);
        let sources = spaces.map(|(space, (path, text))| {
            let mut protocol = space.protocol.clone();
            protocol.name.clone_from(&composition.name);
            protocol.systems.clear();
            Source {
                path,
                text,
                protocol,
            }
        });
        Ok(CompositionSource {
            path: path.to_path_buf(),
            sources: sources.collect(),
            composition,
        })
    }

    /// Systems with these names, in this order.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn named_systems(&self, names: &[String]) -> Result<Vec<&JointSystem>, InputError> {
        let systems = &self.composition.systems;
        let find = |name: &String| {
            let system = systems.iter().find(|system| system.name == *name);
            system.ok_or_else(|| {
                let known_names = systems.iter().map(|system| system.name.as_str());
                InputError::input(
                    format!("no system is named `{name}`"),
                    suggestion(name, "system", known_names),
                )
            })
        };
        names.iter().map(find).collect()
    }

    /// Returns the resolved composition.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// Files that the composition uses.
    pub fn used_files(&self) -> Vec<UsedFile> {
        let spaces = self.composition.spaces.iter().zip(&self.sources);
        let used_files = spaces.map(|(space, source)| UsedFile {
            file: space.file.clone(),
            path: source.path.clone(),
            text: source.text.clone(),
        });
        used_files.collect()
    }

    /// Returns the used files, in the order of the spaces. Each declares its part of the system as its only system.
    pub fn parts<'c>(&'c self, system: &'c JointSystem) -> impl Iterator<Item = Source> + 'c {
        let parts = self.sources.iter().zip(&system.parts);
        parts.map(|(source, part)| {
            let mut source = source.clone();
            source.protocol.systems = vec![part.clone()];
            source
        })
    }

    /// Explores each pair of levels of a system together. Setting `cancel` ends the exploration without a verdict.
    pub fn levels<'c>(
        &'c self,
        system: &'c JointSystem,
        options: JointOptions,
        cancel: &'c AtomicBool,
    ) -> impl Iterator<Item = JointVerdict> + 'c {
        let levels = self.composition.joined_levels().into_iter();
        levels.map(move |levels| {
            joint_exploration::judge(&self.composition, system, &levels, options, cancel)
        })
    }

    /// Returns the verdicts of [`CompositionSource::levels`] as JSON.
    pub fn levels_json<'c>(
        &'c self,
        system: &'c JointSystem,
        options: JointOptions,
        cancel: &'c AtomicBool,
    ) -> impl Iterator<Item = Value> + 'c {
        let levels = self.levels(system, options, cancel);
        levels.map(|verdict| verdict.json(&self.path))
    }

    /// File of the upper level and those of the levels below its caches, if the composition is two levels and nothing
    /// else.
    ///
    /// # Errors
    /// Any other composition.
    pub fn upper_and_lower(&self) -> Result<(Source, Vec<LowerLevel>), Failure> {
        let groups = self.composition.joined_levels();
        let [group] = &groups[..] else {
            return Err(self.unsupported_composition("two levels of caches", "run"));
        };
        if self.sources.len() != 1 + group.inner.len() {
            return Err(self.unsupported_composition("two levels of caches alone", "run"));
        }
        let lower = |&space: &usize| {
            let counts = self.composition.systems.iter();
            LowerLevel {
                name: self.composition.spaces[space].name.clone(),
                source: self.sources[space].clone(),
                clusters: counts.map(|system| system.homes[space]).max().unwrap_or(1),
            }
        };
        let lower = group.inner.iter().map(lower).collect();
        Ok((self.sources[group.outer].clone(), lower))
    }

    /// Files of the upper and of the lower level; `None` unless the composition is two levels, one coherent protocol
    /// each, and nothing else.
    fn level_sources(&self) -> Option<[Source; 2]> {
        match self.composition.levels[..] {
            [level] if self.sources.len() == 2 => {
                let sources = [level.outer, level.inner].map(|number| self.sources[number].clone());
                let [_, lower] = &sources;
                lower.protocol.guarantee.coherent.then_some(sources)
            }
            _ => None,
        }
    }

    /// Failure for a composition of a kind that the command does not support.
    fn unsupported_composition(&self, required_kind: &str, verb: &str) -> Failure {
        Failure::new(
            ExitStatus::BadInput,
            format!(
                "error: {}: this specification does not compose {required_kind}\n  \
                 help: {verb} the specifications that it uses, one by one",
                self.path.display()
            ),
        )
    }

    /// Files for the lines of a device and for those of the host's memory, if the composition joins these directions.
    ///
    /// # Errors
    /// Reason why the composition is not of this kind.
    fn directions(&self) -> Result<[Source; 2], String> {
        let directions = self.composition.directions()?;
        Ok([directions.device, directions.host].map(|number| {
            let mut source = self.sources[number].clone();
            // The home is constructed for the systems that the file itself declares.
            let declared_systems = &self.composition.spaces[number].protocol.systems;
            source.protocol.systems.clone_from(declared_systems);
            source
        }))
    }

    /// Protocols of a machine that executes this composition.
    ///
    /// # Errors
    /// No machine executes compositions of this kind.
    pub fn machine_protocols(&self) -> Result<MachineProtocols, Failure> {
        if let Ok([device, host]) = self.directions() {
            return Ok(MachineProtocols::Directions(device, host));
        }
        let required_kind = format!("{TWO_LEVELS}, or both directions between a host and a device");
        let levels = self
            .level_sources()
            .ok_or_else(|| self.unsupported_composition(&required_kind, "simulate"));
        let [upper, lower] = levels?;
        Ok(MachineProtocols::Levels(upper, lower))
    }

    /// Path of the composition.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Summary of the verdicts on all parts. Parts are independent, so the number of states of the whole is the product
    /// of theirs. Two levels count as one part; their verdict comes after those on the parts.
    pub fn product_summary(&self, system: &JointSystem, results: &[(ExitStatus, u128)]) -> String {
        let name = format!("{} {}", self.composition.name, system.name);
        let worst_outcome = results.iter().map(|(outcome, _)| *outcome).max();
        let spaces = &self.composition.spaces;
        let groups = self.composition.joined_levels();
        if matches!(&groups[..], [group] if spaces.len() == 1 + group.inner.len()) {
            // The verdict on the two levels covers everything, and was reported.
            return String::new();
        }
        match worst_outcome {
            Some(ExitStatus::Success) if results.len() == spaces.len() + groups.len() => {}
            Some(ExitStatus::Violated) => return format!("{name}: violated: a part is violated\n"),
            _ => return format!("{name}: undecided: a part is undecided\n"),
        }
        let is_single_level = |number: &usize| {
            let binds = |level: &LevelBinding| level.inner == *number || level.outer == *number;
            !self.composition.levels.iter().any(binds)
        };
        let single_spaces = (0..spaces.len()).filter(is_single_level);
        let single_spaces =
            single_spaces.map(|number| (spaces[number].name.clone(), results[number].1));
        let joined_levels = groups.iter().zip(&results[spaces.len()..]);
        let joined_levels = joined_levels.map(|(group, (_, states))| {
            (joint_exploration::name(&self.composition, group), *states)
        });
        let counts: Vec<(String, u128)> = single_spaces.chain(joined_levels).collect();
        let parts: Vec<String> = (counts.iter())
            .map(|(part, states)| format!("{part} {states}"))
            .collect();
        let mut states = counts.iter().map(|(_, states)| *states);
        let product = states.try_fold(1, u128::checked_mul);
        let product = product.map_or("2^128 or more".to_string(), |states| states.to_string());
        let parts = parts.join(" x ");
        format!("{name}: verified: {product} states ({parts}, spaces that share nothing)\n")
    }
}

/// Two levels that a machine can execute.
const TWO_LEVELS: &str = "two levels with one coherent protocol each";

/// Protocols that a machine executes.
pub enum MachineProtocols {
    /// One protocol for all lines.
    Single(Source),
    /// Protocols of the upper and of the lower level.
    Levels(Source, Source),
    /// Protocols of the device's lines and of the lines of the host's memory.
    Directions(Source, Source),
}

impl MachineProtocols {
    /// Reads a protocol file and, if it is a composition, the files that it uses.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, or no machine executes this kind of composition.
    pub fn read(path: &Path, colour: bool) -> Result<MachineProtocols, Failure> {
        let text = files::read(path)?;
        if !text::composes(&text) {
            return Ok(MachineProtocols::Single(Source::of(path, text, colour)?));
        }
        CompositionSource::read(path, &text, colour)?.machine_protocols()
    }

    /// Reads the shipped protocol that the platform names as its default.
    ///
    /// # Errors
    /// No shipped protocol has the name that the platform gives.
    pub fn of_platform(platform: &Platform, colour: bool) -> Result<MachineProtocols, Failure> {
        let name = shipped::default_protocol(platform);
        let Some(text) = shipped::protocol(Path::new(name)) else {
            let shipped_names = shipped::names().collect::<Vec<_>>().join(", ");
            let message = format!(
                "error: the platform {} names the protocol `{name}`, which is not shipped\n  help: there are {shipped_names}; `--protocol FILE` names another one",
                platform.name
            );
            return Err(Failure::new(ExitStatus::BadInput, message));
        };
        let path = PathBuf::from(format!("{name}.coh"));
        if !text::composes(text) {
            return Ok(MachineProtocols::Single(Source::of(
                &path,
                text.to_string(),
                colour,
            )?));
        }
        CompositionSource::read(&path, text, colour)?.machine_protocols()
    }
}

/// Finds a file that the file at `using_file` uses. Returns its path and contents.
fn find_used_file(using_file: &Path, file: &str) -> Result<(PathBuf, String), String> {
    let path = resolve_used_file(using_file, file);
    if path.is_file() {
        let text = files::read(&path).map_err(|failure| failure.message)?;
        return Ok((path, text));
    }
    let is_named = |name: &str| name.strip_prefix("protocols/").unwrap_or(name) == file;
    let mut texts = shipped::PROTOCOLS.iter();
    match texts.find(|(name, _)| is_named(name)) {
        Some((name, text)) => Ok((PathBuf::from(name), (*text).to_string())),
        None => Err(format!(
            "there is no file `{}`; the shipped specifications are {}",
            path.display(),
            shipped::PROTOCOLS
                .iter()
                .map(|(file, _)| *file)
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

/// Path where a file used by `using_file` is searched first: relative to the folder of `using_file`. Shipped protocols
/// come after it.
pub fn resolve_used_file(using_file: &Path, file: &str) -> PathBuf {
    using_file.parent().unwrap_or(Path::new("")).join(file)
}

/// Parses a file that the file at `using_file` uses. `open` returns contents that take precedence over those on disk,
/// such as those of an editor.
///
/// # Errors
/// The file cannot be read, or is invalid; the error is one sentence with the position in the used file.
pub fn load_protocol(
    using_file: &Path,
    file: &str,
    open: &dyn Fn(&Path) -> Option<String>,
) -> Result<Protocol, String> {
    match open(&resolve_used_file(using_file, file)) {
        Some(text) => parse_used_file(file, &text),
        None => find_used_file(using_file, file).and_then(|(_, text)| parse_used_file(file, &text)),
    }
}

/// Parses a used file. The error is its first diagnostic, with its position.
fn parse_used_file(file: &str, text: &str) -> Result<Protocol, String> {
    text::parse(text).map_err(|diagnostics| {
        let first_error = &diagnostics[0];
        let (line, column) = line_column(text, first_error.span.start);
        format!("{file}:{line}:{column}: {}", first_error.message)
    })
}
