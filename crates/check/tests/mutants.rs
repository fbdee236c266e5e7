//! Some mutants of every shipped text: rejected, refuted, or listed as equivalent with the reason.
//! `make soak` takes all of them.

#[path = "../examples/mutants/generate.rs"]
mod generate;
#[path = "../examples/mutants/judge.rs"]
mod judge;
#[path = "../examples/mutants/known.rs"]
mod known;
#[path = "../examples/mutants/slice.rs"]
mod slice;

use std::path::Path;

/// Every so many mutants of a text are taken: about a hundred and fifty of all texts.
const EVERY: usize = 40;

#[test]
fn mutants_of_the_shipped_texts_do_not_survive() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known = slice::known(&root);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut wrong = Vec::new();
    for (name, text) in slice::shipped(&root) {
        let all = generate::mutants(&text).len();
        assert!(all > 150, "{name} has only {all} mutants");
        let judged = slice::judge(&name, &text, &known, 0, EVERY, threads);
        println!("{name}: {:?}", judged.sums());
        wrong.extend(judged.wrong);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
