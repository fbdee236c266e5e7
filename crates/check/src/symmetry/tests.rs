//! Canonical forms beside brute force: all permutations, applied by the structure of types.

use super::*;
use crate::build::Builder;
use crate::compile::compile;
use crate::program::UNDEFINED;
use proptest::prelude::*;

/// A model whose state has one variable of each of these shapes, over two scalarsets.
fn model(shapes: &[u8], sizes: [u32; 2]) -> Model {
    let mut m = Builder::new("shapes");
    let s = m.declare("S", Type::Scalarset(sizes[0]));
    let t = m.declare("T", Type::Scalarset(sizes[1]));
    let label = m.declare("L", Type::Enum(vec!["none".into(), "some".into()]));
    let one = m.declare("one", Type::Union(vec![s, t]));
    let either = m.declare("either", Type::Union(vec![label, s]));
    let small = m.declare("small", Type::Range { lo: 0, hi: 1 });
    let wide = m.declare("wide", Type::Range { lo: 0, hi: 1 << 29 });
    let mut array = |index, element| m.declare("array", Type::Array { index, element });
    let flags = array(s, small);
    let next = array(s, s);
    let cross = array(s, t);
    let matrix = array(s, flags);
    let both = array(one, small);
    let of_either = array(either, t);
    // Three of these have no room in one key.
    let numbers = array(s, wide);
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
        s, either, flags, next, cross, matrix, both, of_either, pairs, arrays, boxes, small,
        numbers,
    ];
    for (number, &shape) in shapes.iter().enumerate() {
        m.state(format!("v{number}"), kinds[shape as usize % kinds.len()]);
    }
    m.start("start", vec![]);
    let mut model = m.build().expect("the model is sound");
    model.undefined = true;
    model
}

/// The parts of a value under a permutation of each scalarset's values.
fn permuted(model: &Model, ty: TypeId, parts: &[i32], by: &dyn Fn(TypeId, i32) -> i32) -> Vec<i32> {
    let sizes = crate::compile::sizes(model);
    let simple = |ty: TypeId, value: i32| match model.ty(ty) {
        _ if value == UNDEFINED => value,
        Type::Scalarset(_) => by(ty, value),
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
                result[to..to + size].copy_from_slice(&permuted(model, *element, part, by));
            }
            result
        }
        Type::Record(fields) => {
            let mut rest = parts;
            let mut result = Vec::new();
            for &(_, field) in fields {
                let (part, others) = rest.split_at(sizes[field.index()] as usize);
                result.extend(permuted(model, field, part, by));
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
                _ => [&slot[..1], &permuted(model, *element, &slot[1..], by)[..]].concat(),
            };
            slots.flat_map(slot).collect()
        }
        _ => vec![simple(ty, parts[0])],
    }
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

proptest! {
    /// The canonical form is in the orbit, and the same for all states of the orbit.
    #[test]
    fn one_state_stands_for_each_orbit(
        shapes in prop::collection::vec(0u8..13, 1..5),
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
        let Some(symmetry) = Symmetry::of(&model, &program, &packing) else { return Ok(()) };
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
            for second in permutations(sizes[1] as usize) {
                let by = |ty: TypeId, value: i32| match ty.index() == scalarsets[0] {
                    true => first[value as usize],
                    false => second[value as usize],
                };
                let mut other = frame.clone();
                let mut at = 0;
                for variable in model.variables.iter().filter(|v| v.role == Role::State) {
                    let size = crate::compile::sizes(&model)[variable.ty.index()] as usize;
                    let parts = permuted(&model, variable.ty, &frame[at..at + size], &by);
                    other[at..at + size].copy_from_slice(&parts);
                    at += size;
                }
                program.settle(&mut other, |_, _| {});
                prop_assert_eq!(&canonical(&symmetry, &other), &expected);
                seen |= other == expected;
            }
        }
        prop_assert!(seen, "the canonical form is not in the orbit");
    }
}
