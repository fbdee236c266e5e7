//! Test helper: parses valid protocol files.

// Each test crate uses only a part of this module.
#![allow(dead_code)]

use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;

/// Reads a protocol file without errors.
pub fn read(text: &str) -> Protocol {
    parse(text).unwrap_or_else(|errors| {
        let messages = errors.iter().map(|e| e.render("text", text, false));
        panic!("{}", messages.collect::<String>())
    })
}

/// Returns the home of a protocol, which is written as rows.
pub fn home(protocol: &Protocol) -> &Controller {
    match &protocol.home {
        Home::Controller(home) => home,
        Home::Policy(_) => panic!("a home written as rows"),
    }
}
