//! Costs of single steps on a platform, in nanoseconds: the terms of all formulas.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::path::{Path, with_retimers};
use lanemark_machine::{Access, Fence, Verb, Width};
use lanemark_platform::memcpy::Pieces;
use lanemark_platform::{Platform, Region};
use lanemark_units::{MemoryType, Ticks};
use lanemark_wire::{Generation, Lanes, Mps, ack_latency_limit, tlp_ticks, tlp_wire_bytes};

/// Cost terms for one region of a platform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs<'a> {
    pub(crate) platform: &'a Platform,
    pub(crate) region: &'a Region,
    generation: Generation,
    lanes: Lanes,
    request_header_dw: u8,
    /// One core cycle, in whole ticks as in the simulator.
    pub(crate) cycle: f64,
    /// Round trip between a core and the root complex.
    pub(crate) round_trip: f64,
    /// Latency of the card's link, downstream.
    down: f64,
    /// Latency of the card's link, upstream.
    up: f64,
    ingress: f64,
    egress: f64,
    beat: f64,
    region_read: f64,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(platform: &'a Platform, region: &'a Region) -> Option<Costs<'a>> {
        let bar = platform.bar(u8::try_from(region.bar.value).ok()?)?;
        let address = bar.address_bytes.value + region.offset_bytes.value;
        let [down, up] = with_retimers(platform, platform.card_name(0)?, platform.link.latency_ns.value);
        Some(Costs {
            platform,
            region,
            generation: Generation::from_number(u8::try_from(platform.link.generation.value).ok()?)?,
            lanes: Lanes::new(u8::try_from(platform.link.width_lanes.value).ok()?)?,
            request_header_dw: if address >= 1 << 32 { 4 } else { 3 },
            cycle: whole_ticks(1.0 / platform.core.clock_ghz.value),
            round_trip: platform.root_complex.core_round_trip_ns.value.as_ns(),
            down: down.as_ns(),
            up: up.as_ns(),
            ingress: platform.endpoint.ingress_ns.value.as_ns(),
            egress: platform.endpoint.egress_ns.value.as_ns(),
            beat: region.beat_ns.value.as_ns(),
            region_read: region.read_ns.value.as_ns(),
        })
    }

    /// Time of a TLP with this payload on the link; requests to addresses from 4 GiB have 4 DW headers.
    pub(crate) fn serialise(&self, verb: Verb, payload_bytes: u64) -> f64 {
        let header = match verb {
            Verb::Store => self.request_header_dw,
            // Completions have 3 DW headers.
            Verb::Load => 3,
        };
        let wire = tlp_wire_bytes(self.generation, header, payload_bytes as u32, false);
        tlp_ticks(self.generation, self.lanes, wire).as_ns()
    }

    /// Time of a read request on the link.
    pub(crate) fn serialise_read(&self) -> f64 {
        let wire = tlp_wire_bytes(self.generation, self.request_header_dw, 0, false);
        tlp_ticks(self.generation, self.lanes, wire).as_ns()
    }

    /// Extra latency of a packet on the links and switches between root and the card's own link, when idle. `own` is the
    /// latency of that link.
    fn switches(&self, path: fn(&Platform, u32) -> Option<Path>, own: f64, header_dw: u8, payload_bytes: u64) -> f64 {
        if self.platform.switches.is_empty() {
            return 0.0;
        }
        let wire = tlp_wire_bytes(self.generation, header_dw, payload_bytes as u32, false);
        let own_link = tlp_ticks(self.generation, self.lanes, wire).as_ns() + own;
        let all = path(self.platform, 0).map_or(0.0, |path| path.unloaded(header_dw, payload_bytes as u32).as_ns());
        (all - own_link).max(0.0)
    }

    /// Time for an aligned access of this many bytes at the region, in whole DWs.
    pub(crate) fn beats(&self, bytes: u64) -> f64 {
        bytes.next_multiple_of(4).div_ceil(u64::from(self.region.beat_bytes.value)) as f64 * self.beat
    }

    /// From a read leaving a core until its data has arrived.
    pub(crate) fn read_round_trip(&self, bytes: u64) -> f64 {
        self.read_phases(bytes).iter().sum()
    }

    /// A read in three parts: until it is at the region, until the region has the data, until the core has it.
    pub(crate) fn read_phases(&self, bytes: u64) -> [f64; 3] {
        let half = self.round_trip / 2.0;
        let there = self.serialise_read()
            + self.down
            + self.ingress
            + self.switches(Path::down, self.down, self.request_header_dw, 0);
        let back =
            self.egress + self.serialise(Verb::Load, bytes) + self.up + self.switches(Path::up, self.up, 3, bytes);
        [half + there, self.region_read + self.beats(bytes), back + half]
    }

    /// Reads of these sizes, approximated by their mean, issued by the core every `step`.
    pub(crate) fn reads(&self, step: f64, sizes: impl Iterator<Item = u64>) -> Reads {
        let (mut count, mut one, mut completion, mut device) = (0.0, 0.0, 0.0, 0.0);
        for bytes in sizes {
            count += 1.0;
            one += self.read_round_trip(bytes);
            completion += self.serialise(Verb::Load, bytes);
            device += self.beats(bytes);
        }
        let request = self.serialise_read();
        Reads {
            step,
            one: one / count,
            request,
            completion: completion / count,
            device: device / count,
            credits: u64::from(self.platform.link.nonposted_header_credits.value),
            credit_loop: request + (self.down + self.up) + self.ingress + self.dllp(),
            dllps: 2.0 * self.dllp(),
            gathered: (self.platform.way_up(0).first())
                .and_then(|link| Mps::new(self.platform.mps_bytes_across(*link)))
                .map_or(0.0, |mps| ack_latency_limit(self.generation, self.lanes, mps).as_ns()),
        }
    }

    /// Time of a DLLP on the link.
    fn dllp(&self) -> f64 {
        tlp_ticks(self.generation, self.lanes, u32::from(self.generation.rate().dllp_bytes)).as_ns()
    }

    /// Cost of a fence with nothing to wait for.
    pub(crate) fn fence(&self, fence: Fence) -> f64 {
        fence_alone(self.platform, fence)
    }

    /// Time between two store instructions at the front end.
    pub(crate) fn pace(&self, access: Access) -> f64 {
        match access {
            Access::Plain(Width::B1 | Width::B2 | Width::B4 | Width::B8) => {
                whole_ticks(self.platform.core.store_loop_cycles.value / self.platform.core.clock_ghz.value)
            }
            _ => self.cycle,
        }
    }

    /// Number of instructions of one iteration over `len` bytes.
    pub(crate) fn instructions(&self, access: Access, kind: MemoryType, len: u64) -> Pieces {
        let core = &self.platform.core;
        // Fast-string operation moves whole vectors to WC memory only. Source: as in `memcpy.rs` of the platform.
        let string = || match kind {
            MemoryType::Wc | MemoryType::Wb => Pieces::of(len, u64::from(core.vector_bytes.value)),
            _ => Pieces::of(len, 1),
        };
        match access {
            Access::Plain(width) | Access::NonTemporal(width) | Access::Movdiri(width) => {
                Pieces::of(len, width.bytes())
            }
            Access::Movdir64b => Pieces::of(len, 64),
            Access::RepMovsb | Access::CopyToDevice => string(),
            Access::Memcpy => core.memcpy.value.stores(len, 0).unwrap_or_else(string),
        }
    }

    /// Path of writes of these sizes, approximated by their mean, from the root complex to the region.
    pub(crate) fn writes(&self, sizes: impl Iterator<Item = u64>) -> Writes {
        let link = &self.platform.link;
        let (mut count, mut serialise, mut device, mut data, mut switches) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for bytes in sizes {
            count += 1.0;
            switches += self.switches(Path::down, self.down, self.request_header_dw, bytes);
            serialise += self.serialise(Verb::Store, bytes);
            device += self.beats(bytes);
            data += bytes.div_ceil(16) as f64;
        }
        let (serialise, device) = (serialise / count, device / count);
        let by_data = f64::from(link.posted_data_credits.value) * count / data;
        Writes {
            half_round_trip: self.round_trip / 2.0,
            queue: u64::from(self.platform.root_complex.posted_queue_entries.value),
            serialise,
            device,
            credits: (by_data as u64).min(u64::from(link.posted_header_credits.value)).max(1),
            credit_back: self.dllp() + self.up,
            one: serialise + self.down + self.ingress + device,
            switches: switches / count,
        }
    }
}

/// Cost of a fence with nothing to wait for.
pub(crate) fn fence_alone(platform: &Platform, fence: Fence) -> f64 {
    let core = &platform.core;
    let cost = match fence {
        Fence::Sfence => core.sfence_ns.value,
        Fence::Lfence => core.lfence_ns.value,
        Fence::Mfence | Fence::Locked => core.mfence_ns.value,
        Fence::Interrupt => core.interrupt_ns.value,
    };
    cost.as_ns()
}

/// Nanoseconds rounded to a tick.
pub(crate) fn whole_ticks(ns: f64) -> f64 {
    Ticks::from_ns(ns).map_or(ns, Ticks::as_ns)
}

/// Reads of equal size, in sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    /// Interval at which the core issues them.
    step: f64,
    /// Round trip of a single read.
    pub(crate) one: f64,
    request: f64,
    completion: f64,
    device: f64,
    credits: u64,
    credit_loop: f64,
    /// Link time of the DLLPs that acknowledge one packet and return its credits.
    dllps: f64,
    /// Maximum time for which those DLLPs are delayed while completions leave no gap.
    gathered: f64,
}

impl Reads {
    /// Time between a read and the one `behind` positions later, limited by the slowest stage: the core, the link (in
    /// either direction), credits (one round trip per full set), or the region.
    fn apart(&self, behind: u64, together: u64) -> [(Bound, f64); 4] {
        let (rounds, rest) = (behind / self.credits, behind % self.credits);
        let each = self.request.max(self.step).max(self.completion).max(self.device);
        let by_credits = rounds as f64 * self.credit_loop + rest as f64 * each;
        // If completions leave no gap, the DLLPs whose delay expires are sent between them. That time includes the
        // delay limit, the end of a completion, and the arrival of the next request. After the last requests there
        // are no more DLLPs.
        let told_of = behind.saturating_sub(together) as f64 * self.completion;
        let gaps = (told_of / (self.gathered + 2.0 * self.completion + self.dllps)).floor();
        let behind = behind as f64;
        let completions = behind * self.completion;
        [
            (Bound::Issue, behind * self.step),
            (Bound::Link, (completions + gaps * self.dllps).max(behind * self.request)),
            (Bound::Credits, by_credits),
            (Bound::Device, behind * self.device),
        ]
    }

    /// Time until the last of `reads` has returned, with at most `together` outstanding.
    pub(crate) fn back(&self, reads: u64, together: u64) -> Largest {
        let (rounds, rest) = ((reads - 1) / together, (reads - 1) % together);
        let first_round = self.apart(rest, together).iter().fold(0.0_f64, |most, term| most.max(term.1));
        let trips = if rounds > 0 { rounds as f64 * self.one + first_round } else { 0.0 };
        let trips = (Bound::ReadRoundTrip, trips);
        let terms = [trips].into_iter().chain(self.apart(reads - 1, together));
        let largest = Largest::of(terms.map(|(bound, ns)| (bound, ns + self.one)));
        // A DLLP sent on an idle link may delay a completion; no term models that.
        let in_the_way = if together > 1 { (reads - 1) as f64 * self.dllps } else { 0.0 };
        if largest.ns > 100.0 * in_the_way { largest } else { largest.blurred() }
    }
}

/// Writes of equal size in sequence, from the root complex to the region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writes {
    pub(crate) half_round_trip: f64,
    queue: u64,
    serialise: f64,
    device: f64,
    credits: u64,
    /// From the acceptance of the last byte until its credits have returned to the sender.
    credit_back: f64,
    /// From the first bit on the card's own link until the last byte is accepted, for a single write.
    one: f64,
    /// Extra latency of the links and switches before that.
    switches: f64,
}

impl Writes {
    /// From leaving a core until accepted, for a single write.
    pub(crate) fn unloaded(&self) -> f64 {
        self.half_round_trip + self.switches + self.one
    }

    /// Time between the first write and the one `behind` positions later, at the exit of the root complex:
    ///
    /// - link: `behind` times the time on the link;
    /// - credits: one round trip (there, the region's time, and back) per full set of credits; the remainder as
    ///   issued (`core` is the issue time of each);
    /// - device: one round trip, then the region's time for each write beyond the credits.
    fn leaves(&self, behind: u64, core: impl Fn(u64) -> f64) -> [(Bound, f64); 3] {
        let round = self.one + self.credit_back;
        let (rounds, rest) = (behind / self.credits, behind % self.credits);
        let beyond = behind.checked_sub(self.credits);
        let apart = if rounds > 0 { self.serialise.max(self.device) } else { self.serialise };
        [
            (Bound::Link, behind as f64 * self.serialise),
            (Bound::Credits, rounds as f64 * round + (rest as f64 * apart).max(core(rest))),
            (Bound::Device, beyond.map_or(0.0, |beyond| round + beyond as f64 * self.device)),
        ]
    }

    /// From the first write leaving a core until the one `behind` positions later is acknowledged to the core, which
    /// happens when the root complex has queued it.
    pub(crate) fn acknowledged(&self, behind: u64, core: impl Fn(u64) -> f64) -> [(Bound, f64); 3] {
        let room = behind.checked_sub(self.queue);
        let leaves = room.map_or([(Bound::Link, 0.0); 3], |place| self.leaves(place, core));
        leaves.map(|(bound, ns)| (bound, if room.is_some() { 2.0 * self.half_round_trip + ns } else { 0.0 }))
    }

    /// From the first write leaving a core until the one `behind` positions later is accepted.
    pub(crate) fn accepted(&self, behind: u64, core: impl Fn(u64) -> f64) -> [(Bound, f64); 3] {
        let [link, credits, _] = self.leaves(behind, core);
        let device = (Bound::Device, behind as f64 * self.device);
        [link, credits, device].map(|(bound, ns)| (bound, self.unloaded() + ns))
    }
}
