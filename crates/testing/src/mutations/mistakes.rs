//! Mistakes that people make in protocol files, each made in a shipped file.
//! The checker's tests and the simulator's read this list.

use std::path::PathBuf;

/// One mistake: replacements in a shipped protocol file.
pub struct Mistake {
    /// Name of the mistake, in kebab case; unique.
    pub name: &'static str,
    /// Behaviour of the faulty protocol, as a sentence.
    pub description: &'static str,
    /// Name of the shipped protocol that is changed.
    pub protocol: &'static str,
    /// Texts with their replacements; each text must occur.
    pub changes: &'static [(&'static str, &'static str)],
    /// System of the protocol file in which the fault shows.
    pub system: &'static str,
    /// Fault that the checker must report: the kind of the construction's fault, or the name of the violated property.
    pub expected_fault: &'static str,
}

/// All mistakes.
pub const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "forgotten-invalidation",
        description: "An exclusive read leaves the other CPU its shared copy.",
        protocol: "eci",
        changes: &[("on ReadExclusive(r)  { ensure others(r) == I", "on ReadExclusive(r)  { ensure others(r) <= S")],
        system: "two_cpus",
        expected_fault: "single writer",
    },
    Mistake {
        name: "forgotten-downgrade",
        description: "A shared read leaves the other CPU its exclusive copy.",
        protocol: "eci",
        changes: &[("on ReadShared(r)     { ensure others(r) <= S", "on ReadShared(r)     { ensure others(r) <= E")],
        system: "two_cpus",
        expected_fault: "waits for a message that may not exist",
    },
    Mistake {
        name: "dirty-victim-without-data",
        description: "A modified line is evicted as if it were clean.",
        protocol: "eci",
        changes: &[("M                    | evict                    | send VictimDirty", "M                    | evict                    | send VictimClean"), (", VictimDirty (line, dirty)", "")],
        system: "one_line",
        expected_fault: "data value",
    },
    Mistake {
        name: "dirty-victim-not-written",
        description: "The dirty victim carries no line, so memory is never brought up to date.",
        protocol: "eci",
        changes: &[("VictimDirty (line, dirty)", "VictimDirty (line)")],
        system: "one_line",
        expected_fault: "data value",
    },
    Mistake {
        name: "dirty-demotion-without-data",
        description: "M is given down to S as if the line were clean.",
        protocol: "eci",
        changes: &[("M                    | demote                   | send DemoteDirty", "M                    | demote                   | send DemoteClean"), (", DemoteDirty (line, dirty)", "")],
        system: "one_line",
        expected_fault: "data value",
    },
    Mistake {
        name: "wrong-answer",
        description: "A modified line is invalidated without its data.",
        protocol: "eci",
        changes: &[("M                    | ForwardInvalid           | send AckDirty ", "M                    | ForwardInvalid           | send AckClean "), ("AckDirty (line, dirty), ", "")],
        system: "one_line",
        expected_fault: "data value",
    },
    Mistake {
        name: "ambiguous-answer",
        description: "An upgrading CPU answers an invalidation like one that holds a shared copy.",
        protocol: "eci",
        changes: &[("| send AckDroppedUpgrading  | IU", "| send AckDropped  | IU"), (", AckDroppedUpgrading", "")],
        system: "one_line",
        expected_fault: "unbounded",
    },
    Mistake {
        name: "ambiguous-answer-stranded",
        description: "The same, where the home stalls on possible victims: a request waits for one that does not exist.",
        protocol: "eci",
        changes: &[
            ("| send AckDroppedUpgrading  | IU", "| send AckDropped  | IU"),
            (", AckDroppedUpgrading", ""),
            ("  reach S with", "  stall possible\n  reach S with"),
        ],
        system: "one_line",
        expected_fault: "dead end",
    },
    Mistake {
        name: "silent-eviction",
        description: "A shared copy is dropped without a word, though channels are unordered.",
        protocol: "eci",
        changes: &[
            ("S                    | evict                    | send VictimShared         | I", "S | evict | | I"),
            ("VictimShared, ", ""),
        ],
        system: "one_line",
        expected_fault: "livelock",
    },
    Mistake {
        name: "upgrade-without-data",
        description: "An upgrade is granted without data, and a forward overtakes the grant.",
        protocol: "eci",
        changes: &[
            ("on Upgrade(r)        { ensure others(r) == I;  grant r E with DataExclusive }", "on Upgrade(r) { ensure others(r) == I; grant r E with GrantExclusive }"),
            ("DataOnce (line), WriteDone", "DataOnce (line), WriteDone, GrantExclusive"),
            ("IE SE IU             | DataExclusive", "SE | GrantExclusive | | E\n  IE IU             | DataExclusive"),
            ("SE  reads, waits DataExclusive", "SE  reads, waits GrantExclusive"),
        ],
        system: "one_line",
        expected_fault: "unexpected message",
    },
    Mistake {
        name: "deferred-forward",
        description: "A CPU that waits leaves forwards in their channel until its grant has come.",
        protocol: "eci",
        changes: &[
            ("| send AckDroppedUpgrading  | IU", "| stall | "),
            ("S SE                 | ForwardShared            | send AckShared            | stay", "S | ForwardShared | send AckShared | stay\n  SE | ForwardShared | stall |"),
            (", AckDroppedUpgrading", ""),
            ("    IU  waits DataExclusive                 # upgrading, copy lost\n", ""),
            ("IE SE IU ", "IE SE "),
            ("I IS IE IU IR IW IP  | ForwardShared", "I IS IE IR IW IP  | ForwardShared"),
            ("I IS IE IU IR IW IP  | ForwardInvalid", "I IS IE IR IW IP  | ForwardInvalid"),
            ("  reach S with", "  stall possible\n  reach S with"),
        ],
        system: "one_line",
        expected_fault: "dead end",
    },
    Mistake {
        name: "served-early",
        description: "Requests are served although a shared victim may still be in flight.",
        protocol: "eci",
        changes: &[("  reach S with", "  stall possible\n  serve past VictimShared\n  reach S with")],
        system: "one_line",
        expected_fault: "unbounded",
    },
    Mistake {
        name: "downgrade-ignored",
        description: "An exclusive clean copy is not given down when the home asks for it.",
        protocol: "eci",
        changes: &[("E                    | ForwardShared            | send AckCleanShared       | S", "E | ForwardShared | send AckCleanShared | stay")],
        system: "one_line",
        expected_fault: "livelock",
    },
    Mistake {
        name: "wrong-grant",
        description: "The policy says S and grants E.",
        protocol: "eci",
        changes: &[("grant r S with DataShared", "grant r S with DataExclusive"), ("IS                   | DataShared               |                           | S", "IS | DataExclusive | | S"), ("DataShared (line), ", ""), ("IS  waits DataShared", "IS  waits DataExclusive")],
        system: "one_line",
        expected_fault: "wrong grant",
    },
    Mistake {
        name: "missing-row",
        description: "An upgrading CPU has no row for an invalidation.",
        protocol: "eci",
        changes: &[("  SE                   | ForwardInvalid           | send AckDroppedUpgrading  | IU\n", ""), (", AckDroppedUpgrading", "")],
        system: "one_line",
        expected_fault: "unexpected message",
    },
    Mistake {
        name: "msi-copy-kept",
        description: "A sharer acknowledges its invalidation and keeps the copy.",
        protocol: "msi",
        changes: &[("S              | Inv                     | send InvAck to requestor                       | I", "S | Inv | send InvAck to requestor | stay")],
        system: "three_caches",
        expected_fault: "single writer",
    },
    Mistake {
        name: "msi-one-ack-too-few",
        description: "A cache that stores counts on one acknowledgement fewer than there are sharers.",
        protocol: "msi",
        changes: &[("IM_A SM_A      | InvAck if owed > 1", "IM_A SM_A      | InvAck if owed > 2"), ("IM_A SM_A      | InvAck if owed == 1", "IM_A SM_A      | InvAck if owed <= 2")],
        system: "three_caches",
        expected_fault: "single writer",
    },
    Mistake {
        name: "msi-dirty-put-dropped",
        description: "The directory acknowledges a PutM without writing it to memory.",
        protocol: "msi",
        changes: &[("| write, send PutAck, owner := none ", "| send PutAck, owner := none ")],
        system: "three_caches",
        expected_fault: "data value",
    },
    Mistake {
        name: "mesi-late-put-accepted",
        description: "The directory takes a PutE for its owner's without asking who sent it.",
        protocol: "mesi",
        changes: &[("| PutE if sender == owner ", "| PutE if sender != none ")],
        system: "three_caches",
        expected_fault: "single writer",
    },
    Mistake {
        name: "moesi-owner-not-invalidated",
        description: "A store to an owned line takes it from the owner but leaves the sharers their copies.",
        protocol: "moesi",
        changes: &[("acks = count(sharers - { sender })) to owner, send Inv (requestor = sender) to sharers - { sender }, owner", "acks = 0) to owner, owner")],
        system: "three_caches",
        expected_fault: "single writer",
    },
    Mistake {
        name: "cxl-answer-without-conflict",
        description: "A host whose request is outstanding answers a snoop at once, as if its request still waited in the device.",
        protocol: "cxl-mem",
        changes: &[
            ("  IS IS_C IS_D IE IE_C IE_D SE LE IR IW XI | BISnpInv | send BIConflict       | stay", "  IS IS_C IS_D IE IE_C IE_D LE IR IW XI | BISnpInv | send BIRspI | stay\n  SE | BISnpInv | send BIRspI | LE"),
            ("  IS IS_C IE IE_C IE_D SE | BISnpData              | send BIConflict, data := true | stay", "  IS IS_C IE IE_C IE_D | BISnpData | send BIRspI | stay\n  SE | BISnpData | send BIRspI | LE"),
        ],
        system: "two_hosts",
        expected_fault: "data value",
    },
    Mistake {
        name: "cxl-acknowledgement-not-awaited",
        description: "A host tells the device of the conflict, and answers the snoop without waiting for the acknowledgement.",
        protocol: "cxl-mem",
        changes: &[
            ("| BISnpInv | send BIConflict       | stay", "| BISnpInv | send BIConflict, send BIRspI | stay"),
            ("| send BIConflict, data := true | stay", "| send BIConflict, send BIRspI | stay"),
            ("  RD RI RC W C CI TB | BIConflict ", "  N RD RI RC W C CI TB D | BIConflict "),
("  I IS IE IR IW         | BIConflictAck            | send BIRspI, data := false   | stay", "  I IS IS_C IE IE_C LE IR IW | BIConflictAck | | stay"),
            ("  S                     | BIConflictAck            | send BIRspI                  | I", "  S | BIConflictAck | | stay"),
            ("  E                     | BIConflictAck            | send BIRspI                  | I", "  E | BIConflictAck | | stay"),
            ("  M                     | BIConflictAck            | send MemWrI                  | XI_B", "  M | BIConflictAck | | stay"),
            ("  SE                    | BIConflictAck            | send BIRspI                  | LE", "  SE | BIConflictAck | | stay"),
            ("  XI                    | BIConflictAck            | data := false                | XI_B", "  XI | BIConflictAck | | stay"),
        ],
        system: "two_hosts",
        expected_fault: "data value",
    },
    Mistake {
        name: "cxl-completion-before-acknowledgement-forgotten",
        description: "A host whose completion came before the acknowledgement answers as if its request still waited, and keeps the copy.",
        protocol: "cxl-mem",
        changes: &[("  S                     | BIConflictAck            | send BIRspI                  | I", "  S | BIConflictAck | send BIRspI | stay")],
        system: "two_hosts",
        expected_fault: "single writer",
    },
    Mistake {
        name: "cxl-conflict-taken-for-an-answer",
        description: "The device takes BIConflict for word that the host has nothing, and serves the next without the answer.",
        protocol: "cxl-mem",
        changes: &[
            ("  RD RI RC W C CI TB | BIConflict ", "  RD | BIConflict | send BIConflictAck, send MemData to asker, send CmpE to asker, holders := { asker }, alone := true, asker := none | N\n  RI RC W C CI TB | BIConflict "),
            ("  RD RI W CI TB | BIRspI if", "  N | BIRspI BIRspS | | stay\n  RD RI W CI TB | BIRspI if"),
        ],
        system: "two_hosts",
        expected_fault: "data value",
    },
    Mistake {
        name: "cxl-acknowledgement-overtakes-completion",
        description: "The link lets BI-ConflictAck overtake a completion of its line that was sent before it.",
        protocol: "cxl-mem",
        changes: &[
            ("  ordered BIConflictAck behind Cmp CmpS CmpE\n", ""),
            ("  I IS IE IR IW         | BIConflictAck ", "  I IS IS_C IE IE_C IR IW | BIConflictAck "),
        ],
        system: "two_hosts",
        expected_fault: "data value",
    },
    Mistake {
        name: "cxl-bias-request-overtakes-forward",
        description: "The link lets a host's next request overtake the MemRdFwd by which it gave its copy up.",
        protocol: "cxl-bias",
        changes: &[
            ("  ordered m2s_req per line                # of which nothing but a request behind MemRdFwd ever matters\n", ""),
            ("  RD W CI TB | MemInv if", "  RD W C CI TB | MemInv if"),
        ],
        system: "one_host",
        expected_fault: "single writer",
    },
    Mistake {
        name: "cxl-bias-answer-before-the-end",
        description: "A host that reads answers the device at once, as if its request still waited there.",
        protocol: "cxl-bias",
        changes: &[(
            "  IS IS_C IE IE_C IE_D SE XI | RdOwnNoData RdShared | stall     |",
            "  IS IS_C IE IE_C IE_D | RdOwnNoData RdShared | send MemRdFwdI | stay\n  SE XI | RdOwnNoData RdShared | stall |",
        )],
        system: "one_host",
        expected_fault: "single writer",
    },
    Mistake {
        name: "cxl-bias-forward-before-the-write-back",
        description: "A host with a dirty copy sends MemRdFwd together with the write-back, and nothing keeps the two in order.",
        protocol: "cxl-bias",
        changes: &[("send MemWrI     | XI_F", "send MemWrI, send MemRdFwdI | XI")],
        system: "one_host",
        expected_fault: "data value",
    },
];

impl Mistake {
    /// The text with the mistake.
    pub fn text(&self) -> String {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = root.join(format!("protocols/{}.coh", self.protocol));
        let mut text = std::fs::read_to_string(path).unwrap();
        for (from, to) in self.changes {
            assert!(
                text.contains(from),
                "{}: the text does not say `{from}`",
                self.name
            );
            text = text.replace(from, to);
        }
        text
    }
}
