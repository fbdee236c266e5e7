//! Errors in types, channels and the rows of a controller.

use super::{
    check, check_channels, check_home, check_messages, check_remote, check_states, check_text, ROWS,
};
use expect_test::expect;

#[test]
fn type_errors_are_reported() {
    check_remote(expect![[r#"
          I | store if n | n := who, who := all, all += who, flag := 1, flag += true | I
        #              ^ type: expected a truth value, found a number
        #                       ^^^ type: expected a number, found a remote
        #                                   ^^^ type: expected a remote, found a set of remotes
        #                                               ^^^ type: expected a set of remotes, found a remote
        #                                                            ^ type: expected a truth value, found a number
        #                                                               ^^^^ type: `flag` is neither a number nor a set
          M | store if who in who and not n | n := n + flag, n := who + who | I
        #                     ^^^ type: expected a set of remotes, found a remote
        #                                 ^ type: expected a truth value, found a number
        #                                              ^^^^ type: expected a number, found a truth value
        #                                                         ^^^ type: expected a number or a set of remotes, found a remote
          M | load if n == who | send Ask (requestor = 3) to n | I
        #                  ^^^ type: expected a number, found a remote
        #                                              ^ type: expected a remote, found a number
        #                                                    ^ type: expected a remote, found a number
          M | clean if all == {} and who == none and flag == true and count(all) <= n | send Ask (requestor = self) to none | I
        #                                                                                                              ^^^^ type: nothing can be sent to `none`
    "#]]);
}

#[test]
fn wrong_fields_are_reported() {
    check_home(expect![[r#"
          J | Get | send Data | stay
        #                ^^^^ fields: `Data` lacks its field `acks`
          J | Put | send Data (acks = 0, acks = 1), send Data (ack = 0), send Data (acks = owner) | stay
        #                                ^^^^ fields: `acks` is given twice
        #                                                ^^^^ fields: `Data` lacks its field `acks`
        #                                                      ^^^ fields: `Data` has no field `ack`
        #                                                                                  ^^^^^ type: expected a number, found a remote
    "#]]);
}

#[test]
fn messages_against_their_direction_are_reported() {
    check_remote(expect![[r#"
          I | store | send Data (acks = 0) | I
        #                  ^^^^ direction: the remote cannot send `Data`
          S | load | send Ask (requestor = self) | stay
        #            ^^^^^^^^^^^^^^^^^^^^^^^^^^^ direction: the receiver is missing
          S | Get | | stay
        #     ^^^ direction: `Get` never comes to the remote
          S | Data | send Get to sender, send Put to who | stay
        #                                            ^^^ direction: `Put` cannot be sent to a remote
    "#]]);
}

/// The checker accepted a second `done`, which meant nothing to the simulator.
#[test]
fn done_twice_in_one_row_is_reported() {
    check_remote(expect![[r#"
          I | Data | done, n := 1, done | M
        # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ never-performed: `done` in `I`, where no access is outstanding
        #                          ^^^^ misplaced: `done` twice in one row
    "#]]);
}

/// A message of the home on a channel between any agents has no remote as its sender. The checker reported an index of
/// -1.
#[test]
fn sender_that_may_be_the_home_is_rejected_as_receiver() {
    check_remote(expect![[r#"
          M | Ask | send Ask (requestor = self) to sender | stay
        #                                          ^^^^^^ direction: `sender` may be the home, which sends `Ask` too
    "#]]);
    // An earlier row takes messages from the home, or the guard requires that the sender is a remote.
    let states = [("states", "V; X; Y; Z")];
    check(
        ROWS,
        "remote",
        &states,
        expect![[r#"
              M V | Ask if sender == none               | send Get to home                      | stay
              M V | Ask                                 | send Ask (requestor = self) to sender | stay
              X   | Ask if flag and none != sender      | send Ask (requestor = self) to sender | stay
              Y   | Ask if sender in all                | send Ask (requestor = self) to sender | stay
              Z   | Ask if sender != none or flag       | send Ask (requestor = self) to sender | stay
            #                                                                            ^^^^^^ direction: `sender` may be the home, which sends `Ask` too
        "#]],
    );
}

#[test]
fn wrong_directions_at_the_home_are_reported() {
    check_home(expect![[r#"
          J | Get | send Get, send Data (acks = 0) to home | stay
        #                ^^^ direction: the home cannot send `Get`
        #                                             ^^^^ direction: the home cannot send to itself
          J | Data | | stay
        #     ^^^^ direction: `Data` never comes to the home
    "#]]);
}

#[test]
fn channel_directions_are_checked() {
    check_channels(expect![[r#"
          loop home -> home
        # ^^^^^^^^^^^^^^^^^ direction: `loop` leads from the home to the home
          up remote -> upward
        #              ^^^^^^ unknown-name: unknown agent `upward`
    "#]]);
}

#[test]
fn messages_never_sent_are_reported() {
    check_messages(expect![[r#"
          grant: Never
        #        ^^^^^ never-sent: no agent sends `Never`
    "#]]);
}

#[test]
fn messages_never_received_are_reported() {
    let rows = [(
        "remote",
        "M | store | send Lost | stay; I | store | send Dead to who | stay; M | Dead | unreachable |",
    )];
    check(
        ROWS,
        "messages",
        &rows,
        expect![[r#"
          request: Lost; peer: Dead
        #          ^^^^ never-received: there is no state in which the home takes `Lost`
        #                      ^^^^ never-received: there is no state in which the remote takes `Dead`
    "#]],
    );
}

#[test]
fn accesses_that_are_lost_are_reported() {
    check_text(expect![[r#"
          protocol test
          line 64 bytes
          channels { request remote -> home; grant home -> remote }
          messages { request: Get, Write (store); grant: Data (line), Written }
          remote cache {
            states { I; M reads writes dirty; G; W waits Written }
        #                                     ^ unsaid-wait: a store is outstanding in `G`, which declares no `waits`
            I | store      | send Get   | G
            G | Data       |            | M
            I | write_line | send Write | W
        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ never-performed: a write_line that begins here is never performed
            W | Written    |            | I
          }
          home directory {
            states { H }
            H | Get   | send Data           | stay
            H | Write | write, send Written | stay
          }
          system one { remotes 1; lines 1 }
    "#]]);
}

#[test]
fn waits_without_a_row_are_reported() {
    check_states(expect![[r#"
          A waits Ask
        # ^ waits-in-vain: `A` waits for `Ask` but has no row that takes it
          B waits Get
        #         ^^^ direction: `Get` never comes to the remote
          C waits Nothing
        #         ^^^^^^^ unknown-name: unknown message `Nothing`
    "#]]);
}

#[test]
fn redundant_holds_is_reported() {
    check_states(expect![[r#"
          A holds reads
        #   ^^^^^ redundant-holds: `A` holds the line anyway
          B holds
          C holds, dirty
          D dirty
        # ^ carries: `D` is dirty but does not hold the line
    "#]]);
}

#[test]
fn unreachable_rows_are_reported() {
    check_remote(expect![[r#"
          I S | load | send Get | W
        # ^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
          W | Ask if n == 1 | | I
        # ^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `W`
          M | Ask if n == 1 | | I
          M | Ask if n == 1 | | S
          M | Ask | | S
          M | Ask if n == 2 | | S
        # ^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `M`
    "#]]);
}

#[test]
fn actions_misplaced_in_the_remote_are_reported() {
    check_remote(expect![[r#"
          I | store | write, done, unlocked, acknowledge clean | I
        #             ^^^^^ misplaced: `write` in the remote
        #                    ^^^^ misplaced: `done` without a message
        #                          ^^^^^^^^ misplaced: nothing can be unlocked here
        #                                                ^^^^^ unknown-name: unknown local operation `clean`
          M | load | stall |
        #            ^^^^^ misplaced: `stall` does not fit `load`
          M | store | unreachable |
        #             ^^^^^^^^^^^ misplaced: `unreachable` does not fit `store`
          M | Data | refuse |
        #            ^^^^^^ misplaced: `refuse` does not fit `Data`
          M | Ask | stall, n := 1 |
        #           ^^^^^ misplaced: `stall` must be the only action
          M | clean if sender == who | | I
        #              ^^^^^^ misplaced: no message, so no `sender`
          M | unlock | | I
        #     ^^^^^^ unknown-name: unknown event `unlock`
          local clean { ensure all <= S }
        # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ misplaced: a local operation in the remote
          reach I with Data
        # ^^^^^^^^^^^^^^^^^ misplaced: a statement of a policy in the remote
    "#]]);
}

#[test]
fn actions_misplaced_in_the_home_are_reported() {
    check_home(expect![[r#"
          J | Get | done, n := self | stay
        #           ^^^^ misplaced: `done` in the home
        #                      ^^^^ misplaced: `self` in the home
          J | load | | stay
        #     ^^^^ misplaced: `load` does not happen at this home
          J | clean | | stay
        #     ^^^^^ misplaced: `clean` does not happen at this home
          J | unlock | | stay
        #     ^^^^^^ misplaced: `unlock` does not happen at this home
          reach I with Data
        # ^^^^^^^^^^^^^^^^^ misplaced: a statement of a policy in a home with rows
    "#]]);
}

#[test]
fn home_as_a_value_is_reported() {
    check_home(expect![[r#"
          J | Get | send Data (acks = 0) to home | stay
        #                                   ^^^^ direction: the home cannot send to itself
          J | Put if owner == home | | stay
        #                     ^^^^ misplaced: `home` is not a value
    "#]]);
}

#[test]
fn wrong_next_states_are_reported() {
    check_remote(expect![[r#"
          I | store | send Get |
        #                       ^ next: the row has no next state
          M | Ask | stall | I
        #                   ^ next: `stall` keeps the state
          M | Data | unreachable | stay
        #                          ^^^^ next: `unreachable` keeps the state
    "#]]);
}

#[test]
fn wrong_local_operations_are_reported() {
    check_home(expect![[r#"
          local clean [lock] { ensure all <= S }
          local flush lock { ensure all == I }
          local unlock
          J | clean clean_lock flush | acknowledge clean, acknowledge flsh | stay
        #                                                             ^^^^ unknown-name: unknown local operation `flsh`
          J | unlock | unlocked | stay
          I | clean_lock unlock | refuse |
          I | clean flush | stall |
    "#]]);
}

#[test]
fn invalid_message_contents_are_reported() {
    check_messages(expect![[r#"
          peer: A (line, line), B (dirty), C (store, line), D (partial), E (partial store), F (lines)
        #                ^^^^ carries: `A` cannot carry this
        #                          ^^^^^ carries: `B` cannot carry this
        #                                            ^^^^ carries: `C` cannot carry this
        #                                                             ^ syntax: expected `store`, found `)`
    "#]]);
}

#[test]
fn lines_kept_without_bytes_are_reported() {
    check_remote(expect![[r#"
          I | store | send Put | I
        # ^^^^^^^^^^^^^^^^^^^^^^^^ carries: `I` does not hold the line that `Put` carries
          I | demote | | S
        # ^^^^^^^^^^^^^^^^ carries: `S` holds the line, but nothing brings it there from `I`
    "#]]);
}

#[test]
fn writes_without_bytes_are_reported() {
    check_home(expect![[r#"
          J | Get | write | stay
        #           ^^^^^ carries: nothing to write
    "#]]);
}
