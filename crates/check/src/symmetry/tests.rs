//! Canonical forms beside brute force: all permutations, applied by the structure of types.

use super::*;
use crate::build::Builder;
use crate::compile::compile;
use crate::explore::Explorer;
use crate::program::UNDEFINED;
use crate::search::{Options, View};
use proptest::prelude::*;
use rustc_hash::FxHashSet;

/// A model whose state has one variable of each of these shapes, over two scalarsets and a range that is used like one.
fn model(shapes: &[u8], sizes: [u32; 2]) -> Model {
    let mut m = Builder::new("shapes");
    let s = m.declare("S", Type::Scalarset(sizes[0]));
    let t = m.declare("T", Type::Scalarset(sizes[1]));
    let label = m.declare("L", Type::Enum(vec!["none".into(), "some".into()]));
    let one = m.declare("one", Type::Union(vec![s, t]));
    let either = m.declare("either", Type::Union(vec![label, s]));
    let small = m.declare("small", Type::Range { lo: 0, hi: 1 });
    let wide = m.declare("wide", Type::Range { lo: 0, hi: 1 << 29 });
    let names = m.declare(
        "names",
        Type::Range {
            lo: 0,
            hi: sizes[1] as i32 - 1,
        },
    );
    let name_or_none = m.declare(
        "name_or_none",
        Type::Range {
            lo: 0,
            hi: sizes[1] as i32,
        },
    );
    let mut array = |index, element| m.declare("array", Type::Array { index, element });
    let flags = array(s, small);
    let next = array(s, s);
    let cross = array(s, t);
    let matrix = array(s, flags);
    let both = array(one, small);
    let of_either = array(either, t);
    // Three of these have no room in one key.
    let numbers = array(s, wide);
    let by_name = array(names, small);
    let by_optional = array(name_or_none, names);
    let chosen = array(names, name_or_none);
    let pair = m.declare(
        "pair",
        Type::Record(vec![("to".into(), s), ("flag".into(), small)]),
    );
    let bag = |element| Type::Multiset {
        capacity: 3,
        element,
    };
    let pairs = m.declare("pairs", bag(pair));
    let arrays = m.declare("arrays", bag(flags));
    let boxes = m.declare(
        "boxes",
        Type::Array {
            index: t,
            element: pairs,
        },
    );
    let kinds = [
        s,
        either,
        flags,
        next,
        cross,
        matrix,
        both,
        of_either,
        pairs,
        arrays,
        boxes,
        small,
        names,
        name_or_none,
        by_name,
        by_optional,
        chosen,
        numbers,
    ];
    for (number, &shape) in shapes.iter().enumerate() {
        m.state(format!("v{number}"), kinds[shape as usize % kinds.len()]);
    }
    m.start("start", vec![]);
    m.interchangeable(names, vec![name_or_none]);
    let mut model = m.build().expect("the model is sound");
    model.undefined = true;
    model
}

/// The parts of a value under a permutation of each scalarset's values.
fn permuted(
    model: &Model,
    sizes: &[u32],
    ty: TypeId,
    parts: &[i32],
    by: &dyn Fn(TypeId, i32) -> i32,
) -> Vec<i32> {
    let simple = |ty: TypeId, value: i32| match model.ty(ty) {
        _ if value == UNDEFINED => value,
        Type::Scalarset(_) => by(ty, value),
        Type::Range { .. } => match &model.interchangeable {
            Some(those) if those.names == ty => by(ty, value),
            Some(those) if those.optional.contains(&ty) && value > 0 => {
                by(those.names, value - 1) + 1
            }
            _ => value,
        },
        Type::Union(members) => {
            let mut first = 0;
            for &member in members {
                let count = model.bounds(member).unwrap().1 + 1;
                if value < first + count {
                    let inner = value - first;
                    let scalarset = matches!(model.ty(member), Type::Scalarset(_));
                    return first + if scalarset { by(member, inner) } else { inner };
                }
                first += count;
            }
            unreachable!()
        }
        _ => value,
    };
    match model.ty(ty) {
        Type::Array { index, element } => {
            let size = sizes[element.index()] as usize;
            let (lo, _) = model.bounds(*index).unwrap();
            let mut result = vec![0; parts.len()];
            for (place, part) in parts.chunks_exact(size).enumerate() {
                let to = (simple(*index, place as i32 + lo) - lo) as usize * size;
                result[to..to + size].copy_from_slice(&permuted(model, sizes, *element, part, by));
            }
            result
        }
        Type::Record(fields) => {
            let mut rest = parts;
            let mut result = Vec::new();
            for &(_, field) in fields {
                let (part, others) = rest.split_at(sizes[field.index()] as usize);
                result.extend(permuted(model, sizes, field, part, by));
                rest = others;
            }
            result
        }
        Type::Multiset { element, .. } => {
            let stride = 1 + sizes[element.index()] as usize;
            let slots = parts.chunks_exact(stride);
            let slot = |slot: &[i32]| match slot[0] {
                // The parts of an empty slot are no values.
                0 => slot.to_vec(),
                _ => [
                    &slot[..1],
                    &permuted(model, sizes, *element, &slot[1..], by)[..],
                ]
                .concat(),
            };
            slots.flat_map(slot).collect()
        }
        _ => vec![simple(ty, parts[0])],
    }
}

/// The slots of a frame under permutations of scalarsets' values.
fn image(model: &Model, frame: &[i32], by: &dyn Fn(TypeId, i32) -> i32) -> Vec<i32> {
    let sizes = crate::compile::sizes(model);
    let mut image = frame.to_vec();
    let mut at = 0;
    for variable in model.variables.iter().filter(|v| v.role == Role::State) {
        let size = sizes[variable.ty.index()] as usize;
        let parts = permuted(model, &sizes, variable.ty, &frame[at..at + size], by);
        image[at..at + size].copy_from_slice(&parts);
        at += size;
    }
    image
}

fn permutations(size: usize) -> Vec<Vec<i32>> {
    match size {
        0 => vec![vec![]],
        _ => permutations(size - 1)
            .into_iter()
            .flat_map(|shorter| {
                (0..size).map(move |at| {
                    let mut longer = shorter.clone();
                    longer.insert(at, size as i32 - 1);
                    longer
                })
            })
            .collect(),
    }
}

fn pairs_of_permutations(size: usize) -> impl Iterator<Item = (Vec<i32>, Vec<i32>)> {
    let all = permutations(size);
    let pairs = all.clone().into_iter();
    pairs.flat_map(move |one| {
        all.clone()
            .into_iter()
            .map(move |other| (one.clone(), other))
    })
}

/// The caching agents of a system differ in nothing: a search of orbits meets as many as brute force finds
/// among all states.
#[test]
fn remotes_of_systems_are_interchangeable() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (name, remotes, lines) in [
        ("protocols/msi.coh", 3, 1),
        ("protocols/mesi.coh", 2, 1),
        ("protocols/moesi.coh", 2, 1),
        ("protocols/write-through.coh", 3, 1),
        ("protocols/msi-policy.coh", 3, 1),
    ] {
        let text = std::fs::read_to_string(format!("{root}/{name}")).expect("the text is there");
        let protocol = cohkit_protocol::text::parse(&text).expect("the text is sound");
        let home = match &protocol.home {
            cohkit_protocol::protocol::Home::Controller(home) => home.clone(),
            cohkit_protocol::protocol::Home::Policy(_) => {
                let construction = cohkit_protocol::construct::construct(&protocol);
                construction.expect("the home can be built").factored(true)
            }
        };
        let options = crate::system::Options {
            trial: Some(3),
            ..crate::system::Options::default()
        };
        let model = crate::system::model(&protocol, &home, remotes, lines, &options);
        let model = model.expect("the system can be modelled");
        let names = model.interchangeable.as_ref().expect("remotes are").names;
        assert_orbits(name, &model, names, remotes.into());
    }
}

/// Checks that a search of orbits meets as many as there are among all states, which are met one by one
/// and permuted in every way. One type of a size has names that mean nothing.
fn assert_orbits(name: &str, model: &Model, names: TypeId, size: usize) {
    let program = compile(model, false);
    let view = View::whole(&program, model.deadlock);
    let mut explorer = Explorer::new(&program, &view);
    explorer.start().expect("there is a start");
    let mut orbits: FxHashSet<Vec<i32>> = FxHashSet::default();
    let permutations = permutations(size);
    let mut state = 0;
    while (state as usize) < explorer.len() {
        explorer.load(state);
        let frame = explorer.machine.frame[..program.slots.len()].to_vec();
        let images = permutations.iter().map(|permutation| {
            image(model, &frame, &|ty, value| {
                assert_eq!(ty, names);
                permutation[value as usize]
            })
        });
        orbits.extend(images.min());
        let expanded = explorer.expand(state, true, |_, _| true);
        assert_eq!(expanded, Ok(()), "{name}");
        state += 1;
    }
    let report = crate::check(model, &Options::default()).expect("it can be checked");
    assert!(report.symmetric, "{name}");
    assert_eq!(report.outcome, crate::Outcome::Verified, "{name}");
    assert_eq!(report.states, orbits.len() as u128, "{name}");
}

/// Peterson's algorithm and the MCS locks of the library, with fewer processes.
#[test]
fn mutual_exclusion_has_the_orbits_that_brute_force_finds() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (name, most) in [("filter_6", 4), ("mcs_lock", 3), ("mcs_lock_exchange", 3)] {
        let text = std::fs::read_to_string(format!("{root}/models/{name}.m"));
        let text = text.expect("the model is there");
        let at = text.find("processes: ").expect("it has a size") + "processes: ".len();
        for processes in 2..=most {
            let text = format!("{}{processes}{}", &text[..at], &text[at + 1..]);
            let read = crate::murphi::read(name, &text, crate::murphi::Dialect::Any);
            let model = read.unwrap().model;
            let proc = model.types.iter().position(|named| named.name == "proc");
            let proc = TypeId(proc.expect("processes are a type") as u32);
            assert_orbits(name, &model, proc, processes);
        }
    }
}

proptest! {
    /// The canonical form is in the orbit, and the same for all states of the orbit.
    #[test]
    fn one_state_stands_for_each_orbit(
        shapes in prop::collection::vec(0u8..18, 1..5),
        sizes in [1u32..5, 1u32..4],
        values in prop::collection::vec(0u32..12, 200),
    ) {
        let model = model(&shapes, sizes);
        let program = compile(&model, false);
        let mut frame = program.frame.clone();
        for (number, slot) in program.slots.iter().enumerate() {
            let choices = (slot.hi - slot.lo + 1) as u32 + u32::from(slot.undefined);
            let choice = values[number % 200] % choices;
            frame[number] = match choice as i32 + slot.lo {
                value if value > slot.hi => UNDEFINED,
                value => value,
            };
        }
        // The parts of empty slots have their first values.
        for bag in &program.bags {
            for place in 0..bag.capacity {
                let first = (bag.first + place * bag.stride) as usize;
                if frame[first] == 0 {
                    let parts = first + 1..first + bag.stride as usize;
                    frame[parts.clone()].copy_from_slice(&program.frame[parts]);
                }
            }
        }
        program.settle(&mut frame, |_, _| {});
        let packing = Packing::new(&program, 0..program.slots.len() as Cell);
        let Some(mut symmetry) = Symmetry::of(&model, &program, &packing) else { return Ok(()) };
        let canonical = |symmetry: &Symmetry, frame: &[i32]| {
            let mut words = vec![0; packing.words];
            packing.pack(frame, &mut words);
            symmetry.canonicalise(&mut words, &mut Scratch::default());
            let mut frame = frame.to_vec();
            packing.unpack(&words, &mut frame);
            frame
        };
        let expected = canonical(&symmetry, &frame);
        let scalarsets: Vec<usize> = (0..model.types.len())
            .filter(|&ty| matches!(model.types[ty].ty, Type::Scalarset(_)))
            .collect();
        let mut seen = false;
        for first in permutations(sizes[0] as usize) {
            for (second, third) in pairs_of_permutations(sizes[1] as usize) {
                let by = |ty: TypeId, value: i32| match scalarsets.iter().position(|&s| s == ty.index()) {
                    Some(0) => first[value as usize],
                    Some(_) => second[value as usize],
                    None => third[value as usize],
                };
                let mut other = image(&model, &frame, &by);
                program.settle(&mut other, |_, _| {});
                prop_assert_eq!(&canonical(&symmetry, &other), &expected);
                seen |= other == expected;
            }
        }
        prop_assert!(seen, "the canonical form is not in the orbit");
        // Every machine finds the same.
        symmetry.layout.bmi2 = false;
        prop_assert_eq!(&canonical(&symmetry, &frame), &expected);
    }
}
