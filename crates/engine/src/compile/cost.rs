//! Estimated code size, which decides whether loops are unrolled.

use super::Compiler;
use crate::model::*;

/// Approximate number of instructions of an expression.
pub(super) fn cost(c: &Compiler, e: &Expr) -> usize {
    match e {
        Expr::Int(_) | Expr::Bool(_) | Expr::Label(..) => 0,
        Expr::Read(place) => place_cost(c, place),
        Expr::Table(_, a) | Expr::Not(a) | Expr::Negate(a) => 1 + cost(c, a),
        Expr::Binary(_, a, b) => 1 + cost(c, a) + cost(c, b),
        Expr::If(a, b, d) => 3 + cost(c, a) + cost(c, b) + cost(c, d),
        Expr::Forall(id, body) | Expr::Exists(id, body) => repeated_cost(c, *id, cost(c, body)),
        Expr::Peek(place) | Expr::IsUndefined(place) => place_cost(c, place),
        Expr::Undefined(_) => 0,
        // The number of rounds is unknown here.
        Expr::ForallSteps(_, _, body) | Expr::ExistsSteps(_, _, body) => 8 + cost(c, body),
        Expr::Call(id, arguments) => call_cost(c, *id, arguments),
        Expr::Alias(_, place, e) => place_cost(c, place) + cost(c, e),
        Expr::Let(_, value, e) => 1 + cost(c, value) + cost(c, e),
        Expr::Convert(_, e) | Expr::IsMember(e, _) => 2 + cost(c, e),
        Expr::Present(place, e) => place_cost(c, place) + cost(c, e),
        Expr::Count(_, place, e) => capacity(c, place) * (3 + cost(c, e)),
        Expr::Line(_, e) => cost(c, e),
    }
}

fn place_cost(c: &Compiler, place: &Place) -> usize {
    let step = |s: &Step| match s {
        Step::Index(e) => cost(c, e),
        Step::Field(_) => 0,
    };
    1 + place.path.iter().map(step).sum::<usize>()
}

fn repeated_cost(c: &Compiler, id: VariableId, body: usize) -> usize {
    if c.unrolls(id, body) {
        body.max(1) * c.model.count(c.model.variable(id).ty) as usize
    } else {
        body + 4
    }
}

pub(super) fn stmt_cost(c: &Compiler, s: &Stmt) -> usize {
    let block = |b: &[Stmt]| b.iter().map(|s| stmt_cost(c, s)).sum::<usize>();
    let size = |p: &Place| c.sizes[c.model.type_of_place(p).index()] as usize;
    match s {
        Stmt::Assign(place, e) => place_cost(c, place) + cost(c, e) + size(place),
        Stmt::Clear(place) => place_cost(c, place) + size(place),
        Stmt::Let(id, e) => 1 + e.as_ref().map_or(size(&(*id).into()), |e| cost(c, e)),
        Stmt::If(e, a, b) => 2 + cost(c, e) + block(a) + block(b),
        Stmt::For(id, body) => repeated_cost(c, *id, block(body)),
        Stmt::Error(_) => 1,
        Stmt::Assert(_, e) => 2 + cost(c, e),
        Stmt::Note(_) | Stmt::Line(_) => 0,
        Stmt::Undefine(place) => place_cost(c, place) + size(place),
        Stmt::Alias(_, place, body) => place_cost(c, place) + block(body),
        Stmt::ForSteps(_, _, body) => 8 + block(body),
        Stmt::While(e, body, _) => 5 + cost(c, e) + block(body),
        Stmt::Switch(e, cases, otherwise) => {
            let cases = cases
                .iter()
                .map(|(values, body)| 2 * values.len() + block(body));
            1 + cost(c, e) + cases.sum::<usize>() + block(otherwise)
        }
        Stmt::Return(e) => 1 + e.as_ref().map_or(0, |e| cost(c, e)),
        Stmt::Call(id, arguments) => call_cost(c, *id, arguments),
        Stmt::Assume(e) => 1 + cost(c, e),
        Stmt::Cover(_) => 1,
        Stmt::Insert(place, e) => capacity(c, place) * (4 + size(place)) + cost(c, e),
        Stmt::Remove(place, e) => place_cost(c, place) + cost(c, e) + 4,
        Stmt::RemoveWhere(_, place, e) => capacity(c, place) * (4 + cost(c, e)) + size(place),
    }
}

fn call_cost(c: &Compiler, id: FunctionId, arguments: &[Argument]) -> usize {
    let argument = |a: &Argument| match a {
        Argument::Value(e) => 1 + cost(c, e),
        Argument::Place(place) => place_cost(c, place),
    };
    c.call_cost(id) + arguments.iter().map(argument).sum::<usize>()
}

/// Maximum number of elements of a multiset.
fn capacity(c: &Compiler, place: &Place) -> usize {
    match c.model.ty(c.model.type_of_place(place)) {
        Type::Multiset { capacity, .. } => *capacity as usize,
        _ => 1,
    }
}
