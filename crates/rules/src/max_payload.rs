//! Rule: peers may exchange larger payloads than the root complex accepts, if every port between them is configured.

use crate::rule::Outcome;
use lanemark_config_space::{ConfigWrite, WrittenCapability, functions, setpci};
use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_platform::{LinkEnds, Platform};
use lanemark_sim::{Board, SimulatedMachine};
use lanemark_units::Ticks;
use lanemark_wire::config::{Reading, Spot, pcie::PCI_EXPRESS};

/// `Max_Payload_Size` in Device Control.
const MAX_PAYLOAD: Spot = Spot::of(&PCI_EXPRESS, "DevCtl", "MaxPayload");

/// Tests the rule with the first two cards.
///
/// Device Control of the cards alone is not sufficient. Device Control of every port that supports the size is sufficient
/// between the cards, and the root port refuses their writes.
pub(crate) fn peers_exchange_payloads_that_the_root_refuses(platform: &Platform) -> Outcome {
    let (one, other) = (platform.way_up(0), platform.way_up(1));
    let ends = |link: &LinkEnds<'_>| [link.upper_port(), link.below.to_owned()];
    let between = one.iter().chain(&other).filter(|link| !(one.contains(link) && other.contains(link)));
    let most = between.flat_map(ends).map(|port| platform.mps_supported_bytes_of(&port)).min().unwrap_or(0);
    let root = one.last().map(LinkEnds::upper_port).filter(|_| !other.is_empty()).ok_or("the rule needs two cards")?;
    let root_takes = platform.mps_supported_bytes_of(&root);
    if most <= root_takes {
        return Err(format!("ports between two cards support {most} B, the root port {root_takes} B"));
    }
    let mut ports: Vec<String> = one.iter().chain(&other).flat_map(ends).collect();
    ports.retain(|port| platform.mps_supported_bytes_of(port) >= most);
    let cards: Vec<String> =
        [platform.card_name(0), platform.card_name(1)].into_iter().flatten().map(str::to_owned).collect();
    let (to_peer, to_host) = (to_peer(platform)?, write_to(Partner::Host, 0));
    let Some(alone) = malformed_at(&written(platform, &cards, most)?, &to_peer)? else {
        return Err(format!("TLPs of {most} B pass ports that were not configured"));
    };
    let all = written(platform, &ports, most)?;
    let samples = moved(&all, to_peer)?;
    let arrived = samples.confirmed.as_ref().map_or(0, |bytes| bytes.confirmed_bytes);
    let writes = samples.traffic.as_ref().map_or(0, |traffic| traffic.write_tlps);
    if arrived != BYTES || writes != BYTES / u64::from(most) {
        return Err(format!("{arrived} of {BYTES} B arrived unchanged, in {writes} TLPs"));
    }
    let Some(refused) = malformed_at(&all, &to_host)?.filter(|port| *port == root) else {
        return Err(format!("TLPs of {most} B reach memory through a root port that accepts {root_takes} B"));
    };
    Ok(format!(
        "{BYTES} B pass between cards in {writes} TLPs of {most} B, unchanged, when Device Control of every card and switch \
         port is set to {most}. With the cards alone, they are Malformed TLPs at {alone}; writes of the cards to host \
         memory are Malformed TLPs at {refused}"
    ))
}

/// Bytes of the transfer.
const BYTES: u64 = 1 << 16;

/// The platform with Device Control of `ports` set to `bytes`.
fn written(platform: &Platform, ports: &[String], bytes: u32) -> Result<Platform, String> {
    let functions = functions(platform).map_err(|error| error.to_string())?;
    let code = MAX_PAYLOAD
        .field
        .raw_of(Reading::Quantity(bytes.into(), "bytes"))
        .ok_or("Max_Payload_Size has no code for this size")?;
    let all = (1 << MAX_PAYLOAD.field.width()) - 1;
    let of = |value: u64| MAX_PAYLOAD.field.put(0, value) as u16;
    let writes: Vec<ConfigWrite> = functions
        .iter()
        .filter(|function| ports.contains(&function.port))
        .map(|function| ConfigWrite {
            function: function.address,
            capability: WrittenCapability::Express,
            offset: MAX_PAYLOAD.register.offset,
            value: of(code),
            mask: of(all),
        })
        .collect();
    setpci(platform, &writes).map_err(|error| error.to_string())
}

/// A write of card 0.
fn write_to(partner: Partner, offset: u64) -> Transfer {
    let window = Window { offset, len: BYTES, pattern: Pattern::Sequential };
    Transfer { card: 0, verb: Verb::Store, partner, bytes: BYTES, count: 1, window, outstanding: None }
}

/// A transfer from card 0 to the largest region of card 1.
fn to_peer(platform: &Platform) -> Result<Transfer, String> {
    let region =
        platform.regions.iter().max_by_key(|region| region.size_bytes.value).ok_or("the platform has no region")?;
    let bar = u8::try_from(region.bar.value).map_err(|error| error.to_string())?;
    Ok(write_to(Partner::Peer { card: 1, bar }, region.offset_bytes.value))
}

/// Samples of one transfer.
fn moved(platform: &Platform, transfer: Transfer) -> Result<Samples, String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let mut samples = Samples::wanted(1);
    let plan = Plan::new(transfer, 1);
    machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
    Ok(samples)
}

/// The port that drops the first TLP of a transfer as malformed; `None` if none does.
fn malformed_at(platform: &Platform, transfer: &Transfer) -> Result<Option<String>, String> {
    let mut board = Board::new(platform).map_err(|error| error.to_string())?;
    board.start_transfer(transfer, 1, 0)?;
    board.run_until(Ticks::whole_ns(1_000_000));
    Ok(board.errors().first().map(|noticed| noticed.port.clone()))
}
