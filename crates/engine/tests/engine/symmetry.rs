//! Comparison of searches with symmetry and searches of all states.

use cohkit_testing::orbits;

use cohkit_engine::build::Builder;
use cohkit_engine::model::{Deadlock, Model, Rule, Type, TypeId, VariableId};
use cohkit_engine::search::Engine;
use cohkit_engine::{check, Options, Outcome, Property, Report};
use orbits::assert_orbits;

const BOOL: TypeId = TypeId::BOOL;

/// Directed graphs on `nodes` nodes: any edge may be added or removed.
fn graphs(nodes: u32) -> Builder {
    let mut m = Builder::new("graphs");
    let node = m.scalarset("node", nodes);
    let row = m.array("row", node, BOOL);
    let matrix = m.array("matrix", node, row);
    let edge = m.state("edge", matrix);
    let (a, b) = (m.bound("a", node), m.bound("b", node));
    m.start("empty", vec![]);
    let toggle = Rule::new("toggle {a} {b}")
        .over(a)
        .over(b)
        .when(a.is_not(b));
    m.rule(toggle.does([edge.at(a).at(b).set(!edge.at(a).at(b))]));
    m
}

/// Report on a model that is valid and needs no checkpoint.
fn run(model: &Model, options: Options) -> Report {
    check(model, &options).unwrap()
}

/// Report with symmetry, checked to be equal for both engines and any number of threads.
fn check_reduced(model: &Model) -> Report {
    let expected = run(model, Options::default());
    for threads in [1, 2, 3] {
        for engine in [Engine::Interpreter, Engine::Native] {
            let options = Options {
                threads,
                engine,
                ..Options::default()
            };
            let report = run(model, options);
            assert_eq!(
                (&report.outcome, report.states),
                (&expected.outcome, expected.states)
            );
            assert_eq!(
                (report.transitions, report.depth),
                (expected.transitions, expected.depth)
            );
        }
    }
    expected
}

/// The reachable states up to symmetry are the graphs up to isomorphism.
#[test]
fn graphs_up_to_isomorphism() {
    // Numbers of directed graphs on n unlabelled nodes (OEIS A000273), and 2^(n(n-1)) with labels.
    for (nodes, orbits) in [(2, 3), (3, 16), (4, 218)] {
        let model = graphs(nodes).build().unwrap();
        let report = check_reduced(&model);
        assert_eq!(report.outcome, Outcome::Verified);
        assert_eq!(report.states, orbits);
        assert!(report.symmetric);
        let unreduced = run(
            &model,
            Options {
                symmetry: false,
                ..Options::default()
            },
        );
        assert_eq!(unreduced.states, 1 << (nodes * (nodes - 1)));
        assert!(!unreduced.symmetric);
    }
}

/// A trace through representatives is made of steps of actual states, and is a shortest one.
#[test]
fn counterexamples_under_symmetry_replay() {
    // A triangle needs three edges. The trace consists of actual steps, not of steps up to a permutation.
    let mut m = graphs(4);
    let node = m.model().variable(cohkit_engine::model::VariableId(1)).ty;
    let edge = cohkit_engine::model::VariableId(0);
    let (x, y, z) = (m.bound("x", node), m.bound("y", node), m.bound("z", node));
    let triangle = edge.at(x).at(y).and(edge.at(y).at(z)).and(edge.at(z).at(x));
    m.invariant("no triangle", !x.any(y.any(z.any(triangle))));
    let model = m.build().unwrap();
    let report = check_reduced(&model);
    let Outcome::Violated { trace, .. } = &report.outcome else {
        panic!("{:?}", report.outcome)
    };
    let unreduced = run(
        &model,
        Options {
            symmetry: false,
            ..Options::default()
        },
    );
    let Outcome::Violated {
        trace: shortest, ..
    } = &unreduced.outcome
    else {
        panic!("{:?}", unreduced.outcome)
    };
    assert_eq!(trace.steps.len(), shortest.steps.len());
    let rules: Vec<u32> = trace.steps.iter().map(|step| step.rule_index).collect();
    let replayed = cohkit_engine::trace::replay(&model, trace.start_index, &rules).unwrap();
    assert_eq!(replayed.steps, trace.steps);
    // Each step adds an edge, and the last one closes a triangle.
    let ends: Vec<&str> = trace
        .steps
        .iter()
        .map(|step| &step.rule["toggle ".len()..])
        .collect();
    assert_eq!(ends.len(), 3);
    let mut outs: Vec<&str> = ends
        .iter()
        .map(|end| end.split(' ').next().unwrap())
        .collect();
    let mut ins: Vec<&str> = ends
        .iter()
        .map(|end| end.split(' ').nth(1).unwrap())
        .collect();
    outs.sort_unstable();
    ins.sort_unstable();
    assert_eq!(outs, ins);
}

/// Model of a Murphi text without errors.
fn murphi(text: &str) -> Model {
    cohkit_murphi::read("text", text, Default::default())
        .unwrap()
        .model
}

/// With `shared_ownership`, several nodes may own the thing at once.
fn owners(shared_ownership: bool) -> Model {
    murphi(&format!(
        "type node: scalarset(3);
        var owns: array [node] of boolean; owner: node; some: boolean;
        startstate begin for n: node do owns[n] := false; end; some := false; end;
        ruleset n: node do
          rule \"take\" !some | {shared_ownership} ==> begin owns[n] := true; some := true; end;
          rule \"leave\" owns[n] ==> begin owns[n] := false; some := false; end;
        end;
        rule \"look\" begin for n: node do if owns[n] then owner := n; end; end; end;"
    ))
}

/// At most one node owns the thing, so the order of the loop in `look` does not matter.
#[test]
fn irrelevant_loop_order_keeps_symmetry() {
    let report = check_reduced(&owners(false));
    assert_eq!(report.outcome, Outcome::Verified);
    assert!(report.symmetric);
    let unreduced = run(
        &owners(false),
        Options {
            symmetry: false,
            ..Options::default()
        },
    );
    // Ownership: nobody, or one of three nodes. The node seen last: this one, another one, or none.
    assert_eq!((report.states, unreduced.states), (5, 16));
}

/// The results for different orders of two owners are exchanged by a permutation.
#[test]
fn results_equal_up_to_permutation_agree() {
    let model = owners(true);
    let node = model.variable(VariableId(0)).ty;
    let Type::Array { index, .. } = *model.ty(node) else {
        panic!("`owns` is an array")
    };
    assert_orbits("owners", &model, index, 3);
    assert_eq!(check_reduced(&model).outcome, Outcome::Verified);
}

/// One owner may be the boss, which breaks the symmetry between owners.
#[test]
fn order_dependence_is_found_with_both_results() {
    let boss = |condition: &str, look: &str| {
        murphi(&format!(
            "type node: scalarset(3); all: union {{node, enum {{none}}}};
            var owns: array [node] of boolean; owner, boss: node; seen: 0..3;
            function last(): node;
            var found: node; begin for n: node do if owns[n] then found := n; end; end; return found; end;
            startstate begin for n: node do owns[n] := false; end; seen := 0; end;
            ruleset n: node do
              rule \"take\" {condition} ==> begin owns[n] := true; if isundefined(boss) then boss := n; end; end;
              rule \"leave\" owns[n] ==> begin owns[n] := false; end;
            end;
            {look}"
        ))
    };
    let take = "!owns[n]";
    let rule = |body: &str| format!("rule \"look\" begin {body} end;");
    for look in [
        rule("for n: node do if owns[n] then owner := n; end; end;"),
        rule("for n: all do if ismember(n, node) then if owns[n] then owner := n; end; end; end;"),
        rule("for m: node do if !isundefined(boss) & m = boss then for n: node do if owns[n] then owner := n; end; end; end; end;"),
        rule("if exists n: node do owns[n] end then owner := last(); end;"),
    ] {
        let report = check_reduced(&boss(take, &look));
        let Outcome::Exceeded { limit, trace } = &report.outcome else {
            panic!("{look}: {:?}", report.outcome);
        };
        for part in [
            "the order of a loop over a scalarset matters",
            "in the order node_1, node_2, node_3 of the model file the result is: `owner` = node_2",
            "in the order node_2, node_1, node_3: `owner` = node_1",
        ] {
            assert!(limit.contains(part), "{look}: {limit}");
        }
        let rules: Vec<_> = trace.steps.iter().map(|s| s.rule.as_str()).collect();
        assert_eq!(rules, ["take (n=node_1)", "take (n=node_2)", "look"]);
        let unreduced = Options {
            symmetry: false,
            ..Options::default()
        };
        assert_eq!(run(&boss(take, &look), unreduced).outcome, Outcome::Verified);
    }
    // A guard that holds only in some orders, and an error that occurs only in some orders.
    let look =
        "rule \"look\" (exists n: node do owns[n] end) & last() = boss ==> begin seen := 1; end;";
    let report = check_reduced(&boss(take, look));
    let Outcome::Exceeded { limit, .. } = &report.outcome else {
        panic!("{:?}", report.outcome);
    };
    assert!(
        limit.contains("the condition does not hold; in the order"),
        "{limit}"
    );
    let look = rule("if exists n: node do owns[n] end then assert last() = boss; end;");
    let report = check_reduced(&boss(take, &look));
    let Outcome::Exceeded { limit, .. } = &report.outcome else {
        panic!("{:?}", report.outcome);
    };
    assert!(limit.contains("`last() = boss` does not hold"), "{limit}");
    // With one owner at a time, the order does not matter.
    let nobody_owns = "forall m: node do !owns[m] end";
    let look = rule("for n: node do if owns[n] then owner := n; end; end;");
    assert_eq!(
        check_reduced(&boss(nobody_owns, &look)).outcome,
        Outcome::Verified
    );
}

/// The last step changes nothing in the order of the model, but changes the state in another order. If no other rule
/// is enabled, a deadlock therefore depends on the order.
#[test]
fn order_dependent_deadlock_is_undecided() {
    let model = |rest: &str| {
        murphi(&format!(
            "type node: scalarset(2); var owner: node; other: boolean;
            startstate begin for n: node do owner := n; end; other := false; end;
            rule \"look\" begin for n: node do owner := n; end; end;
            {rest}"
        ))
    };
    let report = check_reduced(&model(""));
    assert!(
        matches!(report.outcome, Outcome::Exceeded { .. }),
        "{:?}",
        report.outcome
    );
    let flip = "rule \"flip\" begin other := !other; end;";
    let report = check_reduced(&model(flip));
    assert_eq!((report.outcome, report.states), (Outcome::Verified, 2));
    let mut off = model("");
    off.deadlock = Deadlock::Off;
    let report = check_reduced(&off);
    assert_eq!((report.outcome, report.states), (Outcome::Verified, 1));
}

/// Nine values have 362,880 orders.
#[test]
fn too_many_orders_are_not_tried() {
    let model = murphi(
        "type node: scalarset(9); var owner: node; other: boolean;
        startstate begin other := false; end;
        rule \"look\" begin for n: node do owner := n; end; end;
        rule \"flip\" begin other := !other; end;",
    );
    let report = run(&model, Options::default());
    let Outcome::Exceeded { limit, .. } = &report.outcome else {
        panic!("{:?}", report.outcome);
    };
    assert!(limit.contains("more than 40320 orders"), "{limit}");
}

/// One of two nodes has a value, the other is undefined. A quantifier over both must read the undefined one, whichever
/// comes first.
#[test]
fn short_circuit_hides_no_error() {
    let model_with = |rest: &str| {
        murphi(&format!(
            "type node: scalarset(2);
            var a: array [node] of boolean; b: array [node] of boolean; last: node;
            startstate begin for n: node do b[n] := true; end; end;
            ruleset n: node do
              rule \"give\" forall m: node do b[m] end ==>
              begin a[n] := true; b[n] := false; last := n; end;
            end;
            rule \"back\" !isundefined(last) ==>
            begin for n: node do b[n] := true; undefine a[n]; end; undefine last; end;
            {rest}"
        ))
    };
    let value_given = "(exists m: node do !b[m] end)";
    let no_statements = "begin end;";
    for rest in [
        format!("rule {value_given} & exists m: node do a[m] end ==> {no_statements}"),
        format!("rule {value_given} & !forall m: node do !a[m] end ==> {no_statements}"),
        format!("rule begin if {value_given} & exists m: node do a[m] end then undefine last; end; end;"),
        format!("assume {value_given} -> forall m: node do !a[m] end;"),
        format!("cover {value_given} & exists m: node do a[m] end;"),
    ] {
        let model = model_with(&rest);
        for engine in [Engine::Interpreter, Engine::Native] {
            for symmetry in [true, false] {
                let options = Options {
                    engine,
                    symmetry,
                    ..Options::default()
                };
                let report = run(&model, options);
                let Outcome::Violated {
                    property, message, ..
                } = &report.outcome
                else {
                    panic!("{rest} {symmetry}: {:?}", report.outcome)
                };
                assert_eq!(*property, Property::WellDefined, "{rest}");
                assert!(
                    message.contains("`a[m]` is read but undefined"),
                    "{message}"
                );
            }
        }
    }
    // If the model itself orders the nodes, the quantifier keeps that order.
    let ordered = murphi(
        "type node: scalarset(2);
        var a: array [node] of boolean; last: node;
        startstate begin end;
        rule \"first\" isundefined(last) ==> begin clear last; a[last] := true; end;
        rule \"look\" !isundefined(last) & exists m: node do a[m] end ==>
        begin undefine a[last]; undefine last; end;",
    );
    let report = check_reduced(&ordered);
    assert_eq!(report.outcome, Outcome::Verified);
    assert!(!report.symmetric);
}

/// The first of two nodes is seen, and `cause` distinguishes them: the two orders give states that are not equivalent.
#[test]
fn asymmetric_loop_disables_reduction() {
    let model = murphi(
        "type node: scalarset(2); thing: scalarset(2);
        var up: array [node] of boolean; at: array [thing] of boolean; seen, cause: node;
        function first(): node; begin for n: node do if up[n] then return n; end; end; end;
        startstate begin
          for n: node do up[n] := false; end; for t: thing do at[t] := false; end;
        end;
        ruleset n: node do
          rule \"up\" isundefined(seen) & forall m: node do !up[m] end ==> begin up[n] := true; end;
          rule \"all up\" up[n] ==> begin for m: node do up[m] := true; end; seen := first(); cause := n; end;
          rule \"is not the first\" !isundefined(seen) & seen != n ==>
          begin up[n] := false; assert first() = seen; up[n] := true; up[seen] := false;
            assert first() != seen; up[seen] := true; end;
        end;
        ruleset t: thing do rule \"at\" begin at[t] := !at[t]; end; end;",
    );
    let report = check_reduced(&model);
    assert_eq!(report.outcome, Outcome::Verified);
    let unreduced = run(
        &model,
        Options {
            symmetry: false,
            ..Options::default()
        },
    );
    // The things are permuted, the nodes are not: 5 states of the nodes, times 3 of the 4 states of the things.
    assert_eq!((report.states, unreduced.states), (15, 20));
    assert!(report.symmetric);
    assert_eq!(report.lost_symmetry[0].scalarsets, ["node"]);
}

/// Peterson's algorithm and the MCS locks of the model library, with fewer processes.
#[test]
fn mutual_exclusion_orbits_match_brute_force() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (name, max_processes) in [("filter_6", 4), ("mcs_lock", 3), ("mcs_lock_exchange", 3)] {
        let text = std::fs::read_to_string(format!("{root}/models/{name}.m"));
        let text = text.expect("the model file exists");
        let position = text
            .find("processes: ")
            .expect("the model declares its number of processes")
            + "processes: ".len();
        for processes in 2..=max_processes {
            let text = format!("{}{processes}{}", &text[..position], &text[position + 1..]);
            let read = cohkit_murphi::read(name, &text, Default::default());
            let model = read.unwrap().model;
            let proc = model.types.iter().position(|named| named.name == "proc");
            let proc = TypeId(proc.expect("processes are a type") as u32);
            assert_orbits(name, &model, proc, processes);
        }
    }
}
