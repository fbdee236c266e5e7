//! Rules between a home and the outer cache whose copy is the home's memory. All of them follow from permissions.
//!
//! The executable system without time and the simulator apply these rules; each decides by itself when an operation is
//! done.

use cohkit_protocol::controller::{Access, Event, Local, Statement};
use cohkit_protocol::protocol::{MessageId, Permission, Protocol};

/// Permission to the outer copy that a home needs before it consumes a message. A request needs the permission of the
/// accesses that send it, and write permission if it carries the bytes of a write. A message that no such access sends
/// (an eviction, a response) needs none.
pub fn required_permission(inner: &Protocol, message: MessageId) -> Permission {
    if inner.message(message).carries.store() {
        return Permission::Write;
    }
    let sends = |s: &Statement| matches!(s, Statement::Send { message: m, .. } if *m == message);
    let rows = inner.remote.rules.iter();
    let permissions = rows.filter_map(|row| match row.event {
        Event::Access(access) if row.has_statement(&sends) => Some(access.needs()),
        _ => None,
    });
    permissions.max().unwrap_or(Permission::None)
}

/// The outer access that acquires a permission: a store for write permission, otherwise a load.
pub fn acquiring_access(permission: Permission) -> Access {
    match permission {
        Permission::Write => Access::Store,
        _ => Access::Load,
    }
}

/// Returns the outer cache's permission after a row, if the row lowers it. A row that sends the line on leaves at most
/// read permission.
pub fn lowered_permission(
    before: Permission,
    after: Permission,
    sends_line: bool,
) -> Option<Permission> {
    let remaining = match sends_line {
        true => after.min(Permission::Read),
        false => after,
    };
    (remaining < before).then_some(remaining)
}

/// True if a lock that leaves the inner caches the permission `locked` allows the outer permission to fall to
/// `remaining`.
pub fn lock_permits(locked: Permission, remaining: Permission) -> bool {
    remaining >= locked
}

/// Index of the locking local operation of the inner home that must run before the outer permission falls to
/// `remaining`; `None` if no local operation does this.
pub fn recalling_operation(locals: &[Local], remaining: Permission) -> Option<u8> {
    let index = locals
        .iter()
        .position(|l| l.locks && l.ensures == remaining);
    index.map(|number| number as u8)
}
