//! Small models with known verdicts, shared by the tests.

use cohkit_engine::build::{assert, choose, error, when, Builder};
use cohkit_engine::model::{Deadlock, Expr, Model, Rule, Stmt, TypeId};

/// Peterson's mutual exclusion for `n` processes (the filter lock).
pub fn peterson(n: i32) -> Model {
    let mut model = Builder::new(format!("peterson{n}"));
    let pid = model.range("pid", 1, n);
    let level = model.range("level", 0, n - 1);
    let gate = model.range("gate", 1, n - 1);
    let location = model.enumeration("at", ["away", "enters", "waits", "inside"]);
    let locations = model.array("ats", pid, location);
    let levels = model.array("levels", pid, level);
    let pids = model.array("pids", gate, pid);
    let [away, enters, waits, inside] = [0, 1, 2, 3].map(|i| location.nth(i));
    let (pc, reached, turn) = (
        model.state("pc", locations),
        model.state("reached", levels),
        model.state("turn", pids),
    );
    let (i, j) = (model.bound("i", pid), model.bound("j", pid));
    model.start("all away", vec![]);
    model.rule(
        Rule::new("{i} begins")
            .over(i)
            .when(pc.at(i).is(&away))
            .does([reached.at(i).set(1), pc.at(i).set(&enters)])
            .spontaneously(),
    );
    model.rule(
        Rule::new("{i} gives way")
            .over(i)
            .when(pc.at(i).is(&enters))
            .does([turn.at(reached.at(i)).set(i), pc.at(i).set(&waits)]),
    );
    let ahead = turn
        .at(reached.at(i))
        .is_not(i)
        .or(j.all(j.is(i).or(reached.at(j).lt(reached.at(i)))));
    model.rule(
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
    model.rule(
        Rule::new("{i} leaves")
            .over(i)
            .when(pc.at(i).is(&inside))
            .does([reached.at(i).set(0), pc.at(i).set(&away)]),
    );
    model.invariant(
        "exclusion",
        i.all(
            j.all(
                i.is(j)
                    .or(pc.at(i).is_not(&inside))
                    .or(pc.at(j).is_not(&inside)),
            ),
        ),
    );
    model.quiescent(i.all(pc.at(i).is(&away)));
    model.build().unwrap()
}

/// `n` philosophers who each take the left fork first, so that a deadlock is reachable.
pub fn dining(n: i32) -> Model {
    let mut model = Builder::new(format!("dining{n}"));
    let seat = model.range("seat", 0, n - 1);
    let holder = model.range("holder", 0, n);
    let forks = model.array("forks", seat, holder);
    let fork = model.state("fork", forks);
    let i = model.bound("i", seat);
    let right = (i + 1) % n;
    model.start("free", vec![]);
    model.rule(
        Rule::new("{i} takes left")
            .over(i)
            .when(fork.at(i).is(0))
            .does([fork.at(i).set(i + 1)]),
    );
    let takes = Rule::new("{i} takes right").over(i);
    model.rule(
        takes
            .when(fork.at(i).is(i + 1))
            .when(fork.at(&right).is(0))
            .does([fork.at(&right).set(i + 1)]),
    );
    let eaten = Rule::new("{i} puts both back").over(i);
    model.rule(
        eaten
            .when(fork.at(i).is(i + 1))
            .when(fork.at(&right).is(i + 1))
            .does([fork.at(i).set(0), fork.at(&right).set(0)]),
    );
    model.build().unwrap()
}

/// A counter that leaves its range after three steps, and after two from its second start state.
pub fn overflow() -> Model {
    let mut model = Builder::new("overflow");
    let small = model.range("small", 0, 3);
    let bit = model.range("bit", 0, 1);
    let (n, b) = (model.state("n", small), model.bound("b", bit));
    model.starts("from {b}", vec![b], vec![n.set(b)]);
    model.rule(Rule::new("up").does([n.set(n + 1)]));
    model.rule(Rule::new("down").when(n.gt(0)).does([n.set(n - 1)]));
    model.build().unwrap()
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
    let mut model = Builder::new("drain");
    let state = model.enumeration("state", ["idle", "asked", "refused", "waiting"]);
    let [idle, asked, refused, waiting] = [0, 1, 2, 3].map(|i| state.nth(i));
    let hour = model.range("hour", 0, 3);
    let (client, clock) = (model.state("client", state), model.state("clock", hour));
    model.start("idle", vec![]);
    model.rule(
        Rule::new("ask")
            .when(client.is(&idle))
            .does([client.set(&asked)])
            .spontaneously(),
    );
    model.rule(
        Rule::new("answer")
            .when(client.is(&asked))
            .does([client.set(&idle)]),
    );
    // The clock is spontaneous, so its ticks do not count as progress towards quiescence.
    model.rule(
        Rule::new("tick")
            .does([clock.set((clock + 1) % 4)])
            .spontaneously(),
    );
    if ending != Ending::Answered {
        model.rule(
            Rule::new("refuse")
                .when(client.is(&asked))
                .does([client.set(&refused)]),
        );
    }
    if ending == Ending::Retried {
        model.rule(
            Rule::new("try again")
                .when(client.is(&refused))
                .does([client.set(&waiting)]),
        );
        model.rule(
            Rule::new("refuse again")
                .when(client.is(&waiting))
                .does([client.set(&refused)]),
        );
    }
    model.quiescent(client.is(&idle));
    model.build().unwrap()
}

/// `parts` independent copies of a small message ring, and constants that couple nothing. With
/// `final_state`, each copy can stop permanently.
pub fn copies(parts: i32, final_state: bool) -> Model {
    let mut model = Builder::new(format!("copies{parts}"));
    let part = model.range("part", 0, parts - 1);
    let place = model.range("place", 0, 4);
    let cell = model.record(
        "cell",
        [("token", place), ("busy", TypeId::BOOL), ("rounds", place)],
    );
    let cells = model.array("cells", part, cell);
    let limit = model.state("limit", place);
    let ring = model.state("ring", cells);
    let (p, v) = (model.bound("p", part), model.bound("v", place));
    let ring_field = |field: &str| ring.at(p).field(field);
    model.start("start", vec![limit.set(3)]);
    model.rule(
        Rule::new("{p} starts with {v}")
            .over(p)
            .over(v)
            .when(!ring_field("busy"))
            .when(v.gt(0).and(v.le(limit)))
            .does([ring_field("busy").set(true), ring_field("token").set(v)])
            .spontaneously(),
    );
    model.rule(
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
        model.rule(
            Rule::new("stop")
                .over(p)
                .when(!ring_field("busy"))
                .does([ring_field("busy").set(true), ring_field("rounds").set(0)]),
        );
    }
    model.invariant("tokens", p.all(ring_field("token").le(limit)));
    model.invariant(
        "idle without token",
        p.all(ring_field("busy").or(ring_field("token").is(0))),
    );
    if !final_state {
        model.quiescent(p.all(!ring_field("busy")));
    }
    model.build().unwrap()
}

/// Uses every construct of a model at least once, with names that are invalid in Murphi: for tests of printing and of
/// engines, which must cover all constructs.
pub fn every_construct() -> Model {
    let mut model = Builder::new("every construct");
    let color = model.enumeration("Color", ["red", "green", "end"]);
    let rule_label = model.enumeration("begin", ["red", "I-1", "2nd"]);
    let small = model.range("small", -1, 2);
    let row = model.array("row", color, small);
    let grid = model.array("grid", TypeId::BOOL, row);
    let pair = model.record("pair", [("while", small), ("color", color)]);
    let pairs = model.array("pairs", small, pair);
    let next = model.table("next color", color, color, [1, 2, 0]);
    let weight = model.table("weight", small, small, [-1, 2, 1, 0]);
    let (cells, pair_array, rule) = (
        model.state("cells", grid),
        model.state("all", pairs),
        model.state("rule", rule_label),
    );
    let n = model.state("n", small);
    let (c, s, b) = (
        model.bound("c", color),
        model.bound("s", small),
        model.bound("b", TypeId::BOOL),
    );
    let (t, p) = (model.local("t", small), model.local("p", pair));
    let second = model.label(rule_label, "2nd");
    model.starts(
        "begin with {b}",
        vec![b],
        vec![
            cells.at(b).at(color.nth(1)).set(2),
            n.set(Expr::from(b).then(1, 0)),
            rule.set(rule_label.nth(1)),
        ],
    );
    model.rule(
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
    model.rule(
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
    model.invariant(
        "bounds",
        s.all(pair_array.at(s).field("while").ge(-1).and(!never)),
    );
    model.deadlock(Deadlock::ExceptQuiescent);
    model.quiescent(b.any(cells.at(b).at(color.nth(0)).lt(2)));
    model.build().unwrap()
}
