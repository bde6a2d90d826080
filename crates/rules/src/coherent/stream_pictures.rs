//! Pictures of device streams through an I/O TLB.

use super::streams::{Found, Load, Scheme, counted};
use crate::line::{Figures, line};
use crate::rule::as_text;
use lanemark_platform::{Platform, preset};
use lanemark_record::Picture;
use lanemark_sim::IommuSpec;
use lanemark_wire::{Generation, Lanes, dw_ticks, tlp_wire_bytes};

/// The preset of a present machine.
const TODAY: &str = "card-gen5-x16-iommu";

/// The value `of` of each load.
fn over(loads: impl Iterator<Item = Load>, scheme: Scheme, of: fn(&Found) -> f64) -> Result<Vec<Option<f64>>, String> {
    loads.map(|load| Ok(counted(load, scheme)?.as_ref().map(of))).collect()
}

/// TLB misses per page of the buffers.
fn misses_a_page(found: &Found) -> f64 {
    found.misses as f64 / found.pages as f64
}

/// Numbers of concurrently mapped buffers of all devices.
const MAPPED: [u64; 7] = [32, 64, 128, 256, 512, 1024, 2048];

/// The disk load for each number of mapped buffers, with bursts of `burst_bytes`.
fn loads(burst_bytes: u64) -> impl Iterator<Item = Load> {
    let of = move |mapped: u64| Load {
        buffers: (mapped / u64::from(Load::DISKS.devices)) as usize,
        burst_bytes,
        ..Load::DISKS
    };
    MAPPED.into_iter().map(of)
}

/// The two rejected schemes, and the chosen one.
const SCHEMES: [(&str, Scheme); 3] = [
    ("a chain ID per stream", Scheme::ChainIdAStream),
    ("a chain ID per device", Scheme::ChainIdADevice),
    ("ranges of 8 pages, in order", Scheme::Ranges(8)),
];

/// Draws misses per page over mapped buffers, for the rejected schemes of chain IDs and the chosen one.
pub(crate) fn chain_id_schemes() -> Result<Picture, String> {
    let mut lines = Vec::new();
    for burst_bytes in [1024, 512] {
        for (name, scheme) in SCHEMES {
            if burst_bytes == 512 && scheme != Scheme::ChainIdADevice {
                continue;
            }
            let name = if burst_bytes == 512 { format!("{name}, bursts of 512 B") } else { name.to_owned() };
            lines.push(line(name, over(loads(burst_bytes), scheme, misses_a_page))?);
        }
    }
    Ok(Picture {
        title: "Chain IDs of streams".to_owned(),
        along: "mapped buffers".to_owned(),
        shows: "I/O TLB misses per page".to_owned(),
        at: MAPPED.map(|mapped| mapped as f64).to_vec(),
        lines,
        note: format!(
            "Simulated: {} devices; each moves {} buffers of 32 KiB in turn, in bursts of 1 KiB, and takes the next one at random from its \
             mapped buffers; 256 entries. One miss per page is the minimum. With a chain ID per stream, none is left for the 257th \
             buffer: where its line ends, mapping fails. A chain ID per device misses with each burst.",
            Load::DISKS.devices,
            Load::DISKS.active
        ),
    })
}

/// Lengths of a range in pages: the chosen one and alternatives.
const PAGES: [u64; 5] = [1, 2, 4, 8, 16];
/// Sizes of a buffer, in bytes.
const BUFFERS: [u64; 4] = [4 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Draws one cost of a range (`held`, `taken` or `missed`) over its length, for several buffer sizes.
pub(crate) fn pages_per_range(what: &str) -> Result<Picture, String> {
    let (shows, of, note): (_, fn(&Found) -> f64, _) = match what {
        "held" => (
            "page directory entries held per mapped page",
            |found| found.held as f64 / found.pages as f64,
            "Ranges are allocated whole: the part that a buffer does not fill is unused.",
        ),
        "taken" => (
            "ranges per buffer: bits found in the bitmap, and freed at its end",
            |found| found.taken as f64 / found.buffers as f64,
            "A long buffer needs many short ranges.",
        ),
        _ => (
            "I/O TLB misses per page",
            misses_a_page,
            "256 buffers are mapped for four devices. With short ranges, more than 256 are in use, some share an entry, and streams that \
             meet there evict each other; pages of a buffer shorter than a range share none.",
        ),
    };
    let of_size = |buffer_bytes: u64| {
        let found = PAGES.into_iter().map(|pages| {
            let load = Load { buffers: 64, buffer_bytes, ..Load::DISKS };
            Ok(counted(load, Scheme::Ranges(pages))?.as_ref().map(of))
        });
        line(format!("buffers of {} KiB", buffer_bytes >> 10), found.collect())
    };
    Ok(Picture {
        title: "Length of a range".to_owned(),
        along: "pages per range".to_owned(),
        shows: shows.to_owned(),
        at: PAGES.map(|pages| pages as f64).to_vec(),
        lines: BUFFERS.into_iter().map(of_size).collect::<Result<_, _>>()?,
        note: note.to_owned(),
    })
}

/// The preset of a present machine.
fn today() -> Result<Platform, String> {
    preset(TODAY).ok_or_else(|| format!("there is no platform named '{TODAY}'"))?.map_err(as_text)
}

/// Draws misses per page of the paper's TLB and of a present IOTLB over mapped buffers.
pub(crate) fn thirty_years() -> Result<Picture, String> {
    let platform = today()?;
    let spec = IommuSpec::of(&platform).ok_or_else(|| format!("{TODAY} has no IOMMU"))?;
    let iotlb = spec.iotlb;
    let lines = vec![
        line("256 entries by chain ID, ranges of 8 pages", over(loads(1024), Scheme::Ranges(8), misses_a_page))?,
        line(
            format!("{} entries in sets of {}, magazines", iotlb.sets * iotlb.ways as u64, iotlb.ways),
            over(loads(1024), Scheme::Magazines(iotlb), misses_a_page),
        )?,
    ];
    let link = u8::try_from(platform.link.generation.value).ok().and_then(Generation::from_number);
    let width = u8::try_from(platform.link.width_lanes.value).ok().and_then(Lanes::new);
    let (Some(generation), Some(width)) = (link, width) else { return Err(format!("{TODAY} has no link")) };
    let payload = platform.link.mps_bytes.value;
    let packets = 4096.0 / f64::from(payload);
    let dw = f64::from(tlp_wire_bytes(generation, 4, payload, false)) / 4.0;
    let page_ns = packets * dw * dw_ticks(generation, width).as_ns();
    let (one, all) = (spec.walk_read.as_ns(), (spec.walk_read * spec.walk_reads).as_ns());
    Ok(Picture {
        title: "The same streams thirty years later".to_owned(),
        along: "mapped buffers".to_owned(),
        shows: "IOTLB misses per page".to_owned(),
        at: MAPPED.map(|mapped| mapped as f64).to_vec(),
        lines,
        note: format!(
            "Sets of several ways miss once per page for any number of mapped buffers: a page is traversed once and unmapped. The cost of a \
             miss has changed. On {TODAY} a page crosses the link in {page_ns:.0} ns, and its walk takes {one:.0} ns, or {all:.0} ns if \
             no level of the table is cached (assumed, like that whole preset). So a miss is no longer hidden behind the transfer of its \
             page: concurrent walks, larger pages and permanent mappings now serve the purpose of ordered chain IDs."
        ),
    })
}

/// Sizes of a disk buffer, in bytes.
const TRANSFERS: [u64; 6] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10];

/// Draws the share of accesses that miss over the buffer size, for several shares of half-line accesses.
pub(crate) fn misses_of_disks(figure: Figures) -> Result<Picture, String> {
    let of = |halves_percent: u64| {
        let loads = TRANSFERS.into_iter().map(move |buffer_bytes| Load {
            buffer_bytes,
            halves_percent,
            buffers: 16,
            ..Load::DISKS
        });
        let found = over(loads, Scheme::Ranges(8), |found| 100.0 * found.misses as f64 / found.accesses as f64);
        line(format!("{halves_percent} % by 16 B"), found)
    };
    let mut lines = [0, 25, 50, 100].map(of).into_iter().collect::<Result<Vec<_>, _>>()?;
    lines.push(line("published", Ok(vec![Some(figure("H14:share")?); TRANSFERS.len()]))?);
    Ok(Picture {
        title: "Streams that miss 0.64 % of the time".to_owned(),
        along: "buffer size, KiB".to_owned(),
        shows: "I/O TLB misses, % of accesses".to_owned(),
        at: TRANSFERS.map(|bytes| (bytes >> 10) as f64).to_vec(),
        lines,
        note: "Simulated with 64 mapped buffers, fewer than entries: each page misses once. 0.64 % is one miss in 156 accesses: whole pages, 22 % \
               of them moved by 16 B and the rest by 32 B, or shorter buffers with a larger share of 16 B. By 32 B alone no stream is below \
               0.78 %. The real mixture is not published."
            .to_owned(),
    })
}
