//! Compiled programs on a near-memory core that sum words sent by the host.
//!
//! `accumulate.c` receives words as write-backs to a locked line, and responds to delayed reads of another line.
//! `registers.c` receives and sends words through register pipes. The tests vary the number of instructions that the
//! core executes between two actions of the host.

use cohkit_testing::require;

use cohkit_nearmemory::{Controller, HostResponse, LINE};
use cohkit_riscv::elf::Image;
use cohkit_riscv::{Exception, Extensions, FastInterpreter, Hart, Stop};
use std::path::Path;
use std::process::Command;

/// Compiles a program of `tests/programs` for a near-memory core and returns the ELF file.
fn compile(file_name: &str) -> Vec<u8> {
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
        .arg(
            root.join("crates/nearmemory/tests/programs")
                .join(file_name),
        )
        .output()
        .expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    std::fs::read(program).expect("the file can be read")
}

/// Executes at most `max_instructions` instructions. Returns true if the program has ended.
fn run_instructions(
    hart: &mut Hart,
    interpreter: &mut FastInterpreter,
    memory: &mut Controller,
    max_instructions: u64,
) -> bool {
    match interpreter.run(hart, memory, max_instructions).1 {
        Ok(()) => false,
        Err(Stop::Exception(Exception::MachineCall)) => true,
        Err(stop) => panic!("at {:#x}: {stop:?}", hart.pc),
    }
}

/// Returns the 64-bit word at an index of a line.
fn word_at(data: &[u8; LINE], index: usize) -> u64 {
    u64::from_le_bytes(data[8 * index..8 * index + 8].try_into().expect("a word"))
}

/// Returns a line with the number of words and the words, as `accumulate.c` expects them.
fn counted_line(words: &[u64]) -> [u8; LINE] {
    let mut line = [0; LINE];
    let count = words.len() as u64;
    let contents = std::iter::once(&count).chain(words);
    for (slot, word) in line.chunks_mut(8).zip(contents) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    line
}

/// Runs the core, in slices of at most `max_instructions` instructions, until it responds to the host.
fn run_until_response(
    hart: &mut Hart,
    interpreter: &mut FastInterpreter,
    memory: &mut Controller,
    max_instructions: u64,
) -> HostResponse {
    for _ in 0..10_000 {
        run_instructions(hart, interpreter, memory, max_instructions);
        if let Some(response) = memory.next_response() {
            return response;
        }
    }
    panic!("no response after 10,000 slices; pc = {:#x}", hart.pc);
}

/// The program sums the words of each line that the host writes back, and answers a read of another line with the sum.
/// Slices of any length give the same responses.
#[test]
fn compiled_program_sums_host_write_backs() {
    if !require::require("riscv-gcc") {
        return;
    }
    let file = compile("accumulate.c");
    let image = Image::read(&file).expect("a valid ELF program");
    for max_instructions in [1, 3, 17, 1000] {
        let mut memory = Controller::new(128 << 10, 512);
        memory
            .load_program(&image)
            .expect("the program fits in memory");
        let mut hart = Hart::new(0, Extensions::NEAR_MEMORY);
        hart.pc = image.entry;
        let mut interpreter = FastInterpreter::default();
        // 200 instructions are enough for the program to lock both lines.
        run_instructions(&mut hart, &mut interpreter, &mut memory, 200);
        let (mut sum, mut count) = (0_u64, 0);
        for i in 0..200_u64 {
            let words: Vec<u64> = (0..i % 15 + 1)
                .map(|j| (i + j).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            sum = words.iter().fold(sum, |sum, word| sum.wrapping_add(*word));
            count += words.len() as u64;
            memory.set_time(1000 + i);
            memory
                .write_back(0, i, &counted_line(&words))
                .expect("the line is in memory");
            assert_eq!(memory.next_response(), None, "the acknowledgement is held");
            let response =
                run_until_response(&mut hart, &mut interpreter, &mut memory, max_instructions);
            assert_eq!(response, HostResponse::Written { request: i });
            memory.read(1, i).expect("the line is in memory");
            assert_eq!(memory.next_response(), None, "the read is held");
            let HostResponse::Read { request, data } =
                run_until_response(&mut hart, &mut interpreter, &mut memory, max_instructions)
            else {
                panic!("expected a read response");
            };
            let read = (
                request,
                word_at(&data, 0),
                word_at(&data, 1),
                word_at(&data, 2),
            );
            // The program responds with its sum, the number of words, and the time of the last write-back.
            assert_eq!(read, (i, sum, count, 1000 + i));
        }
        // A line without words ends the program.
        memory
            .write_back(0, 1000, &counted_line(&[]))
            .expect("the line is in memory");
        assert!((0..100_000).any(|_| run_instructions(
            &mut hart,
            &mut interpreter,
            &mut memory,
            max_instructions
        )));
        assert_eq!(
            memory.next_response(),
            Some(HostResponse::Written { request: 1000 })
        );
        // Requests to unlocked lines are not held.
        memory.read(1, 1001).expect("the line is in memory");
        assert!(memory.next_response().is_some());
    }
}

/// A read of a line beyond the scratchpad, and a program larger than the core's memory.
#[test]
fn oversized_images_and_missing_lines_are_rejected() {
    let mut memory = Controller::new(4096, 4);
    let error = memory.read(4, 0).expect_err("line 4 does not exist");
    assert_eq!(
        error.to_string(),
        "no line 4: the scratchpad has 4, from 0 on"
    );
    if !require::require("riscv-gcc") {
        return;
    }
    let file = compile("accumulate.c");
    let image = Image::read(&file).expect("a valid ELF program");
    let error = Controller::new(64, 4)
        .load_program(&image)
        .expect_err("the image does not fit in 64 bytes");
    assert!(
        error.ends_with("not in private memory, which is 0x10000 to 0x1003f"),
        "{error}"
    );
}

/// The program receives words by registers 0 and 1 and sends each partial sum by registers 2 and 3, until the pipe
/// ends.
#[test]
fn compiled_program_sums_words_of_a_register_pipe() {
    // States of a pipe, in its second register; the first register holds the word.
    const EMPTY: u64 = 0;
    const FULL: u64 = 1;
    const ENDED: u64 = 2;
    if !require::require("riscv-gcc") {
        return;
    }
    let file = compile("registers.c");
    let image = Image::read(&file).expect("a valid ELF program");
    for max_instructions in [1, 3, 17, 1000] {
        let mut memory = Controller::new(128 << 10, 512);
        memory
            .load_program(&image)
            .expect("the program fits in memory");
        assert_eq!(memory.shared(32), None);
        let mut hart = Hart::new(0, Extensions::NEAR_MEMORY);
        hart.pc = image.entry;
        let mut interpreter = FastInterpreter::default();
        let (mut sent, mut received, mut sum) = (0_u64, 0_u64, 0_u64);
        let word = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let register =
            |memory: &mut Controller, number| *memory.shared(number).expect("one of 32 registers");
        let ended = (0..1_000_000).any(|_| {
            if register(&mut memory, 1) == EMPTY {
                *memory.shared(0).expect("one of 32 registers") = word(sent);
                *memory.shared(1).expect("one of 32 registers") =
                    if sent < 500 { FULL } else { ENDED };
                sent += 1;
            }
            if register(&mut memory, 3) == FULL {
                sum = sum.wrapping_add(word(received));
                assert_eq!(register(&mut memory, 2), sum);
                *memory.shared(3).expect("one of 32 registers") = EMPTY;
                received += 1;
            }
            run_instructions(&mut hart, &mut interpreter, &mut memory, max_instructions)
        });
        assert!(ended, "the program has not ended; pc = {:#x}", hart.pc);
        assert_eq!((received, register(&mut memory, 3)), (500, ENDED));
    }
}
