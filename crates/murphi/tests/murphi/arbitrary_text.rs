//! No text makes the Murphi front end panic or point outside the text; see `examples/fuzz_murphi` for the long run.

use cohkit_murphi::Dialect;
use proptest::prelude::*;

use cohkit_testing::mutate_murphi;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_characters_do_not_crash(text in "\\PC{0,200}") {
        prop_assert_eq!(mutate_murphi::check(&text, Dialect::Any).err(), None);
    }

    #[test]
    fn language_characters_do_not_crash(text in "[a-z0-9 \n{}()\\[\\],|:;=+<>!.&?\"/*-]{0,200}") {
        prop_assert_eq!(mutate_murphi::check(&text, Dialect::Any).err(), None);
    }
}

/// The first 3,000 mutants of the long run.
#[test]
fn mutated_models_do_not_crash() {
    let corpus = mutate_murphi::Corpus::load();
    let mut accepted = 0;
    for number in 0..3000 {
        let text = corpus.mutant(number);
        let result = mutate_murphi::check(&text, Dialect::Any);
        accepted +=
            u32::from(result.unwrap_or_else(|reason| panic!("text {number}: {reason}\n{text}")));
    }
    assert!(accepted > 100, "only {accepted} texts have no errors");
}
