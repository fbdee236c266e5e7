//! From a file to a protocol and its controllers, with errors that show their place in the text.

use crate::console::Console;
use crate::files;
use crate::outcome::{Failure, Outcome};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use cohkit_chart::Text;
use cohkit_protocol::construct::fault::{Fault, Refusal};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::{self, Span};
use std::path::{Path, PathBuf};

/// A protocol text that was read.
pub(crate) struct Source {
    /// Where it came from.
    pub path: PathBuf,
    /// The text.
    pub text: String,
    /// What it means.
    pub protocol: Protocol,
}

impl Source {
    /// Reads and parses a file.
    pub fn read(path: &Path, console: &Console) -> Result<Source, Failure> {
        let text = files::read(path)?;
        match text::parse(&text) {
            Ok(protocol) => Ok(Source {
                path: path.to_path_buf(),
                text,
                protocol,
            }),
            Err(diagnostics) => {
                let file = path.display().to_string();
                let colour = console.terminal.colour;
                let errors: Vec<String> = diagnostics
                    .iter()
                    .map(|diagnostic| diagnostic.render(&file, &text, colour))
                    .collect();
                Err(Failure::new(Outcome::BadInput, errors.join("\n\n")))
            }
        }
    }

    /// An error at a place in the text.
    pub fn error(&self, title: &str, span: Span, help: Option<&str>, console: &Console) -> String {
        let path = self.path.display().to_string();
        let length = self.text.len();
        let (start, end) = (
            (span.start as usize).min(length),
            (span.end as usize).min(length),
        );
        let mut group = Level::ERROR.primary_title(title).element(
            Snippet::source(&self.text)
                .path(&path)
                .annotation(AnnotationKind::Primary.span(start..end.max(start))),
        );
        if let Some(help) = help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if console.terminal.colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group]).to_string()
    }

    /// The home cannot be constructed from a text of this form.
    pub fn refusal(&self, refusal: &Refusal, console: &Console) -> Failure {
        let title = format!("no home can be constructed: {}", refusal.what);
        Failure::new(
            Outcome::BadInput,
            self.error(&title, refusal.span, None, console),
        )
    }

    /// A fault of the protocol: its place in the text, and the sequences that show it.
    pub fn fault(&self, fault: &Fault, charts: &Text, console: &Console) -> String {
        let title = format!("{}: {}", fault.kind.name(), fault.text);
        let mut report = self.error(&title, fault.span, fault.remedy.as_deref(), console);
        let several = fault.explanations.len() > 1;
        for (index, explanation) in fault.explanations.iter().enumerate() {
            report += &if several {
                format!("\n\nexplanation {}:\n\n", index + 1)
            } else {
                "\n\n".to_string()
            };
            report += cohkit_chart::text(explanation, charts).trim_end();
        }
        report
    }
}
