//! Rates of a link: by formula after each layer, and measured by driving two ends against each other.

use crate::layer::Layer;
use crate::pcie::dma::quantities::Quantities;
use crate::pcie::reads::{Completer, Requester};
use crate::pcie::{self, dma, COMPLETIONS, LINK_PACKET_BYTES, NON_POSTED, POSTED};
use crate::testbench::{Testbench, Traffic, LANE_BYTE};
use crate::{ccix, cxl, end, Lanes, Message, Parameters, Ratio};
use cohkit_units::{NANOSECOND, SECOND};
use cxl::{Flits, Side};
use std::collections::VecDeque;

/// Link type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of ECI's two links.
    Eci,
    /// PCIe of generation 3, 4 or 5, with the transfer rate per lane in GT/s: 8, 16 or 32.
    Pcie(u32),
    /// CCIX over PCIe generation 4.
    Ccix,
    /// CXL.mem over PCIe generation 5.
    Cxl(Flits),
}

/// Link configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkConfig {
    /// Link type.
    pub kind: Kind,
    /// Number of active lanes.
    pub lanes: u32,
    /// Maximum bytes of data per packet or message.
    pub payload: u16,
    /// One-way delay in nanoseconds.
    pub delay: u32,
    /// Bit error rate: probability of an error per bit.
    pub errors: f64,
    /// Seed of the bit errors.
    pub seed: u64,
}

/// Data rate of one kind of traffic, in bytes per second and direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name of the kind of traffic.
    pub name: &'static str,
    /// True if both directions carry data.
    pub is_bidirectional: bool,
    /// Rate after framing by formula, without errors or credit limits, in bytes per second.
    pub formula: f64,
    /// Rate measured with the driven ends, in bytes per second.
    pub run: f64,
    /// Resent units, in percent of all units.
    pub replayed: f64,
}

/// Rates of a link configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRates {
    /// Name of each layer, from the wires to messages, and the bytes per second and direction that remain after it.
    pub steps: Vec<(&'static str, f64)>,
    /// Data rate per kind of traffic.
    pub flows: Vec<Flow>,
}

/// DMA performance at one transfer size.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfers {
    /// Direction of the transfers.
    pub direction: dma::Direction,
    /// Latency in nanoseconds of a single transfer, from its start to the detection of its end.
    pub latency: f64,
    /// Throughput in bytes per second with [`Quantities::queue`] outstanding transfers.
    pub rate: f64,
}

/// Maximum bytes per transfer.
pub const MAX_DMA_BYTES: u64 = 1 << 20;
/// Minimum bytes of all transfers in a throughput run, so that the measured half in the middle is in a steady state.
const MIN_DMA_BYTES: u64 = 1 << 22;

/// Duration of a run in bytes on all lanes, after a warm-up of an eighth of it. With it, measured rates agree with the
/// formulas as closely as the tests require.
const MEASUREMENT_BYTES: u64 = 2_400_000;
/// Minimum duration of a run in round trips, because credits let data through in one burst per round trip.
const MIN_ROUND_TRIPS: u64 = 32;
/// Maximum bytes per read request, as configured by hosts.
const MAX_READ_REQUEST_BYTES: u64 = 512;
/// Number of tags of a reader: those of 8 bits.
const TAGS: u16 = 256;

impl Kind {
    /// All link types with their command-line names.
    pub const ALL: [(&'static str, Kind); 7] = [
        ("eci", Kind::Eci),
        ("pcie3", Kind::Pcie(8)),
        ("pcie4", Kind::Pcie(16)),
        ("pcie5", Kind::Pcie(32)),
        ("ccix", Kind::Ccix),
        ("cxl68", Kind::Cxl(Flits::Small)),
        ("cxl256", Kind::Cxl(Flits::Large)),
    ];

    /// Number of lanes of a full link.
    pub fn lanes(self) -> u32 {
        if self == Kind::Eci {
            12
        } else {
            16
        }
    }

    /// Supported data sizes in bytes, the default first.
    pub fn payloads(self) -> &'static [u16] {
        match self {
            Kind::Eci => &[128, 96, 64, 32],
            Kind::Pcie(_) => &[256, 128, 512, 1024],
            Kind::Ccix => &[512, 256, 128],
            Kind::Cxl(_) => &[64],
        }
    }

    /// Lanes of this link type, `count` of them active.
    fn lanes_for(self, count: u32) -> Lanes {
        match self {
            Kind::Eci => Lanes::ECI.with(count),
            Kind::Pcie(rate) => Lanes::pcie(count, rate),
            Kind::Ccix => Lanes::pcie(count, 16),
            Kind::Cxl(_) => Lanes::pcie(count, 32),
        }
    }
}

impl LinkConfig {
    /// A full link without errors, with a one-way delay of 50 ns.
    pub fn new(kind: Kind) -> LinkConfig {
        LinkConfig {
            kind,
            lanes: kind.lanes(),
            payload: kind.payloads()[0],
            delay: 50,
            errors: 0.0,
            seed: 0,
        }
    }

    /// Computes the rates by formula and measures them, which takes a run of both ends per kind of traffic.
    pub fn rates(&self) -> LinkRates {
        let lanes = self.kind.lanes_for(self.lanes);
        let coded = lanes.raw().times(lanes.code.0.into(), lanes.code.1.into());
        let blocks = lanes.blocks();
        let mut steps = vec![
            ("on the wires", lanes.raw().value()),
            ("after their coding", coded.value()),
            ("after the lanes' own words", blocks.value()),
        ];
        let flows = match self.kind {
            Kind::Eci => {
                steps.push(("after control words", lanes.messages().value()));
                self.eci()
            }
            Kind::Pcie(_) => {
                let remaining = blocks.value() * (1.0 - self.link_share());
                steps.push(("after acknowledgements and credits", remaining));
                self.pcie()
            }
            Kind::Ccix => {
                let remaining = blocks.value() * (1.0 - self.link_share());
                steps.push(("after acknowledgements and credits", remaining));
                self.ccix()
            }
            Kind::Cxl(flits) => {
                let slots = 16.0 * if flits == Flits::Small { 4.0 } else { 15.0 };
                let remaining = blocks.value() * slots / flits.bytes() as f64;
                steps.push(("after the framing of flits", remaining));
                self.cxl(flits)
            }
        };
        LinkRates { steps, flows }
    }

    /// Bytes between two DLLPs of each kind, for a maximum payload of 256 bytes. Source: pcie-bench, `pcie-model`.
    fn limit(&self) -> u64 {
        if self.lanes > 8 {
            168
        } else {
            203
        }
    }

    /// Bytes in flight per direction on busy lanes.
    fn bytes_in_flight(&self) -> u64 {
        (self.kind.lanes_for(self.lanes).blocks().value() * f64::from(self.delay) / 1e9) as u64
    }

    /// Share of bytes used by DLLPs if the opposite direction is saturated.
    fn link_share(&self) -> f64 {
        (2 * LINK_PACKET_BYTES) as f64 / self.limit() as f64
    }

    /// Drives two ends, which `feed` keeps busy in each step, and measures the data received from the first. `share`
    /// is the share of the block rate that the formula predicts for data.
    fn measure_flow<L: Layer>(
        &self,
        name: &'static str,
        is_bidirectional: bool,
        share: f64,
        ends: [L; 2],
        mut feed: impl FnMut(&mut Testbench<L>),
    ) -> Flow {
        let blocks = self.kind.lanes_for(self.lanes).blocks();
        let bytes = blocks.value() / f64::from(self.lanes) * f64::from(self.delay) / 1e9;
        let delay = (bytes * LANE_BYTE as f64) as u64;
        let mut bench = Testbench::new(ends, self.lanes, delay, self.errors, self.seed);
        let mut measurement_start = None;
        let duration = (MEASUREMENT_BYTES / u64::from(self.lanes) * LANE_BYTE)
            .max(MIN_ROUND_TRIPS * 2 * delay);
        let (measurement_begin, end) = (duration / 8, duration + duration / 8);
        while bench.now < end {
            feed(&mut bench);
            if !bench.step() {
                break;
            }
            if bench.now >= measurement_begin && measurement_start.is_none() {
                measurement_start = Some((bench.traffic[0].data, bench.now));
            }
        }
        debug_assert_eq!(
            bench
                .traffic
                .each_ref()
                .map(|traffic| traffic.out_of_sequence),
            [0; 2]
        );
        let (data, start_time) = measurement_start.unwrap_or_default();
        let lane_bytes = (bench.now - start_time) as f64 / LANE_BYTE as f64 * f64::from(self.lanes);
        let throughput = (bench.traffic[0].data - data) as f64 / lane_bytes;
        let units = bench.wires[0].units.max(1);
        Flow {
            name,
            is_bidirectional,
            formula: share * blocks.value(),
            run: throughput * blocks.value(),
            replayed: 100.0 * bench.ends()[0].replayed() as f64 / units as f64,
        }
    }

    /// Measures traffic that fills the queues of these circuits, in one direction and in both. `shares` are those of
    /// `measure_flow` for each case, `circuits` those of each side, and `bytes` the data per message.
    fn measure_full_queues<L: Layer>(
        &self,
        name: &'static str,
        shares: [f64; 2],
        circuits: [&[u8]; 2],
        bytes: u16,
        ends: impl Fn() -> [L; 2],
    ) -> [Flow; 2] {
        [false, true].map(|is_bidirectional| {
            self.measure_flow(
                name,
                is_bidirectional,
                shares[usize::from(is_bidirectional)],
                ends(),
                |bench| {
                    let sides = circuits.iter().enumerate();
                    for (side, circuits) in sides.take(1 + usize::from(is_bidirectional)) {
                        for &circuit in *circuits {
                            bench.fill(side, circuit, bytes);
                        }
                        bench.drain(side);
                    }
                },
            )
        })
    }

    /// Measures responses with lines of one and of both parities.
    fn eci(&self) -> Vec<Flow> {
        let lanes = self.kind.lanes_for(self.lanes);
        let words = u32::from(self.payload) / 8 + 1;
        let lines = |words_per_second: f64| {
            words_per_second * f64::from(words - 1) / f64::from(words) / lanes.blocks().value()
        };
        let messages = lanes.messages().value();
        let clock_rate = end::WORDS_PER_CLOCK as f64 * 8.0 * end::CLOCK_HZ as f64;
        let flows = [
            ("answers, lines of both parities", &[4, 5][..], messages),
            (
                "answers, lines of one parity",
                &[4],
                messages.min(clock_rate),
            ),
        ];
        flows
            .into_iter()
            .flat_map(|(name, circuits, rate)| {
                [false, true].map(|is_bidirectional| {
                    self.eci_flow(name, circuits, is_bidirectional, lines(rate))
                })
            })
            .collect()
    }

    /// Measures responses on these circuits, which the receivers drain at the rate of their clock.
    fn eci_flow(
        &self,
        name: &'static str,
        circuits: &[u8],
        is_bidirectional: bool,
        share: f64,
    ) -> Flow {
        let lane = self.kind.lanes_for(self.lanes).blocks().value() / f64::from(self.lanes);
        let clock = (lane * LANE_BYTE as f64 / end::CLOCK_HZ as f64) as u64;
        let mut next = 0;
        let ends = std::array::from_fn(|_| end::End::new(Parameters::ECI));
        self.measure_flow(name, is_bidirectional, share, ends, move |bench| {
            for side in 0..=usize::from(is_bidirectional) {
                for &circuit in circuits {
                    bench.fill(side, circuit, self.payload);
                }
            }
            while next <= bench.now {
                next += clock;
                let ([first, second], [forward, backward]) = bench.ends_and_traffic();
                for (end, traffic) in [(second, forward), (first, backward)] {
                    end.clock(|_, words| traffic.data += 8 * (words.len() as u64 - 1));
                }
            }
        })
    }

    /// DMA transfers of `bytes` bytes, 1 to [`MAX_DMA_BYTES`], to the device and to the host, started and ended as
    /// `control` specifies. `None` for links other than PCIe.
    pub fn transfers(
        &self,
        bytes: u64,
        control: dma::Control,
        quantities: &Quantities,
    ) -> Option<[Transfers; 2]> {
        let Kind::Pcie(_) = self.kind else {
            return None;
        };
        let lane = self.kind.lanes_for(self.lanes).blocks().value() / f64::from(self.lanes);
        let ticks = |picoseconds: u64| {
            (lane * picoseconds as f64 / SECOND as f64 * LANE_BYTE as f64) as u64
        };
        let queue_length = quantities.queue.value;
        let seconds = |ticks: u64| ticks as f64 / (lane * LANE_BYTE as f64);
        let simulate = |direction, transfers, queue| {
            let engine = dma::Engine {
                direction,
                control,
                bytes,
                transfers,
                queue,
                descriptor: quantities.descriptor.value,
                request: quantities.read_request.value,
                tags: quantities.tags.value as u16,
                start: ticks(quantities.start.value),
                memory: ticks(quantities.memory_latency.value),
                detection: ticks(quantities.detection.value),
            };
            let ends = pcie::Parameters::new(self.payload, self.limit())
                .with_bytes_in_flight(self.bytes_in_flight());
            dma::run(
                &engine,
                ends,
                self.lanes,
                ticks(u64::from(self.delay) * NANOSECOND),
            )
        };
        Some(
            [dma::Direction::ToDevice, dma::Direction::ToHost].map(|direction| {
                let single = simulate(direction, 1, 1);
                let count = (MIN_DMA_BYTES / bytes).clamp(4 * queue_length, 4096);
                let times = simulate(direction, count, queue_length);
                // Exclude the start and the end of the run: measure from the first to the third quarter.
                let quarter = times.len() / 4;
                let mut ends: Vec<u64> = times.iter().map(|times| times.end).collect();
                ends.sort_unstable();
                let (from, to) = (ends[quarter], ends[3 * quarter]);
                Transfers {
                    direction,
                    latency: 1e9
                        * single
                            .iter()
                            .map(|times| seconds(times.end - times.start))
                            .sum::<f64>(),
                    rate: (2 * quarter) as f64 * bytes as f64 / seconds(to - from),
                }
            }),
        )
    }

    /// Share of bytes for packets with data, in one direction and in both, if each byte of them costs `request_share`
    /// bytes of requests in the opposite direction. Traffic in one direction alone causes DLLPs in the opposite
    /// direction, which cause some in the first.
    fn packet_shares(&self, request_share: f64) -> [f64; 2] {
        let share = self.link_share();
        [
            (1.0 - share * share) / (1.0 + share * request_share),
            (1.0 - share) / (1.0 + request_share),
        ]
    }

    /// Measures writes and reads over PCIe.
    fn pcie(&self) -> Vec<Flow> {
        let payload = u64::from(self.payload);
        let ends = || std::array::from_fn(|_| self.pcie_end());
        let data = payload as f64 / (payload + pcie::REQUEST_BYTES) as f64;
        let writes = self.packet_shares(0.0).map(|share| share * data);
        let circuits: &[u8] = &[POSTED];
        let mut flows: Vec<Flow> = self
            .measure_full_queues("writes", writes, [circuits; 2], self.payload, ends)
            .into();
        let (completions, packet) = (
            MAX_READ_REQUEST_BYTES.div_ceil(payload),
            payload.min(MAX_READ_REQUEST_BYTES),
        );
        let answer = MAX_READ_REQUEST_BYTES + completions * pcie::COMPLETION_BYTES;
        let data = packet as f64 / (packet + pcie::COMPLETION_BYTES) as f64;
        let reads = self.packet_shares(pcie::REQUEST_BYTES as f64 / answer as f64);
        for is_bidirectional in [false, true] {
            let share = reads[usize::from(is_bidirectional)] * data;
            flows.push(self.pcie_reads(is_bidirectional, share, ends()));
        }
        flows
    }

    /// An end of a PCIe link with this configuration.
    fn pcie_end(&self) -> pcie::End<Message> {
        pcie::End::new(pcie::Parameters::new(self.payload, self.limit()))
            .with_bytes_in_flight(self.bytes_in_flight())
    }

    /// The second end reads from the first; with `is_bidirectional`, also the first from the second. `share` is that
    /// of `measure_flow`.
    fn pcie_reads(
        &self,
        is_bidirectional: bool,
        share: f64,
        ends: [pcie::End<Message>; 2],
    ) -> Flow {
        let completer = Completer {
            payload: self.payload.into(),
            boundary: 64,
        };
        let mut readers = [(); 2].map(|()| Reader::new());
        let mut answers: [VecDeque<Message>; 2] = Default::default();
        let first_reader = usize::from(!is_bidirectional);
        self.measure_flow("reads", is_bidirectional, share, ends, move |bench| {
            let (ends, traffic) = bench.ends_and_traffic();
            for (side, end) in ends.iter_mut().enumerate() {
                if side >= first_reader {
                    readers[side].advance_reads(end, &mut traffic[1 - side]);
                }
                if side < 2 - first_reader {
                    // Handle one request at a time, to bound the number of queued completions.
                    let answers = &mut answers[side];
                    if answers.is_empty() {
                        if let Some(request) = end.take(NON_POSTED) {
                            answers.extend(completer.completions(request));
                        }
                    }
                    submit_messages(end, answers);
                }
            }
        })
    }

    /// Measures messages with lines over CCIX, with both kinds of headers.
    fn ccix(&self) -> Vec<Flow> {
        let mut flows = Vec::new();
        for (name, header) in [
            (
                "lines of 64 bytes, optimised header",
                ccix::OPTIMISED_HEADER_BYTES,
            ),
            (
                "lines of 64 bytes, header of PCIe",
                ccix::COMPATIBLE_HEADER_BYTES,
            ),
        ] {
            let end = || ccix::End::new(self.payload, header, true, self.limit());
            let ends = || [(); 2].map(|()| end().with_bytes_in_flight(self.bytes_in_flight()));
            let messages = u64::from(ends()[0].messages_in_packet(64));
            let packet =
                ccix::FRAMING_BYTES + header + messages * (u64::from(ccix::MESSAGE_BYTES) + 64);
            let data = (64 * messages) as f64 / packet as f64;
            let shares = self.packet_shares(0.0).map(|share| share * data);
            let circuits: &[u8] = &[3];
            flows.extend(self.measure_full_queues(name, shares, [circuits; 2], 64, ends));
        }
        flows
    }

    /// Measures writes, and responses with data, over CXL.mem.
    fn cxl(&self, flits: Flits) -> Vec<Flow> {
        let end = |side| cxl::End::new(cxl::Parameters::new(flits, side));
        let share = |side| {
            let messages = flits.messages(side, cxl::DATA).map_or(0.0, Ratio::value);
            [messages * f64::from(cxl::LINE_BYTES) / flits.bytes() as f64; 2]
        };
        let circuits: &[u8] = &[cxl::DATA];
        let writes = || [end(Side::Host), end(Side::Device)];
        let reads = || [end(Side::Device), end(Side::Host)];
        let measure = |name, side, ends: &dyn Fn() -> [cxl::End; 2]| {
            self.measure_full_queues(name, share(side), [circuits; 2], cxl::LINE_BYTES, ends)
        };
        let mut flows = Vec::from(measure("writes", Side::Host, &writes));
        flows.extend(measure("answers to reads", Side::Device, &reads));
        flows
    }
}

/// Submits messages until the transmit queue is full.
fn submit_messages(end: &mut pcie::End<Message>, messages: &mut VecDeque<Message>) {
    while let Some(&message) = messages.front() {
        if end.send(message).is_err() {
            return;
        }
        messages.pop_front();
    }
}

/// Reads page after page, with all tags in use.
struct Reader {
    /// Splits reads into tagged requests.
    requester: Requester,
    /// Requests that the end has not accepted yet.
    requests: VecDeque<Message>,
    /// Number of reads queued so far, which is the name of the next one.
    reads: u64,
}

impl Reader {
    fn new() -> Reader {
        Reader {
            requester: Requester::new(TAGS, MAX_READ_REQUEST_BYTES),
            requests: VecDeque::new(),
            reads: 0,
        }
    }

    /// Requests further pages, and takes the completions that have arrived.
    fn advance_reads(&mut self, end: &mut pcie::End<Message>, traffic: &mut Traffic) {
        if self.requester.waiting() == 0 {
            self.requester.queue_read(self.reads, 0, 4096);
            self.reads += 1;
        }
        if self.requests.is_empty() {
            self.requests.extend(self.requester.next_request());
        }
        submit_messages(end, &mut self.requests);
        while let Some(completion) = end.take(COMPLETIONS) {
            traffic.out_of_sequence += u64::from(self.requester.complete(completion).is_err());
            traffic.data += u64::from(completion.bytes);
        }
    }
}
