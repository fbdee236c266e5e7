//! Comparison of canonical forms with brute force: all permutations, applied by the structure of types.

// By path, because a unit test cannot use a crate that depends on its own. Integration tests use `assert_orbits`.
#[allow(dead_code)]
#[path = "../../../testing/src/orbits.rs"]
mod orbits;

use super::{Scratch, Symmetry};
use crate::build::Builder;
use crate::compile::{compile, Notes};
use crate::model::{Model, Type, TypeId};
use crate::program::{Cell, Packing, UNDEFINED};
use orbits::{image, permutations};
use proptest::prelude::*;

/// A model with one state variable per shape, over two scalarsets and an interchangeable range.
/// Without undefined values, zero is a name of the range.
fn model(shapes: &[u8], sizes: [u32; 2], undefined: bool) -> Model {
    let mut m = Builder::new("shapes");
    let s = m.declare("S", Type::Scalarset(sizes[0]));
    let t = m.declare("T", Type::Scalarset(sizes[1]));
    let label = m.declare("L", Type::Enum(vec!["none".into(), "some".into()]));
    let scalarset_union = m.declare("one", Type::Union(vec![s, t]));
    let label_union = m.declare("either", Type::Union(vec![label, s]));
    let small = m.declare("small", Type::Range { lo: 0, hi: 1 });
    let wide = m.declare("wide", Type::Range { lo: 0, hi: 1 << 29 });
    let names = m.declare(
        "names",
        Type::Range {
            lo: 0,
            hi: sizes[1] as i64 - 1,
        },
    );
    let name_or_none = m.declare(
        "name_or_none",
        Type::Range {
            lo: 0,
            hi: sizes[1] as i64,
        },
    );
    let mut array = |index, element| m.declare("array", Type::Array { index, element });
    let flags = array(s, small);
    let next = array(s, s);
    let cross = array(s, t);
    let matrix = array(s, flags);
    let by_union = array(scalarset_union, small);
    let by_label_union = array(label_union, t);
    // Three of these do not fit in one key.
    let numbers = array(s, wide);
    let by_name = array(names, small);
    let by_optional = array(name_or_none, names);
    let chosen = array(names, name_or_none);
    let pair = m.declare(
        "pair",
        Type::Record(vec![("to".into(), s), ("flag".into(), small)]),
    );
    let multiset = |element| Type::Multiset {
        capacity: 3,
        element,
    };
    let pairs = m.declare("pairs", multiset(pair));
    let arrays = m.declare("arrays", multiset(flags));
    let boxes = m.declare(
        "boxes",
        Type::Array {
            index: t,
            element: pairs,
        },
    );
    let kinds = [
        s,
        label_union,
        flags,
        next,
        cross,
        matrix,
        by_union,
        by_label_union,
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
    model.undefined = undefined;
    model
}

/// All pairs of permutations of the numbers below `size`.
fn pairs_of_permutations(size: usize) -> impl Iterator<Item = (Vec<i64>, Vec<i64>)> {
    let all_permutations = permutations(size);
    let pairs = all_permutations.clone().into_iter();
    pairs.flat_map(move |first| {
        all_permutations
            .clone()
            .into_iter()
            .map(move |second| (first.clone(), second))
    })
}

proptest! {
    /// The canonical form is in the orbit, and equal for all states of the orbit.
    #[test]
    fn each_orbit_has_one_canonical_state(
        shapes in prop::collection::vec(0u8..18, 1..5),
        sizes in [1u32..5, 1u32..4],
        undefined in prop::bool::weighted(0.75),
        values in prop::collection::vec(0u32..12, 200),
    ) {
        let model = model(&shapes, sizes, undefined);
        let program = compile(&model, Notes::Omitted);
        let mut frame = program.frame.clone();
        for (number, slot) in program.slots.iter().enumerate() {
            let choices = (slot.hi - slot.lo + 1) as u32 + u32::from(slot.undefined);
            let choice = values[number % 200] % choices;
            frame[number] = match choice as i64 + slot.lo {
                value if value > slot.hi => UNDEFINED,
                value => value,
            };
        }
        // The parts of empty slots have their first values.
        for multiset in &program.multisets {
            for place in 0..multiset.capacity {
                let first = (multiset.first + place * multiset.stride) as usize;
                if frame[first] == 0 {
                    let parts = first + 1..first + multiset.stride as usize;
                    frame[parts.clone()].copy_from_slice(&program.frame[parts]);
                }
            }
        }
        program.sort_multisets(&mut frame, |_, _| {});
        let packing = Packing::new(&program, 0..program.slots.len() as Cell);
        let Some(mut symmetry) = Symmetry::of(&model, &program, &packing) else { return Ok(()) };
        let canonical = |symmetry: &Symmetry, frame: &[i64]| {
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
        let asymmetric_sets = crate::symmetry_check::asymmetric_sets(&model);
        let mut is_in_orbit = false;
        for first in permutations(sizes[0] as usize) {
            for (second, third) in pairs_of_permutations(sizes[1] as usize) {
                let permute = |ty: TypeId, value: i64| match scalarsets.iter().position(|&s| s == ty.index()) {
                    Some(_) if asymmetric_sets.contains(&ty) => value,
                    Some(0) => first[value as usize],
                    Some(_) => second[value as usize],
                    None => third[value as usize],
                };
                let mut permuted = image(&model, &frame, &permute);
                program.sort_multisets(&mut permuted, |_, _| {});
                prop_assert_eq!(&canonical(&symmetry, &permuted), &expected);
                is_in_orbit |= permuted == expected;
            }
        }
        prop_assert!(is_in_orbit, "the canonical form is not in the orbit");
        // Processors without BMI2 compute the same form.
        symmetry.layout.bmi2 = false;
        prop_assert_eq!(&canonical(&symmetry, &frame), &expected);
    }
}
