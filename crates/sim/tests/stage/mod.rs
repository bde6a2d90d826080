//! A stage for tests: a platform with every kind of region and round numbers, and helpers that run its cores and
//! observe the device.

#![allow(dead_code)] // Each test binary uses its part of the stage.

use lanemark_machine::{Access, Cause, Fence, Lane, Span, Step, Stream, Task, Verb, Width};
use lanemark_platform::{Origin, Platform};
use lanemark_sim::Seen;
use lanemark_sim::stored_bytes;
use lanemark_sim::{Board, Crossing, TlpKind};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// Six write-combining buffers; a round trip of 100 ns between core and root complex; a Gen2 x8 link (22 ns for 64 B
/// with a header of 4 DW) with a latency of 100 ns; endpoint ingress and egress of 50 ns; beats of 10 ns.
pub const TEXT: &str = r#"
schema = 2
name = "stage"
summary = "for tests"

[core]
name = "a core"
vendor = { value = "intel", assumed = "test" }
cores = { value = 2, assumed = "test" }
clock_ghz = { value = 1.0, assumed = "test" }
vector_bytes = { value = 64, assumed = "test" }
direct_stores = { value = true, assumed = "test" }
memcpy = { value = "glibc-2.20-avx-unaligned", assumed = "test" }
store_buffer_entries = { value = 8, assumed = "test" }
wc_buffers = { value = 6, assumed = "test" }
wc_partial_flush = { value = "POLICY", assumed = "test" }
wc_loads_in_flight = { value = 2, assumed = "test" }
streaming_load_buffers = { value = 2, assumed = "test" }
fill_buffers = { value = 4, assumed = "test" }
cached_load_ns = { value = 4, assumed = "test" }
sfence_ns = { value = 2, assumed = "test" }
lfence_ns = { value = 2, assumed = "test" }
mfence_ns = { value = 10, assumed = "test" }
timestamp_ns = { value = 1, assumed = "test" }

[driver]
call_ns = { value = 200, assumed = "test" }
copy_bytes = { value = 8, assumed = "test" }

[root_complex]
core_round_trip_ns = { value = 100, assumed = "test" }
posted_queue_entries = { value = 8, assumed = "test" }

[link]
generation = { value = 2, assumed = "test" }
width_lanes = { value = 8, assumed = "test" }
mps_bytes = { value = 128, assumed = "test" }
latency_ns = { value = 100, assumed = "test" }
posted_header_credits = { value = 32, assumed = "test" }
posted_data_credits = { value = 256, assumed = "test" }
nonposted_header_credits = { value = 32, assumed = "test" }

[endpoint]
name = "a card"
ingress_ns = { value = 50, assumed = "test" }
egress_ns = { value = 50, assumed = "test" }

[memory]
size_bytes = { value = "1MiB", assumed = "test" }
read_ns = { value = 200, assumed = "test" }
write_ns = { value = 50, assumed = "test" }

[dma]
tags = { value = 4, assumed = "test" }
beat_bytes = { value = 16, assumed = "test" }
beat_ns = { value = 4, assumed = "test" }

[[bar]]
index = { value = 0, assumed = "test" }
address_bytes = { value = 0x1000000000, assumed = "test" }
size_bytes = { value = "1MiB", assumed = "test" }
prefetchable = { value = true, assumed = "test" }
REGIONS"#;

const REGIONS: [(&str, u64); 4] = [("registers", 0), ("fifo", 0x1000), ("sram", 0x10000), ("ddr", 0x80000)];

/// Bus address of the stage's BAR.
pub const BAR: u64 = 0x10_0000_0000;

/// The stage's platform with [`TREE`].
pub fn tree_platform(changes: &[(&str, f64)]) -> Platform {
    tree("8B", changes, &format!("{}{TREE}", region_texts()))
}

/// The stage's platform with more sections after its regions.
pub fn platform_with(sections: &str, changes: &[(&str, f64)]) -> Platform {
    tree("8B", changes, &format!("{}{sections}", region_texts()))
}

/// A platform section with timers and user registers.
pub const REGISTERS: &str = r#"
[registers]
region = "registers"
clock_ghz = { value = 0.25, assumed = "test" }
timer_offset_bytes = { value = 0x400, assumed = "test" }
user_offset_bytes = { value = 0x600, assumed = "test" }
user_bytes = { value = 64, assumed = "test" }
"#;

/// The stage's platform with this policy for partial flushes and some numbers replaced.
pub fn platform(policy: &str, changes: &[(&str, f64)]) -> Platform {
    tree(policy, changes, &region_texts())
}

fn region_texts() -> String {
    let regions = REGIONS.map(|(name, offset)| {
        let (size, beat) = match name {
            "ddr" => ("64KiB", 64),
            "sram" => ("64KiB", 16),
            _ => ("4KiB", 16),
        };
        format!(
            r#"
[[region]]
name = "{name}"
bar = {{ value = 0, assumed = "test" }}
offset_bytes = {{ value = {offset}, assumed = "test" }}
size_bytes = {{ value = "{size}", assumed = "test" }}
kind = {{ value = "{name}", assumed = "test" }}
beat_bytes = {{ value = {beat}, assumed = "test" }}
beat_ns = {{ value = 10, assumed = "test" }}
read_ns = {{ value = 40, assumed = "test" }}
"#
        )
    });
    regions.concat()
}

/// Two cascaded switches of 150 ns with two cards each.
pub const TREE: &str = r#"
[[switch]]
name = "upper"
below = "root"
generation = { value = 2, assumed = "test" }
width_lanes = { value = 8, assumed = "test" }
link_latency_ns = { value = 10, assumed = "test" }
latency_ns = { value = 150, assumed = "test" }

[[switch]]
name = "lower"
below = "upper"
generation = { value = 2, assumed = "test" }
width_lanes = { value = 8, assumed = "test" }
link_latency_ns = { value = 10, assumed = "test" }
latency_ns = { value = 150, assumed = "test" }

[[slot]]
name = "a"
below = "upper"

[[slot]]
name = "b"
below = "upper"
bar_shift_bytes = { value = "1MiB", assumed = "test" }

[[slot]]
name = "c"
below = "lower"
bar_shift_bytes = { value = "2MiB", assumed = "test" }

[[slot]]
name = "d"
below = "lower"
bar_shift_bytes = { value = "3MiB", assumed = "test" }
"#;

fn tree(policy: &str, changes: &[(&str, f64)], behind: &str) -> Platform {
    let text = TEXT.replace("POLICY", policy).replace("REGIONS", behind);
    let platform = Platform::parse("stage", &text).unwrap_or_else(|error| panic!("{error}"));
    changes.iter().fold(platform, |platform, (key, value)| {
        platform.with(key, *value, Origin::Assumed("test".to_owned())).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Returns the offset of a region in the BAR.
pub fn offset_of(region: &str) -> u64 {
    REGIONS.iter().find(|(name, _)| *name == region).unwrap().1
}

/// Returns the bus address of an offset in a region.
pub fn bus(region: &str, offset: u64) -> u64 {
    BAR + offset_of(region) + offset
}

/// Returns a range of a region with a memory type.
pub fn span(region: &str, memory_type: MemoryType, offset: u64, len: u64) -> Span {
    Span { at: BarOffset { bar: 0, offset: offset_of(region) + offset }, len, memory_type }
}

/// Stores of 1, 2, 4, ... 64 B over a range.
pub fn store(bytes: u64, span: Span) -> Step {
    Step::Stream(Stream::over(Verb::Store, plain(bytes), span))
}

/// Loads of 1, 2, 4, ... 64 B over a range.
pub fn load(bytes: u64, span: Span) -> Step {
    Step::Stream(Stream::over(Verb::Load, plain(bytes), span))
}

/// Any access over a range.
pub fn stream(verb: Verb, access: Access, span: Span) -> Step {
    Step::Stream(Stream::over(verb, access, span))
}

pub fn width(bytes: u64) -> Width {
    Width::ALL.into_iter().find(|width| width.bytes() == bytes).unwrap()
}

pub fn plain(bytes: u64) -> Access {
    Access::Plain(width(bytes))
}

pub fn ns(ns: u64) -> Ticks {
    Ticks::whole_ns(ns)
}

/// A write as accepted by the device: offset in its region, DWs, first and last byte enables.
pub type Got = (u64, u16, u8, u8);

/// A board, and helpers to act on it.
pub struct Stage {
    pub board: Board,
    turn: u64,
    looked: usize,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with("8B", &[])
    }

    pub fn with(policy: &str, changes: &[(&str, f64)]) -> Stage {
        Stage::of(&platform(policy, changes))
    }

    pub fn of(platform: &Platform) -> Stage {
        let mut board = Board::new(platform).unwrap();
        board.record_crossings();
        board.observe_loads(0);
        board.observe_loads(1);
        Stage { board, turn: 0, looked: 0 }
    }

    /// Runs `task` once on core 0; buffers keep gathered stores. Returns the duration.
    pub fn run(&mut self, task: impl Into<Task>) -> Ticks {
        self.run_on(0, task)
    }

    /// As [`Stage::run`], on another core.
    pub fn run_on(&mut self, core: u32, task: impl Into<Task>) -> Ticks {
        let start = self.board.now();
        self.turn += 1;
        self.board.start(&Lane { core, task: task.into() }, 1, self.turn);
        let done = self.board.run_while(start + ns(1_000_000), |board| !board.core(core as usize).is_done());
        assert!(done, "the core waits for {:?}", self.board.core(core as usize).waiting_for());
        self.board.core(core as usize).issued_at().since(start)
    }

    /// Completes every outstanding request; gathered stores stay.
    pub fn quiesce(&mut self) -> &mut Stage {
        while self.board.step() {}
        self
    }

    /// Returns the bytes that the last run stored there.
    pub fn stored(&self, region: &str, offset: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        stored_bytes(bus(region, offset), self.turn, &mut bytes);
        bytes
    }

    /// Returns the bytes of the device.
    pub fn device(&mut self, region: &str, offset: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        self.board.region_mut(region).unwrap().memory.read(offset, &mut bytes);
        bytes
    }

    /// Changes bytes of the device.
    pub fn device_writes(&mut self, region: &str, offset: u64, bytes: &[u8]) {
        self.board.region_mut(region).unwrap().memory.write(offset, bytes);
    }

    /// Returns the TLPs delivered since the last call.
    pub fn crossed(&mut self) -> Vec<Crossing> {
        let all = self.board.crossings();
        let new = all[self.looked..].to_vec();
        self.looked = all.len();
        new
    }

    /// Returns the writes delivered since the last call, all of them to one region.
    pub fn writes(&mut self, region: &str) -> Vec<Got> {
        let base = bus(region, 0);
        let writes = self.crossed().into_iter().filter(|crossing| crossing.tlp.kind == TlpKind::MWr);
        writes
            .map(|crossing| crossing.tlp)
            .map(|tlp| (tlp.address - base, tlp.length_dw, tlp.first_be, tlp.last_be))
            .collect()
    }

    /// Returns offset and length of the reads delivered since the last call.
    pub fn reads(&mut self, region: &str) -> Vec<(u64, u64)> {
        let base = bus(region, 0);
        let reads = self.crossed().into_iter().filter(|crossing| crossing.tlp.kind == TlpKind::MRd);
        reads
            .map(|crossing| {
                let first = u64::from(crossing.tlp.byte_mask().trailing_zeros());
                (crossing.tlp.address - base + first, u64::from(crossing.tlp.enabled_bytes()))
            })
            .collect()
    }

    /// Returns the data of the last load of core 0.
    pub fn seen(&self) -> Vec<u8> {
        self.seen_on(0).last().unwrap().bytes.clone()
    }

    /// Returns the loads of a core, in the order of completion.
    pub fn seen_on(&self, core: usize) -> &[Seen] {
        self.board.loads_seen(core)
    }

    /// Returns the stall time of core 0 in its last run.
    pub fn waited(&self, cause: Cause) -> Ticks {
        self.board.waits(0)[cause.index()]
    }
}

/// One fence.
pub fn fence(fence: Fence) -> Step {
    Step::Fence(fence)
}
