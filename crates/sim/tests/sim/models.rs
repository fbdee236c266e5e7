//! `docs/models.md` lists the assumed quantities of the platforms.
//!
//! `UPDATE_EXPECT=1` rewrites its table.

use cohkit_sim::platform::Platform;
use cohkit_units as units;
use std::fmt::Write;
use std::path::PathBuf;

/// Returns one row per value with a range, with the platforms that use it.
fn table() -> String {
    let mut rows: Vec<([String; 4], Vec<&str>)> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for platform in Platform::shipped_names() {
        for (name, unit, quantity) in Platform::shipped(platform).unwrap().all_quantities() {
            let (low, high) = quantity.range;
            if low == high {
                continue;
            }
            if !names.contains(&name) {
                names.push(name.clone());
            }
            let [value, low, high] = [quantity.value, low, high].map(|n| units::show(n, unit));
            let cells = [
                format!("`{name}`"),
                value,
                format!("{low} to {high}"),
                quantity.origin.clone(),
            ];
            match rows.iter_mut().find(|(other, _)| *other == cells) {
                Some((_, platforms)) => platforms.push(platform),
                None => rows.push((cells, vec![platform])),
            }
        }
    }
    let first_use = |row: &([String; 4], Vec<&str>)| {
        let is_same_name = |name: &String| row.0[0] == format!("`{name}`");
        names.iter().position(is_same_name)
    };
    rows.sort_by_key(first_use);
    let platform_count = Platform::shipped_names().count();
    let mut table =
        String::from("| Quantity | Value | Range | On | Origin |\n|---|---|---|---|---|\n");
    for ([name, value, range, origin], platforms) in rows {
        let platform_list = match platforms.len() == platform_count {
            true => "all".to_string(),
            false => platforms.join(", "),
        };
        writeln!(
            table,
            "| {name} | {value} | {range} | {platform_list} | {origin} |"
        )
        .unwrap();
    }
    table
}

#[test]
fn documented_assumptions_match_the_platforms() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = "writes this table from the platforms. -->\n\n";
    let (text_before, rest) = text.split_once(begin).unwrap();
    let (documented, text_after) = rest.split_once("<!-- end -->").unwrap();
    let table = table() + "\n";
    assert!(table.lines().count() > 20);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let text = format!("{text_before}{begin}{table}<!-- end -->{text_after}");
        std::fs::write(&path, text).unwrap();
    } else {
        assert_eq!(documented, table);
    }
}

/// Each quantity without a source has a range, so that its influence can be measured.
#[test]
fn unsourced_quantities_have_a_range() {
    for name in Platform::shipped_names() {
        for (quantity, _, value) in Platform::shipped(name).unwrap().all_quantities() {
            let is_unsourced = ["assumed", "fitted"]
                .iter()
                .any(|word| value.origin.starts_with(word));
            let has_range = value.range.0 < value.range.1;
            assert!(has_range || !is_unsourced, "{name}: {quantity}");
        }
    }
}
