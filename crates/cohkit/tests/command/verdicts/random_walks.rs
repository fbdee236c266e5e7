//! Random walks instead of a search.

use crate::{check, cohkit, transcript};
use expect_test::expect;

#[test]
fn random_walks_print_their_reproduce_command() {
    let walks = |steps: &str, options: &[&str]| {
        let arguments = ["check", "tests/command/tiny.coh", "--random-walks", steps];
        let output = cohkit([&arguments, options].concat()).output();
        transcript(&output.expect("the command starts"))
    };
    let first_output = walks("500", &["--remotes", "2", "--threads", "1"]);
    expect![[r#"
        exit code 3
        tiny remotes_2_lines_1: undecided: random walks found no violation after 147 states, 500 steps on 1 walk of at most 500, 20 of 26 rules fired
          never fired: memory is written, memory takes the store, memory takes the partial store, home hears that memory is done
          note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
          again: cohkit check tests/command/tiny.coh --random-walks 500 --remotes 2 --threads 1 --seed 0
    "#]].assert_eq(&first_output);
    let reproduce_arguments = first_output
        .lines()
        .find_map(|line| line.trim().strip_prefix("again: cohkit "))
        .expect("a reproduction command");
    let output = cohkit(reproduce_arguments.split(' '))
        .output()
        .expect("the command starts");
    let reproduced_output = transcript(&output);
    assert_eq!(
        reproduced_output,
        first_output.replace("--threads 1\n", "--threads 1 --seed 0\n")
    );
    // Other thread numbers give the same walks, another seed gives others.
    let counts = |transcript: &str| transcript.lines().nth(1).map(str::to_string);
    assert_eq!(
        counts(&walks("500", &["--remotes", "2", "--threads", "2"])),
        counts(&first_output)
    );
    assert_ne!(
        counts(&walks("500", &["--remotes", "2", "--seed", "1"])),
        counts(&first_output)
    );
    // Random walks find a violation.
    check(
        &[
            "check",
            "../../models/philosophers_deadlock.m",
            "--random-walks",
            "5000",
            "--seed",
            "3",
        ],
        expect![[r#"
            exit code 1
            philosophers_deadlock: violated: no deadlock: no rule leads to a different state
              after 28 states, 38 steps on 1 walk of at most 38, 15 of 15 rules fired

            start: Startstate 1
                 at[0] = thinking
                 at[1] = thinking
                 at[2] = thinking
                 at[3] = thinking
                 at[4] = thinking
                 taken[0] = false
                 taken[1] = false
                 taken[2] = false
                 taken[3] = false
                 taken[4] = false
              1. take the left fork (p=0)
                 at[0]: thinking -> has_left
                 taken[0]: false -> true
              2. take the left fork (p=1)
                 at[1]: thinking -> has_left
                 taken[1]: false -> true
              3. take the left fork (p=2)
                 at[2]: thinking -> has_left
                 taken[2]: false -> true
              4. take the left fork (p=4)
                 at[4]: thinking -> has_left
                 taken[4]: false -> true
              5. take the left fork (p=3)
                 at[3]: thinking -> has_left
                 taken[3]: false -> true

              failed guard conditions, by rule:
                take the left fork (p=0): at[p] = thinking; !taken[p]
                take the left fork (p=1): at[p] = thinking; !taken[p]
                take the left fork (p=2): at[p] = thinking; !taken[p]
                take the left fork (p=3): at[p] = thinking; !taken[p]
                take the left fork (p=4): at[p] = thinking; !taken[p]
                take the right fork (p=0): !taken[((p + 1) % 5)]
                take the right fork (p=1): !taken[((p + 1) % 5)]
                take the right fork (p=2): !taken[((p + 1) % 5)]
                take the right fork (p=3): !taken[((p + 1) % 5)]
                take the right fork (p=4): !taken[((p + 1) % 5)]
                stop eating (p=0): at[p] = eating
                stop eating (p=1): at[p] = eating
                stop eating (p=2): at[p] = eating
                stop eating (p=3): at[p] = eating
                stop eating (p=4): at[p] = eating
              again: cohkit check ../../models/philosophers_deadlock.m --random-walks 5000 --seed 3
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--seed", "3"],
        expect![[r#"
            exit code 2
            --- stderr
            error: the following required arguments were not provided:
              --random-walks <STEPS>

            Usage: cohkit check --random-walks <STEPS> --seed <N> <FILE>...

            For more information, try '--help'.
        "#]],
    );
    check(
        &[
            "check",
            "tests/command/tiny.coh",
            "--random-walks",
            "3",
            "--coverage",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the argument '--random-walks <STEPS>' cannot be used with '--coverage'

            Usage: cohkit check --random-walks <STEPS> <FILE>...

            For more information, try '--help'.
        "#]],
    );
}
