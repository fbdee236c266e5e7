//! Round trips of 64-bit words between two threads, each pinned to a processor: by line pipes of the near-memory
//! library, compiled for this machine, and by other channels. Medians of 20 runs, in which the channels alternate.
//!
//! Prints the nanoseconds of a round trip of one word and of a batch of 30, and the ratio of the other channels to
//! ours.

// The benchmark calls compiled C code and pins threads to processors.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Number of runs of each channel.
const RUNS: usize = 20;
/// Number of words in a large batch.
const BATCH: usize = 30;
/// Capacity of the other channels, in words: that of 16 lines.
const CAPACITY: usize = 240;

/// Runs the given number of round trips of a batch and returns the sum of all words, for comparison.
type RoundTrips<'a> = Box<dyn Fn(u64, usize) -> u64 + 'a>;

/// Pins this thread to a processor. Returns false if the processor does not exist.
fn pin(processor: usize) -> bool {
    // SAFETY: an empty set of processors is all zero, and the set lives as long as the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set) == 0
    }
}

/// True if processors 0 and 1 are hardware threads of one core, according to the system.
fn are_one_core() -> bool {
    let file = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    let siblings = std::fs::read_to_string(file).unwrap_or_default();
    siblings
        .trim()
        .split([',', '-'])
        .any(|number| number == "1")
}

/// Runs `answer` on processor 1 while this thread, on processor 0, runs `ask`.
fn run_pair(answer: impl FnOnce() + Send, ask: impl FnOnce() -> u64) -> u64 {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            answer();
        });
        pin(0);
        ask()
    })
}

/// Compiles and loads our pipes.
fn load_library(folder: &Path) -> libloading::Library {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = folder.join("pipes.so");
    let status = Command::new("cc")
        .current_dir(&root)
        .args([
            "@nearmemory/native.flags",
            "-shared",
            "crates/nearmemory/benches/pipes.c",
            "-o",
        ])
        .arg(&file)
        .status();
    assert!(status.expect("`cc` starts").success());
    // SAFETY: the library has no initialisers.
    unsafe { libloading::Library::new(file) }.expect("the library can be loaded")
}

/// Round trips over pipes of the near-memory library.
fn line_pipes(library: &libloading::Library, times: u64, batch: usize) -> u64 {
    type Pair = *mut std::ffi::c_void;
    // SAFETY: these are the functions of pipes.c; the pair lives until both threads are done with it.
    unsafe {
        let new = library
            .get::<unsafe extern "C" fn() -> Pair>(b"pair_new")
            .expect("a function");
        let free = library
            .get::<unsafe extern "C" fn(Pair)>(b"pair_free")
            .expect("a function");
        let ask = library.get::<unsafe extern "C" fn(Pair, u64, u64) -> u64>(b"pair_ask");
        let answer = library.get::<unsafe extern "C" fn(Pair, u64)>(b"pair_answer");
        let (ask, answer) = (ask.expect("a function"), answer.expect("a function"));
        let pair = new();
        let pair_address = pair as usize;
        let words = times * batch as u64;
        let sum = run_pair(
            || answer(pair_address as Pair, words),
            || ask(pair, times, batch as u64),
        );
        free(pair);
        sum
    }
}

/// Round trips over bounded channels of the crate `crossbeam-channel`.
fn crossbeam(times: u64, batch: usize) -> u64 {
    let (request_sender, request_receiver) = crossbeam_channel::bounded::<u64>(CAPACITY);
    let (answer_sender, answer_receiver) = crossbeam_channel::bounded::<u64>(CAPACITY);
    let words = times * batch as u64;
    run_pair(
        move || {
            (0..words).for_each(|_| {
                answer_sender
                    .send(request_receiver.recv().expect("a word"))
                    .expect("the receiver is open")
            })
        },
        || {
            let mut sum = 0;
            for round in 0..times {
                for word in 0..batch as u64 {
                    request_sender
                        .send(round * batch as u64 + word)
                        .expect("the receiver is open");
                }
                sum += (0..batch)
                    .map(|_| answer_receiver.recv().expect("a word"))
                    .sum::<u64>();
            }
            sum
        },
    )
}

/// Takes one word, and spins until there is one.
fn pop(from: &mut rtrb::Consumer<u64>) -> u64 {
    loop {
        match from.pop() {
            Ok(word) => return word,
            Err(_) => std::hint::spin_loop(),
        }
    }
}

/// Adds one word, and spins until there is room.
fn push(to: &mut rtrb::Producer<u64>, word: u64) {
    while to.push(word).is_err() {
        std::hint::spin_loop();
    }
}

/// Takes the available words, up to `most`; waits for the first one.
fn take(from: &mut rtrb::Consumer<u64>, max_words: usize, mut consume: impl FnMut(u64)) -> usize {
    loop {
        let available = from.slots().min(max_words);
        if available > 0 {
            let chunk = from
                .read_chunk(available)
                .expect("a chunk of available words");
            chunk.into_iter().for_each(&mut consume);
            return available;
        }
        std::hint::spin_loop();
    }
}

/// Round trips over ring buffers of the crate `rtrb`, in chunks if a batch has several words.
fn rtrb_ring(times: u64, batch: usize) -> u64 {
    let (mut request_sender, mut request_receiver) = rtrb::RingBuffer::<u64>::new(CAPACITY);
    let (mut answer_sender, mut answer_receiver) = rtrb::RingBuffer::<u64>::new(CAPACITY);
    let words = times * batch as u64;
    run_pair(
        move || {
            let mut answered = 0;
            while answered < words {
                if batch == 1 {
                    push(&mut answer_sender, pop(&mut request_receiver));
                    answered += 1;
                    continue;
                }
                let mut received = Vec::with_capacity(batch);
                answered += take(&mut request_receiver, batch, |word| received.push(word)) as u64;
                while answer_sender.slots() < received.len() {
                    std::hint::spin_loop();
                }
                let chunk = answer_sender
                    .write_chunk_uninit(received.len())
                    .expect("the receiver is open");
                chunk.fill_from_iter(received);
            }
        },
        || {
            let mut sum = 0;
            for round in 0..times {
                let first = round * batch as u64;
                if batch == 1 {
                    push(&mut request_sender, first);
                    sum += pop(&mut answer_receiver);
                    continue;
                }
                let chunk = request_sender
                    .write_chunk_uninit(batch)
                    .expect("the receiver is open");
                chunk.fill_from_iter(first..first + batch as u64);
                let mut remaining = batch;
                while remaining > 0 {
                    remaining -= take(&mut answer_receiver, remaining, |word| sum += word);
                }
            }
            sum
        },
    )
}

/// Round trips over two pipes of the operating system, with `each` words per write.
fn os_pipes(times: u64, batch: usize, words_per_write: usize) -> u64 {
    let (mut request_reader, mut request_writer) = std::io::pipe().expect("a pipe");
    let (mut answer_reader, mut answer_writer) = std::io::pipe().expect("a pipe");
    run_pair(
        move || {
            let mut bytes = vec![0; words_per_write * 8];
            for _ in 0..times * (batch / words_per_write) as u64 {
                request_reader.read_exact(&mut bytes).expect("words");
                answer_writer
                    .write_all(&bytes)
                    .expect("the receiver is open");
            }
        },
        move || {
            let (mut sum, mut bytes) = (0, vec![0; words_per_write * 8]);
            for round in 0..times {
                for part in 0..batch / words_per_write {
                    let first = round * batch as u64 + (part * words_per_write) as u64;
                    for (bytes_of_word, word) in bytes.chunks_mut(8).zip(first..) {
                        bytes_of_word.copy_from_slice(&word.to_le_bytes());
                    }
                    request_writer
                        .write_all(&bytes)
                        .expect("the receiver is open");
                }
                for _ in 0..batch / words_per_write {
                    answer_reader.read_exact(&mut bytes).expect("words");
                    let words = bytes
                        .chunks(8)
                        .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
                    sum += words.sum::<u64>();
                }
            }
            sum
        },
    )
}

/// Measures all channels for batches of one word and of many.
fn main() {
    if !(pin(1) && pin(0)) {
        return println!(
            "not measured: two threads are pinned to processors 0 and 1, which are not both there"
        );
    }
    if are_one_core() {
        println!("note: processors 0 and 1 are of one core");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = load_library(folder.path());
    let channels: Vec<(&str, RoundTrips)> = vec![
        (
            "line pipes",
            Box::new(|times, batch| line_pipes(&library, times, batch)),
        ),
        ("rtrb", Box::new(rtrb_ring)),
        ("crossbeam-channel, bounded", Box::new(crossbeam)),
        (
            "pipe(2)",
            Box::new(|times, batch| os_pipes(times, batch, 1)),
        ),
        (
            "pipe(2), a batch in a write",
            Box::new(|times, batch| os_pipes(times, batch, batch)),
        ),
    ];
    for (batch, times) in [(1, 20_000), (BATCH, 4_000)] {
        let words = times * batch as u64;
        let expected = words * (words - 1) / 2;
        let mut samples = vec![Vec::new(); channels.len()];
        for _ in 0..RUNS {
            for ((name, round_trips), samples) in channels.iter().zip(&mut samples) {
                let begin = Instant::now();
                assert_eq!(round_trips(times, batch), expected, "{name}");
                samples.push(begin.elapsed().as_secs_f64() * 1e9 / times as f64);
            }
        }
        let medians = samples.iter_mut().map(|samples| {
            samples.sort_by(f64::total_cmp);
            (samples[RUNS / 2 - 1] + samples[RUNS / 2]) / 2.0
        });
        let medians: Vec<f64> = medians.collect();
        for ((name, _), median) in channels.iter().zip(&medians) {
            let ratio = median / medians[0];
            println!(
                "{batch:2} there and back, {name:28} {median:10.0} ns {ratio:8.2} times as long"
            );
        }
    }
}
