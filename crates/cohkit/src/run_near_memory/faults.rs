//! Exceptions of host and channel programs, as text: the reason for the fault of an address, and the remedy.

use super::channel_programs::ChannelProgram;
use crate::guest_io::GuestIo;
use cohkit_base::words::counted;
use cohkit_nearmemory::device::{FIFOS, FIFO_PIPES, FIFO_STRIDE};
use cohkit_nearmemory::{controller, host, Platform, RunOutcome, Transfer, TransferError, LINE};
use cohkit_riscv::channel::{self, Manifest};
use cohkit_riscv::elf::{Image, Segment};
use cohkit_riscv::Exception;

/// Near-memory cores for which the host's address map has registers and a scratchpad.
const MAX_CORES: u64 = 256;

/// Help line for a program on a plain core that accesses far memory or near-memory cores; empty for other exceptions.
pub(crate) fn near_memory_help(exception: &Exception) -> &'static str {
    use host::{FAR, REGISTERS, REGISTERS_STRIDE};
    match exception {
        Exception::LoadFault(address) | Exception::StoreFault(address)
            if (FAR..REGISTERS + MAX_CORES * REGISTERS_STRIDE).contains(address) =>
        {
            "\n  help: `--channel-program NAME=PROGRAM` runs it on a machine with far memory and cores beside it, as docs/nearmemory.md shows"
        }
        _ => "",
    }
}

/// Explanation of a host's access fault, in parentheses; empty if there is nothing to add to the address.
pub(super) fn explain_host_fault(exception: &Exception, platform: &Platform) -> String {
    use host::{FAR, REGISTERS, REGISTERS_STRIDE, SCRATCHPADS, SCRATCHPAD_STRIDE};
    let (Exception::LoadFault(address) | Exception::StoreFault(address)) = *exception else {
        return String::new();
    };
    let core = match (SCRATCHPADS..REGISTERS).contains(&address) {
        true => (address - SCRATCHPADS) / SCRATCHPAD_STRIDE,
        false => address.saturating_sub(REGISTERS) / REGISTERS_STRIDE,
    };
    let cores = platform.mccs.value;
    if (cores..MAX_CORES).contains(&core) {
        return format!(" (of core {core} beside far memory, and there are {cores}, from 0 on)");
    }
    let lines = platform.scratchpad.value;
    let line = address.wrapping_sub(SCRATCHPADS) % SCRATCHPAD_STRIDE / LINE as u64;
    match address {
        SCRATCHPADS..REGISTERS if line >= lines => {
            format!(" (line {line} of the scratchpad of core {core}, which has {lines})")
        }
        // Existing lines of scratchpads fault only on atomic accesses.
        SCRATCHPADS..REGISTERS => " (atomic access; scratchpads do not support it)".into(),
        FAR.. if address - FAR < platform.far_bytes.value => {
            " (atomic access; far memory is not coherent and does not support it)".into()
        }
        _ => String::new(),
    }
}

/// Reports that a core rejected or stopped a channel program; the machine itself notifies the host program.
pub(super) fn report_rejection(
    outcome: &RunOutcome,
    platform: &Platform,
    channels: &[ChannelProgram],
    guest_io: &mut GuestIo,
) {
    let named_program = |name: &Option<String>| match name {
        Some(name) => format!("the channel program `{name}`"),
        None => "a channel program".to_string(),
    };
    match outcome {
        RunOutcome::Rejected { mcc, name, reason } => {
            guest_io.say(&format!(
                "core {mcc} refuses {}: {reason}",
                named_program(name)
            ));
        }
        RunOutcome::Stopped {
            mcc,
            name,
            exception,
            pc,
            instruction,
            copy,
            jumped_from,
        } => {
            let mut channels = channels.iter();
            let channel = channels.find(|channel| Some(&channel.name) == name.as_ref());
            let position = channel.and_then(|channel| {
                channel.with_parsed(|program| {
                    program.describe_position(*pc, instruction)
                        + &program.describe_jump(exception, *jumped_from)
                })
            });
            let position = position.unwrap_or_else(|| format!("{pc:#x}: {instruction}"));
            let explanation = explain_stop(*mcc, exception, *copy, channel, platform);
            let explanation =
                explanation.map_or_else(String::new, |explanation| format!(" ({explanation})"));
            let name = named_program(name);
            guest_io.say(&format!(
                "core {mcc} stops {name}: {exception}{explanation}, at {position}"
            ));
        }
        _ => {}
    }
}

/// Explanation of the access fault that stopped a channel program on core `mcc`; none for other exceptions, or if there
/// is nothing to add to the address.
fn explain_stop(
    mcc: usize,
    exception: &Exception,
    copy: Option<(Transfer, TransferError)>,
    channel: Option<&ChannelProgram>,
    platform: &Platform,
) -> Option<String> {
    let (address, is_store) = match *exception {
        Exception::StoreFault(address) => (address, true),
        Exception::LoadFault(address) => (address, false),
        _ => return None,
    };
    let image = channel.and_then(|channel| Image::read(&channel.file).ok());
    let manifest: Option<Manifest> =
        channel.and_then(|channel| Some(channel::read_unverified(&channel.file).ok()?.1));
    let stack = manifest.as_ref().map_or(0, |manifest| manifest.stack);
    let own_fifo = FIFO_PIPES + mcc as u64;
    let has_own_fifo = manifest.is_some_and(|manifest| manifest.pipes.contains(&own_fifo));
    if let Some((transfer, error)) = copy {
        return Some(explain_invalid_copy(transfer, error, platform));
    }
    // A load never faults because a segment is read-only.
    let segments = image.as_ref().filter(|_| is_store);
    let segments = segments.map_or(&[][..], |image| &image.segments);
    read_only_segment_at(address, segments)
        .or_else(|| match has_own_fifo {
            true => own_fifo_at(address, mcc, is_store),
            false => None,
        })
        .or_else(|| explain_core_fault(address, platform, stack))
}

/// Reason why a copy between a scratchpad and far memory is invalid.
fn explain_invalid_copy(transfer: Transfer, error: TransferError, platform: &Platform) -> String {
    let Transfer { line, far, .. } = transfer;
    let lines = counted(transfer.lines as u64, "line");
    match error {
        TransferError::NoLine => "a copy of zero lines".to_string(),
        TransferError::WithinLine => {
            format!("a copy with far memory at {far:#x}, which is not aligned to lines of {LINE} bytes")
        }
        TransferError::Scratchpad => format!(
            "a copy of {lines} from line {line} of the scratchpad on, which has {}",
            platform.scratchpad.value
        ),
        TransferError::Far => format!(
            "a copy of {lines} from {far:#x} on, which is partly outside the far memory that the host granted it"
        ),
    }
}

/// Description of the read-only segment that contains the address, if any.
fn read_only_segment_at(address: u64, segments: &[Segment]) -> Option<String> {
    let contains = |segment: &&Segment| address.wrapping_sub(segment.address) < segment.length;
    let segment = segments.iter().find(contains)?;
    let contents = match (segment.writable, segment.executable) {
        (true, _) => return None,
        (false, true) => "instructions",
        (false, false) => "constants",
    };
    Some(format!("of its {contents}, which are read-only"))
}

/// Reason why a core would wait for its own FIFO forever; none if the address is not in this FIFO.
fn own_fifo_at(address: u64, core: usize, is_store: bool) -> Option<String> {
    let begin = FIFOS + core as u64 * FIFO_STRIDE;
    let state = match is_store {
        true => "full, and only this core can remove a word from it",
        false => "empty, and only this core can add a word to it",
    };
    (begin..begin + FIFO_STRIDE)
        .contains(&address)
        .then(|| format!("the FIFO from core {core} to itself is {state}"))
}

/// Explanation of an access fault of a near-memory core; none if there is nothing to add to the address.
fn explain_core_fault(address: u64, platform: &Platform, stack: u64) -> Option<String> {
    use controller::{FETCH, PRIVATE, SCRATCHPAD, SHARED, SHARES, STORE};
    let scratchpad = platform.scratchpad.value;
    let stack_begins = (PRIVATE + platform.private.value).saturating_sub(stack);
    let description = match address {
        FETCH | STORE => "a register that starts a copy; it accepts only whole words".to_string(),
        _ if (stack_begins.saturating_sub(stack.min(4096))..stack_begins).contains(&address) => {
            format!("below its stack; its `NM_CHANNEL` requests {stack} bytes")
        }
        _ if (SCRATCHPAD..SCRATCHPAD + scratchpad * LINE as u64).contains(&address) => {
            "an access to two lines of the scratchpad, or an atomic access".to_string()
        }
        _ if (SCRATCHPAD..controller::REGISTERS).contains(&address) => format!(
            "line {} of the scratchpad, which has {scratchpad}",
            (address - SCRATCHPAD) / LINE as u64,
        ),
        controller::LOCK | controller::RELEASE | controller::UNLOCK => {
            format!("a lock of a line outside the scratchpad, which has {scratchpad}")
        }
        _ if (SHARED..SHARED + SHARES as u64 * 8).contains(&address) => {
            let pipe = (address - SHARED) / 16;
            format!("of the register pipe that `NM_REGISTER_PIPE({pipe})` asks for")
        }
        _ if (FIFOS..FIFOS + platform.mccs.value * FIFO_STRIDE).contains(&address) => {
            let core = (address - FIFOS) / FIFO_STRIDE;
            format!("of the FIFO that `NM_FIFO({core})` asks for")
        }
        _ if (host::FAR..host::FAR + platform.far_bytes.value).contains(&address) => {
            "far memory; a core accesses it only through its copy engine".to_string()
        }
        _ => return None,
    };
    Some(description)
}
