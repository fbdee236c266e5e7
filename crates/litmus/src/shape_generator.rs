//! Classic shapes with mixed orders between their accesses, as files in assembly and in C.

use crate::axioms::{allowed, Model};
use crate::cycles::{canonical_key, create_variation, EdgeOrder, FAMILIES};
use crate::print::{print, print_c};
use crate::program::{Program, Quantifier};

/// Orders mixed in shapes of two threads.
const SMALL_SHAPE_ORDERS: [EdgeOrder; 6] = [
    EdgeOrder::ProgramOrder,
    EdgeOrder::Fence,
    EdgeOrder::WeakestFence,
    EdgeOrder::AcquireRelease,
    EdgeOrder::RcpcAcquireRelease,
    EdgeOrder::MessagePassing,
];
/// Orders mixed in larger shapes with two program-order relations, and in `ISA2`, which distinguishes point-to-point
/// orders from those at homes.
const LARGE_SHAPE_ORDERS: [EdgeOrder; 4] = [
    EdgeOrder::ProgramOrder,
    EdgeOrder::Fence,
    EdgeOrder::AcquireRelease,
    EdgeOrder::MessagePassing,
];
/// Orders that C11 can express.
const C11_ORDERS: [EdgeOrder; 4] = [
    EdgeOrder::ProgramOrder,
    EdgeOrder::Fence,
    EdgeOrder::AcquireRelease,
    EdgeOrder::RcpcAcquireRelease,
];

/// Names and contents of the protocol files on which the tests run. Each guarantees the memory model with which their
/// outcomes are compared.
pub const ORDERINGS: [(&str, &str); 11] = [
    ("so", include_str!("../../../ordering/so.coh")),
    ("so-strict", include_str!("../../../ordering/so-strict.coh")),
    ("seq", include_str!("../../../ordering/seq.coh")),
    ("cord", include_str!("../../../ordering/cord.coh")),
    ("mp", include_str!("../../../ordering/mp.coh")),
    ("wb", include_str!("../../../ordering/wb.coh")),
    ("tso/so", include_str!("../../../ordering/tso/so.coh")),
    ("tso/cord", include_str!("../../../ordering/tso/cord.coh")),
    ("tso/wb", include_str!("../../../ordering/tso/wb.coh")),
    ("tso/seq", include_str!("../../../ordering/tso/seq.coh")),
    ("tso/mp", include_str!("../../../ordering/tso/mp.coh")),
];
/// Names of the files whose outcomes on `mp` violate release consistency, in their order.
pub const MP_VIOLATIONS: &str = include_str!("../../../litmus/shapes/shown-on-mp.txt");

/// A litmus file.
pub struct File {
    /// Folder and file name.
    pub path: String,
    /// Contents.
    pub text: String,
}

/// Returns all files in the order of their shapes, those in assembly first. The condition is `exists` if release
/// consistency allows the cycle of the shape, and `~exists` if it forbids it.
///
/// # Errors
/// The first shape that cannot be printed, with the reason.
pub fn files() -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for program in shapes(&SMALL_SHAPE_ORDERS, &LARGE_SHAPE_ORDERS)? {
        files.push(File {
            path: format!("aarch64/{}.litmus", program.name),
            text: print(&program)?,
        });
    }
    for mut program in shapes(&C11_ORDERS, &C11_ORDERS)? {
        if program.threads.len() > 2 {
            continue;
        }
        program.name.insert_str(0, "C-");
        files.push(File {
            path: format!("c11/{}.litmus", program.name),
            text: print_c(&program)?,
        });
    }
    Ok(files)
}

/// Returns the shapes without duplicates: with every mix of orders for two threads, for two program-order relations,
/// and for `ISA2`; the others with the same order everywhere.
fn shapes(
    small_shape_orders: &[EdgeOrder],
    large_shape_orders: &[EdgeOrder],
) -> Result<Vec<Program>, String> {
    let mut shapes: Vec<Program> = Vec::new();
    for (family, cycle) in FAMILIES {
        let order_count = cycle.matches("Po").count();
        let threads = cycle.matches('e').count();
        let mixes = match (threads, order_count) {
            (0..=2, _) => mixes(small_shape_orders, order_count),
            (_, 2) => mixes(large_shape_orders, order_count),
            _ if family == "ISA2" => mixes(large_shape_orders, order_count),
            _ => small_shape_orders
                .iter()
                .map(|&order| vec![order; order_count])
                .collect(),
        };
        let mut family_shapes: Vec<Program> = Vec::new();
        for orders in mixes {
            let mut program = create_variation(family, cycle, &orders)?;
            if family_shapes
                .iter()
                .any(|other| canonical_key(other) == canonical_key(&program))
            {
                continue;
            }
            let outcomes = allowed(&program, Model::Rc)?;
            program.quantifier = match outcomes.iter().any(|outcome| program.holds(outcome)) {
                true => Quantifier::Exists,
                false => Quantifier::NotExists,
            };
            family_shapes.push(program);
        }
        shapes.append(&mut family_shapes);
    }
    Ok(shapes)
}

/// Returns all sequences of length `length` over `orders`.
fn mixes(orders: &[EdgeOrder], length: usize) -> Vec<Vec<EdgeOrder>> {
    let mut sequences = vec![Vec::new()];
    for _ in 0..length {
        let extended = sequences.iter().flat_map(|prefix: &Vec<EdgeOrder>| {
            orders
                .iter()
                .map(move |&next| [&prefix[..], &[next]].concat())
        });
        sequences = extended.collect();
    }
    sequences
}
