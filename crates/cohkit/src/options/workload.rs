//! Parser of the workload of `cohkit sim`.

use super::named_value::possible_value;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use cohkit_api::named_value::NamedValue;
use cohkit_api::workload::{Kind, Work};
use cohkit_base::words::nearest;
use cohkit_sim::components::recorded::Format;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

/// Workloads of [`Format::FOREIGN`], as help shows them.
static FOREIGN: LazyLock<[String; Format::FOREIGN.len()]> =
    LazyLock::new(|| Format::FOREIGN.map(|format| format!("{}:FILE", format.workload())));

/// Parser of a workload's name in the command line.
#[derive(Clone)]
pub(crate) struct WorkParser;

impl TypedValueParser for WorkParser {
    type Value = Work;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Work, clap::Error> {
        let name = value.to_string_lossy();
        Work::named(&name).map_err(|_| {
            let names = self.possible_values().into_iter().flatten();
            let names: Vec<String> = names.map(|value| value.get_name().to_string()).collect();
            let suggestion = match Path::new(&*name).is_file() {
                true => Some(format!("trace:{name}")),
                false => nearest(&name, names.iter().map(String::as_str)).map(str::to_string),
            };
            let argument = argument.map_or(String::new(), ToString::to_string);
            let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
            for (kind, value) in [
                (ContextKind::InvalidArg, ContextValue::String(argument)),
                (ContextKind::InvalidValue, ContextValue::String(name.into())),
                (ContextKind::ValidValue, ContextValue::Strings(names)),
            ] {
                error.insert(kind, value);
            }
            if let Some(suggestion) = suggestion {
                error.insert(
                    ContextKind::SuggestedValue,
                    ContextValue::String(suggestion),
                );
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let kinds = Kind::ALL.iter();
        let own_kinds = [
            ("trace:FILE", "Accesses of a file in the format of `docs/workloads.md`"),
            (
                "packed-trace:FILE",
                "The same, with the accessed pages of 4 KiB placed contiguously, independent of their addresses",
            ),
        ];
        let own_kinds = own_kinds.map(|(name, help)| PossibleValue::new(name).help(help));
        let foreign = Format::FOREIGN.iter().zip(FOREIGN.iter());
        let foreign = foreign.map(|(format, name)| {
            let title = format.title();
            let help = format!("Trace of {title}, with its pages placed contiguously");
            PossibleValue::new(name.as_str()).help(help)
        });
        let traces = own_kinds.into_iter().chain(foreign);
        Some(Box::new(kinds.copied().map(possible_value).chain(traces)))
    }
}
