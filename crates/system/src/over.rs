//! What is between a home and the cache of another protocol that it stands over follows from rights: here are the rules.
//!
//! A world without time and a simulator both go by them; when something is done is theirs.

use cohkit_protocol::controller::{Access, Event, Local, Statement};
use cohkit_protocol::protocol::{MessageId, Protocol, Right};

/// The right to the outer copy without which a home does not take a request: that of the accesses which send it, and to
/// write if the home writes its bytes. What no access sends that needs a right (an eviction, an answer) needs none.
pub fn needs(inner: &Protocol, message: MessageId) -> Right {
    if inner.message(message).carries.store() {
        return Right::Write;
    }
    let sends = |s: &Statement| matches!(s, Statement::Send { message: m, .. } if *m == message);
    let rows = inner.remote.rules.iter();
    let rights = rows.filter_map(|row| match row.event {
        Event::Access(access) if row.says(&sends) => Some(access.needs()),
        _ => None,
    });
    rights.max().unwrap_or(Right::None)
}

/// The outer access that brings a right.
pub fn brings(right: Right) -> Access {
    match right {
        Right::Write => Access::Store,
        _ => Access::Load,
    }
}

/// What a row of the outer cache leaves of its right, if that is less: one that sends the line on leaves no right to write.
pub fn lowers(before: Right, after: Right, sends_line: bool) -> Option<Right> {
    let left = match sends_line {
        true => after.min(Right::Read),
        false => after,
    };
    (left < before).then_some(left)
}

/// Whether a lock under which caches below have this right lets the outer right go down so far.
pub fn lets(locked: Right, left: Right) -> bool {
    left >= locked
}

/// The local operation of the inner home that has to be run, and its lock held, before the outer right goes down so far.
pub fn recalls(locals: &[Local], left: Right) -> Option<u8> {
    let found = locals.iter().position(|l| l.locks && l.ensures == left);
    found.map(|number| number as u8)
}
