//! Links with frames, credits and retransmission: two endpoints of [`cohkit_link`] with lanes between them, in
//! time.
//!
//! A [`Port`] holds all links between a caching agent and the home. A message is offered at one side and waits
//! until its circuit has room in the endpoint there. It travels as the link layer specifies, and can be taken at
//! the other side when it is complete, at the receiver's rate. A message that is not taken keeps its buffer space,
//! so a stopped circuit blocks no other.
//!
//! This file maps the messages of a protocol to the circuits of each framing.

mod port;
mod wired;

use cohkit_base::words::counted;
use cohkit_link::{cxl, Lanes};
use cohkit_protocol::protocol::{Channel, Class, End, MessageId, Protocol};
use std::rc::Rc;

use crate::platform::{self, Framing};

pub(crate) use port::{Port, Unclaimed};

/// Mapping of a message kind to a link layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindTiming {
    /// Numbers of the framing's virtual circuits for even and for odd line numbers.
    circuits: [u8; 2],
    /// Bytes of data besides the header; 0 for a message without data.
    bytes: u16,
    /// True if messages about one line keep an order, and therefore take the same link.
    ordered: bool,
}

/// Rejects link quantities that no link layer supports.
///
/// # Errors
/// A sentence that names the quantity.
pub(crate) fn check(layer: &platform::Layer) -> Result<(), String> {
    let (degraded_lanes, all_lanes) = (layer.degraded_lanes.value, layer.lanes.value);
    let can_fail = layer.mean_uptime.value > 0;
    let is_pcie = layer.framing != Framing::Eci;
    for (name, lanes) in [
        ("lanes", Some(all_lanes)),
        ("degraded_lanes", can_fail.then_some(degraded_lanes)),
    ] {
        let framing = layer.framing.name();
        lanes.map_or(Ok(0), |lanes| {
            Lanes::validate_count(lanes, is_pcie).map_err(|supported| {
                format!("a link of {framing} has {supported}, not {lanes}: `link.{name}`")
            })
        })?;
    }
    match can_fail && degraded_lanes > all_lanes {
        true => Err(format!(
            "a link of {} cannot come up with {degraded_lanes}: `link.degraded_lanes` must be 1 to {all_lanes}",
            counted(all_lanes, "lane")
        )),
        false => Ok(()),
    }
}

/// Rejects framings that cannot carry the messages of a home at either end.
///
/// # Errors
/// A sentence that names the supported framings.
pub(crate) fn check_bidirectional(framing: Framing) -> Result<(), String> {
    let supported = match framing {
        Framing::Eci | Framing::Ccix => return Ok(()),
        Framing::Cxl68 | Framing::Cxl256 => "CXL.mem, whose home is the device",
        Framing::CxlCache68 => "CXL.cache, whose home is the host",
    };
    Err(format!(
        "links of {} carry {supported}, but not both directions: `link.layer` of both directions is eci, ccix or none",
        framing.name()
    ))
}

/// Number of bytes after which the link layer of PCIe must send an owed acknowledgement or credit return, for this
/// number of lanes.
fn packet_limit(lanes: u32) -> u64 {
    if lanes > 8 {
        168
    } else {
        203
    }
}

/// Rejects protocols whose lines or channels a framing does not carry.
fn check_support(protocol: &Protocol, framing: Framing) -> Result<(), String> {
    let line = protocol.line_bytes;
    let is_supported = match framing {
        Framing::Eci => line.is_multiple_of(32) && line <= 128,
        Framing::Ccix => line <= 128,
        Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => {
            line == u32::from(cxl::LINE_BYTES)
        }
    };
    if !is_supported {
        let (name, framing) = (&protocol.name, framing.name());
        return Err(format!(
            "a line of {name} has {line} bytes, which links of {framing} do not carry"
        ));
    }
    let has_no_class = |channel: &&Channel| channel.class.is_none();
    if let Some(channel) = protocol.channels.iter().find(has_no_class) {
        let (name, framing) = (&channel.name, framing.name());
        return Err(format!(
            "channel `{name}` has no class, but links of {framing} need it to distinguish requests from responses: declare `{name} as request`, or as another class"
        ));
    }
    Ok(())
}

/// Maps each message kind of a protocol to a framing. `payloads` has the payload bytes of each kind. The result is
/// indexed by message kind, too.
///
/// # Errors
/// A sentence that names the message, channel or line size that the framing cannot carry.
pub(crate) fn kind_timings(
    protocol: &Protocol,
    framing: Framing,
    payloads: &[u32],
) -> Result<Rc<[KindTiming]>, String> {
    check_support(protocol, framing)?;
    let line = protocol.line_bytes;
    let timing_of = |id: MessageId| {
        let payload = payloads[id.index()];
        let up = protocol.channel_of(id).from == End::Remote;
        let class = protocol.class(id);
        let data = payload > 0;
        let bytes = match framing {
            Framing::Eci => payload.next_multiple_of(32),
            Framing::Ccix => payload,
            Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => {
                if data {
                    line
                } else {
                    0
                }
            }
        };
        KindTiming {
            circuits: circuits(framing, class, data, up),
            bytes: bytes as u16,
            ordered: false,
        }
    };
    let mut timings: Vec<KindTiming> = protocol.message_ids().map(timing_of).collect();
    if framing == Framing::Cxl68 {
        let unsupported = protocol.message_ids().zip(&timings).find(|(id, timing)| {
            let up = protocol.channel_of(*id).from == End::Remote;
            let flits = cxl::Flits::Small;
            flits
                .header_bits(sender(framing, up), timing.circuits[0])
                .is_none()
        });
        if let Some((id, _)) = unsupported {
            let name = &protocol.message(id).name;
            return Err(format!(
                "{name} is a back-invalidate message, which cxl-68 links do not carry; use cxl-256"
            ));
        }
    }
    let receiver_orders = receiver_ordered(protocol, framing);
    for (number, order) in protocol.orders.iter().enumerate() {
        if receiver_orders.contains(&number) {
            continue;
        }
        keep_order(protocol, framing, &mut timings, |id| {
            order.contains(&protocol.message(id).channel)
        })?;
    }
    for rule in &protocol.point_orders {
        // CXL keeps no order between two classes. The receiver enforces this one.
        let message_circuits = timings[rule.message.index()].circuits;
        let is_in_other_circuit = |id: &MessageId| timings[id.index()].circuits != message_circuits;
        if is_cxl(framing) && rule.earlier.iter().any(is_in_other_circuit) {
            continue;
        }
        keep_order(protocol, framing, &mut timings, |id| {
            id == rule.message || rule.earlier.contains(&id)
        })?;
    }
    Ok(timings.into())
}

/// True for the framings of CXL, which keep no order between two classes of messages.
fn is_cxl(framing: Framing) -> bool {
    matches!(
        framing,
        Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68
    )
}

/// Role on CXL links of the caching agent, if `from_agent`, or of the home.
fn sender(framing: Framing, from_agent: bool) -> cxl::Side {
    let agent_side = match framing {
        Framing::CxlCache68 => cxl::Side::CachingDevice,
        _ => cxl::Side::Host,
    };
    if from_agent {
        agent_side
    } else {
        agent_side.partner()
    }
}

/// Indices of the protocol's orders that links do not keep, so that receivers must: the per-line orders of CXL.cache
/// between snoops and the responses sent before them.
pub(crate) fn receiver_ordered(protocol: &Protocol, framing: Framing) -> Vec<usize> {
    let leads_to_remotes = |number: &usize| {
        let mut order = protocol.orders[*number].iter();
        order.all(|channel| protocol.channels[channel.index()].from == End::Home)
    };
    let orders = 0..protocol.orders.len();
    orders
        .filter(|_| framing == Framing::CxlCache68)
        .filter(|&number| protocol.per_line[number])
        .filter(leads_to_remotes)
        .collect()
}

/// Assigns the messages for which `is_ordered` is true to one circuit, one with data if any of them carries data.
///
/// # Errors
/// A sentence, if the framing keeps no order between the classes of two of the messages.
fn keep_order(
    protocol: &Protocol,
    framing: Framing,
    timings: &mut [KindTiming],
    is_ordered: impl Fn(MessageId) -> bool,
) -> Result<(), String> {
    let ordered_messages: Vec<MessageId> = protocol
        .message_ids()
        .filter(|&id| is_ordered(id))
        .collect();
    let data_message = ordered_messages
        .iter()
        .find(|id| timings[id.index()].bytes > 0);
    let Some(leader) = data_message.or(ordered_messages.first()) else {
        return Ok(());
    };
    let circuits = timings[leader.index()].circuits;
    for id in &ordered_messages {
        let timing = &mut timings[id.index()];
        if is_cxl(framing) && timing.circuits != circuits {
            let (leader_name, message_name) =
                (&protocol.message(*leader).name, &protocol.message(*id).name);
            return Err(format!(
                "{leader_name} and {message_name} are ordered, but belong to two classes of {}, which are unordered",
                framing.name()
            ));
        }
        (timing.circuits, timing.ordered) = (circuits, true);
    }
    Ok(())
}

/// Returns the circuits of a message for even and for odd line numbers. `data` is true if the message carries data,
/// `up` if a caching agent sends it.
fn circuits(framing: Framing, class: Option<Class>, data: bool, up: bool) -> [u8; 2] {
    let is_request = matches!(class, Some(Class::Request | Class::Victim));
    match framing {
        // A line with an odd number uses the even circuit, and the reverse.
        Framing::Eci => match (class, data) {
            (Some(Class::Request), true) => [3, 2],
            (Some(Class::Request), false) => [7, 6],
            (Some(Class::Forward), false) => [9, 8],
            (_, true) => [5, 4],
            (_, false) => [11, 10],
        },
        Framing::Ccix => match class {
            _ if data => [3; 2],
            _ if is_request => [0; 2],
            Some(Class::Forward) => [1; 2],
            _ => [2; 2],
        },
        Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => match (data, up) {
            (true, _) => [cxl::DATA; 2],
            (false, true) if is_request => [cxl::REQUEST; 2],
            (false, false) if class == Some(Class::Forward) => [cxl::REQUEST; 2],
            _ => [cxl::RESPONSE; 2],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohkit_protocol::protocol::Carries;
    use cohkit_protocol::text::parse;

    /// Protocol with a channel of every class, in both directions.
    const TEXT: &str = r#"
        protocol text "channels of every class"
        line 64 bytes
        channels {
          ask   as request          remote -> home
          back  as victim           remote -> home
          said  as acknowledgement  remote -> home
          take  as forward          home -> remote
          here  as grant            home -> remote
        }
        messages {
          ask: Want; back: Gone, Full (line); said: Told
          take: Loose; here: Line (line), Free
        }
        remote holder {
          states { N; H reads writes dirty; W waits Line; B waits Free }
          N | load store | send Want | W
          W | Line       |           | H
          H | evict      | send Full | B
          H | Loose      | send Full | B
          H | demote     | send Gone, send Full | B
          B | Free       | send Told | N
          N B W | Loose  |           | stay
        }
        home one {
          states { N; H }
          variables { whose: remote }
          N | Want | send Line, whose := sender | H
          H | Want | send Loose to whose, send Line, whose := sender | stay
          H N | Full | write, send Free, whose := none | N
          H N | Gone Told | | stay
        }
    "#;

    /// The class determines the bits of a header. If the forward `Loose` were classified as a response, its header
    /// would be too short.
    #[test]
    fn messages_are_of_the_class_of_their_channel() {
        let protocol = parse(TEXT).unwrap_or_else(|errors| {
            let reports = errors.iter().map(|error| error.render("text", TEXT, false));
            panic!("{}", reports.collect::<String>())
        });
        let payload = |id| match protocol.message(id).carries {
            Carries::Nothing => 0,
            _ => protocol.line_bytes,
        };
        let payloads: Vec<u32> = protocol.message_ids().map(payload).collect();
        let timings = kind_timings(&protocol, Framing::Cxl256, &payloads).unwrap();
        let circuits = protocol.message_ids().zip(timings.iter());
        let circuits: Vec<(&str, u8)> = circuits
            .map(|(id, timing)| (protocol.message(id).name.as_str(), timing.circuits[0]))
            .collect();
        let expected = [
            ("Want", cxl::REQUEST),
            ("Gone", cxl::REQUEST),
            ("Full", cxl::DATA),
            ("Told", cxl::RESPONSE),
            ("Loose", cxl::REQUEST),
            ("Line", cxl::DATA),
            ("Free", cxl::RESPONSE),
        ];
        assert_eq!(circuits, expected);
    }
}
