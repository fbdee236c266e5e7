//! Machines with near-memory cores, described in TOML. Every quantity has a name, a unit and an origin, and a range if
//! no source states its value, as in the platforms of `sim`.

mod dram;
mod row;

use crate::scratchpad::LINE;
use cohkit_base::words::did_you_mean;
use cohkit_dram::Memory;
use cohkit_platform::{current_name, find, read_document, PlatformError, Spanned};
use cohkit_riscv::{Page, PageSize, Pages};
use cohkit_units::{Quantity, Unit};
use row::{Form, Row};

/// The shipped machine: Enzian with four near-memory cores.
pub const ENZIAN: &str = include_str!("../../../nearmemory/enzian.toml");

macro_rules! quantities {
    ($($field:ident $table:literal $key:literal $unit:ident ($low:expr, $high:expr) $form:ident $meaning:literal;)*) => {
        /// A machine with near-memory cores.
        #[derive(Clone, Debug)]
        pub struct Platform {
            /// Name of the machine.
            pub name: String,
            $(#[doc = $meaning] pub $field: Quantity,)*
            /// DRAM of far memory, with or without the timing of a JEDEC standard.
            pub memory: Memory,
        }

        const ROWS: &[Row] = &[$(Row {
            name: concat!($table, ".", $key),
            unit: Unit::$unit,
            limits: ($low, $high),
            form: Form::$form,
        },)*];

        impl Platform {
            fn from(
                name: String,
                mut quantities: impl Iterator<Item = Quantity>,
                memory: Memory,
            ) -> Option<Platform> {
                Some(Platform { name, $($field: quantities.next()?,)* memory })
            }

            /// Returns all quantities with their names, units and meanings.
            pub fn quantities(&self) -> Vec<(&'static str, Unit, Quantity, &'static str)> {
                let mut quantities =
                    vec![$((concat!($table, ".", $key), Unit::$unit, self.$field.clone(), $meaning),)*];
                quantities.extend(dram::quantities(&self.memory));
                quantities
            }

            fn quantity(&mut self, name: &str) -> Option<&mut Quantity> {
                match name {
                    $(concat!($table, ".", $key) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

/// Picoseconds of a millisecond.
const MS: u64 = 1_000_000_000;

// The columns are: field, table, key, unit, limits, form, meaning.
#[rustfmt::skip]
quantities! {
    hosts "hosts" "count" Count (1, 16) Any "Hosts of the table `host`, each with cores, caches, memory and a link of its own; they share the device.";
    cores "host" "cores" Count (1, 64) Any "Host cores, which share the last cache and all memory of the host.";
    host_cycle "host" "cycle" Picoseconds (1, MS) Any "A clock of a host core.";
    l1 "host" "l1" Bytes (LINE as u64, 1 << 24) PowersOfTwo "A core's own cache, which writes through and takes time only.";
    l1_ways "host" "l1_ways" Count (1, 64) PowersOfTwo "Its ways.";
    load_misses "host" "load_misses" Count (1, 64) Any "Lines of all memories for which a core's loads wait at once, apart from prefetches and stores.";
    l1_misses "host" "l1_misses" Count (1, 4096) Any "Outstanding lines of a core, including prefetches into its own cache.";
    llc "host" "llc" Bytes (LINE as u64, 1 << 30) PowersOfTwo "The last cache; its lines of far memory are not coherent.";
    llc_ways "host" "llc_ways" Count (1, 64) PowersOfTwo "Its ways.";
    llc_misses "host" "llc_misses" Count (1, 4096) Any "Outstanding lines of the last cache, in both directions together.";
    llc_hit "host" "llc_hit" Picoseconds (0, MS) Any "Additional latency of a load that hits in the last cache.";
    page "host" "page" Bytes (PageSize::LIMITS.0, PageSize::LIMITS.1) PowersOfTwo "A page of the host.";
    tlb "host" "tlb" Count (1, 1 << 16) Any "Translations of a core's buffer, of pages of any size.";
    tlb_walk "host" "tlb_walk" Picoseconds (0, MS) Any "Additional latency of an access that misses in the translation buffer.";
    prefetch_streams "prefetcher" "streams" Count (0, 64) Any "Streams of lines of far memory that the hardware prefetcher of a host core follows; 0 for no prefetcher.";
    prefetch_stride "prefetcher" "stride" Count (1, 4096) Any "Largest distance between successive lines of a stream, in lines of 128 bytes; 1 for sequential streams only.";
    prefetch_distance "prefetcher" "distance" Count (1, 1024) Any "Strides from an access to the first line that it prefetches.";
    prefetch_degree "prefetcher" "degree" Count (1, 64) Any "Lines of a stream that an access prefetches, one after the other.";
    request "host" "request" Picoseconds (0, MS) Any "From a core to the link, or to the host's memory.";
    fill "host" "fill" Picoseconds (0, MS) Any "From the link or the host's memory to a core.";
    main_latency "host" "memory_latency" Picoseconds (0, MS) Any "The host's own memory.";
    main_bandwidth "host" "memory_bandwidth" BytesPerSecond (1000000, 1 << 50) Any "The host's own memory.";
    link_latency "link" "latency" Picoseconds (0, MS) Any "Between a host and the device, one way.";
    link_bandwidth "link" "bandwidth" BytesPerSecond (1000000, 1 << 50) Any "Each way.";
    link_header "link" "header_bytes" Bytes (0, 4096) Any "Bytes of each message in addition to its data.";
    device_path "device" "path" Picoseconds (0, MS) Any "From the link to far memory or a scratchpad and back, together.";
    slices "device" "slices" Count (1, 64) PowersOfTwo "Slices of the directory in front of far memory; lines are interleaved over them.";
    slice_reads "device" "slice_reads" Count (1, 4096) Any "Reads of far memory by all hosts that a slice has in flight; later ones wait in order.";
    register_path "device" "register_path" Picoseconds (0, MS) Any "The same for a register.";
    register_interval "device" "register_interval" Picoseconds (0, MS) Any "Interval between two accesses of hosts to registers, of which the device takes one at a time.";
    far_bytes "device" "far_memory" Bytes (1 << 20, 1 << 38) PowersOfTwo "Far memory.";
    mccs "device" "mccs" Count (1, 64) Any "Cores beside far memory.";
    mcc_cycle "device" "cycle" Picoseconds (1, MS) Any "A clock of such a core, which stamps count.";
    private "device" "private_memory" Bytes (4096, 1 << 19) PowersOfTwo "Private memory of a core.";
    scratchpad "device" "scratchpad_lines" Count (1, 4096) Any "Lines of a core's scratchpad, of 128 bytes.";
    register "device" "register" Count (1, 1000) Any "Clocks that a core's access to a register takes.";
    fifo_words "device" "fifo_words" Count (1, 1 << 20) Any "Words in the FIFO from one core to another one.";
    fifo_latency "device" "fifo_latency" Picoseconds (0, MS) Any "From the store of a word to its arrival in the FIFO.";
    transfers "copy" "transfers" Count (1, 4096) Any "Outstanding transfers of a copy engine.";
    copy_channels "copy" "channels" Count (1, 2) Any "Channels of a copy engine: 1 for both directions, or one for each.";
    copy_lines "copy" "lines" Count (1, 4096) Any "Lines of a channel that far memory handles at once.";
    copy_line "copy" "line" Picoseconds (1, MS) Any "Interval between two lines that a channel of a copy engine requests.";
    copy_path "copy" "path" Picoseconds (0, MS) Any "From the command to far memory and from there to the stamp, together.";
    handshake "loader" "handshake" Picoseconds (0, MS) Any "From the host's command to the start of the loader, and from its end to the state that the host reads, together.";
    load_start "loader" "start" Picoseconds (0, MS) Any "For the headers of a binary.";
    reset_line "loader" "reset_line" Picoseconds (0, MS) Any "For each line of private memory and scratchpad that is cleared.";
    verify_start "loader" "verify_start" Picoseconds (0, MS) Any "For the resources of a binary that is verified.";
    load_line "loader" "line" Picoseconds (0, MS) Any "For each line of a binary that goes from the scratchpad to private memory.";
    verify_byte "loader" "verify" Picoseconds (0, MS) Any "For each byte of a binary that is verified.";
    cache_bytes "memory_cache" "size" Bytes (0, 1 << 34) ZeroOrPowersOfTwo "Write-back cache between far memory's DRAM and all its users; 0 for none.";
    cache_ways "memory_cache" "ways" Count (1, 64) PowersOfTwo "Its ways.";
    cache_line "memory_cache" "line" Bytes (LINE as u64, 4096) PowersOfTwo "Its lines.";
    cache_hit "memory_cache" "hit_latency" Picoseconds (0, MS) Any "A look-up; a hit takes no longer, and a miss goes to DRAM afterwards.";
}

impl Platform {
    /// Returns the shipped machine.
    ///
    /// # Panics
    /// Never: a test parses the same text.
    pub fn enzian() -> Platform {
        Platform::read(ENZIAN).expect("the shipped description is valid")
    }

    /// Parses a machine description. No quantity has a silent default, except those that the standard of DRAM gives.
    ///
    /// # Errors
    /// All errors of the text, in order of their position: syntax, unknown or missing quantities, and values that are
    /// malformed or not allowed.
    pub fn read(text: &str) -> Result<Platform, Vec<PlatformError>> {
        read_document(text, dram::requirement, |reader, table| {
            let name = reader.read_string(table, "name");
            let mut known = vec!["name".to_string()];
            let (mut quantities, mut former_names) = (Vec::new(), Vec::new());
            for row in ROWS {
                known.push(row.name.to_string());
                match reader.find_quantity(table, row.name, &mut former_names) {
                    Some(value) => quantities.push(row.read(reader, value)),
                    None => {
                        reader.report_missing(table, row.name);
                        quantities.push(None);
                    }
                }
            }
            let memory = dram::read(reader, table, &mut known)?;
            known.append(&mut former_names);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            reader.report_unknown_keys(table, "", &known);
            let quantities: Vec<Quantity> = quantities.into_iter().collect::<Option<_>>()?;
            let platform = Platform::from(name?, quantities.into_iter(), memory)?;
            if let Err((table_name, error)) = platform.check_tables() {
                let span = find(table, table_name).map_or(reader.end.clone(), Spanned::span);
                reader.report(span, error);
            }
            Some(platform)
        })
    }

    /// Rejects quantities that contradict each other, which [`Platform::set`] may have set.
    ///
    /// # Errors
    /// A sentence with their names.
    pub fn check(&self) -> Result<(), String> {
        self.check_tables().map_err(|(_, error)| error)
    }

    /// Rejects quantities that contradict each other. The error has the table that they belong to.
    fn check_tables(&self) -> Result<(), (&'static str, String)> {
        let (bytes, line) = (self.cache_bytes.value, self.cache_line.value);
        if bytes != 0 && bytes < line {
            let error = format!(
                "memory_cache.size is {bytes} bytes, less than a line of {line} bytes (memory_cache.line)"
            );
            return Err(("memory_cache", error));
        }
        match &self.memory {
            Memory::Jedec(dram) => dram.check().map_err(|error| ("dram", error)),
            Memory::Dram(dram) if dram.row_bytes.value < LINE as u64 => {
                let bytes = dram.row_bytes.value;
                let error =
                    format!("dram.row_bytes is {bytes} bytes, less than a line of {LINE} bytes");
                Err(("dram", error))
            }
            _ => Ok(()),
        }
    }

    /// Sets a quantity within the limits of the model; the value may lie outside the quantity's range.
    ///
    /// # Errors
    /// The name is unknown, or the value is malformed or not allowed. [`Platform::check`] compares quantities.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = &*current_name(name);
        if let Some(result) = dram::set(&mut self.memory, name, value) {
            return result;
        }
        let Some(row) = ROWS.iter().find(|row| row.name == name) else {
            let names = ROWS.iter().map(|row| row.name);
            let names: Vec<&str> = names.chain(dram::names(&self.memory)).collect();
            return Err(format!(
                "no quantity is named `{name}`; {}there are {}",
                did_you_mean(name, names.iter().copied()),
                names.join(", ")
            ));
        };
        let value = row.parse(value)?;
        if let Some(quantity) = self.quantity(name) {
            quantity.value = value;
        }
        Ok(())
    }

    /// Returns the address translation of a host core with an empty TLB. All addresses are mapped to themselves.
    pub(crate) fn pages(&self) -> Pages {
        let walk = self.tlb_walk.value.div_ceil(self.host_cycle.value);
        let mut pages = Pages::new(self.tlb.value as usize, walk);
        let size = PageSize::of(self.page.value).expect("the page size has been checked");
        let page = Page {
            virtual_start: 0,
            physical_start: 0,
            size,
            readable: true,
            writable: true,
            executable: true,
        };
        let count = (u64::MAX / size.bytes()) + 1;
        pages
            .map_run(page, count)
            .expect("the run covers exactly the address space");
        pages
    }
}
