//! The simulator knows no protocol, message or state by name.

use cohkit_testing::setups;

use std::path::{Path, PathBuf};

/// Adds all files of a folder and of its subfolders.
fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_sources(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[test]
fn no_source_names_a_protocol() {
    let mut names: Vec<String> = Vec::new();
    for name in setups::protocols() {
        let protocol = setups::protocol(&name);
        let messages = protocol.messages.iter().map(|m| m.name.clone());
        // Short names are common words.
        names.extend(messages.filter(|name| name.len() > 6));
        names.extend([name, protocol.name.clone()]);
    }
    names.sort();
    names.dedup();
    let mut files = Vec::new();
    for folder in ["src", "../dram/src", "../platform/src"] {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
        collect_sources(&folder, &mut files);
    }
    assert!(files.len() > 10);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        // `ReadOnce` and `WritePartial` are also accesses of the language, and `Release` an order of accesses.
        let accesses = ["ReadOnce", "WriteLine", "WritePartial"];
        let is_access =
            |word: &str| accesses.contains(&word) || word.eq_ignore_ascii_case("release");
        // Link layers are named after the protocols that they were made for, and carry any. Back-invalidates are
        // messages of CXL. No other module has these names.
        let link_files = [
            "components/layer.rs",
            "components/layer/port.rs",
            "components/layer/wired.rs",
            "platform/mod.rs",
            "platform/text.rs",
        ];
        let layers: &[&str] = match link_files.iter().any(|name| file.ends_with(name)) {
            true => &[
                "Eci",
                "ECI",
                "eci",
                "Ccix",
                "ccix",
                "CCIX",
                "back-invalidate",
            ],
            false => &[],
        };
        // A kind of access in the traces of another tool.
        let is_format_file = file.ends_with("components/recorded/formats.rs");
        let is_foreign_word = |word: &str| is_format_file && word.eq_ignore_ascii_case("writeback");
        let protocol_name = words.find(|word| {
            let mut names = names.iter();
            let is_named = names.any(|name| name == word || name.eq_ignore_ascii_case(word));
            is_named && !is_access(word) && !layers.contains(word) && !is_foreign_word(word)
        });
        assert_eq!(protocol_name, None, "{}", file.display());
    }
}
