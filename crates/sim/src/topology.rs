//! The topology of a platform: its parts, and the ends of its links.

use crate::critical_path;
use crate::device::atc;
use crate::device::dma_engine::{self, DmaEngine};
use crate::device::endpoint::{self, Endpoint};
use crate::device::job::{RequestLimit, RequestLimits};
use crate::device::kernels::{self, Kernels};
use crate::device::region::{self, RegionSpec};
use crate::device::{fifo, interconnect, registers};
use crate::fabric::credit::{Credits, Pool};
use crate::fabric::dllp::Skp;
use crate::fabric::pace::Pace;
use crate::fabric::route::{Range, Routes};
use crate::fabric::switch::{self, Switch};
use crate::fabric::{End, Fabric, link, retimer};
use crate::host::driver::mailboxes;
use crate::host::root_port::{self, RootPort};
use crate::index::{CardIndex, PortIndex, RootPortIndex};
use crate::noticed::PortLimit;
use crate::ports::{endpoint_input, root_input};
use lanemark_platform::{
    ChunkTiming, Dma, Fifos, Link, LinkEnds, Merging, Platform, ROOT, ReadData, RegionKind, Registers, upper_port,
};
use lanemark_units::Ticks;
use lanemark_wire::{Generation, Lanes, Mps, Rcb, ack_latency_limit, skp_ticks};

/// The parts of a board that links connect.
pub(crate) struct Topology {
    pub(crate) fabric: Fabric,
    pub(crate) root_ports: Vec<RootPort>,
    pub(crate) root_routes: Routes<RootPortIndex>,
    pub(crate) endpoints: Vec<Endpoint>,
    /// Bus addresses of the BARs of each card.
    pub(crate) bars_at: Vec<[u64; 6]>,
}

/// The lower end of a link: a switch, or an endpoint in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    Switch(usize),
    Endpoint(CardIndex),
}

/// The slot of an endpoint.
struct Place<'a> {
    below: &'a str,
    shift: u64,
}

/// Builds the tree of parts.
struct Builder<'a> {
    platform: &'a Platform,
    places: Vec<Place<'a>>,
}

/// Speed, width and latency of a link.
#[derive(Clone, Copy)]
struct Wires {
    generation: Generation,
    lanes: Lanes,
    latency: Ticks,
}

pub(crate) fn build(platform: &Platform) -> Result<Topology, &'static str> {
    let slots = platform.slots.iter();
    let mut places: Vec<Place> =
        slots.map(|slot| Place { below: &slot.below, shift: slot.bar_shift_bytes.value }).collect();
    if places.is_empty() {
        places.push(Place { below: ROOT, shift: 0 });
    }
    Builder { platform, places }.build()
}

impl Builder<'_> {
    fn build(&self) -> Result<Topology, &'static str> {
        let platform = self.platform;
        let roots = self.below(ROOT);
        let mut topology = Topology {
            fabric: Fabric::new(platform.switches.len(), self.places.len()),
            root_ports: Vec::new(),
            root_routes: self.routes(&roots, RootPortIndex, 0)?,
            endpoints: Vec::new(),
            bars_at: self.places.iter().map(|place| self.bars(place)).collect(),
        };
        for (port, below) in roots.iter().enumerate() {
            topology.root_ports.push(RootPort::new(self.root_port(*below)?));
            self.link(&mut topology.fabric, End::Root(RootPortIndex(port)), *below, root_input::own(roots.len()) + 1)?;
        }
        for (number, spec) in platform.switches.iter().enumerate() {
            let below = self.below(&spec.name);
            // The upstream port is the first; the inputs of every port are all ports.
            for (place, below_it) in below.iter().enumerate() {
                let end = End::Switch { switch: number, port: PortIndex(place + 1) };
                self.link(&mut topology.fabric, end, *below_it, below.len() + 1)?;
            }
            let redirects = |below: &Below| platform.redirects(&upper_port(&spec.name, self.name_of(*below)));
            let spec = switch::Spec {
                latency: spec.latency_ns.value,
                forwarding: spec.forwarding.value,
                redirects: std::iter::once(false).chain(below.iter().map(redirects)).collect(),
            };
            topology.fabric.add_switch(Switch::new(spec, self.routes(&below, PortIndex, 1)?));
        }
        for number in 0..self.places.len() {
            topology.endpoints.push(self.endpoint(CardIndex(number))?);
        }
        Ok(topology)
    }

    /// Returns what is below a component of this name: switches first, each kind in the order of the file.
    fn below(&self, name: &str) -> Vec<Below> {
        let switches = self.platform.switches.iter().enumerate().filter(|(_, switch)| switch.below == name);
        let endpoints = self.places.iter().enumerate().filter(|(_, place)| place.below == name);
        let switches = switches.map(|(number, _)| Below::Switch(number));
        switches.chain(endpoints.map(|(number, _)| Below::Endpoint(CardIndex(number)))).collect()
    }

    /// Returns the name of a component.
    fn name_of(&self, below: Below) -> &str {
        match below {
            Below::Switch(number) => &self.platform.switches[number].name,
            Below::Endpoint(card) => self.platform.card_name(card.0).unwrap_or_default(),
        }
    }

    /// Returns every endpoint at or below a component. A tree is at most as deep as its number of switches.
    fn endpoints_at(&self, below: Below, depth: usize) -> Result<Vec<CardIndex>, &'static str> {
        match below {
            Below::Endpoint(card) => Ok(vec![card]),
            Below::Switch(_) if depth > self.platform.switches.len() => Err("its switches form a cycle"),
            Below::Switch(number) => {
                let mut all = Vec::new();
                for below in self.below(&self.platform.switches[number].name) {
                    all.extend(self.endpoints_at(below, depth + 1)?);
                }
                Ok(all)
            }
        }
    }

    /// Returns the routing table of ports with these components below them; the first port is `first`.
    fn routes<P: Copy>(
        &self,
        below: &[Below],
        numbered: impl Fn(usize) -> P,
        first: usize,
    ) -> Result<Routes<P>, &'static str> {
        let mut routes = Routes::none();
        for (port, below) in (first..).map(numbered).zip(below) {
            for card in self.endpoints_at(*below, 0)? {
                routes.requesters.push((card.requester(), port));
                for bar in &self.platform.bars {
                    let start = bar.address_bytes.value + self.places[card].shift;
                    routes.ranges.push(Range { start, end: start + bar.size_bytes.value, port });
                }
            }
        }
        Ok(routes)
    }

    fn bars(&self, place: &Place<'_>) -> [u64; 6] {
        let mut bars = [0; 6];
        for bar in &self.platform.bars {
            bars[bar.index.value as usize] = bar.address_bytes.value + place.shift;
        }
        bars
    }

    /// Adds both directions of the link to a component below `above`; `inputs` send downstream.
    fn link(&self, fabric: &mut Fabric, above: End, below: Below, inputs: usize) -> Result<(), &'static str> {
        let (wires, down, end, inputs_up, first_served) = match below {
            Below::Switch(number) => {
                let spec = &self.platform.switches[number];
                let wires = wires(spec.generation.value, spec.width_lanes.value, spec.link_latency_ns.value)?;
                let ports = self.below(&spec.name).len() + 1;
                (
                    wires,
                    self.credits_of(End::Switch { switch: number, port: PortIndex::UPSTREAM }),
                    End::Switch { switch: number, port: PortIndex::UPSTREAM },
                    ports,
                    0,
                )
            }
            Below::Endpoint(card) => {
                let Link { generation, width_lanes, latency_ns, .. } = &self.platform.link;
                let wires = wires(generation.value, width_lanes.value, latency_ns.value)?;
                let end = End::Endpoint(card);
                let channels = self.platform.dma.as_ref().map_or(1, all_channels);
                let inputs = endpoint_input::ENGINE + channels + usize::from(self.platform.runtime.is_some());
                (wires, self.credits_of(end), end, inputs, endpoint_input::ENGINE)
            }
        };
        let Wires { generation, lanes, latency } = wires;
        let ends = LinkEnds {
            above: match above {
                End::Switch { switch, .. } => &self.platform.switches[switch].name,
                _ => ROOT,
            },
            below: self.name_of(below),
        };
        let retimers = self.platform.retimers_on(ends.below);
        let retimers = retimers.map(|retimer| retimer::Spec { down: retimer.down_ns.value, up: retimer.up_ns.value });
        let [latency_down, latency_up] = retimer::latencies(latency, retimers);
        let mps = Mps::new(self.platform.mps_bytes_across(ends)).ok_or("its maximum payload is unknown")?;
        let ack_latency_limit = ack_latency_limit(generation, lanes, mps);
        let replay_tlps = match self.platform.link.replay_tlps.value {
            tlps if tlps > 0 && generation != Generation::Gen6 => tlps,
            _ => Pool::INFINITE.header,
        };
        let down = link::Spec {
            generation,
            lanes,
            latency: latency_down,
            latency_back: latency_up,
            credits: down,
            start_dw: 1,
            completion_start_dw: match above {
                End::Root(_) => u64::from(self.platform.root_complex.completion_alignment_bytes.value / 4),
                _ => 1,
            },
            pause: Ticks::ZERO,
            ack_latency_limit,
            mps_bytes: mps.bytes(),
            replay_tlps,
            ordering: self.platform.link.ordering.value,
            skp: skp_ticks(generation)
                .filter(|_| self.platform.link.skp.value)
                .map(|(interval, time)| Skp { interval, time }),
            tlps_per_error: self.platform.link.tlps_per_error.value.into(),
            number: fabric.directions.len() as u64,
            inputs,
            first_served: 0,
        };
        let credits = self.credits_of(above);
        let start_dw = match below {
            Below::Switch(_) => 1,
            Below::Endpoint(_) => u64::from(self.platform.link.tlp_alignment_bytes.value / 4),
        };
        let up = link::Spec {
            latency: latency_up,
            latency_back: latency_down,
            credits,
            start_dw,
            completion_start_dw: start_dw,
            pause: match (below, &self.platform.dma_write) {
                (Below::Endpoint(_), Some(way)) => way.segment_link_ns.value,
                _ => Ticks::ZERO,
            },
            inputs: inputs_up,
            first_served,
            number: down.number + 1,
            ..down.clone()
        };
        let limit = |name: String| PortLimit { mps_bytes: self.platform.mps_bytes_of(&name), name };
        let (upper, lower) = (limit(ends.upper_port()), limit(ends.below.to_owned()));
        for (spec, from, to, ports) in
            [(down, above, end, [upper.clone(), lower.clone()]), (up, end, above, [lower, upper])]
        {
            fabric.connect(spec, from, to, ports);
        }
        Ok(())
    }

    /// Returns the credits that a receiver at this end advertises. A requester has space for its completions, so
    /// their credits are infinite.
    fn credits_of(&self, end: End) -> Credits {
        let no_data = |header: u32| Pool { header, data: Pool::INFINITE.data };
        match end {
            End::Root(_) => {
                let root = &self.platform.root_complex;
                let posted = Pool { header: root.posted_header_credits.value, data: root.posted_data_credits.value };
                Credits([posted, no_data(root.nonposted_header_credits.value), Pool::INFINITE])
            }
            End::Switch { switch, .. } => {
                let switch = &self.platform.switches[switch];
                let posted =
                    Pool { header: switch.posted_header_credits.value, data: switch.posted_data_credits.value };
                let completion =
                    Pool { header: switch.completion_header_credits.value, data: switch.completion_data_credits.value };
                Credits([posted, no_data(switch.nonposted_header_credits.value), completion])
            }
            End::Endpoint(_) => {
                let link = &self.platform.link;
                let posted = Pool { header: link.posted_header_credits.value, data: link.posted_data_credits.value };
                Credits([posted, no_data(link.nonposted_header_credits.value), Pool::INFINITE])
            }
        }
    }

    /// Returns the constants of the root port above a component; without a memory section its DMA memory is empty.
    fn root_port(&self, below: Below) -> Result<root_port::Spec, &'static str> {
        let link = &self.platform.link;
        let mps_bytes = self.platform.mps_bytes_of(&upper_port(ROOT, self.name_of(below)));
        let rcb = Rcb::new(link.rcb_bytes.value).ok_or("its read completion boundary is unknown")?;
        let Some(memory) = &self.platform.memory else {
            let (read, cached_read, write) = (Ticks::ZERO, Ticks::ZERO, Ticks::ZERO);
            let (read_request, write_tlp) = (Ticks::ZERO, Ticks::ZERO);
            let merging = Merging { most: mps_bytes, while_written: None, full_lines: 0, full_from: 0 };
            return Ok(root_port::Spec {
                address: 0,
                len: 0,
                read,
                read_spread: Ticks::ZERO,
                cached_read,
                read_request,
                write,
                write_tlp,
                partial_line: Ticks::ZERO,
                remote: Ticks::ZERO,
                merging,
                mps_bytes,
                odd_end_apart: false,
                rcb,
                drivers_from: 0,
                interrupt: Ticks::ZERO,
            });
        };
        Ok(root_port::Spec {
            address: memory.address_bytes.value,
            len: memory.size_bytes.value,
            read: memory.read_ns.value,
            read_spread: memory.read_spread_ns.value,
            cached_read: memory.cached_read_ns.value,
            read_request: memory.read_request_ns.value,
            write: memory.write_ns.value,
            write_tlp: memory.write_tlp_ns.value,
            partial_line: memory.partial_line_ns.value,
            remote: Ticks::ZERO,
            merging: memory.merging(),
            mps_bytes,
            odd_end_apart: memory.odd_end_completion.value,
            rcb,
            drivers_from: self.platform.bytes_for_plans(),
            interrupt: self.platform.driver.as_ref().map_or(Ticks::ZERO, |driver| driver.interrupt_ns.value),
        })
    }

    fn endpoint(&self, card: CardIndex) -> Result<Endpoint, &'static str> {
        let platform = self.platform;
        let mps_bytes = platform.mps_bytes_of(self.name_of(Below::Endpoint(card)));
        let regions =
            region_specs(platform, self.places[card].shift).ok_or("a region names a BAR that is not there")?;
        let (ingress, egress) = (platform.endpoint.ingress_ns.value, platform.endpoint.egress_ns.value);
        let engine = platform.dma.as_ref().map(|dma| {
            DmaEngine::new(dma_engine::Spec {
                requester: card.requester(),
                tags: dma.tags.value as u16,
                requests: RequestLimits {
                    read: limit(
                        dma.read_bytes.value.min(platform.link.mrrs_bytes.value),
                        dma.read_boundary_bytes.value,
                    ),
                    write: limit(dma.write_bytes.value.min(mps_bytes), dma.write_boundary_bytes.value),
                },
                beat_bytes: dma.beat_bytes.value,
                beat: dma.beat_ns.value,
                read: pace(dma.read_request_ns.value, platform.dma_read.as_ref().map(ChunkTiming::from)),
                write: pace(dma.write_request_ns.value, platform.dma_write.as_ref().map(ChunkTiming::from)),
                read_data: platform.dma_read.as_ref().map(ReadData::from),
                start: dma.start_ns.value,
                descriptor_bytes: u64::from(dma.descriptor_bytes.value),
                descriptor: dma.descriptor_ns.value,
                send_buffers: dma.send_buffers.value as usize,
                relaxed: dma.relaxed_ordering.value,
                id_based: dma.id_based_ordering.value,
                egress,
                ingress,
                mailboxes: mailboxes(platform, card.0 as u32),
                descriptor_entry_bytes: u64::from(dma.descriptor_entry_bytes.value),
                prefetch_descriptors: dma.prefetch_descriptors.value as u16,
                channels: dma.channels.value as usize,
                full_duplex: dma.full_duplex.value,
                shared_request: dma.shared_request_ns.value,
                tick: platform.registers.as_ref().map_or(Ticks(1), tick),
                queues: platform.fifos.as_ref().map(queues),
                vectors: platform.vector_table(card.0 as u32),
                atc: atc(platform, card.requester()),
            })
        });
        let fifos = platform.fifos.as_ref();
        let queued = fifos.and_then(|fifos| platform.regions.iter().position(|region| region.name == fifos.ep_rx));
        let registers = registers(platform);
        let place = critical_path::Place::card(card);
        let spec = endpoint::Spec { place, ingress, egress, completion_bytes: mps_bytes, queued, registers };
        let kernels = platform.runtime.as_ref().zip(platform.kernel_doorbell(card.0 as u32)).map(|(runtime, bell)| {
            Kernels::new(kernels::Spec {
                requester: card.requester(),
                channel: platform.channels() as u16,
                bell,
                start: runtime.kernel_start_ns.value,
                end: runtime.kernel_end_ns.value,
                egress,
            })
        });
        Ok(Endpoint::new(spec, regions, engine, kernels))
    }
}

/// Returns the number of channels of an engine, with the one for the second direction of a full-duplex engine.
fn all_channels(dma: &Dma) -> usize {
    dma.channels.value as usize + usize::from(dma.full_duplex.value)
}

/// Returns the constants of a card's ATC, if it has one.
fn atc(platform: &Platform, requester: u16) -> Option<atc::Spec> {
    let (dma, iommu) = (platform.dma.as_ref()?, platform.iommu.as_ref()?);
    let (entries, page_bytes) = (dma.ats_entries.value as usize, iommu.page_bytes.value);
    let (channels, first_tag) = (all_channels(dma), dma.reading_tags() as u16);
    platform.has_ats().then_some(atc::Spec { requester, entries, page_bytes, channels, first_tag })
}

/// Returns the limits of requests: at most `most_bytes` long, and split at multiples of `boundary_bytes`.
fn limit(most_bytes: u32, boundary_bytes: u32) -> RequestLimit {
    RequestLimit { most_bytes: most_bytes.min(boundary_bytes), boundary_bytes }
}

/// Returns the cost of a request of one direction besides its beats.
fn pace(request: Ticks, way: Option<ChunkTiming>) -> Pace {
    let alone = Pace::of(request);
    way.map_or(alone, |ChunkTiming { chunk_bytes, chunk, segment_bytes, segment, link_segment, many_lines }| Pace {
        link_pauses: link_segment > Ticks::ZERO,
        chunk_bytes,
        chunk,
        segment_bytes,
        segment,
        many_lines,
        ..alone
    })
}

/// Returns the period of a card's clock.
fn tick(registers: &Registers) -> Ticks {
    Ticks::from_ns(1.0 / registers.clock_ghz.value).unwrap_or(Ticks(1))
}

/// Returns the layout of a card's registers, if it is declared.
fn registers(platform: &Platform) -> Option<registers::Spec> {
    let registers = platform.registers.as_ref()?;
    let place = platform.regions.iter().position(|region| region.name == registers.region)?;
    let range = |start: u64, bytes: u64| start..start + bytes;
    Some(registers::Spec {
        place,
        timers: range(registers.timer_offset_bytes.value, Registers::timer_bytes(platform.channels())),
        users: range(registers.user_offset_bytes.value, registers.user_bytes.value),
        tick: tick(registers),
    })
}

/// Returns RX, TX, `EP_RX` and `EP_TX`.
fn queues(fifos: &Fifos) -> interconnect::Spec {
    let queue = |size_bytes| fifo::Spec { size_bytes, beat_bytes: fifos.beat_bytes.value, beat: fifos.beat_ns.value };
    let sizes = [&fifos.rx_bytes, &fifos.tx_bytes, &fifos.ep_rx_bytes, &fifos.ep_tx_bytes];
    interconnect::Spec { queues: sizes.map(|size| queue(size.value)) }
}

fn wires(generation: u32, width_lanes: u32, latency: Ticks) -> Result<Wires, &'static str> {
    let generation = u8::try_from(generation).ok().and_then(Generation::from_number);
    let lanes = u8::try_from(width_lanes).ok().and_then(Lanes::new);
    Ok(Wires {
        generation: generation.ok_or("its link generation is unknown")?,
        lanes: lanes.ok_or("its link width is unknown")?,
        latency,
    })
}

fn region_specs(platform: &Platform, shift: u64) -> Option<Vec<RegionSpec>> {
    platform
        .regions
        .iter()
        .map(|region| {
            let bar = platform.bar(u8::try_from(region.bar.value).ok()?)?;
            Some(RegionSpec {
                name: region.name.clone(),
                address: bar.address_bytes.value + shift + region.offset_bytes.value,
                len: region.size_bytes.value,
                kind: match region.kind.value {
                    RegionKind::Registers => region::Kind::Registers,
                    RegionKind::Sram => region::Kind::Storage,
                    RegionKind::Ddr => region::Kind::CountedStorage,
                    RegionKind::Fifo => region::Kind::Fifo(region.fifo_entries.value as usize),
                },
                beat_bytes: u64::from(region.beat_bytes.value),
                beat: region.beat_ns.value,
                read: region.read_ns.value,
                slow_every: u64::from(region.slow_read_every.value),
                slow: region.slow_read_ns.value,
            })
        })
        .collect()
}
