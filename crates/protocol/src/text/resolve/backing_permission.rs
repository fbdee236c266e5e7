//! Systems with a backing permission (`parent any`).

use crate::protocol as p;
use crate::protocol::{Home, Protocol};
use crate::text::ast::{File, Item, SystemItem};
use crate::text::diagnostic::{Code, Diagnostic, Sink};

/// Reports such systems if no local operation could give the permission back, or if lines are not independent.
pub(super) fn check_parent_any(file: &File, protocol: &Protocol, sink: &mut Sink) {
    let revokes = |locks: bool, ensures: p::Permission| locks && ensures == p::Permission::None;
    let is_revocable = match &protocol.home {
        Home::Controller(home) => (home.locals.iter()).any(|l| revokes(l.locks, l.ensures)),
        Home::Policy(policy) => (policy.locals.iter()).any(|l| revokes(l.lock, l.ensure)),
    };
    let blocks = file.items.iter().filter_map(|item| match item {
        Item::System(_, block) => Some(&block.items),
        _ => None,
    });
    for item in blocks.flatten() {
        let SystemItem::ParentAny(span) = *item else {
            continue;
        };
        let error = |label: &str, help: &str| {
            Diagnostic::new(Code::Misplaced, span, "`parent any` where it cannot be")
                .label(label)
                .note(help)
        };
        if let Some(feature) = protocol.joins_lines() {
            let help = "a home over a cache of another protocol must handle each line separately";
            sink.push(error(&format!("the protocol has {feature}"), help));
        } else if !is_revocable {
            let help =
                "the permission from the outer level is revoked under a lock: `local NAME lock { ensure all == I }`";
            sink.push(error("no local operation of the home gives it back", help));
        }
    }
}
