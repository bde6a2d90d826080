//! Costs of single steps on a platform, in nanoseconds: the terms of all formulas.

use crate::bound::Bound;
use crate::bounds::{Largest, most};
use crate::number::Number;
use crate::path::{Path, with_retimers};
use lanemark_machine::{Access, Fence, Verb, Width};
use lanemark_platform::memcpy::Pieces;
use lanemark_platform::{Platform, Region};
use lanemark_units::{MemoryType, Ticks};
use lanemark_wire::{Generation, Lanes, Mps, ack_latency_limit, tlp_ticks, tlp_wire_bytes};
use std::cell::OnceCell;

/// Numbers of a platform that the costs for one region depend on: latencies in nanoseconds, and counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers<N = f64> {
    /// One core cycle, in whole ticks as in the simulator.
    pub(crate) cycle: N,
    /// Time between two store instructions of up to 8 B at the front end, in whole ticks.
    pub(crate) store_loop: N,
    pub(crate) store_buffer: N,
    pub(crate) wc_buffers: N,
    pub(crate) streaming_load_buffers: N,
    pub(crate) fill_buffers: N,
    pub(crate) cached_load: N,
    pub(crate) sfence: N,
    pub(crate) lfence: N,
    pub(crate) mfence: N,
    pub(crate) interrupt: N,
    /// Round trip between a core and the root complex.
    pub(crate) round_trip: N,
    /// Posted writes that the root complex queues.
    pub(crate) queue: N,
    pub(crate) posted_headers: N,
    pub(crate) posted_data: N,
    pub(crate) nonposted_headers: N,
    /// Latency of the card's link, downstream.
    pub(crate) down: N,
    /// Latency of the card's link, upstream.
    pub(crate) up: N,
    pub(crate) ingress: N,
    pub(crate) egress: N,
    pub(crate) beat: N,
    pub(crate) region_read: N,
}

impl<N: Number> Numbers<N> {
    /// The numbers of a platform.
    pub(crate) fn of(platform: &Platform, region: &Region) -> Option<Numbers<N>> {
        let (core, link) = (&platform.core, &platform.link);
        let [down, up] = with_retimers(platform, platform.card_name(0)?, link.latency_ns.value);
        let clock_ghz = core.clock_ghz.value;
        let count = |count: u32| N::count(u64::from(count));
        let ns = |time: Ticks| N::all(time.as_ns());
        Some(Numbers {
            cycle: N::all(whole_ticks(1.0 / clock_ghz)),
            store_loop: N::all(whole_ticks(core.store_loop_cycles.value / clock_ghz)),
            store_buffer: count(core.store_buffer_entries.value),
            wc_buffers: count(core.wc_buffers.value),
            streaming_load_buffers: count(core.streaming_load_buffers.value),
            fill_buffers: count(core.fill_buffers.value),
            cached_load: ns(core.cached_load_ns.value),
            sfence: ns(core.sfence_ns.value),
            lfence: ns(core.lfence_ns.value),
            mfence: ns(core.mfence_ns.value),
            interrupt: ns(core.interrupt_ns.value),
            round_trip: ns(platform.root_complex.core_round_trip_ns.value),
            queue: count(platform.root_complex.posted_queue_entries.value),
            posted_headers: count(link.posted_header_credits.value),
            posted_data: count(link.posted_data_credits.value),
            nonposted_headers: count(link.nonposted_header_credits.value),
            down: ns(down),
            up: ns(up),
            ingress: ns(platform.endpoint.ingress_ns.value),
            egress: ns(platform.endpoint.egress_ns.value),
            beat: ns(region.beat_ns.value),
            region_read: ns(region.read_ns.value),
        })
    }
}

/// Cost terms for one region of a platform.
#[derive(Clone, Debug)]
pub(crate) struct Costs<'a, N: Number = f64> {
    pub(crate) platform: &'a Platform,
    pub(crate) region: &'a Region,
    generation: Generation,
    lanes: Lanes,
    request_header_dw: u8,
    /// Latency of the card's link in the platform, down and up; those in `numbers` may differ.
    own: [f64; 2],
    /// [`Reads::gathered`], which takes long to find, once it is known.
    gathered: OnceCell<f64>,
    pub(crate) numbers: Numbers<N>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(platform: &'a Platform, region: &'a Region) -> Option<Costs<'a>> {
        let bar = platform.bar(u8::try_from(region.bar.value).ok()?)?;
        let address = bar.address_bytes.value + region.offset_bytes.value;
        let numbers: Numbers = Numbers::of(platform, region)?;
        Some(Costs {
            platform,
            region,
            generation: Generation::from_number(u8::try_from(platform.link.generation.value).ok()?)?,
            lanes: Lanes::new(u8::try_from(platform.link.width_lanes.value).ok()?)?,
            request_header_dw: if address >= 1 << 32 { 4 } else { 3 },
            own: [numbers.down, numbers.up],
            gathered: OnceCell::new(),
            numbers,
        })
    }

    /// The same with other numbers.
    pub(crate) fn with<N: Number>(&self, numbers: &Numbers<N>) -> Costs<'a, N> {
        let Costs { platform, region, generation, lanes, request_header_dw, own, .. } = *self;
        let gathered = self.gathered.clone();
        Costs { platform, region, generation, lanes, request_header_dw, own, gathered, numbers: *numbers }
    }
}

impl<N: Number> Costs<'_, N> {
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
    pub(crate) fn beats(&self, bytes: u64) -> N {
        N::count(bytes.next_multiple_of(4).div_ceil(u64::from(self.region.beat_bytes.value))) * self.numbers.beat
    }

    /// From a read leaving a core until its data has arrived.
    pub(crate) fn read_round_trip(&self, bytes: u64) -> N {
        let [there, read, back] = self.read_phases(bytes);
        there + read + back
    }

    /// A read in three parts: until it is at the region, until the region has the data, until the core has it.
    pub(crate) fn read_phases(&self, bytes: u64) -> [N; 3] {
        let [own_down, own_up] = self.own;
        let numbers = &self.numbers;
        let half = numbers.round_trip / N::all(2.0);
        let there = N::all(self.serialise_read())
            + numbers.down
            + numbers.ingress
            + N::all(self.switches(Path::down, own_down, self.request_header_dw, 0));
        let back = numbers.egress
            + N::all(self.serialise(Verb::Load, bytes))
            + numbers.up
            + N::all(self.switches(Path::up, own_up, 3, bytes));
        [half + there, numbers.region_read + self.beats(bytes), back + half]
    }

    /// Reads of these sizes, approximated by their mean, issued by the core every `step`.
    pub(crate) fn reads(&self, step: N, sizes: impl Iterator<Item = u64>) -> Reads<N> {
        let (mut count, mut one, mut completion, mut device) = (0.0, N::all(0.0), 0.0, N::all(0.0));
        for bytes in sizes {
            count += 1.0;
            one = one + self.read_round_trip(bytes);
            completion += self.serialise(Verb::Load, bytes);
            device = device + self.beats(bytes);
        }
        let (request, numbers) = (self.serialise_read(), &self.numbers);
        Reads {
            step,
            one: one / N::all(count),
            request,
            completion: completion / count,
            device: device / N::all(count),
            credits: numbers.nonposted_headers,
            credit_loop: N::all(request) + (numbers.down + numbers.up) + numbers.ingress + N::all(self.dllp()),
            dllps: 2.0 * self.dllp(),
            gathered: *self.gathered.get_or_init(|| {
                (self.platform.way_up(0).first())
                    .and_then(|link| Mps::new(self.platform.mps_bytes_across(*link)))
                    .map_or(0.0, |mps| ack_latency_limit(self.generation, self.lanes, mps).as_ns())
            }),
        }
    }

    /// Time of a DLLP on the link.
    fn dllp(&self) -> f64 {
        tlp_ticks(self.generation, self.lanes, u32::from(self.generation.rate().dllp_bytes)).as_ns()
    }

    /// Cost of a fence with nothing to wait for.
    pub(crate) fn fence(&self, fence: Fence) -> N {
        match fence {
            Fence::Sfence => self.numbers.sfence,
            Fence::Lfence => self.numbers.lfence,
            Fence::Mfence | Fence::Locked => self.numbers.mfence,
            Fence::Interrupt => self.numbers.interrupt,
        }
    }

    /// Time between two store instructions at the front end.
    pub(crate) fn pace(&self, access: Access) -> N {
        match access {
            Access::Plain(Width::B1 | Width::B2 | Width::B4 | Width::B8) => self.numbers.store_loop,
            _ => self.numbers.cycle,
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

    /// Path of writes of these sizes, so many of each, approximated by their mean, from the root complex to the region.
    pub(crate) fn writes(&self, sizes: impl IntoIterator<Item = (u64, u64)>) -> Writes<N> {
        let (mut count, mut serialise, mut device, mut data, mut switches) = (0.0, 0.0, N::all(0.0), 0.0, 0.0);
        for (times, bytes) in sizes {
            let number = times as f64;
            count += number;
            switches += number * self.switches(Path::down, self.own[0], self.request_header_dw, bytes);
            serialise += number * self.serialise(Verb::Store, bytes);
            device = device + N::all(number) * self.beats(bytes);
            data += number * bytes.div_ceil(16) as f64;
        }
        let (serialise, device, numbers) = (serialise / count, device / N::all(count), &self.numbers);
        let by_data = (numbers.posted_data * N::all(count) / N::all(data)).floor();
        Writes {
            half_round_trip: numbers.round_trip / N::all(2.0),
            queue: numbers.queue,
            serialise,
            device,
            credits: by_data.min(numbers.posted_headers).max(N::all(1.0)),
            credit_back: N::all(self.dllp()) + numbers.up,
            one: N::all(serialise) + numbers.down + numbers.ingress + device,
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
pub(crate) struct Reads<N> {
    /// Interval at which the core issues them.
    step: N,
    /// Round trip of a single read.
    pub(crate) one: N,
    request: f64,
    completion: f64,
    device: N,
    credits: N,
    credit_loop: N,
    /// Link time of the DLLPs that acknowledge one packet and return its credits.
    dllps: f64,
    /// Maximum time for which those DLLPs are delayed while completions leave no gap.
    gathered: f64,
}

impl<N: Number> Reads<N> {
    /// Time between a read and the one `behind` positions later, limited by the slowest stage: the core, the link (in
    /// either direction), credits (one round trip per full set), or the region.
    #[inline]
    fn apart(&self, behind: N, together: N) -> [(Bound, N); 4] {
        let (rounds, rest) = behind.divided(self.credits);
        let each = N::all(self.request).max(self.step).max(N::all(self.completion)).max(self.device);
        let by_credits = rounds * self.credit_loop + rest * each;
        // If completions leave no gap, the DLLPs whose delay expires are sent between them. That time includes the
        // delay limit, the end of a completion, and the arrival of the next request. After the last requests there
        // are no more DLLPs.
        let told_of = (behind - together).max(N::all(0.0)) * N::all(self.completion);
        let gaps = (told_of / N::all(self.gathered + 2.0 * self.completion + self.dllps)).floor();
        let completions = behind * N::all(self.completion);
        [
            (Bound::Issue, behind * self.step),
            (Bound::Link, (completions + gaps * N::all(self.dllps)).max(behind * N::all(self.request))),
            (Bound::Credits, by_credits),
            (Bound::Device, behind * self.device),
        ]
    }

    /// Time until the last of `reads` has returned, with at most `together` outstanding.
    #[inline]
    pub(crate) fn back(&self, reads: N, together: N) -> Largest<N> {
        let (zero, last) = (N::all(0.0), reads - N::all(1.0));
        let (rounds, rest) = last.divided(together);
        let first_round = most(self.apart(rest, together));
        let trips = rounds.if_above(zero, rounds * self.one + first_round, zero);
        let apart = self.apart(last, together).map(|(bound, ns)| (bound, ns + self.one));
        let largest = Largest::of([(Bound::ReadRoundTrip, trips + self.one)]).and(apart);
        // A DLLP sent on an idle link may delay a completion; no term models that.
        let in_the_way = together.if_above(N::all(1.0), last * N::all(self.dllps), zero);
        let next_ns = largest.ns.if_above(N::all(100.0) * in_the_way, largest.next_ns, largest.ns);
        Largest { next_ns, ..largest }
    }
}

/// Writes of equal size in sequence, from the root complex to the region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writes<N> {
    pub(crate) half_round_trip: N,
    queue: N,
    serialise: f64,
    device: N,
    credits: N,
    /// From the acceptance of the last byte until its credits have returned to the sender.
    credit_back: N,
    /// From the first bit on the card's own link until the last byte is accepted, for a single write.
    one: N,
    /// Extra latency of the links and switches before that.
    switches: f64,
}

impl<N: Number> Writes<N> {
    /// From leaving a core until accepted, for a single write.
    #[inline]
    pub(crate) fn unloaded(&self) -> N {
        self.half_round_trip + N::all(self.switches) + self.one
    }

    /// Time between the first write and the one `behind` positions later, at the exit of the root complex:
    ///
    /// - link: `behind` times the time on the link;
    /// - credits: one round trip (there, the region's time, and back) per full set of credits; the remainder as
    ///   issued (`core` is the issue time of each);
    /// - device: one round trip, then the region's time for each write beyond the credits.
    #[inline]
    fn leaves(&self, behind: N, core: impl Fn(N) -> N) -> [(Bound, N); 3] {
        let (round, serialise) = (self.one + self.credit_back, N::all(self.serialise));
        let (rounds, rest) = behind.divided(self.credits);
        let apart = rounds.if_above(N::all(0.0), serialise.max(self.device), serialise);
        let beyond = round + (behind - self.credits) * self.device;
        [
            (Bound::Link, behind * serialise),
            (Bound::Credits, rounds * round + (rest * apart).max(core(rest))),
            (Bound::Device, self.credits.if_above(behind, N::all(0.0), beyond)),
        ]
    }

    /// From the first write leaving a core until the one `behind` positions later is acknowledged to the core, which
    /// happens when the root complex has queued it.
    #[inline]
    pub(crate) fn acknowledged(&self, behind: N, core: impl Fn(N) -> N) -> [(Bound, N); 3] {
        let (room, zero) = (behind - self.queue, N::all(0.0));
        let leaves = self.leaves(room.max(zero), core);
        leaves.map(|(bound, ns)| (bound, zero.if_above(room, zero, N::all(2.0) * self.half_round_trip + ns)))
    }

    /// From the first write leaving a core until the one `behind` positions later is accepted.
    #[inline]
    pub(crate) fn accepted(&self, behind: N, core: impl Fn(N) -> N) -> [(Bound, N); 3] {
        let [link, credits, _] = self.leaves(behind, core);
        let device = (Bound::Device, behind * self.device);
        [link, credits, device].map(|(bound, ns)| (bound, self.unloaded() + ns))
    }
}
