//! The RTL files with their texts, in compilation order.

/// Name and text of a file.
pub type Source = (&'static str, &'static str);

/// Files of the home.
pub const HOME: &[Source] = &[
    (
        "assertions.svh",
        include_str!("../../../hardware/rtl/assertions.svh"),
    ),
    (
        "home_pkg.sv",
        include_str!("../../../hardware/rtl/home_pkg.sv"),
    ),
    (
        "registers_pkg.sv",
        include_str!("../../../hardware/rtl/registers_pkg.sv"),
    ),
    ("fifo.sv", include_str!("../../../hardware/rtl/fifo.sv")),
    (
        "spill_register.sv",
        include_str!("../../../hardware/rtl/spill_register.sv"),
    ),
    (
        "rr_pick.sv",
        include_str!("../../../hardware/rtl/rr_pick.sv"),
    ),
    (
        "stream_arbiter.sv",
        include_str!("../../../hardware/rtl/stream_arbiter.sv"),
    ),
    (
        "ram_block.sv",
        include_str!("../../../hardware/rtl/ram_block.sv"),
    ),
    (
        "ram_distributed.sv",
        include_str!("../../../hardware/rtl/ram_distributed.sv"),
    ),
    (
        "rom_block.sv",
        include_str!("../../../hardware/rtl/rom_block.sv"),
    ),
    (
        "protocol_rom.sv",
        include_str!("../../../hardware/rtl/protocol_rom.sv"),
    ),
    (
        "first_free.sv",
        include_str!("../../../hardware/rtl/first_free.sv"),
    ),
    (
        "dcu_scheduler.sv",
        include_str!("../../../hardware/rtl/dcu_scheduler.sv"),
    ),
    (
        "dcu_directory.sv",
        include_str!("../../../hardware/rtl/dcu_directory.sv"),
    ),
    (
        "dcu_lookup.sv",
        include_str!("../../../hardware/rtl/dcu_lookup.sv"),
    ),
    (
        "dcu_accesses.sv",
        include_str!("../../../hardware/rtl/dcu_accesses.sv"),
    ),
    (
        "dcu_messages.sv",
        include_str!("../../../hardware/rtl/dcu_messages.sv"),
    ),
    (
        "dcu_locals.sv",
        include_str!("../../../hardware/rtl/dcu_locals.sv"),
    ),
    (
        "dcu_recall.sv",
        include_str!("../../../hardware/rtl/dcu_recall.sv"),
    ),
    ("dcu_tx.sv", include_str!("../../../hardware/rtl/dcu_tx.sv")),
    ("dcu.sv", include_str!("../../../hardware/rtl/dcu.sv")),
    (
        "dcs_ingress.sv",
        include_str!("../../../hardware/rtl/dcs_ingress.sv"),
    ),
    (
        "dcs_writer.sv",
        include_str!("../../../hardware/rtl/dcs_writer.sv"),
    ),
    (
        "dcs_reader.sv",
        include_str!("../../../hardware/rtl/dcs_reader.sv"),
    ),
    (
        "dcs_egress.sv",
        include_str!("../../../hardware/rtl/dcs_egress.sv"),
    ),
    (
        "dcs_locals.sv",
        include_str!("../../../hardware/rtl/dcs_locals.sv"),
    ),
    (
        "dcs_changes.sv",
        include_str!("../../../hardware/rtl/dcs_changes.sv"),
    ),
    (
        "ones_count.sv",
        include_str!("../../../hardware/rtl/ones_count.sv"),
    ),
    (
        "dcs_counters.sv",
        include_str!("../../../hardware/rtl/dcs_counters.sv"),
    ),
    (
        "dcs_registers.sv",
        include_str!("../../../hardware/rtl/dcs_registers.sv"),
    ),
    (
        "dcs_reject.sv",
        include_str!("../../../hardware/rtl/dcs_reject.sv"),
    ),
    ("dcs.sv", include_str!("../../../hardware/rtl/dcs.sv")),
    ("home.sv", include_str!("../../../hardware/rtl/home.sv")),
];

/// Files of the endpoints, which can be connected behind the home.
pub const ENDPOINTS: &[Source] = &[
    (
        "axi_memory.sv",
        include_str!("../../../hardware/endpoints/axi_memory.sv"),
    ),
    (
        "invalidation_engine.sv",
        include_str!("../../../hardware/endpoints/invalidation_engine.sv"),
    ),
    (
        "rpc_echo.sv",
        include_str!("../../../hardware/endpoints/rpc_echo.sv"),
    ),
    (
        "prefetcher.sv",
        include_str!("../../../hardware/endpoints/prefetcher.sv"),
    ),
    (
        "shared_table.sv",
        include_str!("../../../hardware/endpoints/shared_table.sv"),
    ),
];

/// Test shell around the home and an endpoint, which a host program drives.
const SHELL: &[Source] = &[
    (
        "device_side_pkg.sv",
        include_str!("../../../hardware/lockstep/device_side_pkg.sv"),
    ),
    (
        "random_stalls.sv",
        include_str!("../../../hardware/lockstep/random_stalls.sv"),
    ),
    (
        "applications.sv",
        include_str!("../../../hardware/lockstep/applications.sv"),
    ),
    (
        "device_side.sv",
        include_str!("../../../hardware/lockstep/device_side.sv"),
    ),
    (
        "lockstep.sv",
        include_str!("../../../hardware/lockstep/lockstep.sv"),
    ),
];

/// Hand-written units of coherent systems, which know no protocol.
pub const SYSTEM_UNITS: &[Source] = &[
    (
        "cohkit_coherent_pkg.sv",
        include_str!("../../../hardware/coherent/cohkit_coherent_pkg.sv"),
    ),
    (
        "cohkit_ram.sv",
        include_str!("../../../hardware/coherent/cohkit_ram.sv"),
    ),
    (
        "cohkit_pick.sv",
        include_str!("../../../hardware/coherent/cohkit_pick.sv"),
    ),
    (
        "cohkit_replacement.sv",
        include_str!("../../../hardware/coherent/cohkit_replacement.sv"),
    ),
    (
        "cohkit_outbox.sv",
        include_str!("../../../hardware/coherent/cohkit_outbox.sv"),
    ),
    (
        "cohkit_channel.sv",
        include_str!("../../../hardware/coherent/cohkit_channel.sv"),
    ),
    (
        "cohkit_cache.sv",
        include_str!("../../../hardware/coherent/cohkit_cache.sv"),
    ),
    (
        "cohkit_axi_port.sv",
        include_str!("../../../hardware/coherent/cohkit_axi_port.sv"),
    ),
    (
        "cohkit_home.sv",
        include_str!("../../../hardware/coherent/cohkit_home.sv"),
    ),
];

/// Files that all test benches of coherent systems share.
pub const SYSTEM_BENCH: &[Source] = &[
    (
        "monitors.sv",
        include_str!("../../../hardware/coherent/bench/monitors.sv"),
    ),
    (
        "random_channel.sv",
        include_str!("../../../hardware/coherent/bench/random_channel.sv"),
    ),
    (
        "random_memory.sv",
        include_str!("../../../hardware/coherent/bench/random_memory.sv"),
    ),
];

/// Test bench with random accesses.
pub const LOCKSTEP_BENCH: &[Source] = &[
    (
        "bench.sv",
        include_str!("../../../hardware/coherent/bench/bench.sv"),
    ),
    (
        "main.cpp",
        include_str!("../../../hardware/coherent/bench/main.cpp"),
    ),
];

/// Test bench with accesses that a program requests.
pub const PORTS_BENCH: &[Source] = &[
    (
        "ports.sv",
        include_str!("../../../hardware/coherent/bench/ports.sv"),
    ),
    (
        "ports.cpp",
        include_str!("../../../hardware/coherent/bench/ports.cpp"),
    ),
];

/// All files.
pub const SOURCES: &[Source] =
    &join_sources::<{ HOME.len() + ENDPOINTS.len() + SHELL.len() }>([HOME, ENDPOINTS, SHELL]);

/// Joins the three lists to one of `N` elements, the sum of their lengths.
const fn join_sources<const N: usize>(parts: [&[Source]; 3]) -> [Source; N] {
    let mut sources = [("", ""); N];
    let (mut part, mut index, mut end) = (0, 0, 0);
    while end < N {
        if index < parts[part].len() {
            sources[end] = parts[part][index];
            (index, end) = (index + 1, end + 1);
        } else {
            (part, index) = (part + 1, 0);
        }
    }
    sources
}
