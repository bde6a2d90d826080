//! Checks of DMA reads: request size, tags, completion timeout.

use super::case::{Case, Collector, command, setpci, unknown};
use super::gain;
use super::tags::tags;
use lanemark_inventory::{Express, Function};
use lanemark_record::diagnosis::{Gain, LinkRate, Severity};
use lanemark_wire::config::{ConfigSpace, TagBits};
use lanemark_wire::{Mps, Mrrs};

/// Function that issues reads, with everything that its bound needs.
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

    /// Gain of reads with other tags or another request size.
    fn gain(&self, case: &Case<'_>, tags: TagBits, mrrs: Mrrs) -> Gain {
        let (now, then) = (self.ceiling(case, self.tags, self.mrrs), self.ceiling(case, tags, mrrs));
        let assumes = format!(
            "reads complete after {} ns ({}), every tag in use, completions of {} B on {}",
            case.round_trip.ns,
            case.round_trip.origin,
            self.mps.bytes(),
            self.rate
        );
        gain::bytes_per_s("host-to-device DMA ceiling", now, then, assumes)
    }

    /// Tags after the remedy of `extended_tags`.
    fn tags_to_be(&self) -> TagBits {
        match self.tags {
            TagBits::Five if self.express.extended_tags.supported.get() == Some(true) => TagBits::Eight,
            other => other,
        }
    }
}

fn readers<'a>(case: &Case<'a>, found: &mut Collector) -> Vec<Reader<'a>> {
    let mut readers = Vec::new();
    for (place, function, express) in case.requesters() {
        let Some(rate) = case.edge_above(place).and_then(|edge| edge.trained(case)) else { continue };
        let (mps, mrrs) = (express.mps.get(), express.mrrs.get());
        match (mps, mrrs, tags(express, rate.generation)) {
            (Some(mps), Some(mrrs), Some(tags)) => {
                readers.push(Reader { place, function, express, rate, mps, mrrs, tags });
            }
            (Some(_), Some(_), None) => {
                let because = "whether 8-bit or 10-bit tags are enabled is missing";
                found.add_unseen(
                    "how many reads can be outstanding",
                    because,
                    "use a newer lspci, or lspci -xxxx",
                    function,
                );
            }
            _ => {}
        }
    }
    readers
}

/// Finds read requests for which `tags x MRRS` is below round-trip time times bandwidth.
pub(crate) fn size(case: &Case<'_>, found: &mut Collector) {
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
        // The command changes the request size only, not the tags.
        let gain = reader.gain(case, reader.tags, enough);
        let reason = format!(
            "{}{} outstanding reads of {} B do not cover latency x bandwidth of {}: {} B would",
            if tags == reader.tags { "" } else { "even with extended tags, " },
            tags.tags(),
            reader.mrrs.bytes(),
            reader.rate,
            enough.bytes()
        );
        let code = enough.bytes().trailing_zeros() - 7;
        let set = setpci([reader.function], &format!("CAP_EXP+8.w={:04x}:7000", code << 12));
        let words = "the driver may change it again; a device that never uses all its tags gains less";
        found.add(gain::severity(&gain), [reader.function], None, reason, gain, command(set, words));
    }
}

/// Finds extended tags disabled: 32 tags instead of 256.
pub(crate) fn extended_tags(case: &Case<'_>, found: &mut Collector) {
    for reader in readers(case, found) {
        let can = reader.express.extended_tags.supported.get() == Some(true);
        if !can || reader.express.extended_tags.enabled.get() != Some(false) {
            continue;
        }
        let gain = reader.gain(case, TagBits::Eight.max(reader.tags), reader.mrrs);
        let reason = "extended tags are disabled although supported: 32 outstanding reads instead of 256".to_owned();
        let words =
            "only if the whole path to the root supports them; Linux disables them below ports that are known not to";
        let fix = command(setpci([reader.function], "CAP_EXP+8.w=0100:0100"), words);
        found.add(gain::severity(&gain), [reader.function], None, reason, gain, fix);
    }
}

/// Finds 10-bit tags disabled although the root port supports them as completer: 256 tags instead of 768.
pub(crate) fn ten_bit_tags(case: &Case<'_>, found: &mut Collector) {
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
            "10-bit tags are disabled on {} although device and root port support them: {} outstanding reads instead of 768",
            reader.rate,
            reader.tags.tags()
        );
        let words = "only for reads of host memory: peers may not support them";
        let fix = command(setpci([reader.function], "CAP_EXP+28.w=1000:1000"), words);
        found.add(gain::severity(&gain), [reader.function], None, reason, gain, fix);
    }
}

/// Finds requesters with a disabled completion timeout, which wait for ever for a lost completion.
pub(crate) fn completion_timeout(case: &Case<'_>, found: &mut Collector) {
    let off = |function: &Function| {
        let pcie = ConfigSpace::new(function.config.known()?).pcie().ok()?;
        // The second half of the capability exists from version 2 on.
        let has_it = pcie.version().ok()? >= 2;
        Some(has_it && pcie.region().read(0x28, 2)? & 0x10 != 0)
    };
    let all: Vec<&Function> =
        case.requesters().map(|(_, function, _)| function).filter(|function| off(function) == Some(true)).collect();
    if all.is_empty() {
        return;
    }
    let reason = "the completion timeout is disabled: a read whose completion is lost waits for ever".to_owned();
    let words = "unless the device's vendor requires it to be disabled";
    let fix = command(setpci(all.iter().copied(), "CAP_EXP+28.w=0:10"), words);
    found.add(Severity::Hint, all, None, reason, unknown("it has no effect unless a completion is lost"), fix);
}

#[cfg(test)]
mod tests {
    use super::super::case::{DiagnosisRequest, RoundTrip};
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
        let ask = DiagnosisRequest {
            round_trip: RoundTrip { ns: round_trip_ns, origin: "a test".to_owned() },
            ..DiagnosisRequest::default()
        };
        diagnose(machine, &ask).findings.into_iter().filter(|finding| finding.check == check).collect()
    }

    #[test]
    fn reads_too_small_for_the_round_trip_are_found() {
        // 256 x 128 B = 32 KiB cover Gen4 x16 (29 GB/s) up to 1.12 us.
        assert_eq!(at(&machine(128, true), 1100.0, "read_requests"), []);
        let found = at(&machine(128, true), 1200.0, "read_requests");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert_eq!(found[0].fix.command.as_deref(), Some("setpci -s 0000:01:00.0 CAP_EXP+8.w=1000:7000"));
        assert_eq!(at(&machine(256, true), 1200.0, "read_requests"), []);
    }

    #[test]
    fn the_round_trip_and_its_origin_are_in_the_assumptions() {
        let found = at(&machine(128, true), 3000.0, "read_requests");
        let lanemark_record::diagnosis::Gain::Computed { assumes, .. } = &found[0].gain else { panic!("no gain") };
        assert!(assumes.starts_with("reads complete after 3000 ns (a test)"), "{assumes}");
    }

    #[test]
    fn the_gain_is_that_of_the_given_command() {
        let found = at(&machine(128, false), 1200.0, "read_requests");
        // 32 reads of 256 B instead of 128 B, and not 256 of them.
        assert!((found[0].gain.factor().unwrap() - 2.0).abs() < 1e-9, "{:?}", found[0].gain);
        assert!(
            found[0].reason.starts_with("even with extended tags, 256 outstanding reads of 128 B"),
            "{}",
            found[0].reason
        );
        assert_eq!(found[0].fix.command.as_deref(), Some("setpci -s 0000:01:00.0 CAP_EXP+8.w=1000:7000"));
    }

    #[test]
    fn disabled_extended_tags_are_found_with_their_cost() {
        let found = findings_of(&machine(512, false), "extended_tags");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert!(found[0].gain.factor().unwrap() > 1.7, "{:?}", found[0].gain);
        assert_eq!(findings_of(&machine(512, true), "extended_tags"), []);
        // If 32 tags cover the link, disabled extended tags cost nothing.
        assert_eq!(at(&machine(4096, false), 1000.0, "extended_tags")[0].severity, Severity::Minor);
        assert_eq!(at(&machine(512, false), 1000.0, "read_requests"), [], "extended tags are sufficient");
    }

    #[test]
    fn ten_bit_tags_need_device_support_root_support_and_gen4() {
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
    fn unseen_tags_are_reported() {
        let mut machine = machine(128, true);
        express(&mut machine, CARD).extended_tags.enabled = sample::unseen();
        let diagnosis = diagnose(&machine, &DiagnosisRequest::default());
        assert!(diagnosis.findings.is_empty());
        assert!(diagnosis.unseen.iter().any(|unseen| unseen.what == "how many reads can be outstanding"));
    }

    #[test]
    fn a_disabled_completion_timeout_is_found_in_configuration_space() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x68] = 0x10));
        assert_eq!(findings_of(&machine, "completion_timeout").len(), 1);
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x68] = 0x0f));
        assert_eq!(findings_of(&machine, "completion_timeout"), []);
    }
}
