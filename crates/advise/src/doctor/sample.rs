//! Small inventories for tests: a healthy machine, one with several cards, and one with a switch.

use super::{DiagnosisRequest, diagnose};
use lanemark_inventory::{
    Express, Feature, Function, Inventory, Link, Region, RegionKind, Seen, Source, Unseen, Why, Width,
};
use lanemark_record::diagnosis::Finding;
use lanemark_units::HostPhys;
use lanemark_wire::config::{Aspm, BarKind, LinkSpeed, PortType};
use lanemark_wire::{Mps, Mrrs};

/// Indices in [`healthy`].
pub(crate) const PORT: usize = 0;
pub(crate) const CARD: usize = 1;
/// Address of BAR2 of the card.
pub(crate) const BAR_BASE: u64 = 0x20_0000_0000;

pub(crate) fn known<T>(fact: T) -> Seen<T> {
    Seen::Known(fact)
}

pub(crate) fn unseen<T>() -> Seen<T> {
    Seen::Unseen(Why::NotInDump)
}

/// A root port and a Gen4 x16 card without findings.
pub(crate) fn healthy() -> Inventory {
    let mut machine = Inventory::unseen(Source::ThisMachine, &Why::NotInDump);
    machine.functions = vec![
        function("0000:00:01.0", None, PortType::RootPort),
        function("0000:01:00.0", Some("0000:00:01.0"), PortType::Endpoint),
    ];
    let bar = Region {
        kind: RegionKind::Bar(2),
        space: BarKind::Memory64,
        base: known(Some(HostPhys(BAR_BASE))),
        bytes: known(256 << 20),
        prefetchable: true,
        write_combining_file: known(true),
    };
    machine.functions[CARD].regions = known(vec![bar]);
    machine.processors.vendor = known("GenuineIntel".to_owned());
    machine.unseen = Vec::<Unseen>::new();
    machine
}

/// `count` root ports, each with a Gen4 x16 card, without findings; the root ports come first.
pub(crate) fn root_ports(count: usize) -> Inventory {
    let mut machine = healthy();
    machine.functions.clear();
    let port = |nth: usize| format!("0000:00:{nth:02x}.0");
    machine.functions.extend((1..=count).map(|nth| function(&port(nth), None, PortType::RootPort)));
    let card = |nth: usize| function(&format!("0000:{nth:02x}:00.0"), Some(&port(nth)), PortType::Endpoint);
    machine.functions.extend((1..=count).map(card));
    machine
}

/// A root port and a switch with `cards` Gen4 x16 cards, ordered by address.
pub(crate) fn switch(cards: usize) -> Inventory {
    let mut machine = healthy();
    machine.functions.truncate(1);
    machine.functions.push(function("0000:01:00.0", Some("0000:00:01.0"), PortType::UpstreamPort));
    for card in 0..cards {
        machine.functions.push(function(
            &format!("0000:02:{card:02x}.0"),
            Some("0000:01:00.0"),
            PortType::DownstreamPort,
        ));
    }
    for card in 0..cards {
        let (own, above) = (format!("0000:{:02x}:00.0", card + 3), format!("0000:02:{card:02x}.0"));
        machine.functions.push(function(&own, Some(&above), PortType::Endpoint));
    }
    machine
}

/// Indices of the downstream ports of [`switch`].
pub(crate) fn switch_ports(cards: usize) -> std::ops::Range<usize> {
    2..2 + cards
}

/// Index of the card below a downstream port of a switch with two cards.
pub(crate) fn card_below(port: usize) -> usize {
    port + 2
}

fn function(address: &str, parent: Option<&str>, kind: PortType) -> Function {
    let mut function = Function::unseen(address.parse().unwrap(), &Why::NotInDump);
    function.parent = known(parent.map(|parent| parent.parse().unwrap()));
    let mut link = Link::unseen(&Why::NotInDump);
    (link.fastest, link.widest) = (known(LinkSpeed::Gt16), known(Width(16)));
    (link.speed, link.width) = (known(LinkSpeed::Gt16), known(Width(16)));
    link.target = known(LinkSpeed::Gt16);
    link.aspm_enabled = known(Aspm { l0s: false, l1: false });
    let mut express = Express::unseen(&Why::NotInDump);
    express.kind = known(kind);
    express.link = known(Some(link));
    (express.mps, express.mps_supported) = (known(Mps::new(256).unwrap()), known(Mps::new(256).unwrap()));
    express.mrrs = known(Mrrs::new(4096).unwrap());
    express.extended_tags = Feature { supported: known(true), enabled: known(true) };
    express.ten_bit_tags = Feature { supported: known(false), enabled: known(false) };
    express.relaxed_ordering_enabled = known(true);
    function.express = known(Some(express));
    function.acs = known(None);
    function
}

/// Configuration space of a card with a PCI Express capability of version 2 at 0x40, modified by `change`.
pub(crate) fn config(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[..4].copy_from_slice(&[0x86, 0x80, 0x34, 0x12]);
    bytes[0x06] = 0x10;
    bytes[0x34] = 0x40;
    bytes[0x40..0x44].copy_from_slice(&[0x10, 0x00, 0x02, 0x00]);
    change(&mut bytes);
    bytes
}

pub(crate) fn express(machine: &mut Inventory, place: usize) -> &mut Express {
    match &mut machine.functions[place].express {
        Seen::Known(Some(express)) => express,
        Seen::Known(None) | Seen::Unseen(_) => panic!("no PCI Express capability"),
    }
}

pub(crate) fn link(machine: &mut Inventory, place: usize) -> &mut Link {
    match &mut express(machine, place).link {
        Seen::Known(Some(link)) => link,
        Seen::Known(None) | Seen::Unseen(_) => panic!("no link"),
    }
}

pub(crate) fn bar(machine: &mut Inventory, place: usize) -> &mut Region {
    match &mut machine.functions[place].regions {
        Seen::Known(regions) => &mut regions[0],
        Seen::Unseen(_) => panic!("no regions"),
    }
}

/// Findings of one check.
pub(crate) fn findings_of(machine: &Inventory, check: &str) -> Vec<Finding> {
    let mut found = diagnose(machine, &DiagnosisRequest::default()).findings;
    found.retain(|finding| finding.check == check);
    found
}
