//! Errors in files that compose others.

use super::check_text;
use expect_test::expect;

#[test]
fn missing_parts_of_compositions_are_reported() {
    check_text(expect![[r#"
          protocol both
          use "eci.coh" as far
          use "eci.cho" as near
        #     ^^^^^^^^^ use: `eci.cho` cannot be used
          use "msi.coh" as far
        #                  ^^^ duplicate-name: a second used protocol `far`
          node socket { far.cpu; far.core; fra.home; cpu }
        #                            ^^^^ unknown-name: unknown part `core`
        #                                  ^^^ unknown-name: unknown used protocol `fra`
        #                                            ^^^ syntax: `cpu` does not name its used protocol
          system s { socket 1; scoket 1; far.lines 1; near.lines 1 }
        #                      ^^^^^^ unknown-name: unknown node `scoket`
    "#]]);
}

#[test]
fn spaces_without_home_lines_or_remotes_are_reported() {
    check_text(expect![[r#"
          protocol both
          system early { remotes 1; lines 1 }
        #        ^^^^^ misplaced: `system` in a file that composes others
          use "eci.coh" as far
          node card { far.home; far.home }
          line 64 bytes
        #      ^^ misplaced: `line` in a file that composes others
          system none { far.cpu 9; far.lines 1 }
        #                       ^ out-of-range: the number is out of range
          system two { card 1; far.cpu 1; far.lines 1 }
        #        ^^^ out-of-range: `two` has 2 homes of `far`, but a space has one
          system long { far.home 1; far.cpu 1; far.lines 5 }
        #                                                ^ out-of-range: the number of lines is out of range
          system unsaid { far.home 1; far.cpu 1 }
        #        ^^^^^^ missing-block: `unsaid` lacks `far.lines N`
          use "eci-near.coh" as near
          system llc { near.home 1; near.llc 1; near.lines 1; far.home 1; far.cpu 1; far.lines 1 }
        #        ^^^ missing-block: `llc` lacks `near.device N`
          system no_device { near.home 1; near.llc 1; near.device 0; near.lines 1; far.home 1; far.cpu 1; far.lines 1 }
          system nobody { near.home 1; near.llc 0; near.device 0; near.lines 1; far.home 1; far.cpu 0; far.lines 1 }
        #        ^^^^^^ out-of-range: the number of remotes of `far` is out of range
          system homeless { near.home 0; near.llc 1; near.device 0; near.lines 1; far.home 1; far.cpu 1; far.lines 1 }
        #                             ^ out-of-range: the number is out of range
          system unsaid { far.home 1; far.cpu 1; far.lines 1; far.lines 2 }
        #        ^^^^^^ missing-block: `unsaid` lacks `near.llc N` and `near.device N`
        #        ^^^^^^ duplicate-name: a second system `unsaid`
        #                                                               ^ duplicate: a second `lines`
          use eci
        #     ^^^ syntax: expected the path of a protocol file, in quotes, found `eci`
    "#]]);
}

#[test]
fn levels_of_a_wrong_form_are_reported() {
    check_text(expect![[r#"
          protocol levels
          use "mesi.coh" as outer
          use "msi.coh" as inner
          use "eci.coh" as third
          use "eci-near.coh" as several
          use "budget.coh" as joined
          node wrong {
            inner.cache over outer.cache
        #         ^^^^^ misplaced: a cache cannot be `over` another agent
            inner.home over outer.home
        #                         ^^^^ misplaced: a home has no copy that can be the memory of another home
            inner.home over inner.cache
        #                         ^^^^^ misplaced: a home over its own caches
            inner.home over several.llc
        #                           ^^^ misplaced: the outer protocol has several kinds of remotes
            inner.home over joined.cache
        #                          ^^^^^ misplaced: `budget` has registers
            inner.home over outer.coche
        #                         ^^^^^ unknown-name: unknown part `coche`
          }
          node l2 { inner.home over outer.cache }
          node more { third.home over inner.cache }
        #                   ^^^^ misplaced: a third level
          system lines { outer.home 1; l2 2 { inner.cache 1 }; outer.lines 1; inner.lines 1 }
        #                                                                                 ^ misplaced: the lines of `inner` are those of the caches above
          system alone { outer.home 1; outer.cache 1; l2 2 { inner.cache 1 }; outer.lines 1 }
        #        ^^^^^ out-of-range: `alone` has 2 homes over caches of `outer`, and 3 caches that can hold their memory
          system apart { outer.home 1 { outer.cache 1 }; outer.lines 1 }
        #                                     ^^^^^ misplaced: only agents below a cache are counted for each cache
          system none { outer.home 1; l2 2; outer.lines 1 }
        #        ^^^^ out-of-range: the number of remotes of `inner` is out of range
    "#]]);
}
