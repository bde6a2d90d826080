//! What a paper argues in words or leaves open, as lines over a parameter.

use super::server::Server;
use super::streams::{Found, Load, Scheme, counted};
use super::told;
use lanemark_platform::{Platform, preset};
use lanemark_record::{Picture, PictureLine};
use lanemark_sim::IommuSpec;
use lanemark_wire::{Generation, Lanes, dw_ticks, tlp_wire_bytes};

/// A published figure by its ID, or why there is none.
type Figures<'a> = &'a dyn Fn(&str) -> Result<f64, String>;

/// The picture of this name, beside what was published.
pub(crate) fn picture(name: &str, figure: Figures) -> Result<Picture, String> {
    match name {
        "chain_id_schemes" => chain_id_schemes(),
        "pages_per_range_held" => pages_per_range("held"),
        "pages_per_range_taken" => pages_per_range("taken"),
        "pages_per_range_missed" => pages_per_range("missed"),
        "thirty_years" => thirty_years(),
        "server_gain" => server_gain(figure),
        "misses_of_disks" => misses_of_disks(figure),
        _ => Err(format!("there is no picture '{name}'")),
    }
}

/// The preset that stands for today.
const TODAY: &str = "card-gen5-x16-iommu";

/// A line of values by the values of the parameter.
fn line(name: impl Into<String>, values: Result<Vec<Option<f64>>, String>) -> Result<PictureLine, String> {
    Ok(PictureLine { name: name.into(), values: values? })
}

/// What `of` a load comes to, for each of some loads.
fn over(loads: impl Iterator<Item = Load>, scheme: Scheme, of: fn(&Found) -> f64) -> Result<Vec<Option<f64>>, String> {
    loads.map(|load| Ok(counted(load, scheme)?.as_ref().map(of))).collect()
}

fn misses_a_page(found: &Found) -> f64 {
    found.misses as f64 / found.pages as f64
}

/// Buffers that are lent at a time, to all devices.
const LENT: [u64; 7] = [32, 64, 128, 256, 512, 1024, 2048];

fn lent(burst_bytes: u64) -> impl Iterator<Item = Load> {
    let of =
        move |lent: u64| Load { buffers: (lent / u64::from(Load::DISKS.devices)) as usize, burst_bytes, ..Load::DISKS };
    LENT.into_iter().map(of)
}

/// The two that were rejected beside the one that was chosen.
const SCHEMES: [(&str, Scheme); 3] = [
    ("a chain ID a stream", Scheme::ChainIdAStream),
    ("a chain ID a device", Scheme::ChainIdADevice),
    ("ranges of 8 pages, in order", Scheme::Ranges(8)),
];

fn chain_id_schemes() -> Result<Picture, String> {
    let mut lines = Vec::new();
    for burst_bytes in [1024, 512] {
        for (name, scheme) in SCHEMES {
            if burst_bytes == 512 && scheme != Scheme::ChainIdADevice {
                continue;
            }
            let name = if burst_bytes == 512 { format!("{name}, bursts of 512 B") } else { name.to_owned() };
            lines.push(line(name, over(lent(burst_bytes), scheme, misses_a_page))?);
        }
    }
    Ok(Picture {
        title: "Which stream has which chain ID".to_owned(),
        along: "buffers lent".to_owned(),
        shows: "I/O TLB misses a page".to_owned(),
        at: LENT.map(|lent| lent as f64).to_vec(),
        lines,
        note: format!(
            "Simulated: {} devices, each moves {} buffers of 32 KiB in turn, by bursts of 1 KiB, and takes the next at random from those that \
             are lent to it; 256 entries. One miss a page is the least there is. A chain ID a stream has none left for the 257th buffer: \
             where its line ends, mapping fails. A chain ID a device misses with each burst.",
            Load::DISKS.devices,
            Load::DISKS.active
        ),
    })
}

/// Pages of a range: what was chosen, and what might have been.
const PAGES: [u64; 5] = [1, 2, 4, 8, 16];
/// Bytes of a buffer.
const BUFFERS: [u64; 4] = [4 << 10, 16 << 10, 32 << 10, 64 << 10];

fn pages_per_range(what: &str) -> Result<Picture, String> {
    let (shows, of, note): (_, fn(&Found) -> f64, _) = match what {
        "held" => (
            "entries of the page directory held for a page that is lent",
            |found| found.held as f64 / found.pages as f64,
            "A range is handed out whole: what a buffer does not fill nobody has.",
        ),
        "taken" => (
            "ranges taken for a buffer: bits found in the bitmap, and set again at its end",
            |found| found.taken as f64 / found.buffers as f64,
            "A long buffer takes many short ranges.",
        ),
        _ => (
            "I/O TLB misses a page",
            misses_a_page,
            "256 buffers are lent to four devices. Short ranges are many: more than 256 are out, some share an entry, and streams that meet there \
             cast each other out; pages of a buffer shorter than a range share none.",
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
        title: "How long a range should be".to_owned(),
        along: "pages of a range".to_owned(),
        shows: shows.to_owned(),
        at: PAGES.map(|pages| pages as f64).to_vec(),
        lines: BUFFERS.into_iter().map(of_size).collect::<Result<_, _>>()?,
        note: note.to_owned(),
    })
}

fn today() -> Result<Platform, String> {
    preset(TODAY).ok_or_else(|| format!("there is no platform '{TODAY}'"))?.map_err(told)
}

fn thirty_years() -> Result<Picture, String> {
    let platform = today()?;
    let spec = IommuSpec::of(&platform).ok_or_else(|| format!("{TODAY} has no IOMMU"))?;
    let iotlb = spec.iotlb;
    let lines = vec![
        line("256 entries by chain ID, ranges of 8 pages", over(lent(1024), Scheme::Ranges(8), misses_a_page))?,
        line(
            format!("{} entries in sets of {}, magazines", iotlb.sets * iotlb.ways as u64, iotlb.ways),
            over(lent(1024), Scheme::Magazines(iotlb), misses_a_page),
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
        along: "buffers lent".to_owned(),
        shows: "IOTLB misses a page".to_owned(),
        at: LENT.map(|lent| lent as f64).to_vec(),
        lines,
        note: format!(
            "Sets of several ways miss once a page, however many buffers are lent: a page is gone over once and unmapped. What has changed is what a miss is worth. On {TODAY} a page \
             crosses the link in {page_ns:.0} ns, and the walk that finds it takes {one:.0} ns, or {all:.0} ns where nothing of the table is \
             known (assumed, as all of that preset). So a miss is no longer hidden behind the page it is for: several walks at once, larger \
             pages, and memory that stays mapped do what an order of chain IDs did."
        ),
    })
}

/// What was published of the file server, and is given here.
struct Published {
    /// Processor cycles of an operation, without and with coherent I/O.
    cycles: [f64; 2],
    /// Operations per second, without and with.
    ops_per_s: [f64; 2],
}

/// Processors and file systems of the published configuration.
const PROCESSORS: f64 = 4.0;
const DISKS: f64 = 56.0;

/// Shares of their time that processors are busy without coherent I/O, in percent: what the clock, which is not published, would tell.
const BUSY_PERCENT: [f64; 9] = [70.0, 80.0, 90.0, 95.0, 97.0, 98.0, 99.0, 99.5, 99.9];

/// Operations a second with coherent I/O, where the time of the disks is what makes the published ones come out without.
fn gain(published: &Published, busy_percent: f64, requests: u32) -> Option<f64> {
    let without_ms = PROCESSORS * busy_percent / 100.0 / published.ops_per_s[0] * 1e3;
    let server = |processor_ms: f64, disk_ms: f64| Server {
        requests,
        processors: PROCESSORS,
        processor_ms,
        disks: DISKS,
        disk_ms,
    };
    let without = |disk_ms| server(without_ms, disk_ms).seen().ops_per_s;
    let (mut short, mut long) = (0.0, 1e3);
    if without(short) < published.ops_per_s[0] {
        return None;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(short, long);
        *(if without(middle) < published.ops_per_s[0] { &mut long } else { &mut short }) = middle;
    }
    Some(server(without_ms * published.cycles[1] / published.cycles[0], short).seen().ops_per_s)
}

fn server_gain(figure: Figures) -> Result<Picture, String> {
    let pair = |of: &str| Ok::<_, String>([figure(&format!("{of}:without"))?, figure(&format!("{of}:with"))?]);
    let ops = |of: &str| figure(&format!("H9:{of}:ops"));
    let published = Published { cycles: pair("H13")?, ops_per_s: [ops("without")?, ops("with")?] };
    let of = |requests: u32| {
        let values = BUSY_PERCENT.map(|busy| gain(&published, busy, requests)).to_vec();
        line(format!("{requests} requests under way"), Ok(values))
    };
    let mut lines = [120, 153, 200].map(of).into_iter().collect::<Result<Vec<_>, _>>()?;
    lines.push(line("published", Ok(vec![Some(published.ops_per_s[1]); BUSY_PERCENT.len()]))?);
    Ok(Picture {
        title: "What fewer cycles an operation do to a file server".to_owned(),
        along: "processors busy without coherent I/O, %".to_owned(),
        shows: "operations a second with coherent I/O".to_owned(),
        at: BUSY_PERCENT.to_vec(),
        lines,
        note: "By a closed network of four processors and 56 disks (mean value analysis): cycles an operation are given, and the time of the disks is what \
               makes 4255 operations a second come out without coherent I/O. 4651 come out only where processors were busy for more than 99.5 % of the \
               time: where they were busy for less, the disks are the limit, and fewer cycles are hardly any gain. What coherent I/O saves the \
               bus and memory is not in it. 120 requests are the processes of the \
               clients, 153 what operations times response time come to. Clock and disks are not published: nothing of this is a prediction."
            .to_owned(),
    })
}

/// Bytes of a buffer of a disk.
const TRANSFERS: [u64; 6] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10];

fn misses_of_disks(figure: Figures) -> Result<Picture, String> {
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
        title: "Which streams miss 0.64 % of the time".to_owned(),
        along: "KiB of a buffer".to_owned(),
        shows: "I/O TLB misses, % of accesses".to_owned(),
        at: TRANSFERS.map(|bytes| (bytes >> 10) as f64).to_vec(),
        lines,
        note: "Simulated with 64 buffers lent, fewer than there are entries: each page misses once. 0.64 % is one miss in 156 accesses: whole pages of which \
               22 % are moved by 16 B and the rest by 32 B, or shorter buffers of which more are; by 32 B alone no stream is below 0.78 %. \
               Which it was is not published."
            .to_owned(),
    })
}
