//! The links and switches between two ends, and the unloaded time of a packet over them.

use lanemark_platform::{Forwarding, Link, LinkEnds, PeerRoute, Platform, ROOT, Switch};
use lanemark_units::Ticks;
use lanemark_wire::flit::FlitLine;
use lanemark_wire::{Generation, Lanes, tlp_ticks, tlp_wire_bytes};

/// One direction of a link, named by the device at its lower end.
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

/// Bytes of payload per data credit.
pub(crate) const CREDIT: u32 = 16;

/// Header and data credits (16 B) of a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pool {
    pub(crate) headers: u32,
    pub(crate) data: u32,
}

impl Pool {
    pub(crate) const ENDLESS: Pool = Pool { headers: u32::MAX, data: u32::MAX };

    /// Whether two packets of these payloads can be in flight.
    fn has_room_for(self, payload_bytes: [u32; 2]) -> bool {
        self.headers >= 2 && payload_bytes.map(|bytes| bytes.div_ceil(CREDIT)).iter().sum::<u32>() <= self.data
    }
}

/// Credits of a receiver, by flow class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Credits {
    pub(crate) posted: Pool,
    pub(crate) nonposted: Pool,
    pub(crate) completion: Pool,
}

/// One link, and the switch after it if the path continues.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hop {
    pub(crate) name: LinkName,
    pub(crate) generation: Generation,
    pub(crate) lanes: Lanes,
    /// Latency, including retimers.
    pub(crate) one_way: Ticks,
    /// Latency of the opposite direction.
    pub(crate) one_way_back: Ticks,
    switch: Option<(Ticks, Forwarding)>,
    /// Alignment of the start of a packet, in DWs.
    start_dw: u32,
    /// Credits that the receiver advertises.
    pub(crate) credits: Credits,
    /// Capacity of the sender's replay buffer, in packets.
    pub(crate) replay_tlps: u32,
    /// The smaller `Max_Payload_Size` of its two ports.
    pub(crate) mps_bytes: u32,
}

impl Hop {
    /// Time between the starts of two such packets.
    pub(crate) fn pace(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        let bytes = tlp_wire_bytes(self.generation, header_dw, payload_bytes, false);
        tlp_ticks(self.generation, self.lanes, bytes.next_multiple_of(4 * self.start_dw))
    }

    /// Time of a DLLP on the link.
    pub(crate) fn dllp(&self) -> Ticks {
        tlp_ticks(self.generation, self.lanes, u32::from(self.generation.rate().dllp_bytes))
    }

    /// From the start of such a packet until its entry in the replay buffer is released.
    pub(crate) fn ack_loop(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        self.wire(header_dw, payload_bytes) + self.one_way + self.dllp() + self.one_way_back
    }

    /// Time of a FLIT, in FLIT mode.
    pub(crate) fn flit(&self) -> Ticks {
        if self.generation == Generation::Gen6 { FlitLine::new(self.lanes).flit() } else { Ticks::ZERO }
    }

    /// Time of a packet of this header and payload on the link. At 64 GT/s the receiver has it up to one FLIT later.
    pub(crate) fn wire(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        let bytes = tlp_wire_bytes(self.generation, header_dw, payload_bytes, false);
        tlp_ticks(self.generation, self.lanes, bytes)
    }
}

/// The path of a packet.
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
        let (mut generation, mut lanes, mut latency) = of_link(&platform.link)?;
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
            let [one_way_back, one_way] = with_retimers(platform, lower_port, latency);
            hops.push(Hop {
                name,
                generation,
                lanes,
                one_way,
                one_way_back,
                switch,
                start_dw,
                credits,
                replay_tlps,
                mps_bytes,
            });
            let Some(switch) = above else { return (below == ROOT).then_some(Path { hops }) };
            (generation, lanes) = trained(switch.generation.value, switch.width_lanes.value)?;
            latency = switch.link_latency_ns.value;
            below = &switch.below;
            lower_port = &switch.name;
            lower = format!("switch {}", switch.name);
        }
        None
    }

    /// From the root down to card `card`: the same links in the opposite direction.
    pub(crate) fn down(platform: &Platform, card: u32) -> Option<Path> {
        let up = Path::up(platform, card)?;
        let link = &platform.link;
        let posted = Pool { headers: link.posted_header_credits.value, data: link.posted_data_credits.value };
        let at_card = requests(posted, link.nonposted_header_credits.value);
        let mut hops = Vec::new();
        for (place, hop) in up.hops.iter().enumerate().rev() {
            // The switch below this link is the one above the next link.
            let behind = place.checked_sub(1).map(|below| &up.hops[below]);
            let credits = behind.map_or(at_card, |below| below.credits);
            let name = LinkName { is_up: false, ..hop.name.clone() };
            let switch = behind.and_then(|below| below.switch);
            let (one_way, one_way_back) = (hop.one_way_back, hop.one_way);
            hops.push(Hop { name, one_way, one_way_back, switch, start_dw: 1, credits, ..hop.clone() });
        }
        Some(Path { hops })
    }

    /// Path of requests from one card to another: through their lowest common switch, or through the root complex,
    /// which forwards whole packets.
    pub(crate) fn between(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        match platform.peer_route(from as usize, to as usize)? {
            PeerRoute::BySwitch => Path::by_switch(platform, from, to),
            PeerRoute::ByRoot => Path::by_root(platform, from, to),
            PeerRoute::Nowhere(_) => None,
        }
    }

    /// Path of completions from one card to another. Those of reads issued by the root complex pass through it; all
    /// others go through the lowest common switch, if any. Redirection applies to requests only.
    pub(crate) fn back(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        let is_split = platform.root_complex.peer_read_bytes.value > 0;
        match platform.peer_route(to as usize, from as usize)? {
            PeerRoute::ByRoot if is_split => Path::completions_by_root(platform, from, to),
            _ => Path::by_switch(platform, from, to).or_else(|| Path::completions_by_root(platform, from, to)),
        }
    }

    fn completions_by_root(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        let mut path = Path::by_root(platform, from, to)?;
        let below_root = Path::up(platform, from)?.hops.len();
        path.hops.get_mut(below_root)?.start_dw = platform.root_complex.completion_alignment_bytes.value / 4;
        Some(path)
    }

    /// As [`down`](Path::down), for completions, which the root port aligns.
    pub(crate) fn down_for_completions(platform: &Platform, card: u32) -> Option<Path> {
        let mut path = Path::down(platform, card)?;
        let start_dw = platform.root_complex.completion_alignment_bytes.value / 4;
        path.hops.first_mut()?.start_dw = start_dw;
        Some(path)
    }

    fn by_root(platform: &Platform, from: u32, to: u32) -> Option<Path> {
        let (mut up, down) = (Path::up(platform, from)?, Path::down(platform, to)?);
        up.hops.last_mut()?.switch = Some((platform.root_complex.peer_forward_ns.value, Forwarding::StoreAndForward));
        up.hops.extend(down.hops);
        Some(up)
    }

    /// The path up to the lowest common switch and down again; `None` without one.
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

    /// From the first bit sent until the packet has arrived, on an idle path.
    pub(crate) fn unloaded(&self, header_dw: u8, payload_bytes: u32) -> Ticks {
        self.behind(None, (header_dw, payload_bytes), Ticks::ZERO, |_| Pool::ENDLESS)
    }

    /// Arrival time of a packet of this header and payload that is ready at `start`, behind one that is sent at time
    /// 0 on an idle path. `shares` are the credits that both use.
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

    /// Start of a packet on the next link if it starts on this one at `start`; on the last link, its arrival.
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

    /// From the start of a packet on this link until the sender has its credits again, on an idle path. On the last
    /// link, they are released `at_end` later.
    pub(crate) fn credit_loop(&self, place: usize, header_dw: u8, payload_bytes: u32, at_end: Ticks) -> Ticks {
        let hop = &self.hops[place];
        let held = if place + 1 == self.hops.len() { at_end } else { Ticks::ZERO };
        self.goes_on(place, Ticks::ZERO, header_dw, payload_bytes) + held + hop.dllp() + hop.one_way_back
    }

    /// Whether both directions of the path use the same link at this position.
    pub(crate) fn turns_at(&self, place: usize) -> bool {
        let here = &self.hops[place].name;
        self.hops.iter().any(|hop| hop.name.lower == here.lower && hop.name.is_up != here.is_up)
    }

    /// The link with the longest time between the starts of such packets.
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

/// Credits of a receiver that requested the completions and has space for them.
fn requests(posted: Pool, nonposted: u32) -> Credits {
    Credits { posted, nonposted: Pool { headers: nonposted, ..Pool::ENDLESS }, completion: Pool::ENDLESS }
}

fn of_switch(switch: &Switch) -> Credits {
    let posted = Pool { headers: switch.posted_header_credits.value, data: switch.posted_data_credits.value };
    let completion =
        Pool { headers: switch.completion_header_credits.value, data: switch.completion_data_credits.value };
    Credits { completion, ..requests(posted, switch.nonposted_header_credits.value) }
}

/// Latencies of the link above `lower`, down and up. Each of its retimers adds one per direction.
pub(crate) fn with_retimers(platform: &Platform, lower: &str, latency: Ticks) -> [Ticks; 2] {
    let (mut down, mut up) = (latency, latency);
    for retimer in platform.retimers_on(lower) {
        down += retimer.down_ns.value;
        up += retimer.up_ns.value;
    }
    [down, up]
}

fn of_link(link: &Link) -> Option<(Generation, Lanes, Ticks)> {
    let (generation, lanes) = trained(link.generation.value, link.width_lanes.value)?;
    Some((generation, lanes, link.latency_ns.value))
}

fn trained(generation: u32, lanes: u32) -> Option<(Generation, Lanes)> {
    let generation = Generation::from_number(u8::try_from(generation).ok()?)?;
    Some((generation, Lanes::new(u8::try_from(lanes).ok()?)?))
}
