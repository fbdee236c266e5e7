//! Sizes and counts: memory sizes in options, the memory available to a check, and counts in JSON.

/// Parses an amount of memory, such as `64MiB` or `1.5 GB`, and returns it in bytes. Units ignore case; no unit means
/// bytes.
///
/// # Errors
/// The text is not a positive number with a known unit.
pub fn parse(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    let text = text.trim();
    let number_length = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_length);
    let unit = unit.trim().to_ascii_lowercase();
    let scale = UNITS.iter().find(|(name, _)| *name == unit);
    match (number.parse::<f64>(), scale) {
        (Ok(number), Some((_, scale))) if number.is_finite() && number > 0.0 => {
            // Saturates: the amount exceeds all memory in any case.
            Ok((number * *scale as f64) as u64)
        }
        _ => Err(
            "an amount of memory is a number with a unit: KiB, MiB, GiB, TiB, kB, MB, GB or TB"
                .to_string(),
        ),
    }
}

/// Returns the memory that the states of a check may use, in bytes, if the operating system reports it: three quarters
/// of free memory. An address-space limit also restricts it to half of the unused address space, because a growing
/// table briefly exists twice.
pub(crate) fn memory_for_states() -> Option<u64> {
    let free_share = free_memory().map(|free| free / 4 * 3);
    let address_share = cohkit_engine::memory::address_space_limit().map(|limit| {
        let (limit, used) = (limit, address_space_bytes().unwrap_or(0));
        limit.saturating_sub(used) / 2
    });
    match (free_share, address_share) {
        (Some(free), Some(address_share)) => Some(free.min(address_share)),
        (free, address_share) => free.or(address_share),
    }
}

/// Size of this process's address space, in bytes.
fn address_space_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    proc_entry_bytes(&text, "VmSize:")
}

/// Free memory in bytes, if the operating system reports it.
pub(crate) fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    proc_entry_bytes(&text, "MemAvailable:")
}

/// Returns the value of a line `NAME N kB` in a file of `/proc`, in bytes. The kernel's kB are KiB.
fn proc_entry_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns a count as a JSON number, or as a string if it exceeds 64 bits.
pub(crate) fn json(count: u128) -> serde_json::Value {
    u64::try_from(count).map_or_else(
        |_| serde_json::json!(count.to_string()),
        |count| serde_json::json!(count),
    )
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_parsed_with_their_units() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse("2MB"), Ok(2_000_000));
        assert_eq!(parse("99999999999999TiB"), Ok(u64::MAX));
        for invalid in ["", "0", "-1", "1.2.3", "5 pages", "GiB", "inf", "nan"] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }
}
