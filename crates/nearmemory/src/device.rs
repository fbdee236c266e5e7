//! The device: far memory, and near-memory cores with scratchpads, registers, copy engines and FIFOs.

mod port;

pub(crate) use port::{CallMemory, MccPort};

use crate::control;
use crate::controller::{self, Controller, PRIVATE, SHARES};
use crate::events::{CoreId, Event, HostMemoryRequest, Request, Response, Wire};
use crate::far_memory::{AccessKind, Completion, FarMemory};
use crate::host::{self, FAR, REGISTERS, REGISTERS_STRIDE, SCRATCHPADS, SCRATCHPAD_STRIDE};
use crate::platform::Platform;
use crate::queue::Queue;
use crate::races::SyncChannel;
use crate::scratchpad::{Data, HostResponse, Kind, LINE};
use cohkit_riscv::channel::{self, Grant, Manifest};
use cohkit_riscv::elf::Image;
use cohkit_riscv::{Exception, Extensions, Sandbox, Size};
use cohkit_units::Time;
use std::collections::VecDeque;
use std::ops::Range;

/// Base address of the FIFOs in a core's address space, 32 bytes per peer core. A load at offset 0 takes the next word
/// from that core; a store sends a word to it. Loads at offsets 8 and 16 return the number of received words and the
/// free space towards that core. A store at offset 24 ends the stream to that core. A load there returns 1 and consumes
/// the mark if the stream from that core ends now.
pub const FIFOS: u64 = 0x22_0000;
/// Distance between the FIFOs of two cores, in bytes.
pub const FIFO_STRIDE: u64 = 32;
/// Number of the first FIFO pipe in manifests. Pipe N below it is the pair of shared registers 2N and 2N + 1; pipe
/// `FIFO_PIPES` + N is the pair of FIFOs to and from core N.
pub const FIFO_PIPES: u64 = (SHARES / 2) as u64;

/// State of a near-memory core; the values are those of its state register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No program has been loaded.
    Idle = 0,
    /// A binary is being loaded into private memory.
    Loading = 1,
    /// A program is running.
    Running = 2,
    /// The program has ended with an exit code.
    Ended = 3,
    /// The binary was rejected.
    Rejected = 4,
    /// The program was stopped by an exception.
    Stopped = 5,
}

/// Counters of a near-memory core.
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

/// A slice of the directory in front of far memory: reads of hosts take turns at its port to memory.
#[derive(Default)]
struct Slice {
    /// Reads that far memory has not answered.
    in_flight: u64,
    /// Reads that wait until one in flight ends, oldest first.
    waiting: VecDeque<FarRead>,
}

/// A read of far memory by a host.
struct FarRead {
    /// Number of the request.
    number: u64,
    /// Address in far memory.
    address: u64,
    /// Bytes of an uncached load, or `None` for a line.
    size: Option<Size>,
}

/// A program that is ready to start.
pub(crate) struct PendingStart {
    /// Index of the core.
    pub mcc: usize,
    /// Address of the first instruction.
    pub entry: u64,
    /// Argument words, for registers a0 to a3.
    pub arguments: [u64; 4],
}

/// A near-memory core, without its pipeline, which belongs to the machine.
pub(crate) struct Mcc {
    /// Memory and registers of the core.
    pub(crate) controller: Controller,
    /// Index of the host that has loaded the last program, whose own memory the copy engine can access.
    host: usize,
    /// State that hosts can read.
    pub(crate) state: State,
    /// Exit code of the last program; `u64::MAX` if it was stopped.
    exit_code: u64,
    /// Final state and exit code of a program whose copies are still outstanding.
    pending_end: Option<(State, u64)>,
    /// Cause, value and program counter of the exception that stopped the program.
    fault: [u64; 3],
    /// Argument words of the next program, as written by the host.
    arguments: [u64; 4],
    /// Start of the next range that each host grants, from [`control::GIVE_AT`].
    grant_starts: Vec<u64>,
    /// Ranges granted to the next program, with the host that has granted each; cleared when a load completes.
    granted_ranges: Vec<(usize, Range<u64>)>,
    /// Permissions of the running program; `None` if no program is running.
    pub(crate) permissions: Option<Sandbox<()>>,
    /// Length in bytes of the binary being loaded, and true if it is verified.
    binary: (usize, bool),
    /// Number of loads so far, which identifies a load.
    loads: u64,
    /// The binary, once loaded.
    pub(crate) file: Vec<u8>,
    /// Reason for which the last binary was rejected, until the machine reports it.
    pub(crate) rejection: Option<String>,
    /// True while a turn of a channel of the copy engine is scheduled, by channel.
    copy_scheduled: [bool; 2],
    /// Words that have arrived, by sending core; `None` is an end mark.
    fifos: Vec<VecDeque<Option<u64>>>,
    /// Words in flight to this core, by sending core; `None` is an end mark.
    words_in_flight: Vec<VecDeque<Option<u64>>>,
    pub(crate) counters: MccCounters,
}

/// The device of a machine.
pub(crate) struct Device {
    pub(crate) platform: Platform,
    pub(crate) far: FarMemory,
    /// Slices of the directory in front of far memory.
    slices: Vec<Slice>,
    pub(crate) mccs: Vec<Mcc>,
    /// The direction of each host's link to the host.
    pub(crate) downlinks: Vec<Wire>,
    /// Address range of each host's own memory.
    main_range: Range<u64>,
    /// Bytes received over the link of each host, with headers.
    received_bytes: Vec<u64>,
    /// Time from which the device takes the next access to a register. It takes one at a time.
    registers_free_at: Time,
    /// Loaded programs that the machine has to start.
    pub(crate) pending_starts: Vec<PendingStart>,
    /// True if an event has occurred that a near-memory core may wait for; the machine clears it.
    pub(crate) has_pending_event: bool,
    /// Cores whose programs have ended and whose output the machine has not written out.
    pub(crate) ended_mccs: Vec<usize>,
}

impl Mcc {
    /// Returns the exit code of the last program.
    pub(crate) fn exit_code(&self) -> u64 {
        self.exit_code
    }
}

impl Device {
    /// Creates the device of hosts whose own memory has the address range `main_range`.
    pub(crate) fn new(platform: &Platform, main_range: Range<u64>) -> Device {
        let (hosts, count) = (platform.hosts.value as usize, platform.mccs.value as usize);
        let mcc = |_| Mcc {
            controller: Controller::new(
                platform.private.value as usize,
                platform.scratchpad.value as usize,
            )
            .with_copy_channels(platform.copy_channels.value as usize),
            host: 0,
            state: State::Idle,
            exit_code: 0,
            pending_end: None,
            loads: 0,
            fault: [0; 3],
            arguments: [0; 4],
            grant_starts: vec![0; hosts],
            granted_ranges: Vec::new(),
            permissions: None,
            binary: (0, true),
            file: Vec::new(),
            rejection: None,
            copy_scheduled: [false; 2],
            fifos: vec![VecDeque::new(); count],
            words_in_flight: vec![VecDeque::new(); count],
            counters: MccCounters::default(),
        };
        Device {
            far: FarMemory::new(platform),
            slices: (0..platform.slices.value)
                .map(|_| Slice::default())
                .collect(),
            mccs: (0..count).map(mcc).collect(),
            downlinks: vec![
                Wire::new(
                    platform.link_latency.value,
                    platform.link_bandwidth.value,
                    platform.link_header.value,
                );
                hosts
            ],
            main_range,
            received_bytes: vec![0; hosts],
            registers_free_at: 0,
            pending_starts: Vec::new(),
            has_pending_event: false,
            ended_mccs: Vec::new(),
            platform: platform.clone(),
        }
    }

    /// Returns the current line of far memory or of a scratchpad; zeroes for a line beyond a scratchpad.
    pub(crate) fn line_at(&self, address: u64) -> Data {
        let mut data = [0; LINE];
        match address.checked_sub(SCRATCHPADS) {
            None => self.far.get(address, &mut data),
            Some(offset) => {
                let mcc = &self.mccs[(offset / SCRATCHPAD_STRIDE) as usize];
                let line = (offset % SCRATCHPAD_STRIDE) as usize / LINE;
                data = mcc
                    .controller
                    .scratchpad()
                    .line(line)
                    .copied()
                    .unwrap_or(data);
            }
        }
        data
    }

    /// Returns the time in clock cycles of the near-memory cores, the unit of stamps.
    fn stamp_time(&self, now: Time) -> u64 {
        now / self.platform.mcc_cycle.value
    }

    /// Schedules the response to a request of far memory or a scratchpad, ready at `now`. Each way takes half of the
    /// device path.
    fn send_response(&mut self, queue: &mut Queue, now: Time, number: u64, response: Response) {
        let path = self.platform.device_path.value;
        queue.add(
            now + (path - path / 2),
            Event::ResponseDeparture(number, response),
        );
    }

    /// Returns the time at which the device takes a request that arrives at `now`: an access to a register waits for
    /// earlier ones of other hosts.
    pub(crate) fn admit_request(&mut self, now: Time, request: &Request) -> Time {
        if !host::is_register_access(request) {
            return now;
        }
        let begin = now.max(self.registers_free_at);
        self.registers_free_at = begin + self.platform.register_interval.value;
        begin
    }

    /// Executes a request of a host at its destination.
    pub(crate) fn execute_request(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: u64,
        request: Request,
    ) {
        let host = host::host_of_request(&self.platform, number);
        self.received_bytes[host] += self.platform.link_header.value + request.bytes();
        match request {
            Request::ReadLine(address) if address >= SCRATCHPADS => {
                self.access_scratchpad_line(queue, now, number, address, None);
            }
            Request::WriteLine(address, data) if address >= SCRATCHPADS => {
                self.access_scratchpad_line(queue, now, number, address, Some(data));
            }
            Request::ReadLine(address) => {
                let read = FarRead {
                    number,
                    address,
                    size: None,
                };
                self.request_far_read(queue, now, read);
            }
            Request::ReadWord(address, size) if address < REGISTERS => {
                let read = FarRead {
                    number,
                    address,
                    size: Some(size),
                };
                self.request_far_read(queue, now, read);
            }
            Request::WriteLine(address, data) => {
                self.far.put(address, &*data);
                if let Some(races) = &mut queue.races {
                    races.complete_write_back(number);
                }
                self.write_far_for_host(queue, now, (address, AccessKind::WriteLine), number);
            }
            Request::WriteWord(address, size, value) if address < REGISTERS => {
                self.far.put(address, &value.to_le_bytes()[..size as usize]);
                self.write_far_for_host(queue, now, (address, AccessKind::WriteWord(size)), number);
            }
            Request::ReadWord(address, _) => {
                if let Some((races, channel)) =
                    queue.races.as_mut().zip(channel_of_register(address))
                {
                    races.synchronisation.send_response(number, channel);
                }
                let value = self.read_register(host, address);
                self.send_register_response(queue, now, number, Response::Word(value));
            }
            Request::WriteWord(address, _, value) => {
                if let Some(races) = &mut queue.races {
                    match channel_of_register(address) {
                        Some(channel) => races.receive_request(number, channel),
                        None => races.synchronisation.discard_request(number),
                    }
                }
                self.write_register(queue, now, host, (address, value));
                self.send_register_response(queue, now, number, Response::Written);
            }
        }
    }

    /// Starts a host's read at an address of far memory, or queues it at its slice if that has as many reads in
    /// flight as it may.
    fn request_far_read(&mut self, queue: &mut Queue, now: Time, read: FarRead) {
        let index = (read.address / LINE as u64) as usize % self.slices.len();
        let slice = &mut self.slices[index];
        if slice.in_flight >= self.platform.slice_reads.value {
            return slice.waiting.push_back(read);
        }
        slice.in_flight += 1;
        self.start_far_read(queue, now, read, index);
    }

    /// Performs a read of far memory by a host, through a slice.
    fn start_far_read(&mut self, queue: &mut Queue, now: Time, read: FarRead, slice: usize) {
        let FarRead {
            number, address, ..
        } = read;
        let (kind, response) = match read.size {
            Some(size) => {
                let mut word = [0; 8];
                self.far.get(address, &mut word[..size as usize]);
                let response = Response::Word(u64::from_le_bytes(word));
                (AccessKind::ReadWord(size), response)
            }
            None => {
                let mut data = Box::new([0; LINE]);
                self.far.get(address, &mut *data);
                if let Some(races) = &mut queue.races {
                    let host = host::host_of_request(&self.platform, number);
                    races.fetch_line(host, address);
                }
                (AccessKind::ReadLine, Response::Line(data))
            }
        };
        let completion = Completion::Response {
            number,
            response,
            slice: Some(slice),
        };
        self.access_far(queue, now, (address, kind), completion);
    }

    /// Performs a write of far memory by a host, whose contents have been written.
    fn write_far_for_host(
        &mut self,
        queue: &mut Queue,
        now: Time,
        access: (u64, AccessKind),
        number: u64,
    ) {
        let completion = Completion::Response {
            number,
            response: Response::Written,
            slice: None,
        };
        self.access_far(queue, now, access, completion);
    }

    /// Starts an access to an address of far memory. Its completion is scheduled once its end is known.
    fn access_far(
        &mut self,
        queue: &mut Queue,
        now: Time,
        (address, kind): (u64, AccessKind),
        completion: Completion,
    ) {
        self.far.access(now, address, kind, completion);
        self.schedule_far_completions(queue);
    }

    /// Lets the DRAM of far memory issue the commands that are due.
    pub(crate) fn advance_far_memory(&mut self, queue: &mut Queue, now: Time) {
        self.far.take_turn(now);
        self.schedule_far_completions(queue);
    }

    /// Schedules the completions of accesses to far memory whose end is known, and the next turn of its DRAM.
    fn schedule_far_completions(&mut self, queue: &mut Queue) {
        while let Some((end, completion)) = self.far.next_end() {
            match completion {
                Completion::Response {
                    number,
                    response,
                    slice,
                } => {
                    if let Some(slice) = slice {
                        queue.add(end, Event::FarReadCompletion(slice));
                    }
                    self.send_response(queue, end, number, response);
                }
                Completion::Copy(mcc, number, data) => {
                    self.schedule_copy_completion(queue, end, mcc, number, data);
                }
            }
        }
        if let Some(time) = self.far.request_turn() {
            queue.add(time, Event::DramTurn);
        }
    }

    /// Ends a read of a slice, and starts the next one that waits there.
    pub(crate) fn complete_far_read(&mut self, queue: &mut Queue, now: Time, index: usize) {
        let slice = &mut self.slices[index];
        match slice.waiting.pop_front() {
            Some(read) => self.start_far_read(queue, now, read, index),
            None => slice.in_flight -= 1,
        }
    }

    /// Schedules the response to a register access.
    fn send_register_response(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: u64,
        response: Response,
    ) {
        let path = self.platform.register_path.value;
        queue.add(
            now + (path - path / 2),
            Event::ResponseDeparture(number, response),
        );
    }

    /// Handles a host's read (no data) or write-back of a scratchpad line.
    fn access_scratchpad_line(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: u64,
        address: u64,
        data: Option<Box<Data>>,
    ) {
        let offset = address - SCRATCHPADS;
        let mcc = (offset / SCRATCHPAD_STRIDE) as usize;
        let line = (offset % SCRATCHPAD_STRIDE) as usize / LINE;
        let stamp_time = self.stamp_time(now);
        let Mcc {
            controller,
            counters,
            ..
        } = &mut self.mccs[mcc];
        controller.set_time(stamp_time);
        if let Some(races) = &mut queue.races {
            let channel = SyncChannel::Line(mcc, line);
            match &data {
                None => races.synchronisation.record_read_arrival(number, channel),
                Some(_) => races.receive_request(number, channel),
            }
        }
        if let Some(polling) = &mut queue.polling {
            polling.record_stamp_update(mcc, line as u64);
        }
        let result = match &data {
            None => {
                counters.host_reads += 1;
                controller.read(line, number)
            }
            Some(data) => {
                counters.host_writes += 1;
                controller.write_back(line, number, data)
            }
        };
        result.expect("the host requests existing lines only");
        if !self.send_pending_responses(queue, now, mcc, None) {
            self.mccs[mcc].counters.held += 1;
            queue.change();
        }
    }

    /// Sends the pending responses of a scratchpad, which the core `releaser` may have released. Returns true if there
    /// were any.
    fn send_pending_responses(
        &mut self,
        queue: &mut Queue,
        now: Time,
        mcc: usize,
        releaser: Option<CoreId>,
    ) -> bool {
        let mut has_responses = false;
        while let Some(response) = self.mccs[mcc].controller.next_response() {
            has_responses = true;
            let (number, response) = match response {
                HostResponse::Read { request, data } => {
                    if let Some(races) = &mut queue.races {
                        races.synchronisation.answer_read(request, releaser);
                    }
                    (request, Response::Line(data))
                }
                HostResponse::Written { request } => {
                    if let Some(races) = &mut queue.races {
                        races
                            .synchronisation
                            .add_releaser_knowledge(request, releaser);
                    }
                    (request, Response::Written)
                }
            };
            self.send_response(queue, now, number, response);
        }
        has_responses
    }

    /// Returns the value of a register for a host; 0 for an unknown one.
    fn read_register(&mut self, host: usize, address: u64) -> u64 {
        let (mcc, offset) = register_position(address);
        let platform = &self.platform;
        let Some(mcc) = self.mccs.get_mut(mcc) else {
            return 0;
        };
        match offset {
            control::STATE => mcc.state as u64,
            control::CODE => mcc.exit_code,
            control::CAUSE => mcc.fault[0],
            control::VALUE => mcc.fault[1],
            control::PC => mcc.fault[2],
            control::MCCS => platform.mccs.value,
            control::HOST => host as u64,
            control::HOSTS => platform.hosts.value,
            control::FAR_BYTES => platform.far_bytes.value,
            control::LAST_CACHE => platform.llc.value,
            control::LAST_CACHE_MISSES => platform.llc_misses.value,
            control::LOAD_STATE => match mcc.state {
                State::Idle | State::Loading | State::Rejected => mcc.state as u64,
                State::Running | State::Ended | State::Stopped => State::Running as u64,
            },
            offset if (control::COUNTERS..control::COUNTERS + 32).contains(&offset) => {
                let counters = [
                    self.received_bytes[host],
                    self.downlinks[host].bytes,
                    self.far.reads,
                    self.far.writes,
                ];
                counters[(offset - control::COUNTERS) as usize / 8]
            }
            offset if offset < control::STATE => {
                let register = mcc.controller.shared((offset / 8) as usize);
                register.map_or(0, |register| *register)
            }
            _ => 0,
        }
    }

    /// Executes a host's store of a value to the register at an address. Stores to unknown registers, and commands that
    /// the core's state does not allow, have no effect.
    fn write_register(
        &mut self,
        queue: &mut Queue,
        now: Time,
        host: usize,
        (address, value): (u64, u64),
    ) {
        let (number, offset) = register_position(address);
        let Some(mcc) = self.mccs.get_mut(number) else {
            return;
        };
        let is_idle = !matches!(mcc.state, State::Loading | State::Running);
        match offset {
            control::GIVE_AT => mcc.grant_starts[host] = value,
            control::GIVE => {
                let start = mcc.grant_starts[host];
                let range = start..start.saturating_add(value);
                mcc.granted_ranges.push((host, range));
            }
            control::LOAD | control::LOAD_UNVERIFIED if is_idle => {
                let verified = offset == control::LOAD;
                mcc.host = host;
                self.start_load(queue, now, number, value, verified);
            }
            control::STOP if !is_idle => {
                self.end_program(queue, now, number, State::Ended, u64::MAX);
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

    /// Starts to load a binary from the scratchpad.
    fn start_load(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        bytes: u64,
        verified: bool,
    ) {
        let bytes = bytes.min(self.platform.scratchpad.value * LINE as u64);
        let platform = &self.platform;
        let cleared_lines = platform.private.value / LINE as u64 + platform.scratchpad.value;
        let mut load_time = platform.handshake.value
            + platform.load_start.value
            + bytes.div_ceil(LINE as u64) * platform.load_line.value
            + cleared_lines * platform.reset_line.value;
        if verified {
            load_time += platform.verify_start.value + bytes * platform.verify_byte.value;
        }
        let mcc = &mut self.mccs[number];
        mcc.state = State::Loading;
        mcc.binary = (bytes as usize, verified);
        mcc.loads += 1;
        queue.add(now + load_time, Event::LoadCompletion(number, mcc.loads));
    }

    /// Returns the maximum permissions of a program on this core.
    fn max_grant(&self, number: usize) -> Grant {
        Grant {
            extensions: Extensions::NEAR_MEMORY,
            private: PRIVATE..PRIVATE + self.platform.private.value,
            pipes: (0..FIFO_PIPES + self.platform.mccs.value).collect(),
            far: self.granted_ranges(number),
        }
    }

    /// Returns the ranges that are granted to the next program of a core. A host cannot grant the own memory of another
    /// one.
    fn granted_ranges(&self, number: usize) -> Vec<Range<u64>> {
        let mcc = &self.mccs[number];
        let granted = mcc.granted_ranges.iter();
        let granted = granted
            .filter(|(host, range)| *host == mcc.host || !self.main_range.contains(&range.start));
        granted.map(|(_, range)| range.clone()).collect()
    }

    /// Completes a load: the program starts or is rejected. Returns false if the load was abandoned in the meantime.
    pub(crate) fn complete_load(&mut self, queue: &mut Queue, number: usize, load: u64) -> bool {
        let mcc = &self.mccs[number];
        if mcc.state != State::Loading || mcc.loads != load {
            return false;
        }
        if let Some(races) = &mut queue.races {
            races.start_program(number, mcc.host);
        }
        let (bytes, verified) = self.mccs[number].binary;
        let grant = self.max_grant(number);
        let scratchpad = self.mccs[number].controller.scratchpad();
        let mut file: Vec<u8> = Vec::new();
        for line in 0..bytes.div_ceil(LINE) {
            file.extend(scratchpad.line(line).into_iter().flatten());
        }
        file.truncate(bytes);
        let image_and_manifest = match verified {
            true => channel::verify(&file, &grant),
            false => channel::read_unverified(&file),
        };
        let start_result = image_and_manifest
            .map_err(|rejection| rejection.to_string())
            .and_then(|(image, manifest)| self.prepare_program(number, &image, &manifest));
        let mcc = &mut self.mccs[number];
        mcc.file = file;
        mcc.granted_ranges.clear();
        match start_result {
            Ok(entry) => {
                mcc.state = State::Running;
                let arguments = mcc.arguments;
                self.pending_starts.push(PendingStart {
                    mcc: number,
                    entry,
                    arguments,
                });
            }
            Err(rejection) => {
                mcc.state = State::Rejected;
                mcc.rejection = Some(rejection);
            }
        }
        true
    }

    /// Places a program in private memory and sets its permissions. Returns its entry address. The error is the reason
    /// for which the program does not fit.
    fn prepare_program(
        &mut self,
        number: usize,
        image: &Image,
        manifest: &Manifest,
    ) -> Result<u64, String> {
        let granted_ranges = self.granted_ranges(number);
        let platform = &self.platform;
        let count = platform.mccs.value;
        let mcc = &mut self.mccs[number];
        mcc.controller.reset(image)?;
        let far_range = FAR..FAR + platform.far_bytes.value;
        let is_within = |range: &Range<u64>, outer: &Range<u64>| {
            outer.start <= range.start && range.start <= range.end && range.end <= outer.end
        };
        // A program may claim far memory for itself, but host memory only if the host has given it.
        let claimed_ranges = manifest.far.iter().filter(|far| is_within(far, &far_range));
        let mut far: Vec<Range<u64>> = claimed_ranges.cloned().collect();
        if manifest.requests_granted {
            let granted = granted_ranges.into_iter();
            let granted = granted
                .filter(|far| is_within(far, &far_range) || is_within(far, &self.main_range));
            far.extend(granted);
        }
        let transfers = platform.transfers.value as usize;
        mcc.controller.set_permitted_ranges(far, transfers);
        let lines = platform.scratchpad.value;
        let pipes = manifest.pipes.iter().filter_map(|&pipe| match pipe {
            pipe if pipe < FIFO_PIPES => {
                let address = controller::SHARED + pipe * 16;
                Some(address..address + 16)
            }
            pipe if pipe - FIFO_PIPES < count => {
                let address = FIFOS + (pipe - FIFO_PIPES) * FIFO_STRIDE;
                Some(address..address + FIFO_STRIDE)
            }
            _ => None,
        });
        let device_ranges = [
            controller::SCRATCHPAD..controller::SCRATCHPAD + lines * LINE as u64,
            controller::REGISTERS..controller::REGISTERS + controller::REGISTERS_BYTES,
            controller::STAMPS..controller::STAMPS + lines * 16,
        ];
        let private_end = PRIVATE + platform.private.value;
        let manifest = Manifest {
            far: Vec::new(),
            ..manifest.clone()
        };
        let ranges = device_ranges.into_iter().chain(pipes);
        mcc.permissions = Some(Sandbox::new((), image, &manifest, private_end, ranges));
        Ok(image.entry)
    }

    /// Ends the running program. The new state becomes visible to the host only once all of the program's copies are
    /// complete. Otherwise later accesses to the scratchpad or to far memory could conflict with them.
    pub(crate) fn end_program(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        state: State,
        exit_code: u64,
    ) {
        let stamp_time = self.stamp_time(now);
        let lines = self.platform.scratchpad.value as usize;
        let mcc = &mut self.mccs[number];
        if mcc.pending_end.is_some() {
            return;
        }
        mcc.pending_end = Some((state, exit_code));
        self.ended_mccs.push(number);
        mcc.permissions = None;
        mcc.fifos.iter_mut().for_each(VecDeque::clear);
        if let Some(races) = &mut queue.races {
            races.synchronisation.clear_fifos(number);
        }
        mcc.controller.set_time(stamp_time);
        if let Some(timeline) = &mut queue.timeline {
            timeline.end_program(CoreId::Mcc(number), now);
        }
        // No program is left that could release the held requests.
        for line in 0..lines {
            for kind in [Kind::Read, Kind::WriteBack] {
                let result = mcc.controller.unlock(line, kind);
                result.expect("line index below the number of lines");
            }
        }
        self.send_pending_responses(queue, now, number, Some(CoreId::Mcc(number)));
        self.publish_final_state(queue, number);
        // The cleared FIFOs may have room for waiting senders.
        self.has_pending_event = true;
    }

    /// Stops the running program because of an exception, and records the cause.
    pub(crate) fn stop_program(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        exception: Exception,
        pc: u64,
    ) {
        let (cause, value) = exception.cause();
        self.mccs[number].fault = [cause, value, pc];
        self.end_program(queue, now, number, State::Stopped, u64::MAX);
    }

    /// Publishes the final state of an ended program, unless its copies are outstanding.
    fn publish_final_state(&mut self, queue: &mut Queue, number: usize) {
        let mcc = &mut self.mccs[number];
        if mcc.controller.outstanding_transfers() > 0 {
            return;
        }
        let Some((state, exit_code)) = mcc.pending_end.take() else {
            return;
        };
        mcc.state = state;
        mcc.exit_code = exit_code;
        if let Some(races) = &mut queue.races {
            races.end_program(number);
        }
    }

    /// Issues the next line of a channel of a copy engine and schedules its next turn. Does nothing if too many lines
    /// are outstanding or none is waiting; a completed line then schedules the next turn.
    pub(crate) fn issue_copy_line(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        channel: usize,
    ) {
        let max_lines = self.platform.copy_lines.value as usize;
        let mcc = &mut self.mccs[number];
        mcc.copy_scheduled[channel] = false;
        if mcc.controller.copier().in_flight(channel) >= max_lines {
            return;
        }
        let Some(access) = mcc.controller.next_access(channel) else {
            return;
        };
        match &access.data {
            Some(_) => mcc.counters.stored += 1,
            None => mcc.counters.fetched += 1,
        }
        if let Some(races) = &mut queue.races {
            let is_far = !self.main_range.contains(&access.far);
            let line = (access.far, access.data.is_some());
            races.copy_line(number, line, access.number, is_far);
        }
        mcc.copy_scheduled[channel] = true;
        if let Some(timeline) = &mut queue.timeline {
            let stores = access.data.is_some();
            timeline.begin_copy((number, access.number), access.far, stores, now);
        }
        let next_turn = now + self.platform.copy_line.value;
        queue.add(next_turn, Event::CopyTurn(number, channel));
        let (stores, address) = (access.data.is_some(), access.far);
        let mut data = access.data.unwrap_or_else(|| Box::new([0; LINE]));
        if self.main_range.contains(&address) {
            let request = HostMemoryRequest {
                host: mcc.host,
                mcc: number,
                number: access.number,
                address,
                stores,
                data,
            };
            let path = self.platform.device_path.value;
            queue.add(now + (path - path / 2), Event::HostAccessDeparture(request));
            return;
        }
        let kind = match stores {
            true => AccessKind::WriteLine,
            false => AccessKind::ReadLine,
        };
        match stores {
            true => self.far.put(address, &*data),
            false => self.far.get(address, &mut *data),
        }
        let completion = Completion::Copy(number, access.number, data);
        self.access_far(queue, now, (address, kind), completion);
    }

    /// Schedules the notification of a core that a line of its copy engine is complete.
    fn schedule_copy_completion(
        &self,
        queue: &mut Queue,
        end: Time,
        mcc: usize,
        number: u64,
        data: Box<Data>,
    ) {
        let path = self.platform.copy_path.value;
        let end = end + (path - path / 2);
        if let Some(timeline) = &mut queue.timeline {
            timeline.complete_copy((mcc, number), end);
        }
        queue.add(end, Event::CopyCompletion(mcc, number, data));
    }

    /// Handles the response of host memory to a copy engine, which arrives over the link at `arrival`.
    pub(crate) fn complete_host_access(
        &mut self,
        queue: &mut Queue,
        arrival: Time,
        request: HostMemoryRequest,
    ) {
        self.received_bytes[request.host] += self.platform.link_header.value + request.bytes().1;
        let end = arrival + self.platform.device_path.value / 2;
        self.schedule_copy_completion(queue, end, request.mcc, request.number, request.data);
    }

    /// Completes a line of a copy engine.
    pub(crate) fn complete_copy_line(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: usize,
        access: u64,
        data: &Data,
    ) {
        let stamp_time = self.stamp_time(now);
        let mcc = &mut self.mccs[number];
        mcc.controller.set_time(stamp_time);
        if let Some(races) = &mut queue.races {
            races.complete_line_copy(number, access);
        }
        mcc.controller.complete_access(access, data);
        for channel in 0..mcc.controller.copier().channels() {
            if !std::mem::replace(&mut mcc.copy_scheduled[channel], true) {
                queue.add(now, Event::CopyTurn(number, channel));
            }
        }
        self.publish_final_state(queue, number);
        self.has_pending_event = true;
    }

    /// Delivers a word to the receiving end of a FIFO.
    pub(crate) fn deliver_word(&mut self, queue: &mut Queue, from: usize, number: usize) {
        if let Some(races) = &mut queue.races {
            races.synchronisation.deliver_word(from, number);
        }
        let mcc = &mut self.mccs[number];
        if let Some(word) = mcc.words_in_flight[from].pop_front() {
            mcc.fifos[from].push_back(word);
        }
        self.has_pending_event = true;
    }
}

/// Returns the core of a register's address, and the offset from its first register.
fn register_position(address: u64) -> (usize, u64) {
    let offset = address - REGISTERS;
    (
        (offset / REGISTERS_STRIDE) as usize,
        offset % REGISTERS_STRIDE,
    )
}

/// Returns the synchronisation channel that an access to a register uses, for the race detector; `None` for a constant
/// or a counter, whose value shows no action of another program.
fn channel_of_register(address: u64) -> Option<SyncChannel> {
    let (mcc, offset) = register_position(address);
    match offset {
        control::LOAD_STATE => Some(SyncChannel::Load(mcc)),
        control::MCCS
        | control::FAR_BYTES
        | control::LAST_CACHE
        | control::LAST_CACHE_MISSES
        | control::HOST
        | control::HOSTS
        | control::COUNTERS.. => None,
        offset if offset < control::STATE => Some(SyncChannel::Register(mcc, offset / 8)),
        _ => Some(SyncChannel::Control(mcc)),
    }
}
