//! Errors in a home that is written as a policy.

use super::{
    check, check_file, check_policy, check_policy_on, check_policy_reach, GET, POLICY, REACH,
};
use expect_test::expect;

#[test]
fn channels_without_a_class_are_reported() {
    check(
        POLICY,
        "channels",
        &[("get", GET), ("reach", REACH)],
        expect![[r#"
          other remote -> home
        # ^^^^^ policy-channel: a policy cannot use the channel `other`
          extra as grant remote -> home
        # ^^^^^ policy-channel: a policy cannot use the channel `extra`
          more as victim any -> home
        # ^^^^ policy-channel: a policy cannot use the channel `more`
    "#]],
    );
}

#[test]
fn fields_and_stores_in_a_policy_are_reported() {
    check(
        POLICY,
        "messages",
        &[("get", GET), ("reach", REACH)],
        expect![[r#"
          victim: Strange (a: count), Stored (store)
        #                  ^ fields: `Strange` has fields, which a policy cannot use
        #                             ^^^^^^ carries: `Stored` carries a store but is no request
    "#]],
    );
}

#[test]
fn messages_of_another_class_are_reported() {
    check_policy(expect![[r#"
          on Data(r) { ensure others(r) == I; grant r M with Inv }
        #    ^^^^ wrong-class: `Data` is no request
        #                                                    ^^^ wrong-class: `Inv` is no grant
          reach M with Data
        #              ^^^^ wrong-class: `Data` is no forward
          serve past Get
        #            ^^^ wrong-class: `Get` is no victim
          await Gone after Put, Data
        #       ^^^^ wrong-class: `Gone` is no acknowledgement
        #                  ^^^ wrong-class: `Put` is no grant
          assert Put implies I
        #        ^^^ wrong-class: `Put` is no answer
    "#]]);
}

#[test]
fn misused_acknowledgements_of_victims_are_reported() {
    check_policy(expect![[r#"
          on Put(r) { ensure others(r) == I; write; grant r I with Done; answer r with Done if held(r); answer r with Data; answer r with Done }
        #             ^^^^^^^^^^^^^^^^^^^^^ grants: `Put` is a victim: only `answer r with MESSAGE` is possible
        #                                    ^^^^^ grants: `Put` is a victim: only `answer r with MESSAGE` is possible
        #                                           ^^^^^^^^^^^^^^^^^^^ grants: `Put` is a victim: only `answer r with MESSAGE` is possible
        #                                                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ grants: `Put` is a victim: only `answer r with MESSAGE` is possible
        #                                                                                                             ^^^^ carries: `Data` cannot acknowledge a victim
        #                                                                                                                   ^^^^^^^^^^^^^^^^^^ duplicate: a second `answer`
          on Put(r) { answer r with Inv }
        #    ^^^ duplicate: `Put` is acknowledged twice
        #                           ^^^ wrong-class: `Inv` is no grant
          on Put(q) { }
        #    ^^^ duplicate: `Put` is acknowledged twice
        #    ^^^ grants: `Put` is never answered
    "#]]);
}

#[test]
fn service_past_a_dirty_victim_is_reported() {
    check_policy(expect![[r#"
          serve past Put
        #            ^^^ carries: requests cannot be served past `Put`
    "#]]);
}

#[test]
fn invalid_bounds_are_reported() {
    check_file(expect![[r#"
          bounds { Get 1; Get 2 }
        #          ^^^ wrong-class: `Get` is no victim
        #                 ^^^ duplicate: a second bound for `Get`
    "#]]);
}

#[test]
fn unserved_requests_are_reported() {
    check_policy_on(expect![[r#"
          reach M with Inv
        # 5:21 unserved: the home does not serve `Get`
    "#]]);
}

#[test]
fn incomplete_grants_are_reported() {
    check_policy_on(expect![[r#"
          on Get(r) { grant r M with Data if held(r) }
        #    ^^^ grants: `Get` ensures nothing
        #             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ grants: the last grant depends on a condition
    "#]]);
}

#[test]
fn unreachable_grants_are_reported() {
    check_policy_on(expect![[r#"
          on Get(r) { ensure others(r) == I; ensure others(r) == I; grant r M with Data; grant r I with Data if others(r) == M; answer r with Done }
        #                                    ^^^^^^^^^^^^^^^^^^^^^ duplicate: a second `ensure`
        #                                                           ^^^^^^^^^^^^^^^^^^^ grants: later grants are never reached
        #                                                                                                                    ^ grants: a grant can depend only on the others having no permission
    "#]]);
}

#[test]
fn requests_without_a_grant_are_reported() {
    check_policy_on(expect![[r#"
          on Get(r) { ensure others(q) == I; write }
        #                           ^ unknown-name: `q` is not the requester
    "#]]);
}

#[test]
fn lost_stores_are_reported() {
    check_policy(expect![[r#"
          on Write(r) { ensure others(r) == I; answer r with Done }
        #    ^^^^^ duplicate: `Write` is served twice
        #    ^^^^^ carries: the store that `Write` carries is lost
    "#]]);
}

#[test]
fn states_that_name_no_permission_are_reported() {
    check_policy_on(expect![[r#"
          on Get(r) { ensure others(r) == G; grant r X with Data }
        #                                 ^ not-a-right: `G` is not a stable state
        #                                            ^ unknown-name: unknown stable state `X`
    "#]]);
}

#[test]
fn goals_without_a_forward_are_reported() {
    check_policy_reach(expect![[r#"
          stall possible
          stall proven
        # ^^^^^^^^^^^^ duplicate: a second `stall`
          serve under forwards
        # 18:35 unreached: no forward brings a remote down to this
        # 19:37 unreached: no forward brings a remote down to this
    "#]]);
}

#[test]
fn locks_without_unlock_are_reported() {
    check_policy(expect![[r#"
          local clean lock { ensure all == I }
        # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unlock: `clean` takes a lock that nothing releases
          local clean { ensure all == I }
        #       ^^^^^ duplicate-name: a second local operation `clean`
          local clean [lock] { ensure all == I }
        #       ^^^^^ duplicate-name: a second local operation `clean`
          local Get { ensure all == I }
        #       ^^^ duplicate-name: `Get` is a message already
    "#]]);
}

#[test]
fn unlock_without_locks_is_reported() {
    check_policy(expect![[r#"
          local unlock
        # ^^^^^^^^^^^^ unlock: no local operation takes a lock
          variables { n: count }
        # ^^^^^^^^^ misplaced: variables in a policy
    "#]]);
}

#[test]
fn syntax_errors_in_a_policy_are_reported() {
    check_policy(expect![[r#"
          accept local sometimes
        #              ^^^^^^^^^ syntax: expected an acceptance mode (`always`, `between`, `when`), found `sometimes`
          under lock
        #           ^ syntax: expected a mode of local operations (`refuse`, `wait`), found the end of the line
          await after Data
        #             ^^^^ syntax: expected `after`, found `Data`
          on Get { ensure others(r) == I }
        #        ^ syntax: expected `(`, found `{`
          grant r M with Data
        # ^^^^^ syntax: expected `states`, `variables`, `registers`, a row (`STATES | EVENTS | ACTIONS | NEXT`) or a statement of a policy, found `grant`
    "#]]);
}
