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

const RUNS: usize = 20;
const BATCH: usize = 30;
/// Capacity of the other channels, in words: that of 16 lines.
const ROOM: usize = 240;

/// Runs the given number of round trips of a batch and returns the sum of all words, for comparison.
type Way<'a> = Box<dyn Fn(u64, usize) -> u64 + 'a>;

/// Pins this thread to a processor. Returns false if the processor does not exist.
fn pin(which: usize) -> bool {
    // SAFETY: an empty set of processors is all zero, and the set lives as long as the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(which, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set) == 0
    }
}

/// True if processors 0 and 1 are hardware threads of one core, according to the system.
fn are_one_core() -> bool {
    let file = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    let told = std::fs::read_to_string(file).unwrap_or_default();
    told.trim().split([',', '-']).any(|number| number == "1")
}

/// Runs `answer` on processor 1 while this thread, on processor 0, runs `ask`.
fn both(answer: impl FnOnce() + Send, ask: impl FnOnce() -> u64) -> u64 {
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
fn library(folder: &Path) -> libloading::Library {
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
    unsafe { libloading::Library::new(file) }.expect("it can be loaded")
}

fn ours(library: &libloading::Library, times: u64, batch: usize) -> u64 {
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
        let at = pair as usize;
        let words = times * batch as u64;
        let sum = both(
            || answer(at as Pair, words),
            || ask(pair, times, batch as u64),
        );
        free(pair);
        sum
    }
}

fn crossbeam(times: u64, batch: usize) -> u64 {
    let (there, come) = crossbeam_channel::bounded::<u64>(ROOM);
    let (back, came) = crossbeam_channel::bounded::<u64>(ROOM);
    let words = times * batch as u64;
    both(
        move || (0..words).for_each(|_| back.send(come.recv().expect("a word")).expect("room")),
        || {
            let mut sum = 0;
            for time in 0..times {
                for word in 0..batch as u64 {
                    there.send(time * batch as u64 + word).expect("room");
                }
                sum += (0..batch)
                    .map(|_| came.recv().expect("a word"))
                    .sum::<u64>();
            }
            sum
        },
    )
}

fn pop(from: &mut rtrb::Consumer<u64>) -> u64 {
    loop {
        match from.pop() {
            Ok(word) => return word,
            Err(_) => std::hint::spin_loop(),
        }
    }
}

fn push(to: &mut rtrb::Producer<u64>, word: u64) {
    while to.push(word).is_err() {
        std::hint::spin_loop();
    }
}

/// Takes the available words, up to `most`; waits for the first one.
fn take(from: &mut rtrb::Consumer<u64>, most: usize, mut each: impl FnMut(u64)) -> usize {
    loop {
        let there = from.slots().min(most);
        if there > 0 {
            let chunk = from.read_chunk(there).expect("they are there");
            chunk.into_iter().for_each(&mut each);
            return there;
        }
        std::hint::spin_loop();
    }
}

fn ring(times: u64, batch: usize) -> u64 {
    let (mut there, mut come) = rtrb::RingBuffer::<u64>::new(ROOM);
    let (mut back, mut came) = rtrb::RingBuffer::<u64>::new(ROOM);
    let words = times * batch as u64;
    both(
        move || {
            let mut done = 0;
            while done < words {
                if batch == 1 {
                    push(&mut back, pop(&mut come));
                    done += 1;
                    continue;
                }
                let mut some = Vec::with_capacity(batch);
                done += take(&mut come, batch, |word| some.push(word)) as u64;
                while back.slots() < some.len() {
                    std::hint::spin_loop();
                }
                let chunk = back.write_chunk_uninit(some.len()).expect("room");
                chunk.fill_from_iter(some);
            }
        },
        || {
            let mut sum = 0;
            for time in 0..times {
                let first = time * batch as u64;
                if batch == 1 {
                    push(&mut there, first);
                    sum += pop(&mut came);
                    continue;
                }
                let chunk = there.write_chunk_uninit(batch).expect("room");
                chunk.fill_from_iter(first..first + batch as u64);
                let mut left = batch;
                while left > 0 {
                    left -= take(&mut came, left, |word| sum += word);
                }
            }
            sum
        },
    )
}

/// Round trips over two pipes of the operating system, with `each` words per write.
fn system(times: u64, batch: usize, each: usize) -> u64 {
    let (mut come, mut there) = std::io::pipe().expect("a pipe");
    let (mut came, mut back) = std::io::pipe().expect("a pipe");
    both(
        move || {
            let mut bytes = vec![0; each * 8];
            for _ in 0..times * (batch / each) as u64 {
                come.read_exact(&mut bytes).expect("words");
                back.write_all(&bytes).expect("room");
            }
        },
        move || {
            let (mut sum, mut bytes) = (0, vec![0; each * 8]);
            for time in 0..times {
                for part in 0..batch / each {
                    let first = time * batch as u64 + (part * each) as u64;
                    for (place, word) in bytes.chunks_mut(8).zip(first..) {
                        place.copy_from_slice(&word.to_le_bytes());
                    }
                    there.write_all(&bytes).expect("room");
                }
                for _ in 0..batch / each {
                    came.read_exact(&mut bytes).expect("words");
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

fn main() {
    if !(pin(1) && pin(0)) {
        return println!(
            "not measured: two threads are pinned to processors 0 and 1, which are not both there"
        );
    }
    if are_one_core() {
        println!("note: processors 0 and 1 are of one core");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path());
    let ways: Vec<(&str, Way)> = vec![
        (
            "line pipes",
            Box::new(|times, batch| ours(&library, times, batch)),
        ),
        ("rtrb", Box::new(ring)),
        ("crossbeam-channel, bounded", Box::new(crossbeam)),
        ("pipe(2)", Box::new(|times, batch| system(times, batch, 1))),
        (
            "pipe(2), a batch in a write",
            Box::new(|times, batch| system(times, batch, batch)),
        ),
    ];
    for (batch, times) in [(1, 20_000), (BATCH, 4_000)] {
        let words = times * batch as u64;
        let expected = words * (words - 1) / 2;
        let mut found = vec![Vec::new(); ways.len()];
        for _ in 0..RUNS {
            for ((name, way), found) in ways.iter().zip(&mut found) {
                let begin = Instant::now();
                assert_eq!(way(times, batch), expected, "{name}");
                found.push(begin.elapsed().as_secs_f64() * 1e9 / times as f64);
            }
        }
        let medians = found.iter_mut().map(|found| {
            found.sort_by(f64::total_cmp);
            (found[RUNS / 2 - 1] + found[RUNS / 2]) / 2.0
        });
        let medians: Vec<f64> = medians.collect();
        for ((name, _), median) in ways.iter().zip(&medians) {
            let ratio = median / medians[0];
            println!(
                "{batch:2} there and back, {name:28} {median:10.0} ns {ratio:8.2} times as long"
            );
        }
    }
}
