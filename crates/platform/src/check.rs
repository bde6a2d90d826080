//! What no single key can tell: that the keys fit each other.

use crate::read::Notes;
use crate::{Bar, Link, Region};
use lanemark_units::format_size;

/// Bytes of a DW.
const DW: u64 = 4;

/// Notes what does not fit; a part that could not be read is `None`, and what needs it is not looked at.
pub(crate) fn check(link: Option<&Link>, bars: Option<&[Bar]>, regions: Option<&[Region]>, notes: &mut Notes<'_>) {
    if let Some(link) = link {
        check_credits(link, notes);
    }
    if let Some(bars) = bars {
        check_bars(bars, notes);
        check_regions(bars, regions.unwrap_or_default(), notes);
    }
}

/// A receiver must have room for one packet of the largest payload, or that packet is never sent.
///
/// Source: `PCIe` Base Specification 5.0, section 2.6.1, table of minimum initial advertisements.
fn check_credits(link: &Link, notes: &mut Notes<'_>) {
    let (credits, mps) = (link.posted_data_credits.value, link.mps_bytes.value);
    let needed = mps.div_ceil(16);
    if credits < needed {
        let message = format!("is {credits}; one payload of {mps} B (mps_bytes) takes {needed}");
        notes.at_line(link.posted_data_credits.line, "link.posted_data_credits".to_owned(), message);
    }
}

fn check_bars(bars: &[Bar], notes: &mut Notes<'_>) {
    for (place, bar) in bars.iter().enumerate() {
        let (index, size, address) = (bar.index.value, bar.size_bytes.value, bar.address_bytes.value);
        if !size.is_power_of_two() {
            let right = format_size(size.next_power_of_two());
            let message = format!("is {}; a BAR's size is a power of two, such as {right}", format_size(size));
            notes.at_line(bar.size_bytes.line, format!("bar.{index}.size_bytes"), message);
        } else if !address.is_multiple_of(size) {
            let message = format!("is {address:#x}; it must be a multiple of the BAR's size {}", format_size(size));
            notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
        }
        let before = &bars[..place];
        if before.iter().any(|other| other.index.value == index) {
            let message = "stands twice; give each BAR its own".to_owned();
            notes.at_line(bar.index.line, format!("bar.{index}.index"), message);
        }
        let overlapped = before.iter().find_map(|other| {
            let span = (other.address_bytes.value, end_of(other.address_bytes.value, other.size_bytes.value));
            (address < span.1 && span.0 < end_of(address, size)).then_some((other, span))
        });
        if let Some((other, (start, end))) = overlapped {
            let message = format!("overlaps BAR{}, which reaches from {start:#x} to {end:#x}", other.index.value);
            notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
        }
    }
}

fn check_regions(bars: &[Bar], regions: &[Region], notes: &mut Notes<'_>) {
    for (place, region) in regions.iter().enumerate() {
        let key = |key: &str| format!("region.{}.{key}", region.name);
        let Some(bar) = bars.iter().find(|bar| bar.index.value == region.bar.value) else {
            let message = format!("is {}; there is no such BAR in this file", region.bar.value);
            notes.at_line(region.bar.line, key("bar"), message);
            continue;
        };
        let (start, size) = (region.offset_bytes.value, region.size_bytes.value);
        let end = end_of(start, size);
        // Requests carry whole DWs: a region that begins inside one would share it with its neighbour.
        if !start.is_multiple_of(DW) || !size.is_multiple_of(DW) {
            let message = format!("reaches from {start:#x} to {end:#x}; both must be multiples of {DW} B, a DW");
            notes.at_line(region.offset_bytes.line, key("offset_bytes"), message);
        }
        if end > bar.size_bytes.value {
            let message = format!(
                "is {}; from offset {start:#x} it reaches beyond BAR{}, which is {}",
                format_size(size),
                bar.index.value,
                format_size(bar.size_bytes.value)
            );
            notes.at_line(region.size_bytes.line, key("size_bytes"), message);
        }
        let overlapped =
            regions[..place].iter().filter(|other| other.bar.value == region.bar.value).find_map(|other| {
                let span = (other.offset_bytes.value, end_of(other.offset_bytes.value, other.size_bytes.value));
                (start < span.1 && span.0 < end).then_some((other, span))
            });
        if let Some((other, (from, to))) = overlapped {
            let message = format!("overlaps region {}, which reaches from {from:#x} to {to:#x}", other.name);
            notes.at_line(region.offset_bytes.line, key("offset_bytes"), message);
        }
    }
}

/// The first byte behind `size` bytes from `start`; no address is so high that saturating hides one.
fn end_of(start: u64, size: u64) -> u64 {
    start.saturating_add(size)
}
