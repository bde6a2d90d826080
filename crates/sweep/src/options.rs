//! Options of a question in a space: their names, columns and values.

use lanemark_bench::{Axes, Cores};
use lanemark_inventory::CpuSet;
use lanemark_record::{CacheState, Socket};
use lanemark_units::{SizeRange, parse_size};
use std::str::FromStr;

/// An option of a question in a space.
#[derive(Clone, Copy)]
pub struct QuestionOption {
    /// Name in a space, as on the command line.
    pub name: &'static str,
    /// Name of its column in tables, which ends in the unit.
    pub column: &'static str,
    /// Values, in words.
    pub values: &'static str,
    /// Whether a comma separates parts of one value instead of values.
    pub(crate) is_one_text: bool,
    pub(crate) set: fn(&mut Asking, &str) -> Result<(), String>,
}

/// The variants and the iterations of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asking {
    pub(crate) axes: Axes,
    pub(crate) iterations: Option<u64>,
}

const fn row(
    name: &'static str,
    column: &'static str,
    values: &'static str,
    set: fn(&mut Asking, &str) -> Result<(), String>,
) -> QuestionOption {
    QuestionOption { name, column, values, is_one_text: false, set }
}

/// Every option of a question. Lists of values are varied.
pub const OPTIONS: &[QuestionOption] = &[
    row("sizes", "size_bytes", "bytes of one transfer: a list or a range, such as 64..4M*4", |asking, text| {
        asking.axes.sizes = Some(parsed::<SizeRange>(text)?.bytes().to_vec());
        Ok(())
    }),
    row("memory_type", "memory_type", "uc, wc, wt, wp, wb", |asking, text| {
        asking.axes.memory_types = Some(vec![parsed(text)?]);
        Ok(())
    }),
    row("access", "access", "instructions, such as 8, 64, memcpy, nt16", |asking, text| {
        asking.axes.accesses = Some(vec![parsed(text)?]);
        Ok(())
    }),
    row("fence", "fence", "none, sfence, lfence, mfence, locked, interrupt", |asking, text| {
        let fence = if text == "none" { None } else { Some(parsed(text)?) };
        asking.axes.fences = Some(vec![fence]);
        Ok(())
    }),
    row("align", "alignment_bytes", "offset of the first byte, below 4096", |asking, text| {
        let bytes: u64 = size(text)?;
        if bytes >= 4096 {
            return Err(format!("{bytes} is too large: an offset from a page boundary is at most 4095"));
        }
        asking.axes.alignments = Some(vec![bytes]);
        Ok(())
    }),
    row("region", "region", "name of a region of the card", |asking, text| {
        asking.axes.region = Some(text.to_owned());
        Ok(())
    }),
    QuestionOption {
        is_one_text: true,
        ..row("flows", "flows", "concurrent DMA flows, such as \"0:host,host:1\"", |asking, text| {
            let flows = text.split(',').map(|flow| parsed(flow.trim())).collect::<Result<Vec<_>, String>>()?;
            asking.axes.flows = Some(flows);
            Ok(())
        })
    },
    row("window", "window_bytes", "working set of each DMA flow", |asking, text| {
        asking.axes.reach.window_bytes = Some(above_0(text)?);
        Ok(())
    }),
    row("random", "random", "true: transfers at random offsets", |asking, text| {
        asking.axes.reach.is_random = parsed(text)?;
        Ok(())
    }),
    row("stride", "stride_bytes", "distance between the starts of transfers", |asking, text| {
        asking.axes.reach.stride_bytes = Some(above_0(text)?);
        Ok(())
    }),
    row("outstanding", "outstanding", "DMA transfers at once per channel, 1 to 65536", |asking, text| {
        asking.axes.reach.outstanding = Some(within(text, 1, 65536)? as u32);
        Ok(())
    }),
    row("cache_state", "cache_state", "cold, host-warm, device-warm", |asking, text| {
        let known = || format!("use one of {}", CacheState::ALL.map(CacheState::name).join(", "));
        let found = CacheState::ALL.into_iter().find(|state| state.name() == text);
        asking.axes.reach.cache_state = Some(found.ok_or_else(known)?);
        Ok(())
    }),
    row("socket", "socket", "local, remote", |asking, text| {
        let known = || format!("use one of {}", Socket::ALL.map(Socket::name).join(", "));
        let found = Socket::ALL.into_iter().find(|socket| socket.name() == text);
        asking.axes.reach.socket = Some(found.ok_or_else(known)?);
        Ok(())
    }),
    row("channels", "channels", "DMA channels per card, 1 to 64", |asking, text| {
        asking.axes.reach.channels = Some(within(text, 1, 64)? as u32);
        Ok(())
    }),
    row("matrix", "matrix", "poisson:SIDE, random:ROWSxEACH, powerlaw:ROWSxEACH or a file", |asking, text| {
        let matrix = lanemark_runner::matrix(text).map_err(|error| error.to_string())?;
        asking.axes.matrices = Some(vec![matrix]);
        Ok(())
    }),
    QuestionOption {
        is_one_text: true,
        ..row("cores", "cores", "cores that launch kernels, such as \"0-3,8\" or \"all\"", |asking, text| {
            let cores = match text {
                "all" => Cores::All,
                list => Cores::These(parsed::<CpuSet>(list)?.iter().collect()),
            };
            asking.axes.cores = Some(cores);
            Ok(())
        })
    },
    row("iterations", "iterations", "iterations per sample, 1 to 1000000000", |asking, text| {
        asking.iterations = Some(within(text, 1, 1_000_000_000)?);
        Ok(())
    }),
];

fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

fn above_0(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("0 bytes are not allowed: use at least 1".to_owned()),
        bytes => Ok(bytes),
    }
}

fn within(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a whole number from {least} to {most}"))
}
