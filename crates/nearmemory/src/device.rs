//! The device: far memory, and cores beside it with their scratchpads, registers, copy engines and FIFOs.

use crate::control;
use crate::controller::{self, Controller, PRIVATE, SHARES};
use crate::events::{Event, Request, Response, Time, Who, Why, Wire};
use crate::host::{FAR, REGISTERS, REGISTERS_STRIDE, SCRATCHPADS, SCRATCHPAD_STRIDE};
use crate::platform::Platform;
use crate::races::{Queue, Site, Way};
use crate::scratchpad::{Answer, Data, Kind, LINE};
use cohkit_riscv::channel::{self, Grant, Manifest};
use cohkit_riscv::elf::Image;
use cohkit_riscv::system::Bytes;
use cohkit_riscv::{
    Amo, Cbo, Confined, Exception, Extensions, Fence, Memory, Prefetch, Reply, Size, TimedMemory,
};
use cohkit_sim::components::memory::Memory as Dram;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;

/// Where the FIFOs from other cores begin for a core, 32 bytes for each: what is loaded there is the next word, what is
/// stored there goes to that core; behind it, how many words are there, and for how many there is room. What is stored in the
/// last place ends the stream to that core, and what is loaded there tells whether that from it ends now.
pub const FIFOS: u64 = 0x22_0000;
const FIFO_STRIDE: u64 = 32;
/// Manifests name two registers that host and core share as a pipe by the number of the first one halved, and the FIFOs to
/// and from a core by its number and this one.
pub const FIFO_PIPES: u64 = (SHARES / 2) as u64;

/// What a core beside far memory does, by the numbers of its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has run nothing.
    Idle = 0,
    /// A binary is on its way into private memory.
    Loading = 1,
    /// A program runs.
    Running = 2,
    /// It has ended, with a code.
    Ended = 3,
    /// The binary was refused.
    Refused = 4,
    /// It was stopped since it did what it must not.
    Stopped = 5,
}

/// What a core beside far memory has counted.
#[derive(Clone, Debug, Default)]
pub struct MccCounters {
    /// Accesses of the core to its scratchpad and the stamps.
    pub scratchpad: u64,
    /// Accesses of the core to registers.
    pub registers: u64,
    /// Lines that the host has read and written back.
    pub host_reads: u64,
    /// See [`MccCounters::host_reads`].
    pub host_writes: u64,
    /// Requests of the host that were held at locked lines.
    pub held: u64,
    /// Lines that the copy engine has fetched and stored.
    pub fetched: u64,
    /// See [`MccCounters::fetched`].
    pub stored: u64,
    /// Words sent to other cores.
    pub words: u64,
}

/// Far memory, of which what was never written takes no room.
pub(crate) struct Far {
    pages: FxHashMap<u64, Box<[u8; PAGE]>>,
    pub(crate) dram: Dram,
    /// Lines read and written.
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

const PAGE: usize = 4096;

impl Far {
    fn place(at: u64) -> (u64, usize) {
        let offset = at - FAR;
        (offset / PAGE as u64, (offset % PAGE as u64) as usize)
    }

    pub(crate) fn get(&self, at: u64, bytes: &mut [u8]) {
        let (page, offset) = Far::place(at);
        match self.pages.get(&page) {
            Some(page) => bytes.copy_from_slice(&page[offset..offset + bytes.len()]),
            None => bytes.fill(0),
        }
    }

    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) {
        let (page, offset) = Far::place(at);
        let page = self
            .pages
            .entry(page)
            .or_insert_with(|| Box::new([0; PAGE]));
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// When an operation that begins now ends.
    fn operate(&mut self, now: Time, at: u64) -> Time {
        self.dram.operate(now, ((at - FAR) / LINE as u64) as u32)
    }
}

/// A program that is to start.
pub(crate) struct Start {
    pub mcc: usize,
    pub entry: u64,
    pub arguments: [u64; 4],
}

pub(crate) struct Mcc {
    pub(crate) controller: Controller,
    pub(crate) state: State,
    code: u64,
    fault: [u64; 3],
    arguments: [u64; 4],
    give_at: u64,
    given: Vec<Range<u64>>,
    /// What its program may touch.
    pub(crate) rights: Option<Confined<()>>,
    /// The bytes of the binary on its way, and whether it is verified.
    binary: (usize, bool),
    /// The binary, once it is there.
    pub(crate) file: Vec<u8>,
    /// Why it was refused.
    pub(crate) refusal: Option<String>,
    /// Whether the copy engine is to ask for its next line, and how many it waits for.
    copying: bool,
    asked: u64,
    fifos: Vec<VecDeque<Option<u64>>>,
    /// Words on their way here, by where they come from.
    coming: Vec<VecDeque<Option<u64>>>,
    pub(crate) counters: MccCounters,
}

pub(crate) struct Device {
    pub(crate) platform: Platform,
    pub(crate) far: Far,
    pub(crate) mccs: Vec<Mcc>,
    pub(crate) down: Wire,
    /// Bytes that have come over the link, with headers.
    came: u64,
    pub(crate) starts: Vec<Start>,
    /// Whether something has happened that a core may wait for.
    pub(crate) stirred: bool,
}

impl Device {
    pub(crate) fn new(platform: &Platform) -> Device {
        let count = platform.mccs.value as usize;
        let mcc = |_| Mcc {
            controller: Controller::new(
                platform.private.value as usize,
                platform.scratchpad.value as usize,
            ),
            state: State::Idle,
            code: 0,
            fault: [0; 3],
            arguments: [0; 4],
            give_at: 0,
            given: Vec::new(),
            rights: None,
            binary: (0, true),
            file: Vec::new(),
            refusal: None,
            copying: false,
            asked: 0,
            fifos: vec![VecDeque::new(); count],
            coming: vec![VecDeque::new(); count],
            counters: MccCounters::default(),
        };
        Device {
            far: Far {
                pages: FxHashMap::default(),
                dram: Dram::new(&platform.dram(), LINE as u32),
                reads: 0,
                writes: 0,
            },
            mccs: (0..count).map(mcc).collect(),
            down: Wire::new(
                platform.link_latency.value,
                platform.link_bandwidth.value,
                platform.link_header.value,
            ),
            came: 0,
            starts: Vec::new(),
            stirred: false,
            platform: platform.clone(),
        }
    }

    /// Clocks of the cores, which stamps count.
    fn clock(&self, now: Time) -> u64 {
        now / self.platform.mcc_cycle.value
    }

    fn answer(&mut self, queue: &mut Queue, now: Time, number: u64, response: Response) {
        let path = self.platform.device_path.value;
        queue.add(now + (path - path / 2), Event::Answered(number, response));
    }

    /// A request of the host is where it is carried out.
    pub(crate) fn asked(&mut self, queue: &mut Queue, now: Time, number: u64, request: Request) {
        self.came += self.platform.link_header.value + request.bytes();
        match request {
            Request::ReadLine(at) if at >= SCRATCHPADS => {
                self.line(queue, now, number, at, None);
            }
            Request::WriteLine(at, data) if at >= SCRATCHPADS => {
                self.line(queue, now, number, at, Some(data));
            }
            Request::ReadLine(at) => {
                let mut data = Box::new([0; LINE]);
                self.far.get(at, &mut *data);
                self.far.reads += 1;
                if let Some(watch) = &mut queue.watch {
                    watch.fetched(at);
                }
                let end = self.far.operate(now, at);
                self.answer(queue, end, number, Response::Line(data));
            }
            Request::WriteLine(at, data) => {
                self.far.put(at, &*data);
                self.far.writes += 1;
                if let Some(watch) = &mut queue.watch {
                    watch.written_back(number);
                }
                let end = self.far.operate(now, at);
                self.answer(queue, end, number, Response::Written);
            }
            Request::ReadWord(at, size) if at < REGISTERS => {
                let mut word = [0; 8];
                self.far.get(at, &mut word[..size as usize]);
                self.far.reads += 1;
                let end = self.far.operate(now, at);
                let word = Response::Word(u64::from_le_bytes(word));
                self.answer(queue, end, number, word);
            }
            Request::WriteWord(at, size, value) if at < REGISTERS => {
                self.far.put(at, &value.to_le_bytes()[..size as usize]);
                self.far.writes += 1;
                let end = self.far.operate(now, at);
                self.answer(queue, end, number, Response::Written);
            }
            Request::ReadWord(at, _) => {
                if let Some(watch) = &mut queue.watch {
                    watch.answers(number, way_of(at));
                }
                let value = self.read_register(at);
                self.answer_register(queue, now, number, Response::Word(value));
            }
            Request::WriteWord(at, _, value) => {
                if let Some(watch) = &mut queue.watch {
                    watch.arrives(number, way_of(at));
                }
                self.write_register(queue, now, at, value);
                self.answer_register(queue, now, number, Response::Written);
            }
        }
    }

    fn answer_register(&mut self, queue: &mut Queue, now: Time, number: u64, response: Response) {
        let path = self.platform.register_path.value;
        queue.add(now + (path - path / 2), Event::Answered(number, response));
    }

    /// A line of a scratchpad is read or written back.
    fn line(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: u64,
        at: u64,
        data: Option<Box<Data>>,
    ) {
        let offset = at - SCRATCHPADS;
        let mcc = (offset / SCRATCHPAD_STRIDE) as usize;
        let line = (offset % SCRATCHPAD_STRIDE) as usize / LINE;
        let clock = self.clock(now);
        let Mcc {
            controller,
            counters,
            ..
        } = &mut self.mccs[mcc];
        controller.at(clock);
        if let Some(watch) = &mut queue.watch {
            let way = Way::Line(mcc, line);
            match &data {
                None => watch.asks(number, way),
                Some(_) => watch.arrives(number, way),
            }
        }
        let done = match &data {
            None => {
                counters.host_reads += 1;
                controller.read(line, number)
            }
            Some(data) => {
                counters.host_writes += 1;
                controller.write_back(line, number, data)
            }
        };
        done.expect("the host asks only for lines that are there");
        if !self.answers(queue, now, mcc) {
            self.mccs[mcc].counters.held += 1;
        }
    }

    /// Sends what the scratchpad has to answer. Whether it had something.
    fn answers(&mut self, queue: &mut Queue, now: Time, mcc: usize) -> bool {
        let mut any = false;
        while let Some(answer) = self.mccs[mcc].controller.answer() {
            any = true;
            let (number, response) = match answer {
                Answer::Read { request, data } => {
                    if let Some(watch) = &mut queue.watch {
                        watch.gets(request);
                    }
                    (request, Response::Line(data))
                }
                Answer::Written { request } => (request, Response::Written),
            };
            self.answer(queue, now, number, response);
        }
        any
    }

    fn read_register(&mut self, at: u64) -> u64 {
        let (mcc, offset) = of_register(at);
        let platform = &self.platform;
        let Some(mcc) = self.mccs.get_mut(mcc) else {
            return 0;
        };
        match offset {
            control::STATE => mcc.state as u64,
            control::CODE => mcc.code,
            control::CAUSE => mcc.fault[0],
            control::VALUE => mcc.fault[1],
            control::PC => mcc.fault[2],
            control::MCCS => platform.mccs.value,
            control::FAR_BYTES => platform.far_bytes.value,
            control::LAST_CACHE => platform.llc.value,
            offset if (control::COUNTERS..control::COUNTERS + 32).contains(&offset) => {
                let counted = [self.came, self.down.bytes, self.far.reads, self.far.writes];
                counted[(offset - control::COUNTERS) as usize / 8]
            }
            offset if offset < control::STATE => {
                let register = mcc.controller.shared((offset / 8) as usize);
                register.map_or(0, |register| *register)
            }
            _ => 0,
        }
    }

    fn write_register(&mut self, queue: &mut Queue, now: Time, at: u64, value: u64) {
        let (number, offset) = of_register(at);
        let Some(mcc) = self.mccs.get_mut(number) else {
            return;
        };
        let idle = !matches!(mcc.state, State::Loading | State::Running);
        match offset {
            control::GIVE_AT => mcc.give_at = value,
            control::GIVE => mcc
                .given
                .push(mcc.give_at..mcc.give_at.saturating_add(value)),
            control::LOAD | control::LOAD_UNVERIFIED if idle => {
                let verified = offset == control::LOAD;
                self.load(queue, now, number, value, verified);
            }
            control::STOP if !idle => {
                self.end(queue, now, number, State::Ended, u64::MAX);
            }
            offset if offset < control::STATE => {
                let register = mcc.controller.shared((offset / 8) as usize);
                if let Some(register) = register {
                    *register = value;
                }
            }
            offset if (control::ARGUMENTS..control::ARGUMENTS + 32).contains(&offset) => {
                mcc.arguments[((offset - control::ARGUMENTS) / 8) as usize] = value;
            }
            _ => {}
        }
    }

    /// Takes a binary out of the scratchpad.
    fn load(&mut self, queue: &mut Queue, now: Time, number: usize, bytes: u64, verified: bool) {
        let bytes = bytes.min(self.platform.scratchpad.value * LINE as u64);
        let mut takes = bytes.div_ceil(LINE as u64) * self.platform.load_line.value;
        if verified {
            takes += bytes * self.platform.verify_byte.value;
        }
        let mcc = &mut self.mccs[number];
        mcc.state = State::Loading;
        mcc.binary = (bytes as usize, verified);
        queue.add(now + takes, Event::Loaded(number));
    }

    /// What a program on this core may at most be given.
    fn grant(&self, number: usize) -> Grant {
        Grant {
            extensions: Extensions::NEAR_MEMORY,
            private: PRIVATE..PRIVATE + self.platform.private.value,
            pipes: (0..FIFO_PIPES + self.platform.mccs.value).collect(),
            far: self.mccs[number].given.clone(),
        }
    }

    /// A binary is in private memory: its program starts, or is refused.
    pub(crate) fn loaded(&mut self, queue: &mut Queue, number: usize) {
        if let Some(watch) = &mut queue.watch {
            watch.starts(number);
        }
        let (bytes, verified) = self.mccs[number].binary;
        let grant = self.grant(number);
        let scratchpad = self.mccs[number].controller.scratchpad();
        let mut file: Vec<u8> = Vec::new();
        for line in 0..bytes.div_ceil(LINE) {
            file.extend(scratchpad.line(line).into_iter().flatten());
        }
        file.truncate(bytes);
        let read = match verified {
            true => channel::verify(&file, &grant),
            false => channel::unverified(&file),
        };
        let started = read
            .map_err(|refusal| refusal.to_string())
            .and_then(|(image, manifest)| self.begin(number, &image, &manifest));
        let mcc = &mut self.mccs[number];
        mcc.file = file;
        mcc.given.clear();
        match started {
            Ok(entry) => {
                mcc.state = State::Running;
                let arguments = mcc.arguments;
                self.starts.push(Start {
                    mcc: number,
                    entry,
                    arguments,
                });
            }
            Err(refusal) => {
                mcc.state = State::Refused;
                mcc.refusal = Some(refusal);
            }
        }
    }

    /// Puts a program where it belongs and gives it its rights. Its first instruction.
    fn begin(&mut self, number: usize, image: &Image, manifest: &Manifest) -> Result<u64, String> {
        let platform = &self.platform;
        let count = platform.mccs.value;
        let mcc = &mut self.mccs[number];
        mcc.controller.clear(image)?;
        let mut far = manifest.far.clone();
        if manifest.given {
            far.extend(mcc.given.iter().cloned());
        }
        let transfers = platform.transfers.value as usize;
        mcc.controller.give(far, transfers);
        mcc.asked = 0;
        let lines = platform.scratchpad.value;
        let pipes = manifest.pipes.iter().filter_map(|&pipe| match pipe {
            pipe if pipe < FIFO_PIPES => {
                let at = controller::SHARED + pipe * 16;
                Some(at..at + 16)
            }
            pipe if pipe - FIFO_PIPES < count => {
                let at = FIFOS + (pipe - FIFO_PIPES) * FIFO_STRIDE;
                Some(at..at + FIFO_STRIDE)
            }
            _ => None,
        });
        let own = [
            controller::SCRATCHPAD..controller::SCRATCHPAD + lines * LINE as u64,
            controller::REGISTERS..controller::REGISTERS + controller::REGISTERS_BYTES,
            controller::STAMPS..controller::STAMPS + lines * 16,
        ];
        let private_end = PRIVATE + platform.private.value;
        let manifest = Manifest {
            far: Vec::new(),
            ..manifest.clone()
        };
        let places = own.into_iter().chain(pipes);
        mcc.rights = Some(Confined::new((), image, &manifest, private_end, places));
        Ok(image.entry)
    }

    /// A program has ended, or was stopped.
    pub(crate) fn end(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        state: State,
        code: u64,
    ) {
        let clock = self.clock(now);
        let lines = self.platform.scratchpad.value as usize;
        let mcc = &mut self.mccs[number];
        mcc.state = state;
        mcc.code = code;
        mcc.rights = None;
        mcc.fifos.iter_mut().for_each(VecDeque::clear);
        mcc.controller.at(clock);
        if let Some(watch) = &mut queue.watch {
            watch.ends(number);
        }
        // Nobody would ever release what is held.
        for line in 0..lines {
            for kind in [Kind::Read, Kind::WriteBack] {
                let unlocked = mcc.controller.unlock(line, kind);
                unlocked.expect("so many lines are there");
            }
        }
        self.answers(queue, now, number);
    }

    /// The same for one that did what it must not.
    pub(crate) fn stop(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        exception: Exception,
        pc: u64,
    ) {
        let (cause, value) = exception.cause();
        self.mccs[number].fault = [cause, value, pc];
        self.end(queue, now, number, State::Stopped, u64::MAX);
    }

    /// A copy engine asks for its next line.
    pub(crate) fn copy(&mut self, queue: &mut Queue, now: Time, number: usize) {
        let most = self.platform.copy_lines.value;
        let mcc = &mut self.mccs[number];
        mcc.copying = false;
        if mcc.asked >= most {
            return;
        }
        let Some(access) = mcc.controller.ask() else {
            return;
        };
        let mut data = Box::new([0; LINE]);
        match &access.data {
            Some(stored) => {
                self.far.put(access.far, &**stored);
                self.far.writes += 1;
                mcc.counters.stored += 1;
            }
            None => {
                self.far.get(access.far, &mut *data);
                self.far.reads += 1;
                mcc.counters.fetched += 1;
            }
        }
        if let Some(watch) = &mut queue.watch {
            watch.copies(number, access.far, access.number);
        }
        mcc.asked += 1;
        mcc.copying = true;
        let path = self.platform.copy_path.value;
        let end = self.far.operate(now, access.far) + (path - path / 2);
        queue.add(end, Event::Copied(number, access.number, data));
        queue.add(now + self.platform.copy_line.value, Event::Copy(number));
    }

    /// A line of a copy engine is done.
    pub(crate) fn copied(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        access: u64,
        data: &Data,
    ) {
        let clock = self.clock(now);
        let mcc = &mut self.mccs[number];
        mcc.controller.at(clock);
        if let Some(watch) = &mut queue.watch {
            watch.copied(number, access);
        }
        if mcc.controller.done(access, data) {
            mcc.asked -= 1;
        }
        self.stirred = true;
        if !mcc.copying {
            mcc.copying = true;
            queue.add(now, Event::Copy(number));
        }
    }

    /// A word is at the end of a FIFO.
    pub(crate) fn passed(&mut self, from: usize, number: usize) {
        let mcc = &mut self.mccs[number];
        if let Some(word) = mcc.coming[from].pop_front() {
            mcc.fifos[from].push_back(word);
        }
        self.stirred = true;
    }
}

/// The core and the distance from its first register.
fn of_register(at: u64) -> (usize, u64) {
    let offset = at - REGISTERS;
    (
        (offset / REGISTERS_STRIDE) as usize,
        offset % REGISTERS_STRIDE,
    )
}

/// What a register passes on what is known by.
fn way_of(at: u64) -> Way {
    let (mcc, offset) = of_register(at);
    match offset < control::STATE {
        true => Way::Register(mcc, offset / 8),
        false => Way::Control(mcc),
    }
}

/// By what an access of a core passes on what is known.
fn passes(mcc: usize, at: u64) -> Option<Way> {
    match at {
        controller::SCRATCHPAD..controller::REGISTERS => {
            let line = (at - controller::SCRATCHPAD) as usize / LINE;
            Some(Way::Line(mcc, line))
        }
        controller::SHARED..FIFOS => Some(Way::Register(mcc, (at - controller::SHARED) / 8)),
        _ => None,
    }
}

/// What a core beside far memory sees, whatever it may touch of it.
pub(crate) struct MccPort<'a> {
    pub device: &'a mut Device,
    pub queue: &'a mut Queue,
    pub mcc: usize,
    pub now: Time,
    /// The instruction that asks.
    pc: u64,
    longer: u64,
    pub why: Why,
}

impl<'a> MccPort<'a> {
    pub(crate) fn new(device: &'a mut Device, queue: &'a mut Queue, mcc: usize) -> MccPort<'a> {
        MccPort {
            device,
            queue,
            mcc,
            now: 0,
            pc: 0,
            longer: 0,
            why: Why::Nothing,
        }
    }

    #[inline(always)]
    fn early(&mut self) -> bool {
        let early = self.queue.soonest() < self.now;
        if early {
            self.why = Why::Early;
        }
        early
    }

    fn blocked<T>(&mut self) -> Reply<T> {
        self.why = Why::Blocked;
        Reply::Wait
    }

    fn own(&mut self) -> &mut Mcc {
        &mut self.device.mccs[self.mcc]
    }

    /// The access takes as long as registers or the scratchpad do.
    fn takes(&mut self, at: u64) {
        if (controller::REGISTERS..controller::STAMPS).contains(&at) {
            self.longer = self.device.platform.register.value - 1;
            self.own().counters.registers += 1;
        } else {
            self.own().counters.scratchpad += 1;
        }
    }

    /// The other core and the distance from its first address of an access to FIFOs.
    fn fifo(&self, at: u64, size: Size) -> Option<(usize, u64)> {
        let offset = at.checked_sub(FIFOS).filter(|_| size == Size::Double)?;
        let other = usize::try_from(offset / FIFO_STRIDE).ok()?;
        (other < self.device.mccs.len()).then_some((other, offset % FIFO_STRIDE))
    }

    fn load_fifo(&mut self, other: usize, offset: u64) -> Reply<u64> {
        let (words, mine) = (self.device.platform.fifo_words.value, self.mcc);
        let value = match offset {
            0 => {
                let fifo = &mut self.own().fifos[other];
                let word = fifo.front().copied().flatten();
                if word.is_some() {
                    fifo.pop_front();
                }
                word
            }
            24 => {
                let fifo = &mut self.own().fifos[other];
                let ends = fifo.front() == Some(&None);
                if ends {
                    fifo.pop_front();
                }
                Some(ends.into())
            }
            8 => Some(self.own().fifos[other].len() as u64),
            16 => {
                let there = &self.device.mccs[other];
                let taken = there.fifos[mine].len() + there.coming[mine].len();
                Some(words.saturating_sub(taken as u64))
            }
            _ => return Reply::Fault,
        };
        let Some(value) = value else {
            return self.blocked();
        };
        self.device.stirred = true;
        if let Some(watch) = &mut self.queue.watch {
            watch.learns(Who::Mcc(mine), Way::Fifo(other, mine));
        }
        self.takes(FIFOS);
        Reply::Done(value)
    }

    fn store_fifo(&mut self, other: usize, offset: u64, value: u64) -> Reply<()> {
        let word = match offset {
            0 => Some(value),
            24 => None,
            _ => return Reply::Fault,
        };
        let (words, mine) = (self.device.platform.fifo_words.value, self.mcc);
        let there = &mut self.device.mccs[other];
        if (there.fifos[mine].len() + there.coming[mine].len()) as u64 >= words {
            return self.blocked();
        }
        there.coming[mine].push_back(word);
        if let Some(watch) = &mut self.queue.watch {
            watch.gives(Who::Mcc(mine), Way::Fifo(mine, other));
        }
        self.own().counters.words += 1;
        self.takes(FIFOS);
        let arrives = self.now + self.device.platform.fifo_latency.value;
        self.queue.add(arrives, Event::Passed(mine, other));
        Reply::Done(())
    }

    /// A store in a place by which others may learn, or that begins a copy.
    fn watch_store(&mut self, at: u64, value: u64) {
        let Some(watch) = &mut self.queue.watch else {
            return;
        };
        let who = Who::Mcc(self.mcc);
        if let Some(way) = passes(self.mcc, at) {
            watch.gives(who, way);
            if let Way::Line(_, line) = way {
                watch.uses(Site { who, pc: self.pc }, line as u64, true, false);
            }
        }
        let stores = at == controller::STORE;
        if stores || at == controller::FETCH {
            let (far, lines) = self.device.mccs[self.mcc].controller.next();
            watch.commands(Site { who, pc: self.pc }, (value, far, lines), stores);
        }
    }

    fn set_clock(&mut self) {
        let clock = self.device.clock(self.now);
        self.own().controller.at(clock);
    }
}

impl Memory for MccPort<'_> {
    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.own().controller.fetch(at)
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        if at < controller::SCRATCHPAD {
            return self.own().controller.load(at, size, to);
        }
        if self.early() {
            return Reply::Wait;
        }
        if let Some((other, offset)) = self.fifo(at, size) {
            return self.load_fifo(other, offset);
        }
        self.set_clock();
        self.takes(at);
        if let Some(watch) = &mut self.queue.watch {
            let (who, pc) = (Who::Mcc(self.mcc), self.pc);
            if let Some(way) = passes(self.mcc, at) {
                watch.learns(who, way);
                if let Way::Line(_, line) = way {
                    watch.uses(Site { who, pc }, line as u64, false, false);
                }
            }
            // Of the two stamps of a line, that of reads is the first one.
            if at >= controller::STAMPS {
                let line = (at - controller::STAMPS) / 16;
                watch.looks(self.mcc, line, at.is_multiple_of(16));
            }
        }
        self.own().controller.load(at, size, to)
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        if at < controller::SCRATCHPAD {
            return self.own().controller.store(at, size, value);
        }
        if self.early() {
            return Reply::Wait;
        }
        if let Some((other, offset)) = self.fifo(at, size) {
            return self.store_fifo(other, offset, value);
        }
        self.set_clock();
        let reply = self.own().controller.store(at, size, value);
        if reply == Reply::Wait {
            return self.blocked();
        }
        self.takes(at);
        self.watch_store(at, value);
        self.device.answers(self.queue, self.now, self.mcc);
        let path = self.device.platform.copy_path.value;
        let mcc = &mut self.device.mccs[self.mcc];
        if !mcc.copying && mcc.controller.is_waiting() {
            mcc.copying = true;
            self.queue.add(self.now + path / 2, Event::Copy(self.mcc));
        }
        reply
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        self.own().controller.amo(at, amo, to)
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        self.own().controller.cbo(at, what)
    }

    fn prefetch(&mut self, _at: u64, _what: Prefetch) {}
}

impl TimedMemory for MccPort<'_> {
    fn at(&mut self, cycle: u64) {
        self.now = cycle.saturating_mul(self.device.platform.mcc_cycle.value);
        self.longer = 0;
    }

    fn longer(&mut self) -> u64 {
        std::mem::take(&mut self.longer)
    }

    fn by(&mut self, pc: u64) {
        self.pc = pc;
    }
}

/// What calls of a channel program reach: what it may touch of its private memory.
pub(crate) struct Calls<'a>(pub Confined<MccPort<'a>>);

impl Bytes for Calls<'_> {
    fn get(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        let mut addresses = at..;
        bytes.iter_mut().all(|byte| {
            let at = addresses.next().filter(|at| *at < controller::SCRATCHPAD);
            match at.map(|at| self.0.load(at, Size::Byte, 0)) {
                Some(Reply::Done(value)) => {
                    *byte = value as u8;
                    true
                }
                _ => false,
            }
        })
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> bool {
        let mut addresses = at..;
        bytes.iter().all(|byte| {
            let at = addresses.next().filter(|at| *at < controller::SCRATCHPAD);
            let stored = at.map(|at| self.0.store(at, Size::Byte, (*byte).into()));
            stored == Some(Reply::Done(()))
        })
    }
}
