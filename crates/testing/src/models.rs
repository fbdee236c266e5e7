//! Small models with known verdicts, shared by the tests.
use cohkit_engine::build::{assert, choose, error, when, Builder};
use cohkit_engine::model::{Deadlock, Expr, Model, Rule, Stmt, TypeId};

/// Peterson's mutual exclusion for `n` processes (the filter lock).
pub fn peterson(n: i32) -> Model {
    let mut m = Builder::new(format!("peterson{n}"));
    let pid = m.range("pid", 1, n);
    let level = m.range("level", 0, n - 1);
    let gate = m.range("gate", 1, n - 1);
    let location = m.enumeration("at", ["away", "enters", "waits", "inside"]);
    let locations = m.array("ats", pid, location);
    let levels = m.array("levels", pid, level);
    let pids = m.array("pids", gate, pid);
    let [away, enters, waits, inside] = [0, 1, 2, 3].map(|i| location.nth(i));
    let (pc, reached, turn) = (
        m.state("pc", locations),
        m.state("reached", levels),
        m.state("turn", pids),
    );
    let (i, j) = (m.bound("i", pid), m.bound("j", pid));
    m.start("all away", vec![]);
    m.rule(
        Rule::new("{i} begins")
            .over(i)
            .when(pc.at(i).is(&away))
            .does([reached.at(i).set(1), pc.at(i).set(&enters)])
            .spontaneously(),
    );
    m.rule(
        Rule::new("{i} gives way")
            .over(i)
            .when(pc.at(i).is(&enters))
            .does([turn.at(reached.at(i)).set(i), pc.at(i).set(&waits)]),
    );
    let ahead = turn
        .at(reached.at(i))
        .is_not(i)
        .or(j.all(j.is(i).or(reached.at(j).lt(reached.at(i)))));
    m.rule(
        Rule::new("{i} advances")
            .over(i)
            .when(pc.at(i).is(&waits))
            .when(ahead)
            .does([choose(
                reached.at(i).lt(n - 1),
                vec![reached.at(i).set(reached.at(i) + 1), pc.at(i).set(&enters)],
                vec![pc.at(i).set(&inside)],
            )]),
    );
    m.rule(
        Rule::new("{i} leaves")
            .over(i)
            .when(pc.at(i).is(&inside))
            .does([reached.at(i).set(0), pc.at(i).set(&away)]),
    );
    m.invariant(
        "exclusion",
        i.all(
            j.all(
                i.is(j)
                    .or(pc.at(i).is_not(&inside))
                    .or(pc.at(j).is_not(&inside)),
            ),
        ),
    );
    m.quiescent(i.all(pc.at(i).is(&away)));
    m.build().unwrap()
}

/// `n` philosophers who each take the left fork first, so that a deadlock is reachable.
pub fn dining(n: i32) -> Model {
    let mut m = Builder::new(format!("dining{n}"));
    let seat = m.range("seat", 0, n - 1);
    let holder = m.range("holder", 0, n);
    let forks = m.array("forks", seat, holder);
    let fork = m.state("fork", forks);
    let i = m.bound("i", seat);
    let right = (i + 1) % n;
    m.start("free", vec![]);
    m.rule(
        Rule::new("{i} takes left")
            .over(i)
            .when(fork.at(i).is(0))
            .does([fork.at(i).set(i + 1)]),
    );
    let takes = Rule::new("{i} takes right").over(i);
    m.rule(
        takes
            .when(fork.at(i).is(i + 1))
            .when(fork.at(&right).is(0))
            .does([fork.at(&right).set(i + 1)]),
    );
    let eaten = Rule::new("{i} puts both back").over(i);
    m.rule(
        eaten
            .when(fork.at(i).is(i + 1))
            .when(fork.at(&right).is(i + 1))
            .does([fork.at(i).set(0), fork.at(&right).set(0)]),
    );
    m.build().unwrap()
}

/// A counter that leaves its range after three steps, and after two from its second start state.
pub fn overflow() -> Model {
    let mut m = Builder::new("overflow");
    let small = m.range("small", 0, 3);
    let bit = m.range("bit", 0, 1);
    let (n, b) = (m.state("n", small), m.bound("b", bit));
    m.starts("from {b}", vec![b], vec![n.set(b)]);
    m.rule(Rule::new("up").does([n.set(n + 1)]));
    m.rule(Rule::new("down").when(n.gt(0)).does([n.set(n - 1)]));
    m.build().unwrap()
}

/// Outcome of refused requests in [`drain`].
#[derive(Clone, Copy, PartialEq)]
pub enum Ending {
    /// Every request is answered.
    Answered,
    /// A refused request stays refused.
    Stuck,
    /// A refused request is retried forever.
    Retried,
}

/// A client whose request may be refused, and an independent clock. `ending` decides whether
/// quiescence stays reachable.
pub fn drain(ending: Ending) -> Model {
    let mut m = Builder::new("drain");
    let state = m.enumeration("state", ["idle", "asked", "refused", "waiting"]);
    let [idle, asked, refused, waiting] = [0, 1, 2, 3].map(|i| state.nth(i));
    let hour = m.range("hour", 0, 3);
    let (client, clock) = (m.state("client", state), m.state("clock", hour));
    m.start("idle", vec![]);
    m.rule(
        Rule::new("ask")
            .when(client.is(&idle))
            .does([client.set(&asked)])
            .spontaneously(),
    );
    m.rule(
        Rule::new("answer")
            .when(client.is(&asked))
            .does([client.set(&idle)]),
    );
    // The clock is spontaneous, so its ticks do not count as progress towards quiescence.
    m.rule(
        Rule::new("tick")
            .does([clock.set((clock + 1) % 4)])
            .spontaneously(),
    );
    if ending != Ending::Answered {
        m.rule(
            Rule::new("refuse")
                .when(client.is(&asked))
                .does([client.set(&refused)]),
        );
    }
    if ending == Ending::Retried {
        m.rule(
            Rule::new("try again")
                .when(client.is(&refused))
                .does([client.set(&waiting)]),
        );
        m.rule(
            Rule::new("refuse again")
                .when(client.is(&waiting))
                .does([client.set(&refused)]),
        );
    }
    m.quiescent(client.is(&idle));
    m.build().unwrap()
}

/// `parts` independent copies of a small message ring, and constants that couple nothing. With
/// `final_state`, each copy can stop permanently.
pub fn copies(parts: i32, final_state: bool) -> Model {
    let mut m = Builder::new(format!("copies{parts}"));
    let part = m.range("part", 0, parts - 1);
    let place = m.range("place", 0, 4);
    let cell = m.record(
        "cell",
        [("token", place), ("busy", TypeId::BOOL), ("rounds", place)],
    );
    let cells = m.array("cells", part, cell);
    let limit = m.state("limit", place);
    let ring = m.state("ring", cells);
    let (p, v) = (m.bound("p", part), m.bound("v", place));
    let ring_field = |field: &str| ring.at(p).field(field);
    m.start("start", vec![limit.set(3)]);
    m.rule(
        Rule::new("{p} starts with {v}")
            .over(p)
            .over(v)
            .when(!ring_field("busy"))
            .when(v.gt(0).and(v.le(limit)))
            .does([ring_field("busy").set(true), ring_field("token").set(v)])
            .spontaneously(),
    );
    m.rule(
        Rule::new("move")
            .over(p)
            .when(ring_field("busy").and(ring_field("token").gt(0)))
            .does([
                ring_field("token").set(ring_field("token") - 1),
                when(
                    ring_field("token").is(0),
                    vec![
                        ring_field("busy").set(false),
                        ring_field("rounds").set((ring_field("rounds") + 1) % 5),
                    ],
                ),
            ]),
    );
    if final_state {
        m.rule(
            Rule::new("stop")
                .over(p)
                .when(!ring_field("busy"))
                .does([ring_field("busy").set(true), ring_field("rounds").set(0)]),
        );
    }
    m.invariant("tokens", p.all(ring_field("token").le(limit)));
    m.invariant(
        "idle without token",
        p.all(ring_field("busy").or(ring_field("token").is(0))),
    );
    if !final_state {
        m.quiescent(p.all(!ring_field("busy")));
    }
    m.build().unwrap()
}

/// Uses every construct of the form once, with names that are invalid in Murphi.
pub fn every_construct() -> Model {
    let mut m = Builder::new("every construct");
    let color = m.enumeration("Color", ["red", "green", "end"]);
    let rule_label = m.enumeration("begin", ["red", "I-1", "2nd"]);
    let small = m.range("small", -1, 2);
    let row = m.array("row", color, small);
    let grid = m.array("grid", TypeId::BOOL, row);
    let pair = m.record("pair", [("while", small), ("color", color)]);
    let pairs = m.array("pairs", small, pair);
    let next = m.table("next color", color, color, [1, 2, 0]);
    let weight = m.table("weight", small, small, [-1, 2, 1, 0]);
    let (cells, pair_array, rule) = (
        m.state("cells", grid),
        m.state("all", pairs),
        m.state("rule", rule_label),
    );
    let n = m.state("n", small);
    let (c, s, b) = (
        m.bound("c", color),
        m.bound("s", small),
        m.bound("b", TypeId::BOOL),
    );
    let (t, p) = (m.local("t", small), m.local("p", pair));
    let second = m.label(rule_label, "2nd");
    m.starts(
        "begin with {b}",
        vec![b],
        vec![
            cells.at(b).at(color.nth(1)).set(2),
            n.set(Expr::from(b).then(1, 0)),
            rule.set(rule_label.nth(1)),
        ],
    );
    m.rule(
        Rule::new("say \"{c}\"")
            .over(c)
            .over(b)
            .when(
                cells
                    .at(b)
                    .at(c)
                    .le(1)
                    .implies(n.ge(0))
                    .and(n.is(n * 4 / 4)),
            )
            .does([
                t.begin((n + 1) % 3),
                Stmt::Let(p, None),
                p.field("color").set(next.of(c)),
                pair_array.at(t).set(p),
                pair_array.at(-(t % 2)).field("while").set(weight.of(t)),
                cells.at(!b).at(next.of(c)).set(t - 1),
                n.set(t),
                choose(
                    rule.is(&second),
                    vec![rule.clear()],
                    vec![rule.set(&second)],
                ),
            ]),
    );
    m.rule(
        Rule::new("sweep")
            .when(n.gt(0).or(c.any(cells.at(false).at(c).lt(0))))
            .does([
                c.each(vec![when(
                    cells.at(true).at(c).is_not(0),
                    vec![
                        cells.at(true).at(c).clear(),
                        assert("few", ((n - 1) * 2 + -n).le(-n + 4)),
                    ],
                )]),
                pair_array.at(2).set(pair_array.at(n)),
                when(n.gt(2), vec![error("never")]),
            ]),
    );
    let never = pair_array
        .at(s)
        .field("color")
        .is(color.nth(1))
        .and(n.is(s))
        .and(n.lt(0));
    m.invariant(
        "bounds",
        s.all(pair_array.at(s).field("while").ge(-1).and(!never)),
    );
    m.deadlock(Deadlock::ExceptQuiescent);
    m.quiescent(b.any(cells.at(b).at(color.nth(0)).lt(2)));
    m.build().unwrap()
}
