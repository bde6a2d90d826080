//! Reads under way: their size, their tags, and how long they may take.

use super::case::{Case, Found, command, setpci, unknown};
use super::gain;
use lanemark_inventory::{Express, Function};
use lanemark_record::diagnosis::{Gain, LinkRate, Severity};
use lanemark_wire::config::{ConfigSpace, TagBits};
use lanemark_wire::{Mps, Mrrs};

/// How many tags a function may use. Below Gen4, tags of 10 bits are not asked about.
pub(crate) fn tags(express: &Express, generation: u8) -> Option<TagBits> {
    let extended = express.extended_tags.enabled.get()?;
    if generation >= 4 && express.ten_bit_tags.enabled.get()? {
        return Some(TagBits::Ten);
    }
    Some(if extended { TagBits::Eight } else { TagBits::Five })
}

/// A function that reads, with everything the bound needs.
struct Reader<'a> {
    place: usize,
    function: &'a Function,
    express: &'a Express,
    rate: LinkRate,
    mps: Mps,
    mrrs: Mrrs,
    tags: TagBits,
}

impl Reader<'_> {
    fn ceiling(&self, case: &Case<'_>, tags: TagBits, mrrs: Mrrs) -> Option<f64> {
        gain::read_ceiling(self.rate, self.mps, tags.tags(), mrrs, case.round_trip.ns)
    }

    /// What reads gain with other tags or another size.
    fn gain(&self, case: &Case<'_>, tags: TagBits, mrrs: Mrrs) -> Gain {
        let (now, then) = (self.ceiling(case, self.tags, self.mrrs), self.ceiling(case, tags, mrrs));
        let assumes = format!(
            "reads answered after {} ns ({}), every tag in use, completions of {} B on {}",
            case.round_trip.ns,
            case.round_trip.origin,
            self.mps.bytes(),
            self.rate
        );
        gain::bytes_per_s("host-to-device DMA ceiling", now, then, assumes)
    }

    /// What it could use after `extended_tags` is mended.
    fn tags_to_be(&self) -> TagBits {
        match self.tags {
            TagBits::Five if self.express.extended_tags.supported.get() == Some(true) => TagBits::Eight,
            other => other,
        }
    }
}

fn readers<'a>(case: &Case<'a>, found: &mut Found) -> Vec<Reader<'a>> {
    let mut readers = Vec::new();
    for (place, function, express) in case.requesters() {
        let Some(rate) = case.edge_above(place).and_then(|edge| edge.trained(case)) else { continue };
        let (mps, mrrs) = (express.mps.get(), express.mrrs.get());
        match (mps, mrrs, tags(express, rate.generation)) {
            (Some(mps), Some(mrrs), Some(tags)) => {
                readers.push(Reader { place, function, express, rate, mps, mrrs, tags });
            }
            (Some(_), Some(_), None) => {
                let because = "it does not say whether tags of 8 or 10 bits are on";
                found.blind("how many reads may be under way", because, "a newer lspci, or its -xxxx", function);
            }
            _ => {}
        }
    }
    readers
}

/// `tags x MRRS` must cover round trip times bandwidth.
pub(crate) fn size(case: &Case<'_>, found: &mut Found) {
    for reader in readers(case, found) {
        let tags = reader.tags_to_be();
        let reached = |mrrs| reader.ceiling(case, tags, mrrs);
        let (now, Some(best)) = (reached(reader.mrrs), reached(Mrrs::ALL[Mrrs::ALL.len() - 1])) else { continue };
        if now.is_none_or(|now| now >= best) {
            continue;
        }
        let Some(enough) = Mrrs::ALL.into_iter().find(|mrrs| reached(*mrrs).is_some_and(|rate| rate >= best)) else {
            continue;
        };
        // The command sets the size and no tags.
        let gain = reader.gain(case, reader.tags, enough);
        let reason = format!(
            "{}{} reads of {} B under way do not cover latency x bandwidth of {}: {} B would",
            if tags == reader.tags { "" } else { "even with extended tags, " },
            tags.tags(),
            reader.mrrs.bytes(),
            reader.rate,
            enough.bytes()
        );
        let code = enough.bytes().trailing_zeros() - 7;
        let set = setpci([reader.function], &format!("CAP_EXP+8.w={:04x}:7000", code << 12));
        let words = "the driver may set it again; a device that never uses all its tags gains less";
        found.note(gain::severity(&gain), [reader.function], None, reason, gain, command(set, words));
    }
}

/// 256 tags instead of 32.
pub(crate) fn extended_tags(case: &Case<'_>, found: &mut Found) {
    for reader in readers(case, found) {
        let can = reader.express.extended_tags.supported.get() == Some(true);
        if !can || reader.express.extended_tags.enabled.get() != Some(false) {
            continue;
        }
        let gain = reader.gain(case, TagBits::Eight.max(reader.tags), reader.mrrs);
        let reason = "extended tags are off although it can use them: 32 reads under way instead of 256".to_owned();
        let words = "only if everything up to the root takes them; Linux turns them off where a port is known not to";
        let mend = command(setpci([reader.function], "CAP_EXP+8.w=0100:0100"), words);
        found.note(gain::severity(&gain), [reader.function], None, reason, gain, mend);
    }
}

/// 768 tags instead of 256, where the root port completes them.
pub(crate) fn ten_bit_tags(case: &Case<'_>, found: &mut Found) {
    for reader in readers(case, found) {
        let feature = &reader.express.ten_bit_tags;
        let off = feature.supported.get() == Some(true) && feature.enabled.get() == Some(false);
        let root = case.tree.path_up(reader.place).last().and_then(|root| case.function(root).pcie());
        let completes = root.and_then(|root| root.ten_bit_tag_completer.get()) == Some(true);
        if !off || !completes || reader.rate.generation < 4 {
            continue;
        }
        let gain = reader.gain(case, TagBits::Ten, reader.mrrs);
        let reason = format!(
            "10-bit tags are off on {} although device and root port can: {} reads under way instead of 768",
            reader.rate,
            reader.tags.tags()
        );
        let words = "only for reads of host memory: a peer may not complete them";
        let mend = command(setpci([reader.function], "CAP_EXP+28.w=1000:1000"), words);
        found.note(gain::severity(&gain), [reader.function], None, reason, gain, mend);
    }
}

/// A requester whose completion timeout is off waits for ever where a completion is lost.
pub(crate) fn completion_timeout(case: &Case<'_>, found: &mut Found) {
    let off = |function: &Function| {
        let pcie = ConfigSpace::new(function.config.known()?).pcie().ok()?;
        // The second half of the capability came with version 2.
        let has_it = pcie.version().ok()? >= 2;
        Some(has_it && pcie.region().read(0x28, 2)? & 0x10 != 0)
    };
    let all: Vec<&Function> =
        case.requesters().map(|(_, function, _)| function).filter(|function| off(function) == Some(true)).collect();
    if all.is_empty() {
        return;
    }
    let reason = "the completion timeout is off: a read whose completion is lost waits for ever".to_owned();
    let mend = command(setpci(all.iter().copied(), "CAP_EXP+28.w=0:10"), "unless the device's maker asks for it off");
    found.note(Severity::Hint, all, None, reason, unknown("nothing is lost while nothing fails"), mend);
}

#[cfg(test)]
mod tests {
    use super::super::case::{Ask, RoundTrip};
    use crate::doctor::diagnose;
    use crate::doctor::sample::{self, CARD, PORT, express, findings_of, known};
    use lanemark_inventory::Inventory;
    use lanemark_record::diagnosis::Severity;
    use lanemark_wire::Mrrs;

    fn machine(mrrs: u32, extended: bool) -> Inventory {
        let mut machine = sample::healthy();
        express(&mut machine, CARD).mrrs = known(Mrrs::new(mrrs).unwrap());
        express(&mut machine, CARD).extended_tags.enabled = known(extended);
        express(&mut machine, CARD).ten_bit_tags.supported = known(false);
        express(&mut machine, CARD).ten_bit_tags.enabled = known(false);
        machine
    }

    fn at(machine: &Inventory, round_trip_ns: f64, check: &str) -> Vec<lanemark_record::diagnosis::Finding> {
        let ask = Ask { round_trip: RoundTrip { ns: round_trip_ns, origin: "a test".to_owned() }, ..Ask::default() };
        diagnose(machine, &ask).findings.into_iter().filter(|finding| finding.check == check).collect()
    }

    #[test]
    fn reads_too_small_for_the_round_trip_are_found_and_large_enough_ones_are_not() {
        // 256 x 128 B = 32 KiB cover Gen4 x16 (29 GB/s) up to 1.12 us.
        assert_eq!(at(&machine(128, true), 1100.0, "read_requests"), []);
        let found = at(&machine(128, true), 1200.0, "read_requests");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert_eq!(found[0].mend.command.as_deref(), Some("setpci -s 0000:01:00.0 CAP_EXP+8.w=1000:7000"));
        assert_eq!(at(&machine(256, true), 1200.0, "read_requests"), []);
    }

    #[test]
    fn the_round_trip_and_where_it_comes_from_are_in_the_assumptions() {
        let found = at(&machine(128, true), 3000.0, "read_requests");
        let lanemark_record::diagnosis::Gain::Computed { assumes, .. } = &found[0].gain else { panic!("no gain") };
        assert!(assumes.starts_with("reads answered after 3000 ns (a test)"), "{assumes}");
    }

    #[test]
    fn a_gain_is_that_of_the_command_beside_it() {
        let found = at(&machine(128, false), 1200.0, "read_requests");
        // 32 reads of 256 B instead of 128 B, and not 256 of them.
        assert!((found[0].gain.factor().unwrap() - 2.0).abs() < 1e-9, "{:?}", found[0].gain);
        assert!(found[0].reason.starts_with("even with extended tags, 256 reads of 128 B"), "{}", found[0].reason);
        assert_eq!(found[0].mend.command.as_deref(), Some("setpci -s 0000:01:00.0 CAP_EXP+8.w=1000:7000"));
    }

    #[test]
    fn extended_tags_that_are_off_are_found_with_what_they_cost() {
        let found = findings_of(&machine(512, false), "extended_tags");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert!(found[0].gain.factor().unwrap() > 1.7, "{:?}", found[0].gain);
        assert_eq!(findings_of(&machine(512, true), "extended_tags"), []);
        // Where 32 tags cover the link, they cost nothing.
        assert_eq!(at(&machine(4096, false), 1000.0, "extended_tags")[0].severity, Severity::Minor);
        assert_eq!(at(&machine(512, false), 1000.0, "read_requests"), [], "the tags mend it");
    }

    #[test]
    fn ten_bit_tags_need_device_root_and_gen4() {
        let mut machine = machine(512, true);
        express(&mut machine, CARD).ten_bit_tags.supported = known(true);
        express(&mut machine, PORT).ten_bit_tag_completer = known(true);
        assert_eq!(findings_of(&machine, "ten_bit_tags").len(), 1);
        express(&mut machine, PORT).ten_bit_tag_completer = known(false);
        assert_eq!(findings_of(&machine, "ten_bit_tags"), []);
        express(&mut machine, PORT).ten_bit_tag_completer = known(true);
        for place in [PORT, CARD] {
            sample::link(&mut machine, place).speed = known(lanemark_wire::config::LinkSpeed::Gt8);
        }
        assert_eq!(findings_of(&machine, "ten_bit_tags"), []);
    }

    #[test]
    fn tags_that_were_not_seen_are_said() {
        let mut machine = machine(128, true);
        express(&mut machine, CARD).extended_tags.enabled = sample::unseen();
        let diagnosis = diagnose(&machine, &Ask::default());
        assert!(diagnosis.findings.is_empty());
        assert!(diagnosis.unseen.iter().any(|unseen| unseen.what == "how many reads may be under way"));
    }

    #[test]
    fn a_timeout_that_is_off_is_found_in_the_bytes() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x68] = 0x10));
        assert_eq!(findings_of(&machine, "completion_timeout").len(), 1);
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x68] = 0x0f));
        assert_eq!(findings_of(&machine, "completion_timeout"), []);
    }
}
