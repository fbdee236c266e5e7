//! The copy engine against plain arrays, with responses of far memory in any order; and a compiled program that copies
//! lines and detects their completion only by the lines' timestamps.

use cohkit_testing::require;

use cohkit_nearmemory::{
    Access, Controller, Copier, Direction, Rejection, Scratchpad, Transfer, TransferError, LINE,
};
use cohkit_riscv::elf::Image;
use cohkit_riscv::{Exception, Extensions, FastInterpreter, Hart, Stop};
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;

/// Start address of far memory.
const FAR: u64 = 0x8000_0000;

/// Far memory with immediate effect.
struct Plain(Vec<[u8; LINE]>);

impl Plain {
    /// Creates lines with different contents.
    fn new(lines: usize) -> Plain {
        let line = |i: usize| std::array::from_fn(|j| (i * 31 + j * 7) as u8);
        Plain((0..lines).map(line).collect())
    }

    /// End address of far memory.
    fn end(&self) -> u64 {
        FAR + (self.0.len() * LINE) as u64
    }

    /// Performs an access and returns the line that was read.
    fn serve(&mut self, access: &Access) -> [u8; LINE] {
        let place = &mut self.0[(access.far - FAR) as usize / LINE];
        if let Some(data) = &access.data {
            *place = **data;
        }
        *place
    }
}

proptest! {
    /// Concurrent transfers `(fetch, lines)`, each with lines of its own on both sides; `order` selects the access to
    /// be answered.
    #[test]
    fn lines_arrive_at_their_addresses_in_any_answer_order(
        transfers in prop::collection::vec((any::<bool>(), 1..5_usize), 1..20),
        order in prop::collection::vec(any::<prop::sample::Index>(), 100),
        max_transfers in 1..5_usize,
        channels in 1..3_usize,
    ) {
        let (mut far, mut expected) = (Plain::new(100), Plain::new(100));
        let mut scratchpad = Scratchpad::new(100);
        let mut lines = vec![[0; LINE]; 100];
        for (i, line) in lines.iter_mut().enumerate() {
            line.fill(255 - i as u8);
            *scratchpad.line_mut(i).unwrap() = *line;
        }
        let mut copier = Copier::new(std::iter::once(FAR..far.end()).collect(), max_transfers).with_channels(channels);
        let (mut scratchpad_line, mut outstanding) = (0, Vec::<Access>::new());
        let mut order = order.iter();
        let mut transfers = transfers.into_iter().peekable();
        let mut now = 0;
        while transfers.peek().is_some() || copier.outstanding_transfers() > 0 {
            now += 1;
            if let Some(&(fetch, count)) = transfers.peek() {
                let direction = if fetch { Direction::Fetch } else { Direction::Store };
                // Far memory is allocated from its end, so that a line has different indices on the two sides.
                let far_line = 100 - scratchpad_line - count;
                let transfer = Transfer { direction, line: scratchpad_line, lines: count, far: FAR + (far_line * LINE) as u64 };
                let busy = copier.outstanding_transfers() == max_transfers;
                prop_assert_eq!(copier.start_transfer(transfer, 100), if busy { Err(Rejection::Busy) } else { Ok(()) });
                if !busy {
                    let (scratchpad_lines, far_lines) = (&mut lines[scratchpad_line..scratchpad_line + count], &mut expected.0[far_line..far_line + count]);
                    if fetch { scratchpad_lines.copy_from_slice(far_lines) } else { far_lines.copy_from_slice(scratchpad_lines) }
                    scratchpad_line += count;
                    transfers.next();
                }
                prop_assert!(copier.outstanding_transfers() <= max_transfers);
            }
            outstanding.extend((0..channels).filter_map(|channel| copier.next_access(channel, &scratchpad)));
            if now % 2 == 0 && !outstanding.is_empty() {
                let index = order.next().map_or(0, |index| index.index(outstanding.len()));
                let access = outstanding.remove(index);
                let data = far.serve(&access);
                prop_assert!(copier.complete_access(&mut scratchpad, access.number, &data, now));
                prop_assert!(!copier.complete_access(&mut scratchpad, access.number, &data, now), "it is done once");
            }
        }
        prop_assert!(outstanding.is_empty() && far.0 == expected.0);
        for (i, line) in lines.iter().enumerate() {
            prop_assert_eq!(scratchpad.line(i).unwrap(), line);
        }
    }
}

proptest! {
    /// The completion count of a direction advances in the order of starts: once the count of completed transfers has
    /// reached the number of a transfer, all lines of it and of all earlier ones are copied, in whatever order accesses
    /// are answered.
    #[test]
    fn completion_counts_follow_the_order_of_starts(
        transfers in prop::collection::vec((any::<bool>(), 1..5_usize), 1..20),
        order in prop::collection::vec(any::<prop::sample::Index>(), 100),
    ) {
        let (mut scratchpad, far) = (Scratchpad::new(100), FAR..FAR + (100 * LINE) as u64);
        let mut copier = Copier::new(vec![far], transfers.len());
        // By direction: for each transfer, its number of lines that are not copied.
        let mut remaining: [Vec<usize>; 2] = [vec![], vec![]];
        let mut accesses = Vec::new();
        for (i, &(fetch, lines)) in transfers.iter().enumerate() {
            let direction = if fetch { Direction::Fetch } else { Direction::Store };
            let transfer = Transfer { direction, line: i * 5, lines, far: FAR + (i * 5 * LINE) as u64 };
            prop_assert_eq!(copier.start_transfer(transfer, 100), Ok(()));
            remaining[direction as usize].push(lines);
            let number = remaining[direction as usize].len() - 1;
            for _ in 0..lines {
                let access = copier.next_access(0, &scratchpad).expect("a line waits");
                accesses.push((access.number, direction, number));
            }
        }
        for index in order {
            for direction in [Direction::Fetch, Direction::Store] {
                let all = &remaining[direction as usize];
                let oldest = all.iter().take_while(|lines| **lines == 0).count();
                prop_assert_eq!(copier.started_transfers(direction), all.len() as u64);
                prop_assert_eq!(copier.completed_transfers(direction), oldest as u64);
            }
            if accesses.is_empty() {
                break;
            }
            let (access, direction, number) = accesses.remove(index.index(accesses.len()));
            prop_assert!(copier.complete_access(&mut scratchpad, access, &[1; LINE], 1));
            remaining[direction as usize][number] -= 1;
        }
        prop_assert!(accesses.is_empty());
    }
}

/// Far memory has 8 lines and the scratchpad 16. A transfer without lines, beyond either, or not aligned to lines.
#[test]
fn transfers_with_invalid_lines_are_rejected() {
    let mut copier = Copier::new(std::iter::once(FAR..FAR + 1024).collect(), 2);
    let valid = Transfer {
        direction: Direction::Fetch,
        line: 0,
        lines: 8,
        far: FAR,
    };
    let (huge, line) = (usize::MAX, valid.line);
    for (error, lines, line, far) in [
        (TransferError::NoLine, 0, line, valid.far),
        (TransferError::Far, 9, line, valid.far),
        (TransferError::Scratchpad, valid.lines, 9, valid.far),
        (TransferError::Scratchpad, valid.lines, huge, valid.far),
        (TransferError::Scratchpad, huge, line, valid.far),
        (TransferError::Far, valid.lines, line, FAR - 128),
        (TransferError::WithinLine, valid.lines, line, FAR + 64),
        (TransferError::Far, valid.lines, line, FAR + 128),
        (TransferError::Far, valid.lines, line, u64::MAX - 127),
    ] {
        let invalid = Transfer {
            lines,
            line,
            far,
            ..valid
        };
        let refused = Err(Rejection::Invalid(error));
        assert_eq!(copier.start_transfer(invalid, 16), refused, "{invalid:?}");
    }
    assert_eq!(copier.start_transfer(valid, 16), Ok(()));
}

/// Compiles the program.
fn compile() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let options = "-O2 -Wall -Werror -nostdlib -ffreestanding -march=rv64imfc -mabi=lp64f -mcmodel=medany -static";
    let output = Command::new("riscv64-unknown-elf-gcc")
        .args(options.split(' '))
        .arg("-I")
        .arg(&root)
        .arg("-o")
        .arg(&program)
        .arg(root.join("crates/nearmemory/tests/programs/copy.c"))
        .output()
        .expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    std::fs::read(program).expect("the file can be read")
}

/// Runs the program and answers the newest or the oldest access first. Returns the maximum number of outstanding
/// accesses.
fn run(image: &Image, lines: usize, max_transfers: usize, newest_first: bool) -> usize {
    let mut far = Plain::new(100);
    let mut memory = Controller::new(128 << 10, 512).with_far_memory(FAR..far.end(), max_transfers);
    memory
        .load_program(image)
        .expect("the program fits in memory");
    let mut hart = Hart::new(0, Extensions::NEAR_MEMORY);
    hart.pc = image.entry;
    let destination = FAR + 50 * LINE as u64;
    for (register, value) in [(10, FAR), (11, destination), (12, lines as u64)] {
        hart.set_x(register, value);
    }
    let (mut fast, mut outstanding, mut max_outstanding) =
        (FastInterpreter::default(), Vec::<Access>::new(), 0);
    for now in 1..100_000 {
        memory.set_time(now);
        match fast.run(&mut hart, &mut memory, 7).1 {
            Ok(()) | Err(Stop::Wait) => {}
            Err(Stop::Exception(Exception::MachineCall)) => {
                let expected = Plain::new(100);
                assert!(outstanding.is_empty(), "it ended before its copies did");
                assert_eq!(far.0[50..50 + lines], expected.0[..lines]);
                assert_eq!(far.0[50 + lines..], expected.0[50 + lines..]);
                return max_outstanding;
            }
            Err(stop) => panic!("at {:#x}: {stop:?}", hart.pc),
        }
        max_outstanding = max_outstanding.max(memory.outstanding_transfers());
        outstanding.extend(memory.next_access(0));
        if now % 5 == 0 && !outstanding.is_empty() {
            let access = outstanding.remove(if newest_first {
                outstanding.len() - 1
            } else {
                0
            });
            let data = far.serve(&access);
            assert!(memory.complete_access(access.number, &data));
        }
    }
    panic!("the program does not end, and is at {:#x}", hart.pc);
}

/// The program copies any number of lines in pieces, with one or several transfers at a time.
#[test]
fn compiled_program_copies_far_memory_with_stamps() {
    if !require::require("riscv-gcc") {
        return;
    }
    let file = compile();
    let image = Image::read(&file).expect("a valid ELF program");
    for lines in [0, 1, 4, 5, 8, 50] {
        for newest in [false, true] {
            // With one transfer at a time, the core waits before the second one.
            assert!(run(&image, lines, 1, newest) <= 1);
            assert_eq!(run(&image, lines, 8, newest) > 1, lines > 4);
        }
    }
}
