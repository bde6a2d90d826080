//! What no single key can tell: that the keys fit each other.

use crate::Platform;
use crate::read::Notes;
use lanemark_units::format_size;

pub(crate) fn check(platform: &Platform, notes: &mut Notes<'_>) {
    check_bars(platform, notes);
    check_regions(platform, notes);
    let link = &platform.link;
    let needed = link.mps_bytes.value.min(64) / 16;
    if link.posted_data_credits.value < needed {
        let line = link.posted_data_credits.line;
        let message = format!("is {}; one 64 B write needs {needed}", link.posted_data_credits.value);
        notes.at_line(line, "link.posted_data_credits".to_owned(), message);
    }
}

fn check_bars(platform: &Platform, notes: &mut Notes<'_>) {
    for (place, bar) in platform.bars.iter().enumerate() {
        let (index, size, address) = (bar.index.value, bar.size_bytes.value, bar.address_bytes.value);
        if !size.is_power_of_two() {
            let message =
                format!("is {size}; a BAR's size is a power of two, such as {}", format_size(size.next_power_of_two()));
            notes.at_line(bar.size_bytes.line, format!("bar.{index}.size_bytes"), message);
        } else if !address.is_multiple_of(size) {
            let message = format!("is {address:#x}; it must be a multiple of the BAR's size {}", format_size(size));
            notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
        }
        for other in &platform.bars[..place] {
            if other.index.value == index {
                notes.at_line(
                    bar.index.line,
                    format!("bar.{index}.index"),
                    "stands twice; give each BAR its own".to_owned(),
                );
            }
            let (start, end) =
                (other.address_bytes.value, other.address_bytes.value.saturating_add(other.size_bytes.value));
            if address < end && start < address.saturating_add(size) {
                let message = format!("overlaps BAR{}, which reaches from {start:#x} to {end:#x}", other.index.value);
                notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
            }
        }
    }
}

fn check_regions(platform: &Platform, notes: &mut Notes<'_>) {
    for (place, region) in platform.regions.iter().enumerate() {
        let key = |key: &str| format!("region.{}.{key}", region.name);
        let (start, size) = (region.offset_bytes.value, region.size_bytes.value);
        let Some(bar) = platform.bars.iter().find(|bar| bar.index.value == region.bar.value) else {
            let message = format!("is {}; there is no such BAR in this file", region.bar.value);
            notes.at_line(region.bar.line, key("bar"), message);
            continue;
        };
        let end = start.saturating_add(size);
        if end > bar.size_bytes.value {
            let message = format!(
                "is {}; from offset {start:#x} it reaches beyond BAR{}, which is {}",
                format_size(size),
                bar.index.value,
                format_size(bar.size_bytes.value)
            );
            notes.at_line(region.size_bytes.line, key("size_bytes"), message);
        }
        for other in &platform.regions[..place] {
            if other.name == region.name {
                notes.at_line(
                    region.offset_bytes.line,
                    key("name"),
                    "stands twice; give each region its own name".to_owned(),
                );
            }
            let (from, to) =
                (other.offset_bytes.value, other.offset_bytes.value.saturating_add(other.size_bytes.value));
            if other.bar.value == region.bar.value && start < to && from < end {
                let message = format!("overlaps region {}, which reaches from {from:#x} to {to:#x}", other.name);
                notes.at_line(region.offset_bytes.line, key("offset_bytes"), message);
            }
        }
        if !region.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            notes.at_line(region.offset_bytes.line, key("name"), "must be letters, digits, '_' and '-'".to_owned());
        }
    }
}
