//! Groups of facts that a source lacks for most checks: no root, too few options of lspci.

use lanemark_inventory::{Function, Inventory, Source, Why};

/// Size of the header of configuration space, which Linux shows to every user.
const HEADER_BYTES: u16 = 64;

/// The reasons, each with the remedy; empty if most checks had their facts.
pub(super) fn reasons(inventory: &Inventory) -> Vec<String> {
    let count = |is: fn(&Function) -> bool| inventory.functions.iter().filter(|function| is(function)).count();
    let all = inventory.functions.len();
    let denied = count(|function| matches!(function.express.why(), Some(Why::ListingDenied)));
    let short = count(|function| {
        matches!(function.express.why(), Some(Why::BeyondConfig { bytes }) if *bytes <= HEADER_BYTES)
            || matches!(function.config.why(), Some(Why::Refused { .. }))
    });
    let mut reasons = Vec::new();
    let unchecked = "their links, payload sizes and errors were not checked";
    if denied > 0 {
        reasons.push(format!(
            "the listing was made without root, so lspci was denied the capabilities of {denied} of {all} functions; {unchecked}; create it as root: sudo lspci -D -nn -vvv -xxxx"
        ));
    }
    if short > 0 {
        let (made, remedy) = match inventory.source {
            Source::Lspci { .. } => ("the dump was made without root or with -x", "create it with sudo lspci -xxxx"),
            Source::ThisMachine => ("this machine was read without root", "run as root"),
            Source::Folder(_) | Source::Archive(_) => {
                ("the copy was made without root", "run capture.sh with sudo (see the guide)")
            }
        };
        reasons.push(format!(
            "{made}, so at most {HEADER_BYTES} B of configuration space of {short} of {all} functions are there; {unchecked} completely; {remedy}"
        ));
    }
    if denied + short == 0 && matches!(inventory.source, Source::Lspci { .. }) && lacks_registers(inventory) {
        reasons.push(
            "the listing has no registers of links, which lspci prints with -vv or more; links, payload sizes and errors were not checked; create it as root: sudo lspci -D -nn -vvv -xxxx"
                .to_owned(),
        );
    }
    reasons
}

/// Whether no function of a listing has the state of a link, because the listing is too short.
fn lacks_registers(inventory: &Inventory) -> bool {
    let unlisted = |why: Option<&Why>| matches!(why, Some(Why::NotListed(_)));
    let is_unlisted = |function: &Function| match function.link() {
        Some(link) => unlisted(link.width.why()) && unlisted(link.widest.why()),
        None => unlisted(function.express.why()),
    };
    let has_link = |function: &Function| match function.express.why() {
        Some(why) => *why != Why::AllOnes,
        None => function.link().is_some(),
    };
    let mut with_link = inventory.functions.iter().filter(|function| has_link(function)).peekable();
    with_link.peek().is_some() && with_link.all(is_unlisted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn reasons_of(text: &str) -> Vec<String> {
        reasons(&Inventory::from_lspci(text, Path::new("here.txt")).unwrap())
    }

    const HEADING: &str = "01:00.0 Ethernet controller: Some Card\n";

    #[test]
    fn a_listing_made_without_root_is_incomplete() {
        let found = reasons_of(&format!("{HEADING}\tCapabilities: <access denied>\n"));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("the listing was made without root"), "{}", found[0]);
        assert!(found[0].contains("of 1 of 1 functions"), "{}", found[0]);
    }

    #[test]
    fn a_listing_without_registers_is_incomplete_and_one_without_capabilities_is_not() {
        for text in
            [HEADING.to_owned(), format!("{HEADING}\tFlags: fast\n\tCapabilities: [40] Express Endpoint, MSI 00\n")]
        {
            assert!(reasons_of(&text)[0].starts_with("the listing has no registers of links"), "{text}");
        }
        let status = "\tControl: I/O- Mem+\n\tStatus: Cap- 66MHz-\n";
        assert_eq!(reasons_of(&format!("{HEADING}{status}")), [""; 0]);
        let link = "\tCapabilities: [40] Express (v2) Endpoint, MSI 00\n\t\tLnkSta:\tSpeed 8GT/s, Width x8\n";
        assert_eq!(reasons_of(&format!("{HEADING}{link}")), [""; 0]);
    }

    #[test]
    fn a_dump_of_the_header_is_incomplete_and_one_beyond_it_is_not() {
        // Status has a capability list, and its first entry is beyond the header.
        let dump = |rows: usize| {
            let mut bytes = vec![0_u8; rows * 16];
            bytes[..4].copy_from_slice(&[0x86, 0x80, 0x34, 0x12]);
            (bytes[0x06], bytes[0x34]) = (0x10, 0x40);
            let row = |at: usize| {
                let bytes: Vec<String> = bytes[at * 16..][..16].iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{:02x}: {}\n", at * 16, bytes.join(" "))
            };
            HEADING.to_owned() + &(0..rows).map(row).collect::<String>()
        };
        assert!(reasons_of(&dump(4))[0].starts_with("the dump was made without root"), "{:?}", reasons_of(&dump(4)));
        assert_eq!(reasons_of(&dump(16)), [""; 0]);
    }
}
