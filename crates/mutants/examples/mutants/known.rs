//! The list of mutants that mean the same as their text, or nothing that can be told from outside, with reasons.
//!
//! A line that begins with `=` is a reason. The lines after it are the mutants that it holds for, each as
//! `TEXT: WHAT`; one that ends with `: *` stands for all mutants of a row. `#` begins a comment.

use std::collections::BTreeMap;

/// The reasons by mutant.
pub struct Known(BTreeMap<String, String>);

impl Known {
    /// Reads the list.
    ///
    /// # Errors
    /// A sentence, if a mutant is listed twice or without a reason.
    pub fn read(list: &str) -> Result<Known, String> {
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
        Ok(Known(reasons))
    }

    /// The entry that lists a mutant: its own, or that of its row.
    pub fn entry<'a>(&'a self, mutant: &'a str) -> Option<&'a str> {
        let row = mutant.rsplit_once(": ").map(|(row, _)| format!("{row}: *"));
        let entries = [Some(mutant.to_string()), row].into_iter().flatten();
        let mut entries = entries.filter_map(|entry| self.0.get_key_value(&entry));
        entries.next().map(|(entry, _)| entry.as_str())
    }

    /// The entries whose reason begins so.
    // The test asks it: some reasons can be tried.
    #[allow(dead_code)]
    pub fn because<'a>(&'a self, reason: &'a str) -> impl Iterator<Item = &'a str> {
        let entries = self.0.iter();
        let so = entries.filter(move |(_, why)| why.starts_with(reason));
        so.map(|(entry, _)| entry.as_str())
    }

    /// The entries of a text.
    pub fn of<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let of = move |mutant: &&String| mutant.split(": ").next() == Some(text);
        self.0.keys().filter(of).map(String::as_str)
    }
}
