//! List of equivalent mutants, with the reasons for their equivalence.
//!
//! A line that begins with `=` is a reason. The lines after it are the mutants to which the reason applies, each as
//! `FILE: CHANGE`. An entry that ends with `: *` stands for all mutants of a row. `#` begins a comment.

use std::collections::BTreeMap;

/// Reason for equivalence, by mutant.
pub struct EquivalentMutants(BTreeMap<String, String>);

impl EquivalentMutants {
    /// Parses the list.
    ///
    /// # Errors
    /// A mutant is listed twice or without a reason.
    pub fn parse(list: &str) -> Result<EquivalentMutants, String> {
        let mut reasons = BTreeMap::new();
        let mut reason = None;
        for line in list.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(words) = line.strip_prefix('=') {
                reason = Some(words.trim().to_string());
                continue;
            }
            let Some(reason) = &reason else {
                return Err(format!("`{line}` has no reason"));
            };
            if reasons.insert(line.to_string(), reason.clone()).is_some() {
                return Err(format!("`{line}` is listed twice"));
            }
        }
        Ok(EquivalentMutants(reasons))
    }

    /// Returns the entry that lists a mutant: its own entry, or that of its row.
    pub fn entry<'a>(&'a self, mutant: &'a str) -> Option<&'a str> {
        let row = mutant.rsplit_once(": ").map(|(row, _)| format!("{row}: *"));
        let entries = [Some(mutant.to_string()), row].into_iter().flatten();
        let mut entries = entries.filter_map(|entry| self.0.get_key_value(&entry));
        entries.next().map(|(entry, _)| entry.as_str())
    }

    /// Returns the entries whose reason begins with `reason`.
    // Used by the test only, which checks some of the reasons.
    pub fn with_reason<'a>(&'a self, reason: &'a str) -> impl Iterator<Item = &'a str> {
        let entries = self.0.iter();
        let matching = entries.filter(move |(_, text)| text.starts_with(reason));
        matching.map(|(entry, _)| entry.as_str())
    }

    /// Returns the entries of a protocol file.
    pub fn of_file<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let is_in_file = move |mutant: &&String| mutant.split(": ").next() == Some(text);
        self.0.keys().filter(is_in_file).map(String::as_str)
    }
}
