//! What one step costs on a platform: the terms all formulas are made of, in nanoseconds.

use lanemark_machine::Verb;
use lanemark_platform::{Platform, Region};
use lanemark_wire::{Generation, Lanes, tlp_ticks, tlp_wire_bytes};

/// The terms for one region of one platform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs<'a> {
    pub(crate) platform: &'a Platform,
    pub(crate) region: &'a Region,
    generation: Generation,
    lanes: Lanes,
    request_header_dw: u8,
    /// One cycle of the core.
    pub(crate) cycle: f64,
    /// From a core to the root complex and back.
    pub(crate) round_trip: f64,
    one_way: f64,
    ingress: f64,
    egress: f64,
    beat: f64,
    region_read: f64,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(platform: &'a Platform, region: &'a Region) -> Option<Costs<'a>> {
        let bar = platform.bar(u8::try_from(region.bar.value).ok()?)?;
        let address = bar.address_bytes.value + region.offset_bytes.value;
        Some(Costs {
            platform,
            region,
            generation: Generation::from_number(u8::try_from(platform.link.generation.value).ok()?)?,
            lanes: Lanes::new(u8::try_from(platform.link.width_lanes.value).ok()?)?,
            request_header_dw: if address >= 1 << 32 { 4 } else { 3 },
            cycle: 1.0 / platform.core.clock_ghz.value,
            round_trip: platform.root_complex.core_round_trip_ns.value.as_ns(),
            one_way: platform.link.one_way_ns.value.as_ns(),
            ingress: platform.endpoint.ingress_ns.value.as_ns(),
            egress: platform.endpoint.egress_ns.value.as_ns(),
            beat: region.beat_ns.value.as_ns(),
            region_read: region.read_ns.value.as_ns(),
        })
    }

    /// Time of a TLP with this payload on the link; requests from 4 GiB on have 4 DW headers.
    pub(crate) fn serialise(&self, verb: Verb, payload_bytes: u64) -> f64 {
        let (header, payload) = match verb {
            Verb::Store => (self.request_header_dw, payload_bytes),
            // A completion: 3 DW.
            Verb::Load => (3, payload_bytes),
        };
        let wire = tlp_wire_bytes(self.generation, header, payload.next_multiple_of(4) as u32, false);
        tlp_ticks(self.generation, self.lanes, wire).as_ns()
    }

    /// Time of a read request on the link.
    pub(crate) fn serialise_read(&self) -> f64 {
        let wire = tlp_wire_bytes(self.generation, self.request_header_dw, 0, false);
        tlp_ticks(self.generation, self.lanes, wire).as_ns()
    }

    /// Time the region needs for an aligned access of this many bytes.
    pub(crate) fn beats(&self, bytes: u64) -> f64 {
        bytes.div_ceil(u64::from(self.region.beat_bytes.value)) as f64 * self.beat
    }

    /// From a request leaving a core to its last byte accepted at the region.
    pub(crate) fn write_one_way(&self, bytes: u64) -> f64 {
        self.round_trip / 2.0 + self.serialise(Verb::Store, bytes) + self.one_way + self.ingress + self.beats(bytes)
    }

    /// From a read leaving a core to its data being there.
    pub(crate) fn read_round_trip(&self, bytes: u64) -> f64 {
        self.round_trip
            + self.serialise_read()
            + self.one_way
            + self.ingress
            + self.region_read
            + self.beats(bytes)
            + self.egress
            + self.serialise(Verb::Load, bytes)
            + self.one_way
    }

    /// Writes of `bytes` that may be between the core's buffers and the region: root complex, header and
    /// data credits.
    pub(crate) fn writes_absorbed(&self, bytes: u64) -> f64 {
        let link = &self.platform.link;
        let by_data = u64::from(link.posted_data_credits.value) / bytes.div_ceil(16).max(1);
        let credits = by_data.min(u64::from(link.posted_header_credits.value));
        (credits + u64::from(self.platform.root_complex.posted_queue_entries.value)) as f64
    }

    /// Time between two writes when credits are what limits: a credit comes back after the way to the
    /// region, the region's time, and the way back.
    pub(crate) fn credit_interval(&self, bytes: u64) -> f64 {
        let link = &self.platform.link;
        let by_data = u64::from(link.posted_data_credits.value) / bytes.div_ceil(16).max(1);
        let credits = by_data.min(u64::from(link.posted_header_credits.value)).max(1) as f64;
        let loop_time =
            self.serialise(Verb::Store, bytes) + 2.0 * self.one_way + self.ingress + self.beats(bytes);
        loop_time / credits
    }
}
