//! ECI in which a store to an exclusive clean line first gives up write permission, and is retried in S.

/// Returns the changed text of ECI. The protocol stays correct; it covers a store that is retried in another
/// state.
pub fn retried_store(eci: &str) -> String {
    let mut text = eci.to_string();
    for (from, to) in [
        (
            "  E                    | store                    |                           | M      # silent\n",
            "  E | store | send DemoteClean, retry | S\n",
        ),
        // After an upgrade the store is performed in M; in E it would be retried forever.
        (
            "  IE SE IU             | DataExclusive            |                           | E\n",
            "  IE | DataExclusive | | E\n  SE IU | DataExclusive | | M\n",
        ),
    ] {
        assert!(text.contains(from), "`{from}`");
        text = text.replacen(from, to, 1);
    }
    text
}
