//! No input makes the front end panic or return a span outside of it; see `examples/fuzz_text` for the long run.

use proptest::prelude::*;

use cohkit_testing::mutate_text;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_of_any_characters(text in "\\PC{0,200}") {
        prop_assert_eq!(mutate_text::check(&text, true).err(), None);
    }

    #[test]
    fn texts_of_the_language_s_characters(text in "[a-zA-Z0-9 \n{}()\\[\\],|:;=+<>!.#\"-]{0,200}") {
        prop_assert_eq!(mutate_text::check(&text, true).err(), None);
    }

    #[test]
    fn mutated_protocols_do_not_crash(number: u64) {
        let text = mutate_text::Corpus::load().input(number);
        prop_assert_eq!(mutate_text::check(&text, true).err(), None);
    }
}

/// A fixed part of the long run, independent of the generator's seed.
#[test]
fn fixed_mutated_protocols_do_not_crash() {
    let corpus = mutate_text::Corpus::load();
    let mut accepted = 0;
    for number in 0..20_000 {
        let text = corpus.input(number);
        accepted += usize::from(
            mutate_text::check(&text, true)
                .unwrap_or_else(|reason| panic!("text {number}: {reason}\n{text}")),
        );
    }
    // Without valid files among them, the comparison of meanings would test nothing.
    assert!(accepted > 500, "only {accepted} texts have no errors");
}
