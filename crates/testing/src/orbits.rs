//! Reference for symmetry reduction: orbits of states by brute force, from all permutations of scalarset values,
//! applied by the structure of types.

use cohkit_engine::graph::states;
use cohkit_engine::model::{Model, Number, Role, Type, TypeId, UNDEFINED};
use cohkit_engine::{check, Options, Outcome};
use std::collections::BTreeSet;

/// Permutation of the values of each scalarset: maps a value of a type.
type Permutation<'p> = &'p dyn Fn(TypeId, Number) -> Number;

/// Parts of a value of any type after a permutation. `sizes` has the number of parts of each type.
fn permute_parts(
    model: &Model,
    sizes: &[u32],
    ty: TypeId,
    parts: &[Number],
    permute: Permutation,
) -> Vec<Number> {
    let size_of = |ty: TypeId| sizes[ty.index()] as usize;
    match model.ty(ty) {
        Type::Array { index, element } => {
            let size = size_of(*element);
            let (first_index, _) = model.bounds(*index).unwrap();
            let mut result = vec![0; parts.len()];
            for (position, part) in parts.chunks_exact(size).enumerate() {
                let index_value = position as Number + first_index;
                let image = permute_value(model, *index, index_value, permute) - first_index;
                let start = image as usize * size;
                result[start..start + size]
                    .copy_from_slice(&permute_parts(model, sizes, *element, part, permute));
            }
            result
        }
        Type::Record(fields) => {
            let mut rest = parts;
            let mut result = Vec::new();
            for &(_, field) in fields {
                let (part, remaining) = rest.split_at(size_of(field));
                result.extend(permute_parts(model, sizes, field, part, permute));
                rest = remaining;
            }
            result
        }
        Type::Multiset { element, .. } => {
            // Each slot is a presence flag and an element.
            let slots = parts.chunks_exact(1 + size_of(*element));
            let slot = |slot: &[Number]| match slot[0] {
                // The parts of an empty slot have no meaning.
                0 => slot.to_vec(),
                _ => [
                    &slot[..1],
                    &permute_parts(model, sizes, *element, &slot[1..], permute)[..],
                ]
                .concat(),
            };
            let mut slots: Vec<Vec<Number>> = slots.map(slot).collect();
            // In a stored state, elements come before empty slots, the smallest first.
            slots.sort_by(|a, b| b[0].cmp(&a[0]).then_with(|| a.cmp(b)));
            slots.concat()
        }
        _ => vec![permute_value(model, ty, parts[0], permute)],
    }
}

/// Value of a simple type after a permutation.
fn permute_value(model: &Model, ty: TypeId, value: Number, permute: Permutation) -> Number {
    match model.ty(ty) {
        _ if value == UNDEFINED => value,
        Type::Scalarset(_) => permute(ty, value),
        Type::Range { .. } => match &model.interchangeable {
            Some(symmetric) if symmetric.names == ty => permute(ty, value),
            // 0 stands for no name, and other values for the name below them.
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
                    let is_scalarset = matches!(model.ty(member), Type::Scalarset(_));
                    let image = match is_scalarset {
                        true => permute(member, value - first),
                        false => value - first,
                    };
                    return first + image;
                }
                first += count;
            }
            unreachable!("a value of a union belongs to one of its members")
        }
        _ => value,
    }
}

/// Slots of a frame after a permutation of the scalarsets' values. `permute` maps a value of a scalarset type.
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

/// Counts the orbits of a model: sets of reachable states that permutations of these scalarsets' values map to each
/// other. All states are enumerated and permuted in every way. Returns `None` if there are more than `max_states`.
pub fn count_orbits(
    model: &Model,
    scalarsets: &[(TypeId, usize)],
    max_states: usize,
) -> Option<usize> {
    let mut permutation_lists: Vec<Vec<Vec<Number>>> = vec![Vec::new()];
    for &(_, size) in scalarsets {
        let choices = permutations(size);
        permutation_lists = permutation_lists
            .iter()
            .flat_map(|chosen| {
                choices
                    .iter()
                    .map(|choice| [&chosen[..], std::slice::from_ref(choice)].concat())
            })
            .collect();
    }
    let first_image = |state: Vec<Number>| {
        let images = permutation_lists.iter().map(|permutations| {
            image(
                model,
                &state,
                &|ty, value| match scalarsets.iter().position(|set| set.0 == ty) {
                    Some(set) => permutations[set][value as usize],
                    None => value,
                },
            )
        });
        images.min()
    };
    let all_states = states(model, max_states).ok()?;
    let orbits: BTreeSet<_> = all_states.into_iter().map(first_image).collect();
    Some(orbits.len())
}

/// Checks that a search with symmetry visits as many states as there are orbits. `names` is the only permuted type, with
/// `size` values.
pub fn assert_orbits(name: &str, model: &Model, names: TypeId, size: usize) {
    let orbits = count_orbits(model, &[(names, size)], usize::MAX);
    let orbits = orbits.expect("all states can be reached");
    let report = check(model, &Options::default()).expect("the model can be checked");
    assert!(report.symmetric, "{name}: the search did not use symmetry");
    assert_eq!(report.outcome, Outcome::Verified, "{name}");
    assert_eq!(
        report.states, orbits as u128,
        "{name}: states of the search with symmetry, and orbits"
    );
}
