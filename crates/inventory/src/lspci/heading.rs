//! Parses the first line of a function.

use crate::{Address, Class, Function, Seen, Why, class_named};

/// Splits a line into its leading address and the rest.
pub(super) fn split(line: &str) -> Option<(Address, &str)> {
    let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some((crate::address::parse(address)?, rest.trim()))
}

/// Whether a line begins with an address and a class, by name or number.
pub(super) fn has_class(line: &str) -> bool {
    split(line).is_some_and(|(_, heading)| class(heading).is_some())
}

/// The class in a heading; interface 0.
pub(super) fn class(heading: &str) -> Option<Class> {
    let (class, _) = heading.split_once(": ")?;
    let code = match bracketed(class) {
        Some((_, code)) => hex(code, 4),
        None => hex(class, 4),
    };
    code.map(|code| Class(code << 8)).or_else(|| class_named(class))
}

fn hex(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_number { u32::from_str_radix(text, 16).ok() } else { None }
}

fn pair(text: &str) -> Option<(u16, u16)> {
    let (vendor, device) = text.split_once(':')?;
    Some((hex(vendor, 4)? as u16, hex(device, 4)? as u16))
}

/// Splits `Some Vendor Some Device [1d0f:f001]` into name and IDs.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(']')?.rsplit_once('[')
}

/// Parses the text after the address: `CLASS: DEVICE (rev XX) (prog-if XX [...])`, with names, with numbers (`-n`) or
/// with both (`-nn`).
///
/// `Device 1d0f:f001` is a vendor without a name, `Some Vendor Device f001` a device without a name.
pub(super) fn function(address: Address, line: &str) -> Function {
    let mut function = Function::unseen(address, &Why::NotInDump);
    let unnamed = || Why::NotListed("of ids, which lspci -nn prints");
    function.vendor = Seen::Unseen(unnamed());
    function.device = Seen::Unseen(unnamed());
    function.class = Seen::Unseen(unnamed());
    let (_, rest) = line.split_once(": ").unwrap_or((line, ""));
    let code = class(line);
    let (rest, interface) = match rest.split_once(" (prog-if ") {
        Some((rest, interface)) => (rest, interface.get(..2).and_then(|digits| hex(digits, 2))),
        None => (rest, None),
    };
    if let Some(Class(code)) = code {
        // Interface 0 is not printed.
        function.class = Seen::Known(Class(code | interface.unwrap_or(0)));
    }
    let (rest, revision) = match rest.split_once(" (rev ") {
        Some((rest, revision)) => (rest, revision.get(..2).and_then(|digits| hex(digits, 2))),
        None => (rest, Some(0)), // Revision 0 is not printed.
    };
    if let Some(revision) = revision.filter(|_| !rest.is_empty()) {
        function.revision = Seen::Known(revision as u8);
    }
    let (name, ids) = match bracketed(rest).and_then(|(name, ids)| Some((name, pair(ids)?))) {
        Some((name, ids)) => (name.trim(), Some(ids)),
        None => (rest, pair(rest).or_else(|| pair(rest.strip_prefix("Device ")?))),
    };
    if let Some((vendor, device)) = ids {
        function.vendor = Seen::Known(vendor);
        function.device = Seen::Known(device);
    } else if let Some(device) = rest.rsplit_once(" Device ").and_then(|(_, device)| hex(device, 4)) {
        function.device = Seen::Known(device as u16);
    }
    if !name.is_empty() && pair(name).is_none() {
        function.name = Seen::Known(name.to_owned());
    }
    function
}

/// Parses `Device fedc:1d51`, or the form with names, with numbers, or with both.
pub(super) fn subsystem(text: &str) -> Option<(u16, u16)> {
    match bracketed(text) {
        Some((_, ids)) => pair(ids),
        None => pair(text).or_else(|| pair(text.strip_prefix("Device ")?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Function {
        let (address, heading) = split(line).unwrap();
        function(address, heading)
    }

    #[test]
    fn names_numbers_and_both_give_the_same_ids() {
        for line in [
            "00:1d.0 Memory controller: Device 1d0f:f001 (rev 02)",
            "0000:00:1d.0 0580: 1d0f:f001 (rev 02)",
            "00:1d.0 Memory controller [0580]: Amazon.com, Inc. Device [1d0f:f001] (rev 02)",
        ] {
            let function = read(line);
            let ids = (function.vendor.get(), function.device.get(), function.revision.get(), function.class.get());
            assert_eq!(ids, (Some(0x1d0f), Some(0xf001), Some(2), Some(Class(0x05_80_00))), "{line}");
        }
    }

    #[test]
    fn a_vendor_name_has_no_id_and_a_device_may_have_one() {
        let function = read("00:1d.0 Memory controller: Amazon.com, Inc. Device f001");
        assert_eq!((function.vendor.get(), function.device.get()), (None, Some(0xf001)));
        assert_eq!(function.name.known().map(String::as_str), Some("Amazon.com, Inc. Device f001"));
        let function = read("01:00.0 Ethernet controller: Some Corporation Fast Thing [Slim]");
        assert_eq!((function.vendor.get(), function.device.get(), function.revision.get()), (None, None, Some(0)));
    }

    #[test]
    fn the_programming_interface_is_part_of_the_class() {
        let function = read("02:00.0 Non-Volatile memory controller: Some SSD (rev 01) (prog-if 02 [NVM Express])");
        assert_eq!(function.class.get(), Some(Class(0x01_08_02)));
        assert_eq!(read("02:00.0 Teapot: Some").class.get(), None);
    }

    #[test]
    fn an_empty_heading_leaves_all_facts_unseen() {
        let function = read("02:00.0");
        assert!(function.class.why().is_some() && function.revision.why().is_some() && function.name.why().is_some());
    }

    #[test]
    fn subsystem_ids_are_parsed_in_three_formats() {
        for text in ["Device fedc:1d51", "fedc:1d51", "Some Vendor Some Card [fedc:1d51]"] {
            assert_eq!(subsystem(text), Some((0xfedc, 0x1d51)), "{text}");
        }
        assert_eq!(subsystem("Some Vendor Device 1d51"), None);
    }
}
