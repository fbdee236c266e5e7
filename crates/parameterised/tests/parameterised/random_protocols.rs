//! Random small protocols: what is verified for every number of remotes has no violation at small ones.
//!
//! Each protocol is a directory with caches, drawn from a family of correct designs and a list of faults. Many are
//! verified, many are violated, and none may be both.

use crate::containment::missing_view;
use crate::mutants::mutate;
use crate::support::{explored, parsed, SmallVerdict};
use cohkit_base::random::SplitMix64;
use cohkit_parameterised::{verify, Limits, Verdict};
use cohkit_protocol::protocol::{Home, Protocol};

/// Number of protocols in continuous integration, with the seeds from 0 on.
const PROTOCOLS: u64 = 200;

/// Maximum number of remotes of the systems that are explored.
const MAX_REMOTES: u16 = 4;

/// Maximum number of states of a system that is explored.
const MAX_STATES: usize = 1_000;

/// Handling of an eviction of a shared copy.
#[derive(Clone, Copy, PartialEq)]
enum Eviction {
    /// Shared copies are not evicted.
    Absent,
    /// The home is not notified.
    Silent,
    /// The home is notified, and answers.
    Acknowledged,
    /// The home is notified, and does not answer.
    Posted,
}

/// Variable of the home with the caches that have not yet acknowledged an invalidation.
#[derive(Clone, Copy, PartialEq)]
enum Tracker {
    /// A set of its own.
    Set,
    /// A number.
    Count,
    /// The set of sharers itself.
    Sharers,
}

/// Faults of a protocol. Each field is true if the protocol has this fault.
#[derive(Default)]
struct Faults {
    /// The home waits for one acknowledgement too few.
    early_grant: bool,
    /// A cache acknowledges an invalidation and keeps its copy.
    kept_copy: bool,
    /// The home does not record a sharer.
    forgotten_sharer: bool,
    /// The home drops the data of an acknowledgement.
    lost_data: bool,
    /// An invalidation may overtake a grant.
    unordered: bool,
    /// The home drops the data of an eviction.
    lost_eviction: bool,
    /// The home still considers a line exclusive after it has recalled the line.
    stale_exclusive: bool,
}

/// A protocol of the family.
struct Design {
    /// True if a read leaves the former writer a shared copy.
    downgrades: bool,
    /// True if a cache may store to a line that it shares.
    upgrades: bool,
    /// True if caches evict lines that they may write.
    evicts_exclusive: bool,
    /// Eviction of shared copies.
    eviction: Eviction,
    /// Record of outstanding acknowledgements.
    tracker: Tracker,
    /// Faults.
    faults: Faults,
}

impl Design {
    /// Draws a design; half of them have a fault.
    fn random(random: &mut SplitMix64) -> Design {
        let evictions = [
            Eviction::Absent,
            Eviction::Silent,
            Eviction::Acknowledged,
            Eviction::Posted,
        ];
        let trackers = [Tracker::Set, Tracker::Count, Tracker::Sharers];
        let mut coin = || random.below(2) == 0;
        let [downgrades, upgrades, evicts_exclusive, has_fault] = [(); 4].map(|()| coin());
        let fault = match has_fault {
            true => random.below(7),
            false => 7,
        };
        Design {
            downgrades,
            upgrades,
            evicts_exclusive,
            eviction: evictions[random.below(4) as usize],
            tracker: trackers[random.below(3) as usize],
            faults: Faults {
                early_grant: fault == 0,
                kept_copy: fault == 1,
                forgotten_sharer: fault == 2,
                lost_data: fault == 3,
                unordered: fault == 4,
                lost_eviction: fault == 5,
                stale_exclusive: fault == 6,
            },
        }
    }

    /// The protocol as a file.
    fn text(&self) -> String {
        let mut orders = String::new();
        if !self.faults.unordered {
            orders += "  ordered forward, grant\n";
        }
        if self.eviction == Eviction::Posted {
            orders += "  ordered request, put\n";
        }
        let (remote, home) = (self.remote_rows(), self.home_rows());
        let mut messages = "  forward: Inv".to_string();
        messages += if self.downgrades { ", Down" } else { "" };
        messages += if self.is_acknowledged() {
            ", PutAck\n"
        } else {
            "\n"
        };
        let puts = match (self.evicts_exclusive, self.notifies_home()) {
            (true, true) => "  put: PutM (line), PutS\n",
            (true, false) => "  put: PutM (line)\n",
            (false, true) => "  put: PutS\n",
            (false, false) => "",
        };
        let put_channel = match puts {
            "" => "",
            _ => "  put remote -> home\n",
        };
        let mut states =
            "I; S reads; M reads writes dirty; IS waits DataS; IM waits DataM".to_string();
        states += if self.upgrades {
            "; SM reads, waits DataM"
        } else {
            ""
        };
        states += if self.evicts_exclusive {
            "; MI holds dirty, waits PutAck"
        } else {
            ""
        };
        states += if self.is_acknowledged() {
            "; SI waits PutAck; II waits PutAck"
        } else {
            ""
        };
        let tracker = match self.tracker {
            Tracker::Set => "; waiting: set of remote",
            Tracker::Count => "; owed: count",
            Tracker::Sharers => "",
        };
        format!(
            "protocol random \"Random protocol\"\nline 64 bytes\n\
             channels {{\n  request remote -> home\n{put_channel}  ack remote -> home\n  forward home -> remote\n  \
             grant home -> remote\n{orders}}}\n\
             messages {{\n  request: GetS, GetM\n{puts}  ack: InvAck, AckData (line)\n{messages}  \
             grant: DataS (line), DataM (line)\n}}\n\
             remote cache {{\n  states {{ {states} }}\n{remote}}}\n\
             home directory {{\n  states {{ V; WS waits AckData; WM waits InvAck AckData }}\n  \
             variables {{ sharers: set of remote; excl: bool; who: remote{tracker} }}\n{home}}}\n\
             system three {{ remotes 3; lines 1 }}\n"
        )
    }

    /// True if the home learns about evictions of shared copies.
    fn notifies_home(&self) -> bool {
        matches!(self.eviction, Eviction::Acknowledged | Eviction::Posted)
    }

    /// True if the home acknowledges some evictions.
    fn is_acknowledged(&self) -> bool {
        self.evicts_exclusive || self.eviction == Eviction::Acknowledged
    }

    /// Rows of the caches.
    fn remote_rows(&self) -> String {
        let mut rows =
            "  I | load | send GetS | IS\n  I | store | send GetM | IM\n  IS | DataS | | S\n"
                .to_string();
        let mut row = |condition: bool, row: &str| {
            if condition {
                rows.push_str("  ");
                rows.push_str(row);
                rows.push('\n');
            }
        };
        let upgrades = self.upgrades;
        row(upgrades, "S | store | send GetM | SM");
        row(upgrades, "IM SM | DataM | | M");
        row(!upgrades, "IM | DataM | | M");
        row(self.eviction == Eviction::Silent, "S | evict | | I");
        row(
            self.eviction == Eviction::Posted,
            "S | evict | send PutS | I",
        );
        row(
            self.eviction == Eviction::Acknowledged,
            "S | evict | send PutS | SI",
        );
        row(self.evicts_exclusive, "M | evict | send PutM | MI");
        row(true, "M | Inv | send AckData | I");
        let kept = self.faults.kept_copy;
        row(kept, "S | Inv | send InvAck | stay");
        row(!kept, "S | Inv | send InvAck | I");
        row(upgrades, "SM | Inv | send InvAck | IM");
        let is_unknown = matches!(self.eviction, Eviction::Silent | Eviction::Posted);
        row(is_unknown, "I IS IM | Inv | send InvAck | stay");
        row(self.downgrades, "M | Down | send AckData | S");
        row(self.evicts_exclusive, "MI | Inv | send AckData | II");
        row(
            self.evicts_exclusive && self.downgrades,
            "MI | Down | send AckData | SI",
        );
        row(self.evicts_exclusive, "MI | PutAck | | I");
        row(self.is_acknowledged(), "SI | Inv | send InvAck | II");
        row(self.is_acknowledged(), "SI II | PutAck | | I");
        rows
    }

    /// Rows of the home.
    fn home_rows(&self) -> String {
        let Faults {
            early_grant,
            forgotten_sharer,
            lost_data,
            lost_eviction,
            stale_exclusive,
            kept_copy: _,
            unordered: _,
        } = self.faults;
        let few = if early_grant { "<= 1" } else { "== 0" };
        let (begin, last, next, end) = match self.tracker {
            Tracker::Set => (
                ", waiting := sharers - { sender }",
                format!("count(waiting - {{ sender }}) {few}"),
                "waiting -= { sender }",
                ", waiting := {}",
            ),
            Tracker::Count => (
                ", owed := count(sharers - { sender })",
                format!("owed {}", if early_grant { ">= 1" } else { "== 1" }),
                "owed := owed - 1",
                ", owed := 0",
            ),
            Tracker::Sharers => (
                "",
                format!("count(sharers - {{ sender }} - {{ who }}) {few}"),
                "sharers -= { sender }",
                "",
            ),
        };
        let recall = if self.downgrades { "Down" } else { "Inv" };
        let recalled = if self.downgrades {
            "sharers +="
        } else {
            "sharers :="
        };
        let write = if lost_data { "" } else { "write, " };
        let shared = if stale_exclusive {
            ""
        } else {
            "excl := false, "
        };
        let add = if forgotten_sharer {
            ""
        } else {
            ", sharers += { sender }"
        };
        let exclusive =
            format!("sharers := {{ who }}, excl := true, send DataM to who, who := none{end}");
        let mut rows = format!(
            "  V | GetS if excl | send {recall} to sharers, who := sender | WS\n  \
             V | GetS | send DataS{add} | stay\n  \
             V | GetM if count(sharers - {{ sender }}) == 0 | send DataM, sharers := {{ sender }}, excl := true | stay\n  \
             V | GetM | send Inv to sharers - {{ sender }}, who := sender{begin} | WM\n  \
             WS WM | GetS GetM | stall\n  \
             WS | AckData | {write}{shared}{recalled} {{ who }}, send DataS to who, who := none | V\n  \
             WM | AckData | {write}{exclusive} | V\n"
        );
        rows +=
            &format!("  WM | InvAck if {last} | {exclusive} | V\n  WM | InvAck | {next} | stay\n");
        if self.evicts_exclusive {
            let write = if lost_eviction { "" } else { "write, " };
            rows += &format!(
                "  V | PutM if excl and sender in sharers | {write}sharers := {{}}, excl := false, send PutAck | stay\n  \
                 V | PutM | sharers -= {{ sender }}, send PutAck | stay\n  \
                 WS WM | PutM | send PutAck | stay\n"
            );
        }
        let answer = match self.eviction {
            Eviction::Acknowledged => ", send PutAck",
            Eviction::Absent | Eviction::Silent | Eviction::Posted => "",
        };
        if self.notifies_home() {
            rows += &format!("  V WS WM | PutS | sharers -= {{ sender }}{answer} | stay\n");
        }
        rows
    }
}

/// The protocol of a seed. Every fourth one has, in addition, a changed row.
fn random_protocol(seed: u64) -> (String, Protocol) {
    let mut random = SplitMix64::new(seed);
    let text = Design::random(&mut random).text();
    let mut protocol = parsed(&text);
    if random.below(4) == 0 {
        match &mut protocol.home {
            Home::Controller(home) if random.below(2) == 0 => mutate(home, &mut random),
            _ => mutate(&mut protocol.remote, &mut random),
        }
    }
    (text, protocol)
}

/// Numbers of protocols by outcome.
#[derive(Default)]
struct Tally {
    /// Protocols that are verified for every number of remotes.
    verified: u64,
    /// Protocols with a violation or a deadlock at some explored number of remotes.
    violated: u64,
}

/// Judges the protocols of `count` seeds, with at most `max_extensions` pairs each. Of the verified ones, one in
/// `compared` is checked for containment.
fn judge(first: u64, count: u64, compared: u64, max_extensions: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + count {
        let (text, protocol) = random_protocol(seed);
        let mut sizes = 1..=MAX_REMOTES;
        let violation = sizes.find_map(|remotes| match explored(&protocol, remotes, MAX_STATES) {
            SmallVerdict::Violated(description) => {
                Some(format!("{remotes} remotes: {description}"))
            }
            SmallVerdict::Holds | SmallVerdict::Unknown => None,
        });
        tally.violated += u64::from(violation.is_some());
        let mut limits = Limits {
            max_extensions,
            should_continue: None,
        };
        let Verdict::Verified(proof) = verify(&protocol, &mut limits) else {
            continue;
        };
        tally.verified += 1;
        let command = format!(
            "COHKIT_SEED={seed} cargo test -p cohkit-parameterised --test parameterised random_protocols -- --ignored"
        );
        if let Some(violation) = violation {
            panic!("verified, but violated with {violation}\n{text}\n{command}");
        }
        if seed % compared == 0 {
            let missing = missing_view(&protocol, &proof, 3, MAX_STATES);
            assert_eq!(missing, None, "{text}\n{command}");
        }
    }
    tally
}

#[test]
fn verified_random_protocols_have_no_violation() {
    let Tally { verified, violated } = judge(0, PROTOCOLS, 12, 2_000);
    println!(
        "of {PROTOCOLS} random protocols, {verified} are verified and {violated} are violated"
    );
    assert!(5 * verified >= PROTOCOLS && 4 * violated >= PROTOCOLS);
}

/// The same for the seeds from `COHKIT_SEED` on, `COHKIT_COUNT` of them, all with containment.
#[test]
#[ignore = "a long run, which `make soak` records"]
fn verified_random_protocols_of_a_long_run_have_no_violation() {
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    };
    let (seed, count) = (number("COHKIT_SEED", 0), number("COHKIT_COUNT", 1));
    let Tally { verified, violated } = judge(seed, count, 1, Limits::default().max_extensions);
    println!("{{\"protocols\": {count}, \"verified\": {verified}, \"violated\": {violated}}}");
}
