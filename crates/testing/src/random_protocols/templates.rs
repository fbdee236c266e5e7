//! Small protocols from which random protocols are made. Each is sound if its channels have the orders that it needs.

/// A row before it is decorated.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// True for a row of the home, false for one of the remote.
    pub home: bool,
    /// States of the row; `-` for a row about no line.
    pub states: String,
    /// Message, access, or other event that the row handles.
    pub event: String,
    /// The message that the row consumes.
    pub message: Option<&'static str>,
    /// Condition in the protocol language; empty if there is none.
    pub guard: String,
    /// Actions in the protocol language, in their order.
    pub actions: Vec<String>,
    /// Next state. Empty if the row stalls its message, `-` if the row is about no line.
    pub next: String,
}

/// A message with the fields that the protocol itself needs.
#[derive(Clone, Debug)]
pub struct Message {
    /// Channel that carries the message.
    pub channel: &'static str,
    /// Name of the message.
    pub name: &'static str,
    /// Contents in the protocol language, such as `line, dirty`; empty if there are none.
    pub carries: &'static str,
    /// Names and types of the fields.
    pub fields: &'static [(&'static str, &'static str)],
}

/// Numbers of agents and lines of a system.
#[derive(Clone, Copy, Debug)]
pub struct SystemSize {
    /// Number of remotes.
    pub remotes: u16,
    /// Number of lines, at least that of homes.
    pub lines: u8,
    /// Number of homes.
    pub homes: u8,
}

/// A protocol before it is decorated.
#[derive(Clone, Debug)]
pub struct Template {
    /// Names with sender and receiver.
    pub channels: Vec<(&'static str, &'static str)>,
    /// Alternatives of orders, from which the protocol gets one each at random.
    pub orders: &'static [&'static [&'static str]],
    /// All messages, in the order of their declaration.
    pub messages: Vec<Message>,
    /// States of the remote in the protocol language, separated by semicolons; the first is initial.
    pub remote: String,
    /// States of the home, in the same form.
    pub home: String,
    /// Variables of the home that the protocol itself needs.
    pub variables: Vec<(&'static str, &'static str)>,
    /// Variables of the remote that the protocol itself needs, which the decoration leaves alone.
    pub remote_variables: Vec<(&'static str, &'static str)>,
    /// Rows of the remote, then those of the home.
    pub rows: Vec<Row>,
    /// Invariants in the protocol language.
    pub invariants: &'static [&'static str],
    /// Registers of the remote and of the home, which the decoration leaves alone.
    pub registers: [Vec<(&'static str, &'static str)>; 2],
    /// Further orders, and networks, in the protocol language.
    pub shared: String,
    /// Size of the system, if it is part of the design.
    pub size: Option<SystemSize>,
}

/// Creates messages from channel, name and contents. `Forward` and `Fetch` have a field for the requestor.
pub fn messages(entries: &[(&'static str, &'static str, &'static str)]) -> Vec<Message> {
    let to_message =
        |&(channel, name, carries): &(&'static str, &'static str, &'static str)| Message {
            channel,
            name,
            carries,
            fields: match name {
                "Forward" | "Fetch" => &[("requestor", "remote")],
                _ => &[],
            },
        };
    entries.iter().map(to_message).collect()
}

/// Parses rows in the protocol language: states, event with guard, actions, and next state, separated by `|`. `home`
/// is true for rows of the home.
pub fn rows(messages: &[Message], home: bool, text: &str) -> Vec<Row> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let parse_row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (event, guard) = cells[1].split_once(" if ").unwrap_or((cells[1], ""));
        let actions = cells[2].split(", ").filter(|action| !action.is_empty());
        Row {
            home,
            states: cells[0].into(),
            event: event.into(),
            message: messages.iter().map(|m| m.name).find(|name| *name == event),
            guard: guard.into(),
            actions: actions.map(String::from).collect(),
            next: cells.get(3).copied().unwrap_or("").into(),
        }
    };
    lines.map(parse_row).collect()
}

/// Creates a template without registers and invariants. The parts of each agent are its states and its rows.
fn template(
    channels: &[(&'static str, &'static str)],
    orders: &'static [&'static [&'static str]],
    messages: Vec<Message>,
    (remote, remote_rows): (&'static str, &'static str),
    (home, home_rows): (&'static str, &'static str),
    variables: &'static [(&'static str, &'static str)],
) -> Template {
    let mut all_rows = rows(&messages, false, remote_rows);
    all_rows.extend(rows(&messages, true, home_rows));
    Template {
        channels: channels.to_vec(),
        orders,
        messages,
        remote: remote.into(),
        home: home.into(),
        variables: variables.to_vec(),
        remote_variables: Vec::new(),
        rows: all_rows,
        invariants: &[],
        registers: Default::default(),
        shared: String::new(),
        size: None,
    }
}

/// One copy of the line, requested, kept and put back.
pub fn token() -> Template {
    let messages = messages(&[
        ("request", "Get", ""),
        ("request", "Once", ""),
        ("victim", "Put", "line, dirty"),
        ("grant", "Data", "line"),
        ("grant", "Bytes", "line"),
        ("ack", "Ack", ""),
    ]);
    let remote = "
        I  | load          | send Get  | IV
        I  | store         | send Get  | IV
        I  | read_once     | send Once | IR
        IV | Data          |           | V
        IR | Bytes         | done      | I
        V  | evict         | send Put  | VI
        VI | Ack           |           | I";
    let home = "
        I   | Get                    | send Data, owner := sender          | V
        I   | Once                   | send Bytes                          | stay
        V   | Get                    | stall
        V   | Once                   | stall
        V   | Put if sender == owner | write, send Ack, owner := none      | I";
    let mut template = template(
        &[
            ("request", "remote -> home"),
            ("victim", "remote -> home"),
            ("grant", "home -> remote"),
            ("ack", "home -> remote"),
        ],
        &[
            &[],
            &["victim"],
            &["request"],
            &["grant", "ack"],
            &["victim", "grant"],
            &["ack"],
        ],
        messages,
        (
            "I; V reads writes dirty; IV waits Data; IR waits Bytes; VI holds dirty, waits Ack",
            remote,
        ),
        ("I; V", home),
        &[("owner", "remote")],
    );
    template.invariants = &[
        "one: count(V VI) <= 1",
        "kept: count(V) == 0 or in_flight(Put) == 0",
    ];
    template
}

/// Readers and a writer, and a home that serves one request at a time.
pub fn blocking() -> Template {
    let messages = messages(&[
        ("request", "GetS", ""),
        ("request", "GetM", ""),
        ("answer", "Gone", ""),
        ("answer", "Back", "line, dirty"),
        ("forward", "Inv", ""),
        ("forward", "Down", ""),
        ("grant", "DataS", "line"),
        ("grant", "DataM", "line"),
    ]);
    let remote = "
        I         | load  | send GetS | IS
        I S       | store | send GetM | IM
        S         | evict |           | I
        IS        | DataS |           | S
        IM        | DataM |           | M
        M         | Inv   | send Back | I
        M         | Down  | send Back | S
        S         | Inv   | send Gone | I
        I IS IM   | Inv   | send Gone | stay
        I S IS IM | Down  | send Gone | stay";
    let home = "
        U | GetS if owner == none | send DataS, sharers += { sender } | stay
        U | GetS | send Down to owner, who := sender, exclusive := false, need := 1 | B
        U | GetM if owner == none and count(sharers - { sender }) == 0 | send DataM, owner := sender, sharers := {} | stay
        U | GetM if owner == none | send Inv to sharers - { sender }, need := count(sharers - { sender }), who := sender, exclusive := true | B
        U | GetM | send Inv to owner, need := 1, who := sender, exclusive := true | B
        B | GetS | stall
        B | GetM | stall
        B | Gone if need > 1 | need -= 1 | stay
        B | Gone if exclusive | need := 0, send DataM to who, owner := who, sharers := {} | U
        B | Gone | need := 0, send DataS to who, sharers += { who }, owner := none | U
        B | Back if exclusive | write, need := 0, send DataM to who, owner := who, sharers := {} | U
        B | Back | write, need := 0, send DataS to who, sharers := { owner } + { who }, owner := none | U";
    let mut template = template(
        &[
            ("request", "remote -> home"),
            ("answer", "remote -> home"),
            ("forward", "home -> remote"),
            ("grant", "home -> remote"),
        ],
        &[
            &["forward", "grant"],
            &["forward", "grant"],
            &["forward", "grant"],
            &[],
        ],
        messages,
        (
            "I; S reads; M reads writes dirty; IS waits DataS; IM waits DataM",
            remote,
        ),
        ("U; B waits Gone Back", home),
        &[
            ("owner", "remote"),
            ("sharers", "set of remote"),
            ("need", "count"),
            ("who", "remote"),
            ("exclusive", "bool"),
        ],
    );
    template.invariants = &["one_owner: count(M) <= 1 and (count(M) == 0 or count(S) == 0)"];
    template
}

/// A writer that gives its copy back, and stores that are sent to the home, which defers them meanwhile.
pub fn through() -> Template {
    let messages = messages(&[
        ("request", "Get", ""),
        ("request", "Part", "partial store"),
        ("request", "Whole", "store"),
        ("victim", "Put", "line, dirty"),
        ("reply", "Data", "line"),
        ("reply", "Done", ""),
        ("snoop", "Recall", ""),
    ]);
    let remote = "
        I     | load store    | send Get   | W
        W     | Data          |            | M
        M     | evict         | send Put   | I
        M     | Recall        | send Put   | I
        I X W | Recall        |            | stay
        I     | write_partial | send Part  | X
        I     | write_line    | send Whole | X
        X     | Done          | done       | I";
    let home = "
        U | Get   | send Data, owner := sender                         | M
        U | Part  | write, send Done                                   | stay
        U | Whole | write, send Done                                   | stay
        M | Put   | write, owner := none                               | U
        M | Get   | send Recall to owner, wants := sender              | R
        R | Put   | write, send Data to wants, owner := wants          | M
        M | Part  | defer, send Recall to owner, wants := sender       | Y
        M | Whole | defer, send Recall to owner, wants := sender       | Y
        Y | Put   | write, write deferred, send Done to wants, owner := none | U
        Y R | Get   | stall
        Y R | Part  | stall
        Y R | Whole | stall";
    template(
        &[
            ("request", "remote -> home"),
            ("victim", "remote -> home"),
            ("reply", "home -> remote"),
            ("snoop", "home -> remote"),
        ],
        &[&["reply", "snoop"], &["reply", "snoop"], &[]],
        messages,
        (
            "I; M reads writes dirty; W waits Data; X waits Done",
            remote,
        ),
        ("U; M; Y waits Put; R waits Put", home),
        &[("owner", "remote"), ("wants", "remote")],
    )
}

/// Agents that pass each other messages, without any permission.
pub(crate) fn chatter() -> Template {
    let messages = messages(&[
        ("up", "Ask", ""),
        ("up", "Bye", ""),
        ("down", "Forward", ""),
        ("side", "Reply", ""),
        ("side", "Pass", ""),
    ]);
    let remote = "
        A       | evict   | send Ask                                | W
        B       | demote  | send Ask                                | W
        B       | clean   |                                         | A
        A       | clean   | send Bye                                | X
        W       | Reply   |                                         | B
        X       | Reply   |                                         | A
        W       | Pass    |                                         | A
        A B W X | Forward | send Pass to requestor                  | stay
        A B X   | Pass    |                                         | stay
        A B     | Reply   |                                         | stay";
    let home = "
        H K | Ask if last == none   | send Reply to sender, last := sender                    | K
        H   | Ask if last == sender | send Reply to sender                                    | stay
        H   | Ask                   | send Forward (requestor = sender) to last, last := sender | K
        K   | Ask                   | send Forward (requestor = sender) to last, last := sender | H
        H K | Bye if sender == last | send Reply to last, last := none                        | H
        H K | Bye                   | send Reply                                              | stay";
    template(
        &[
            ("up", "remote -> home"),
            ("down", "home -> remote"),
            ("side", "any -> remote"),
        ],
        &[&[], &["up"], &["down"], &["side"], &["down", "side"]],
        messages,
        ("A; B; W waits Reply Pass; X waits Reply", remote),
        ("H; K", home),
        &[("last", "remote")],
    )
}

/// Posted stores, which the home defers, beside acknowledged stores and atomic accesses. All requests of a remote to
/// the line are in one order, or in none.
pub fn posted() -> Template {
    let messages = messages(&[
        ("put", "Post", "partial store"),
        ("put", "Slow", "partial store"),
        ("put", "Swap", "partial store"),
        ("read", "Get", ""),
        ("go", "Go", ""),
        ("reply", "Data", "line"),
        ("reply", "Old", "line"),
        ("reply", "Done", ""),
        ("reply", "Half", ""),
        ("reply", "Free", ""),
    ]);
    let remote = "
        I       | store if open < 2 | send Post, open += 1 | stay
        I       | write_partial     | send Slow            | T
        I       | atomic            | send Swap            | U
        I       | load              | send Get             | R
        R       | Data              | done                 | I
        T       | Done              | done                 | I
        U       | Old               | done                 | I
        I R T U | Half              | send Go              | stay
        I R T U | Free              | open -= 1            | stay";
    let home = "
        L | Get  | send Data                                    | stay
        L | Post | defer, send Half, writer := sender           | A
        L | Slow | write, send Done                             | stay
        L | Swap | send Old, write                              | stay
        A | Go   | write deferred, send Free to writer, writer := none | L
        A | Get  | stall
        A | Post | stall
        A | Slow | stall
        A | Swap | stall";
    let mut template = template(
        &[
            ("put", "remote -> home"),
            ("read", "remote -> home"),
            ("go", "remote -> home"),
            ("reply", "home -> remote"),
        ],
        &[&["put", "read"], &["put", "read"], &["put", "read"], &[]],
        messages,
        ("I; R waits Data; T waits Done; U waits Old", remote),
        ("L; A waits Go", home),
        &[("writer", "remote")],
    );
    template.remote_variables = vec![("open", "0..2")];
    template
}
