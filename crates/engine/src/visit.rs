//! Walks over statements and expressions, in the order in which they run.

use crate::model::{Argument, Expr, FunctionId, Model, Place, Step, Steps, Stmt};

/// Node of a traversal.
pub enum Node<'a> {
    /// A statement, before its parts.
    Stmt(&'a Stmt),
    /// An expression, before its parts.
    Expr(&'a Expr),
    /// A place that is written, or gets an alias.
    Target(&'a Place),
}

/// Walks over statements and everything in them.
pub fn block(block: &[Stmt], f: &mut dyn FnMut(Node)) {
    block.iter().for_each(|s| stmt(s, f));
}

/// Visits a statement and then its parts.
fn stmt(stmt: &Stmt, f: &mut dyn FnMut(Node)) {
    f(Node::Stmt(stmt));
    match stmt {
        Stmt::Assign(to, e) | Stmt::Insert(to, e) | Stmt::Remove(to, e) => {
            target(to, f);
            expr(e, f);
        }
        Stmt::Clear(to) | Stmt::Undefine(to) => target(to, f),
        Stmt::Let(_, e) | Stmt::Return(e) => {
            if let Some(e) = e {
                expr(e, f);
            }
        }
        Stmt::Alias(_, to, body) => {
            target(to, f);
            block(body, f);
        }
        Stmt::If(e, a, b) => {
            expr(e, f);
            block(a, f);
            block(b, f);
        }
        Stmt::For(_, body) => block(body, f),
        Stmt::ForSteps(_, s, body) => {
            steps(s, f);
            block(body, f);
        }
        Stmt::While(e, body, _) => {
            expr(e, f);
            block(body, f);
        }
        Stmt::Switch(e, cases, otherwise) => {
            expr(e, f);
            for (values, body) in cases {
                values.iter().for_each(|v| expr(v, f));
                block(body, f);
            }
            block(otherwise, f);
        }
        Stmt::Call(_, all) => arguments(all, f),
        Stmt::Assume(e) | Stmt::Assert(_, e) => expr(e, f),
        Stmt::RemoveWhere(_, to, e) => {
            target(to, f);
            expr(e, f);
        }
        Stmt::Cover(_) | Stmt::Line(_) | Stmt::Error(_) | Stmt::Note(_) => {}
    }
}

/// Visits the bounds of an arithmetic sequence.
fn steps(steps: &Steps, f: &mut dyn FnMut(Node)) {
    expr(&steps.from, f);
    expr(&steps.to, f);
    expr(&steps.by, f);
}

/// Visits the arguments of a call. An argument passed as a place may be written.
fn arguments(arguments: &[Argument], f: &mut dyn FnMut(Node)) {
    for argument in arguments {
        match argument {
            Argument::Value(e) => expr(e, f),
            Argument::Place(to) => target(to, f),
        }
    }
}

/// Visits a place that is written or gets an alias, and the indices in it.
fn target(to: &Place, f: &mut dyn FnMut(Node)) {
    f(Node::Target(to));
    place(to, f);
}

/// Visits the indices of a place.
fn place(place: &Place, f: &mut dyn FnMut(Node)) {
    for step in &place.path {
        if let Step::Index(e) = step {
            expr(e, f);
        }
    }
}

/// Functions that statements call, directly or through other functions.
pub fn called_functions(model: &Model, body: &[Stmt]) -> Vec<FunctionId> {
    let mut called = Vec::new();
    let add_calls = |block: &[Stmt], called: &mut Vec<FunctionId>| {
        self::block(block, &mut |node| match node {
            Node::Stmt(Stmt::Call(id, _)) | Node::Expr(Expr::Call(id, _))
                if !called.contains(id) =>
            {
                called.push(*id);
            }
            _ => {}
        });
    };
    add_calls(body, &mut called);
    let mut scanned = 0;
    while let Some(id) = called.get(scanned) {
        add_calls(&model.functions[id.index()].body, &mut called);
        scanned += 1;
    }
    called
}

/// Walks over an expression and everything in it.
pub fn expr(e: &Expr, f: &mut dyn FnMut(Node)) {
    f(Node::Expr(e));
    match e {
        Expr::Int(_) | Expr::Bool(_) | Expr::Label(..) | Expr::Undefined(_) => {}
        Expr::Read(p) | Expr::Peek(p) | Expr::IsUndefined(p) => place(p, f),
        Expr::Table(_, a)
        | Expr::Not(a)
        | Expr::Negate(a)
        | Expr::Convert(_, a)
        | Expr::IsMember(a, _)
        | Expr::Line(_, a)
        | Expr::Forall(_, a)
        | Expr::Exists(_, a) => expr(a, f),
        Expr::Binary(_, a, b) | Expr::Let(_, a, b) => {
            expr(a, f);
            expr(b, f);
        }
        Expr::If(a, b, c) => {
            expr(a, f);
            expr(b, f);
            expr(c, f);
        }
        Expr::ForallSteps(_, s, a) | Expr::ExistsSteps(_, s, a) => {
            steps(s, f);
            expr(a, f);
        }
        Expr::Call(_, all) => arguments(all, f),
        Expr::Alias(_, to, a) => {
            f(Node::Target(to));
            place(to, f);
            expr(a, f);
        }
        Expr::Present(p, a) => {
            place(p, f);
            expr(a, f);
        }
        Expr::Count(_, p, a) => {
            place(p, f);
            expr(a, f);
        }
    }
}

/// True if an expression calls a function.
pub(crate) fn contains_call(e: &Expr) -> bool {
    let mut has_call = false;
    expr(e, &mut |node| {
        has_call |= matches!(node, Node::Expr(Expr::Call(..)))
    });
    has_call
}
