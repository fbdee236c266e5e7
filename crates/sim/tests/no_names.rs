//! The simulator knows no protocol, message or state by name.

mod common;

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn no_source_names_a_protocol() {
    let mut names: Vec<String> = Vec::new();
    for name in common::protocols() {
        let protocol = common::protocol(&name);
        let messages = protocol.messages.iter().map(|m| m.name.clone());
        // Short names are common words.
        names.extend(messages.filter(|name| name.len() > 6));
        names.extend([name, protocol.name.clone()]);
    }
    names.sort();
    names.dedup();
    let mut files = Vec::new();
    sources(
        &PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    assert!(files.len() > 10);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        // `ReadOnce` and `WritePartial` are also accesses of the language.
        let accesses = ["ReadOnce", "WriteLine", "WritePartial"];
        // Link layers are named after the protocols that they were made for, and carry any. No other module has these
        // names.
        let of_links = [
            "components/layer.rs",
            "components/layer/port.rs",
            "components/layer/wired.rs",
            "platform/mod.rs",
            "platform/text.rs",
        ];
        let layers: &[&str] = match of_links.iter().any(|name| file.ends_with(name)) {
            true => &["Eci", "ECI", "eci", "Ccix", "ccix", "CCIX"],
            false => &[],
        };
        // A kind of access in the traces of another tool.
        let of_formats = file.ends_with("components/recorded/formats.rs");
        let foreign = |word: &str| of_formats && word.eq_ignore_ascii_case("writeback");
        let found = words.find(|word| {
            let mut names = names.iter();
            let named = names.any(|name| name == word || name.eq_ignore_ascii_case(word));
            named && !accesses.contains(word) && !layers.contains(word) && !foreign(word)
        });
        assert_eq!(found, None, "{}", file.display());
    }
}
