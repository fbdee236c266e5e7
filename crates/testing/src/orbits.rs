//! Reference for symmetry reduction: orbits of states by brute force, from all permutations of scalarset values,
//! applied by the structure of types.
use cohkit_engine::graph::states;
use cohkit_engine::model::{Model, Number, Role, Type, TypeId, UNDEFINED};
use cohkit_engine::{check, Options, Outcome};
use std::collections::BTreeSet;

/// Parts of a value after a permutation of each scalarset's values.
fn permute_parts(
    model: &Model,
    sizes: &[u32],
    ty: TypeId,
    parts: &[Number],
    permute: &dyn Fn(TypeId, Number) -> Number,
) -> Vec<Number> {
    let simple = |ty: TypeId, value: Number| match model.ty(ty) {
        _ if value == UNDEFINED => value,
        Type::Scalarset(_) => permute(ty, value),
        Type::Range { .. } => match &model.interchangeable {
            Some(symmetric) if symmetric.names == ty => permute(ty, value),
            Some(symmetric) if symmetric.optional.contains(&ty) && value > 0 => {
                permute(symmetric.names, value - 1) + 1
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
                    return first
                        + if scalarset {
                            permute(member, inner)
                        } else {
                            inner
                        };
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
                let to = (simple(*index, place as Number + lo) - lo) as usize * size;
                result[to..to + size]
                    .copy_from_slice(&permute_parts(model, sizes, *element, part, permute));
            }
            result
        }
        Type::Record(fields) => {
            let mut rest = parts;
            let mut result = Vec::new();
            for &(_, field) in fields {
                let (part, remaining) = rest.split_at(sizes[field.index()] as usize);
                result.extend(permute_parts(model, sizes, field, part, permute));
                rest = remaining;
            }
            result
        }
        Type::Multiset { element, .. } => {
            let stride = 1 + sizes[element.index()] as usize;
            let slots = parts.chunks_exact(stride);
            let slot = |slot: &[Number]| match slot[0] {
                // The parts of an empty slot have no meaning.
                0 => slot.to_vec(),
                _ => [
                    &slot[..1],
                    &permute_parts(model, sizes, *element, &slot[1..], permute)[..],
                ]
                .concat(),
            };
            slots.flat_map(slot).collect()
        }
        _ => vec![simple(ty, parts[0])],
    }
}

/// Slots of a frame after permutations of the scalarsets' values. `permute` maps a value of a scalarset type.
pub fn image(
    model: &Model,
    frame: &[Number],
    permute: &dyn Fn(TypeId, Number) -> Number,
) -> Vec<Number> {
    let sizes = model.sizes();
    let mut image = frame.to_vec();
    let mut first_slot = 0;
    for variable in model.variables.iter().filter(|v| v.role == Role::State) {
        let size = sizes[variable.ty.index()] as usize;
        let parts = permute_parts(
            model,
            &sizes,
            variable.ty,
            &frame[first_slot..first_slot + size],
            permute,
        );
        image[first_slot..first_slot + size].copy_from_slice(&parts);
        first_slot += size;
    }
    image
}

/// Returns all permutations of `0..size`, in a fixed order.
pub fn permutations(size: usize) -> Vec<Vec<Number>> {
    match size {
        0 => vec![vec![]],
        _ => permutations(size - 1)
            .into_iter()
            .flat_map(|shorter| {
                (0..size).map(move |index| {
                    let mut longer = shorter.clone();
                    longer.insert(index, size as Number - 1);
                    longer
                })
            })
            .collect(),
    }
}

/// Checks that a search with symmetry visits as many orbits as all states form. All states are enumerated and permuted
/// in every way. `names` is the only permuted type, with `size` values.
pub fn assert_orbits(name: &str, model: &Model, names: TypeId, size: usize) {
    let permutations = permutations(size);
    let first_image = |state: Vec<Number>| {
        let images = permutations.iter().map(|permutation| {
            image(model, &state, &|ty, value| {
                assert_eq!(ty, names);
                permutation[value as usize]
            })
        });
        images.min()
    };
    let all_states = states(model, usize::MAX).expect("all states can be reached");
    let orbits: BTreeSet<_> = all_states.into_iter().map(first_image).collect();
    let report = check(model, &Options::default()).expect("the model can be checked");
    assert!(report.symmetric, "{name}");
    assert_eq!(report.outcome, Outcome::Verified, "{name}");
    assert_eq!(report.states, orbits.len() as u128, "{name}");
}
