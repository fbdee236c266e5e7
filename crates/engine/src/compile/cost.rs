//! Estimated code size, which decides whether loops are unrolled.

use super::Compiler;
use crate::model::{Argument, Expr, FunctionId, Place, Step, Stmt, Type, VariableId};

/// Approximate number of instructions of an expression.
pub(super) fn cost(compiler: &Compiler, e: &Expr) -> usize {
    match e {
        Expr::Int(_) | Expr::Bool(_) | Expr::Label(..) => 0,
        Expr::Read(place) => place_cost(compiler, place),
        Expr::Table(_, a) | Expr::Not(a) | Expr::Negate(a) => 1 + cost(compiler, a),
        Expr::Binary(_, a, b) => 1 + cost(compiler, a) + cost(compiler, b),
        Expr::If(a, b, d) => 3 + cost(compiler, a) + cost(compiler, b) + cost(compiler, d),
        Expr::Forall(id, body) | Expr::Exists(id, body) => {
            repeated_cost(compiler, *id, cost(compiler, body))
        }
        Expr::Peek(place) | Expr::IsUndefined(place) => place_cost(compiler, place),
        Expr::Undefined(_) => 0,
        // The number of iterations is unknown here.
        Expr::ForallSteps(_, _, body) | Expr::ExistsSteps(_, _, body) => 8 + cost(compiler, body),
        Expr::Call(id, arguments) => call_cost(compiler, *id, arguments),
        Expr::Alias(_, place, e) => place_cost(compiler, place) + cost(compiler, e),
        Expr::Let(_, value, e) => 1 + cost(compiler, value) + cost(compiler, e),
        Expr::Convert(_, e) | Expr::IsMember(e, _) => 2 + cost(compiler, e),
        Expr::Present(place, e) => place_cost(compiler, place) + cost(compiler, e),
        Expr::Count(_, place, e) => capacity(compiler, place) * (3 + cost(compiler, e)),
        Expr::Line(_, e) => cost(compiler, e),
    }
}

/// Approximate number of instructions that locate a place.
fn place_cost(compiler: &Compiler, place: &Place) -> usize {
    let step = |s: &Step| match s {
        Step::Index(e) => cost(compiler, e),
        Step::Field(_) => 0,
    };
    1 + place.path.iter().map(step).sum::<usize>()
}

/// Cost of a loop or quantifier over a bound variable, unrolled if it is short.
fn repeated_cost(compiler: &Compiler, id: VariableId, body: usize) -> usize {
    if compiler.is_unrolled(id, body) {
        body.max(1) * compiler.model.count(compiler.model.variable(id).ty) as usize
    } else {
        body + 4
    }
}

/// Approximate number of instructions of a statement.
pub(super) fn stmt_cost(compiler: &Compiler, s: &Stmt) -> usize {
    let block = |b: &[Stmt]| b.iter().map(|s| stmt_cost(compiler, s)).sum::<usize>();
    let size = |p: &Place| compiler.sizes[compiler.model.type_of_place(p).index()] as usize;
    match s {
        Stmt::Assign(place, e) => place_cost(compiler, place) + cost(compiler, e) + size(place),
        Stmt::Clear(place) => place_cost(compiler, place) + size(place),
        Stmt::Let(id, e) => {
            1 + e
                .as_ref()
                .map_or(size(&(*id).into()), |e| cost(compiler, e))
        }
        Stmt::If(e, a, b) => 2 + cost(compiler, e) + block(a) + block(b),
        Stmt::For(id, body) => repeated_cost(compiler, *id, block(body)),
        Stmt::Error(_) => 1,
        Stmt::Assert(_, e) => 2 + cost(compiler, e),
        Stmt::Note(_) | Stmt::Line(_) => 0,
        Stmt::Undefine(place) => place_cost(compiler, place) + size(place),
        Stmt::Alias(_, place, body) => place_cost(compiler, place) + block(body),
        Stmt::ForSteps(_, _, body) => 8 + block(body),
        Stmt::While(e, body, _) => 5 + cost(compiler, e) + block(body),
        Stmt::Switch(e, cases, otherwise) => {
            let cases = cases
                .iter()
                .map(|(values, body)| 2 * values.len() + block(body));
            1 + cost(compiler, e) + cases.sum::<usize>() + block(otherwise)
        }
        Stmt::Return(e) => 1 + e.as_ref().map_or(0, |e| cost(compiler, e)),
        Stmt::Call(id, arguments) => call_cost(compiler, *id, arguments),
        Stmt::Assume(e) => 1 + cost(compiler, e),
        Stmt::Cover(_) => 1,
        Stmt::Insert(place, e) => capacity(compiler, place) * (4 + size(place)) + cost(compiler, e),
        Stmt::Remove(place, e) => place_cost(compiler, place) + cost(compiler, e) + 4,
        Stmt::RemoveWhere(_, place, e) => {
            capacity(compiler, place) * (4 + cost(compiler, e)) + size(place)
        }
    }
}

/// Approximate number of instructions of a call: the arguments and the inlined function.
fn call_cost(compiler: &Compiler, id: FunctionId, arguments: &[Argument]) -> usize {
    let argument = |a: &Argument| match a {
        Argument::Value(e) => 1 + cost(compiler, e),
        Argument::Place(place) => place_cost(compiler, place),
    };
    compiler.call_cost(id) + arguments.iter().map(argument).sum::<usize>()
}

/// Maximum number of elements of a multiset.
fn capacity(compiler: &Compiler, place: &Place) -> usize {
    match compiler.model.ty(compiler.model.type_of_place(place)) {
        Type::Multiset { capacity, .. } => *capacity as usize,
        _ => 1,
    }
}
