//! The links and switches between two ends, and how long a packet takes over them when nothing else does.

use lanemark_platform::{Forwarding, Link, LinkEnds, PeerWay, Platform, ROOT, Switch};
use lanemark_units::Ticks;
use lanemark_wire::flit::FlitLine;
use lanemark_wire::{Generation, Lanes, tlp_ticks, tlp_wire_bytes};

/// One direction of a link, by what is at its lower end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkName {
    lower: String,
    is_up: bool,
}

impl std::fmt::Display for LinkName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", if self.is_up { "up from" } else { "down to" }, self.lower)
    }
}

/// Bytes of payload that a data credit is for.
pub(crate) const CREDIT: u32 = 16;

/// Headers, and data of 16 B, that a receiver has room for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pool {
    pub(crate) headers: u32,
    pub(crate) data: u32,
}

impl Pool {
    pub(crate) const ENDLESS: Pool = Pool { headers: u32::MAX, data: u32::MAX };

    /// Whether two packets of these payloads can be under way.
    fn has_room_for(self, payload_bytes: [u32; 2]) -> bool {
        self.headers >= 2 && payload_bytes.map(|bytes| bytes.div_ceil(CREDIT)).iter().sum::<u32>() <= self.data
    }
}

/// What a receiver has room for, by class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Credits {
    pub(crate) posted: Pool,
    pub(crate) nonposted: Pool,
    pub(crate) completion: Pool,
}

/// One link, and the switch behind it, if the way goes on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hop {
    pub(crate) name: LinkName,
    pub(crate) generation: Generation,
    pub(crate) lanes: Lanes,
    pub(crate) one_way: Ticks,
    switch: Option<(Ticks, Forwarding)>,
    /// A packet starts at a multiple of this many DWs.
    start_dw: u32,
    /// What the receiver advertises.
    pub(crate) credits: Credits,
    /// How many packets its sender keeps until they are acknowledged.
    pub(crate) replay_tlps: u32,
    /// The smaller `Max_Payload_Size` of its two ports.
    pub(crate) mps_bytes: u32,
}

impl Hop {
    /// Time from the start of such a packet to that of the next.
    pub(crate) fn pace(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        let bytes = tlp_wire_bytes(self.generation, header_dw, payload_bytes, false);
        tlp_ticks(self.generation, self.lanes, bytes.next_multiple_of(4 * self.start_dw))
    }

    /// Time of a DLLP on the line.
    pub(crate) fn dllp(&self) -> Ticks {
        tlp_ticks(self.generation, self.lanes, u32::from(self.generation.rate().dllp_bytes))
    }

    /// From the start of such a packet until its place in the replay buffer is free again.
    pub(crate) fn ack_loop(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        self.wire(header_dw, payload_bytes) + self.one_way + self.dllp() + self.one_way
    }

    /// Time of a FLIT, if it carries those.
    pub(crate) fn flit(&self) -> Ticks {
        if self.generation == Generation::Gen6 { FlitLine::new(self.lanes).flit() } else { Ticks::ZERO }
    }

    /// Time of a packet of this header and payload on the line; at 64 GT/s the receiver has it up to a FLIT later.
    pub(crate) fn wire(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        let bytes = tlp_wire_bytes(self.generation, header_dw, payload_bytes, false);
        tlp_ticks(self.generation, self.lanes, bytes)
    }
}

/// The way of a packet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) hops: Vec<Hop>,
}

impl Path {
    /// From card `card` up to the root.
    pub(crate) fn up(platform: &Platform, card: u32) -> Option<Path> {
        let mut below = below(platform, card)?;
        let mut hops = Vec::new();
        let root = &platform.root_complex;
        let posted = Pool { headers: root.posted_header_credits.value, data: root.posted_data_credits.value };
        let at_root = requests(posted, root.nonposted_header_credits.value);
        let replay_tlps = |generation| match platform.link.replay_tlps.value {
            tlps if tlps > 0 && generation != Generation::Gen6 => tlps,
            _ => u32::MAX,
        };
        let (mut generation, mut lanes, mut one_way) = of_link(&platform.link)?;
        let slot = platform.slots.get(card as usize).map(|slot| slot.name.as_str());
        let mut lower_port = platform.card_name(card as usize)?;
        let mut lower = slot.map_or_else(|| "the card".to_owned(), |name| format!("slot {name}"));
        for _ in 0..=platform.switches.len() {
            let above = platform.switches.iter().find(|switch| switch.name == below);
            let behind = above.map(|switch| (switch.latency_ns.value, switch.forwarding.value));
            let credits = above.map_or(at_root, of_switch);
            let start_dw = if hops.is_empty() { platform.link.tlp_alignment_bytes.value / 4 } else { 1 };
            let name = LinkName { lower, is_up: true };
            let mps_bytes = platform.mps_bytes_across(LinkEnds { above: below, below: lower_port });
            let replay_tlps = replay_tlps(generation);
            let switch = behind;
            hops.push(Hop { name, generation, lanes, one_way, switch, start_dw, credits, replay_tlps, mps_bytes });
            let Some(switch) = above else { return (below == ROOT).then_some(Path { hops }) };
            (generation, lanes) = trained(switch.generation.value, switch.width_lanes.value)?;
            one_way = switch.link_latency_ns.value;
            below = &switch.below;
            lower_port = &switch.name;
            lower = format!("switch {}", switch.name);
        }
        None
    }

    /// From the root down to card `card`: the same links, the other way.
    pub(crate) fn down(platform: &Platform, card: u32) -> Option<Path> {
        let up = Path::up(platform, card)?;
        let link = &platform.link;
        let posted = Pool { headers: link.posted_header_credits.value, data: link.posted_data_credits.value };
        let at_card = requests(posted, link.nonposted_header_credits.value);
        let mut hops = Vec::new();
        for (place, hop) in up.hops.iter().enumerate().rev() {
            // The switch that this link leads down to is the one that the link below it led up to.
            let behind = place.checked_sub(1).map(|below| &up.hops[below]);
            let credits = behind.map_or(at_card, |below| below.credits);
            let name = LinkName { is_up: false, ..hop.name.clone() };
            let switch = behind.and_then(|below| below.switch);
            hops.push(Hop { name, switch, start_dw: 1, credits, ..hop.clone() });
        }
        Some(Path { hops })
    }

    /// The way of requests from one card to another: by the lowest switch above both, or through the root complex, which takes
    /// all of a packet before it sends it on.
    pub(crate) fn between(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        match platform.peer_way(from as usize, to as usize)? {
            PeerWay::BySwitch => Path::by_switch(platform, from, to),
            PeerWay::ByRoot => Path::by_root(platform, from, to),
            PeerWay::Nowhere(_) => None,
        }
    }

    /// The way of completions from one card to another that asked: those of reads that the root complex made come by it, and
    /// all others by the lowest switch above both, if there is one; redirecting is for requests.
    pub(crate) fn back(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        let is_split = platform.root_complex.peer_read_bytes.value > 0;
        match platform.peer_way(to as usize, from as usize)? {
            PeerWay::ByRoot if is_split => Path::by_root(platform, from, to),
            _ => Path::by_switch(platform, from, to).or_else(|| Path::by_root(platform, from, to)),
        }
    }

    fn by_root(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        let (mut up, down) = (Path::up(platform, from)?, Path::down(platform, to)?);
        up.hops.last_mut()?.switch = Some((platform.root_complex.peer_forward_ns.value, Forwarding::StoreAndForward));
        up.hops.extend(down.hops);
        Some(up)
    }

    /// Up as far as both ways are the same, and down; `None` if they share no switch.
    fn by_switch(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        let (mut above_from, mut above_to) = (switches_above(platform, from)?, switches_above(platform, to)?);
        let mut shared = 0;
        while let (Some(one), Some(other)) = (above_from.pop(), above_to.pop()) {
            if one != other {
                break;
            }
            shared += 1;
        }
        if shared == 0 {
            return None;
        }
        let (up, down) = (Path::up(platform, from)?, Path::down(platform, to)?);
        let kept = up.hops.len() - shared;
        let mut hops = up.hops[..kept].to_vec();
        hops.extend_from_slice(&down.hops[shared..]);
        Some(Path { hops })
    }

    /// From the first bit sent to the packet at the other end, with nothing else on the way.
    pub(crate) fn unloaded(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        self.behind(None, (header_dw, payload_bytes), Ticks::ZERO, |_| Pool::ENDLESS)
    }

    /// When a packet of this header and payload is at the other end that may go from `start` on, behind one that goes at
    /// time 0 and finds nothing on its way; `shares` are the credits that both are sent by.
    pub(crate) fn behind(
        &self,
        ahead: Option<(u8, u32)>,
        (header_dw, payload_bytes): (u8, u32),
        start: Ticks,
        shares: fn(&Hop) -> Pool,
    ) -> Ticks {
        let (mut start, own_bytes) = (start, payload_bytes);
        let mut start_ahead = Ticks::ZERO;
        let mut arrives = Ticks::ZERO;
        for (place, hop) in self.hops.iter().enumerate() {
            if let Some((header_dw, payload_bytes)) = ahead {
                start = start.max(start_ahead + hop.pace(header_dw, payload_bytes));
                if !shares(hop).has_room_for([payload_bytes, own_bytes]) {
                    start = start.max(start_ahead + self.credit_loop(place, header_dw, payload_bytes, Ticks::ZERO));
                }
                if hop.replay_tlps < 2 {
                    start = start.max(start_ahead + hop.ack_loop(header_dw, payload_bytes));
                }
                start_ahead = self.goes_on(place, start_ahead, header_dw, payload_bytes);
            }
            arrives = start + hop.wire(header_dw, payload_bytes) + hop.one_way;
            start = self.goes_on(place, start, header_dw, payload_bytes);
        }
        arrives
    }

    /// When a packet that goes on the link of this place at `start` goes on the next one; at the last it has arrived.
    fn goes_on(&self, place: usize, start: Ticks, header_dw: u8, payload_bytes: u32) -> Ticks {
        let hop = &self.hops[place];
        let arrives = start + hop.wire(header_dw, payload_bytes) + hop.one_way;
        let (Some((latency, forwarding)), Some(next)) = (hop.switch, self.hops.get(place + 1)) else { return arrives };
        let header = start + hop.wire(header_dw, 0) + hop.one_way;
        let time_out = next.wire(header_dw, payload_bytes);
        let go = match forwarding {
            Forwarding::StoreAndForward => arrives,
            Forwarding::CutThrough => header.max(Ticks(arrives.0.saturating_sub(time_out.0))),
        };
        go + latency
    }

    /// From the start of a packet on the link of this place until its sender has its credits again, which is `at_end` later
    /// where it goes no further; with nothing else on the way.
    pub(crate) fn credit_loop(&self, place: usize, header_dw: u8, payload_bytes: u32, at_end: Ticks) -> Ticks {
        let hop = &self.hops[place];
        let held = if place + 1 == self.hops.len() { at_end } else { Ticks::ZERO };
        self.goes_on(place, Ticks::ZERO, header_dw, payload_bytes) + held + hop.dllp() + hop.one_way
    }

    /// Whether what goes on the link of this place goes on the same one the other way too.
    pub(crate) fn turns_at(&self, place: usize) -> bool {
        let here = &self.hops[place].name;
        self.hops.iter().any(|hop| hop.name.lower == here.lower && hop.name.is_up != here.is_up)
    }

    /// The link on which such packets follow each other slowest.
    pub(crate) fn slowest(&self, header_dw: u8, payload_bytes: u32) -> Option<&Hop> {
        self.hops.iter().max_by_key(|hop| hop.pace(header_dw, payload_bytes))
    }
}

fn below(platform: &Platform, card: u32) -> Option<&str> {
    if platform.slots.is_empty() && card == 0 {
        return Some(ROOT);
    }
    platform.slots.get(card as usize).map(|slot| slot.below.as_str())
}

/// The switches above a card, the lowest first.
fn switches_above(platform: &Platform, card: u32) -> Option<Vec<&str>> {
    let (mut names, mut at) = (Vec::new(), below(platform, card)?);
    while let Some(switch) = platform.switches.iter().find(|switch| switch.name == at) {
        if names.len() > platform.switches.len() {
            return None;
        }
        names.push(at);
        at = &switch.below;
    }
    Some(names)
}

/// Of a receiver that asks for what completions bring, and so has room for them.
fn requests(posted: Pool, nonposted: u32) -> Credits {
    Credits { posted, nonposted: Pool { headers: nonposted, ..Pool::ENDLESS }, completion: Pool::ENDLESS }
}

fn of_switch(switch: &Switch) -> Credits {
    let posted = Pool { headers: switch.posted_header_credits.value, data: switch.posted_data_credits.value };
    let completion =
        Pool { headers: switch.completion_header_credits.value, data: switch.completion_data_credits.value };
    Credits { completion, ..requests(posted, switch.nonposted_header_credits.value) }
}

fn of_link(link: &Link) -> Option<(Generation, Lanes, Ticks)> {
    let (generation, lanes) = trained(link.generation.value, link.width_lanes.value)?;
    Some((generation, lanes, link.latency_ns.value))
}

fn trained(generation: u32, lanes: u32) -> Option<(Generation, Lanes)> {
    let generation = Generation::from_number(u8::try_from(generation).ok()?)?;
    Some((generation, Lanes::new(u8::try_from(lanes).ok()?)?))
}
