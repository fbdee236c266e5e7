//! Compresses the debug information of optimised builds on Linux, where all linkers can and all debuggers read it.

use std::env::var;

fn main() {
    let is_linux = var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--compress-debug-sections=zlib,-O2");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
