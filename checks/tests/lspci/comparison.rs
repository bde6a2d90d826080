//! Comparison of our decoder with the output of `lspci` for the same bytes.

use crate::decoded::{Decoded, Seen};
use crate::extended::ANYTHING;
use crate::{express, extended, printed, standard};
use lanemark_wire::config::{Capability, CapabilityId, ConfigSpace};

/// Lines of `lspci` that we do not decode: capability, start of the line, reason.
pub const NOT_DECODED: &[(u16, &str, &str)] = &[
    (0x23, "CXLCap2: ", "the cache of a CXL device is no matter of PCIe"),
    (0x23, "Range1: ", "the memory of a CXL device is no matter of PCIe"),
    (0x23, "Range2: ", "the memory of a CXL device is no matter of PCIe"),
    (0x23, "Block", "where CXL registers stand in a BAR is no matter of configuration space"),
    (0x23, "Valid", "the memory of a CXL device is no matter of PCIe"),
];

/// Every difference, as a sentence; empty if there is none.
pub fn differences(bytes: &[u8], function: &printed::Function, seen: &Seen) -> Vec<String> {
    let space = ConfigSpace::new(bytes);
    let header = Decoded::new(space.header(), seen);
    let mut found = Vec::new();
    let title = function.title.split_once(' ').map_or("", |(_, title)| title);
    let expected = standard::title(&header);
    let rest = title.strip_prefix(expected.as_str());
    let interface = standard::programming_interface(&header);
    if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(&interface)) {
        found.push(format!("header: we say '{expected}{interface}', lspci '{title}'"));
    }
    lines("header", &standard::header(space, &header), &function.header, &[], &mut found);
    let ours: Vec<Capability<'_>> = space.capabilities().collect();
    if ours.len() != function.capabilities.len() {
        let (ours, theirs) = (ours.len(), function.capabilities.len());
        found.push(format!("we find {ours} capabilities, lspci {theirs}"));
    }
    for (ours, theirs) in ours.iter().zip(&function.capabilities) {
        let place = format!("{} at {:#05x}", ours.id(), ours.offset());
        if (ours.offset(), ours.version()) != (theirs.offset, theirs.version) {
            found.push(format!("{place}: lspci has {:#05x}, version {:?}", theirs.offset, theirs.version));
            continue;
        }
        let decoded = Decoded::new(ours.region(), seen);
        let (title, expected, ignored) = match ours.id() {
            CapabilityId::PCI_EXPRESS => (express::title(&decoded), express::lines(&decoded), Vec::new()),
            CapabilityId::Standard(id) => {
                let (title, lines) = standard::print(id, &decoded);
                (title, lines, Vec::new())
            }
            CapabilityId::Extended(id) => {
                let (title, lines) = extended::print(id, &decoded);
                let ignored = NOT_DECODED.iter().filter(|row| row.0 == id).map(|row| row.1).collect();
                (title, lines, ignored)
            }
        };
        lines(&place, &[title], std::slice::from_ref(&theirs.title), &[], &mut found);
        lines(&place, &expected, &theirs.lines, &ignored, &mut found);
    }
    found
}

fn lines(place: &str, ours: &[String], theirs: &[String], ignored: &[&str], found: &mut Vec<String>) {
    let theirs: Vec<&String> =
        theirs.iter().filter(|line| !ignored.iter().any(|begin| line.starts_with(begin))).collect();
    for index in 0..ours.len().max(theirs.len()) {
        match (ours.get(index), theirs.get(index)) {
            (Some(ours), Some(theirs)) if same(ours, theirs) => {}
            (Some(ours), Some(theirs)) => found.push(difference(place, ours, theirs)),
            (Some(ours), None) => found.push(format!("{place}: we say '{ours}', lspci nothing")),
            (None, Some(theirs)) => found.push(format!("{place}: lspci says '{theirs}', we do not decode it")),
            (None, None) => {}
        }
    }
}

/// Whether both are equal, where a run of [`ANYTHING`] matches anything up to a space or comma.
fn same(ours: &str, theirs: &str) -> bool {
    let mut parts = ours.split(ANYTHING);
    let Some(mut rest) = parts.next().and_then(|first| theirs.strip_prefix(first)) else { return false };
    for part in parts {
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        let Some(behind) = rest[end..].strip_prefix(part) else {
            // A match may end inside a word, as before "ns".
            return rest.find(part).is_some_and(|at| !rest[..at].contains([' ', ',']) && at + part.len() == rest.len());
        };
        rest = behind;
    }
    rest.is_empty()
}

/// The register, and the first words that differ.
fn difference(place: &str, ours: &str, theirs: &str) -> String {
    let differs = |(ours, theirs): &(&str, &str)| ours != theirs;
    let words = ours.split(' ').zip(theirs.split(' ')).find(differs);
    let register = ours.split([' ', ':']).next().unwrap_or("");
    match words {
        Some((ours_word, theirs_word)) => {
            format!(
                "{place}, {register}: we say {ours_word}, lspci {theirs_word}\n    we    {ours}\n    lspci {theirs}"
            )
        }
        None => format!("{place}, {register}:\n    we    {ours}\n    lspci {theirs}"),
    }
}
