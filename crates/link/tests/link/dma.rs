//! DMA transfers over PCIe, compared with the sum of their parts.

use cohkit_link::pcie::dma::quantities::Quantities;
use cohkit_link::pcie::dma::{Control, Direction};
use cohkit_link::rates::{Kind, LinkConfig};

/// One-way delay in nanoseconds with which the latency of host memory is fitted.
const DMA_ONE_WAY_DELAY: u64 = 150;

/// Quantities of DMA transfers.
fn quantities() -> Quantities {
    Quantities::default()
}

/// A PCIe generation 3 link with a delay in nanoseconds.
fn link_config(lanes: u32, delay: u64) -> LinkConfig {
    LinkConfig {
        lanes,
        delay: delay as u32,
        ..LinkConfig::new(Kind::Pcie(8))
    }
}

/// Nanoseconds for `bytes` bytes on lanes of generation 3: 128b/130b coding, and 1534 of 1538 bytes are usable.
fn wire(lanes: u32, bytes: u64) -> f64 {
    bytes as f64 / (f64::from(lanes) * 8.0 / 8.0 * 128.0 / 130.0 * 1534.0 / 1538.0)
}

/// Each step of a single transfer takes the one-way delay plus the wire time of its packets.
#[test]
fn transfer_latency_is_the_sum_of_its_steps() {
    let quantities = quantities();
    let [memory, detection, start] = [
        &quantities.memory_latency,
        &quantities.detection,
        &quantities.start,
    ]
    .map(|quantity| quantity.value as f64 / 1e3);
    for (lanes, delay) in [(16, DMA_ONE_WAY_DELAY), (8, 50)] {
        let one_way = delay as f64;
        let transfers = |control| {
            link_config(lanes, delay)
                .transfers(64, control, &quantities)
                .unwrap()
        };
        let [to_device, to_host] = transfers(Control::Descriptors);
        let doorbell = one_way + wire(lanes, 24 + 8) + start;
        let read = |bytes| 2.0 * one_way + wire(lanes, 24) + memory + wire(lanes, 20 + bytes);
        let status = one_way + wire(lanes, 24 + 8) + detection;
        let parts = doorbell + read(quantities.descriptor.value) + start;
        let expected = parts + read(64) + status;
        assert_eq!(to_device.direction, Direction::ToDevice);
        // Data link layer packets may delay a few packets.
        let is_near =
            |got: f64, expected: f64| (0.0..wire(lanes, 80)).contains(&(got - expected + 0.01));
        assert!(
            is_near(to_device.latency, expected),
            "{} for {expected}",
            to_device.latency
        );
        let expected = parts + wire(lanes, 24 + 64) + status;
        assert!(
            is_near(to_host.latency, expected),
            "{} for {expected}",
            to_host.latency
        );
        // Four writes to registers leave the host together.
        let registers = one_way + 4.0 * wire(lanes, 24 + 8) + start;
        let data = [read(64), wire(lanes, 24 + 64)];
        for (transfer, data) in transfers(Control::Registers).into_iter().zip(data) {
            let expected = registers + data + status;
            let latency = transfer.latency;
            assert!(is_near(latency, expected), "{latency} for {expected}");
        }
        // Nothing but the data crosses the link for an engine that is started on the device.
        let data = [read(64), one_way + wire(lanes, 24 + 64)];
        for (transfer, expected) in transfers(Control::Device).into_iter().zip(data) {
            let latency = transfer.latency;
            assert!(is_near(latency, expected), "{latency} for {expected}");
        }
    }
}

/// The latency of host memory is fitted to a 64-byte read over 8 lanes: about 550 ns.
#[test]
fn read_latency_matches_the_measurement() {
    let memory = quantities().memory_latency.value as f64 / 1e3;
    let read = 2.0 * DMA_ONE_WAY_DELAY as f64 + wire(8, 24) + memory + wire(8, 20 + 64);
    assert!((read - 550.0).abs() < 5.0, "{read}");
}

/// Large transfers saturate the lanes; small ones are limited by their descriptors.
#[test]
fn large_transfers_reach_the_rate_of_the_link() {
    let link_config = link_config(16, DMA_ONE_WAY_DELAY);
    let flows = link_config.rates().flows;
    let rate_of = |name: &str| {
        flows
            .iter()
            .find(|flow| flow.name == name && !flow.is_bidirectional)
            .unwrap()
            .run
    };
    let mut previous = [0.0; 2];
    for bytes in [128, 512, 4096, 65_536] {
        let rates = link_config
            .transfers(bytes, Control::Descriptors, &quantities())
            .unwrap()
            .map(|transfers| transfers.rate);
        assert!(
            rates[0] > previous[0] && rates[1] > previous[1],
            "{bytes}: {rates:?}"
        );
        previous = rates;
    }
    let limits = [rate_of("reads"), rate_of("writes")];
    for (rate, limit) in previous.into_iter().zip(limits) {
        assert!(
            rate < 1.005 * limit && rate > 0.9 * limit,
            "{rate} of {limit}"
        );
    }
    assert!(LinkConfig::new(Kind::Eci)
        .transfers(64, Control::Device, &quantities())
        .is_none());
}

/// Each time that is set appears in the latency as often as in the sum of steps, and a longer queue hides more latency.
#[test]
fn set_quantities_change_the_transfers() {
    let link_config = link_config(16, DMA_ONE_WAY_DELAY);
    let transfers = |setting: &str| {
        let mut quantities = quantities();
        if !setting.is_empty() {
            quantities.set(setting).unwrap();
        }
        link_config
            .transfers(64, Control::Descriptors, &quantities)
            .unwrap()
    };
    let [to_device, to_host] = transfers("");
    // The engine starts after the doorbell and after its descriptor; host memory answers for descriptor and data.
    for (setting, added) in [
        ("dma.start=150ns", [100.0, 100.0]),
        ("dma.memory_latency=332ns", [200.0, 100.0]),
        ("dma.detection=300ns", [200.0, 200.0]),
    ] {
        let changed = transfers(setting);
        for ((now, before), added) in changed.iter().zip([&to_device, &to_host]).zip(added) {
            let difference = now.latency - before.latency;
            assert!((difference - added).abs() < 6.0, "{setting}: {difference}");
        }
    }
    let [short_queue, _] = transfers("dma.queue=8");
    assert!(
        short_queue.rate < 0.5 * to_device.rate,
        "{short_queue:?} {to_device:?}"
    );
    // At 15.75 GB/s, 4064 further bytes of a descriptor take 258 ns, and a little more in packets.
    let [long_descriptor, _] = transfers("dma.descriptor=4096B");
    let added = long_descriptor.latency - to_device.latency;
    assert!((258.0..310.0).contains(&added), "{added}");
    // With one tag, each of 32 requests waits for the previous one.
    let single_tag = |read_request: &str| {
        let mut quantities = quantities();
        quantities.set("dma.tags=1").unwrap();
        quantities.set(read_request).unwrap();
        let control = Control::Descriptors;
        let [to_device, _] = link_config.transfers(4096, control, &quantities).unwrap();
        to_device.latency
    };
    let (many, one) = (
        single_tag("dma.read_request=128B"),
        single_tag("dma.read_request=4096B"),
    );
    let round_trip = 2.0 * 150.0 + 232.0;
    assert!(many - one > 31.0 * round_trip * 0.9, "{many} {one}");
    let [few_tags, _] = transfers("dma.tags=4");
    assert!(
        few_tags.rate < 0.5 * to_device.rate,
        "{few_tags:?} {to_device:?}"
    );
}
