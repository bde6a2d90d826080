//! Checks of links: speed, width, equalization.

use super::case::{Case, Collector, by_hand, command, unknown};
use super::edge::Edge;
use super::gain;
use lanemark_inventory::{Function, Width};
use lanemark_record::diagnosis::{End, Gain, LinkRate, Severity};
use lanemark_wire::config::{CapabilityId, ConfigSpace, LinkSpeed};

/// Finds links slower than both ends support, or than the lower end supports if the upper end was not seen. A link
/// limited by one end's capability is not a finding.
pub(crate) fn speed(case: &Case<'_>, found: &mut Collector) {
    let better = |now: LinkRate, best: LinkRate| {
        (now.generation < best.generation).then_some(LinkRate { generation: best.generation, ..now })
    };
    each(case, found, better, slow, slow_alone);
}

/// Finds links narrower than both ends support, or than the lower end supports if the upper end was not seen.
pub(crate) fn width(case: &Case<'_>, found: &mut Collector) {
    let better = |now: LinkRate, best: LinkRate| {
        (now.width_lanes < best.width_lanes).then_some(LinkRate { width_lanes: best.width_lanes, ..now })
    };
    each(case, found, better, narrow, narrow_alone);
}

/// Report of a link that runs at the first rate and could run at the second.
type Report = fn(&Case<'_>, &mut Collector, &Edge, LinkRate, LinkRate);

fn each(
    case: &Case<'_>,
    found: &mut Collector,
    better: impl Fn(LinkRate, LinkRate) -> Option<LinkRate>,
    of_both: Report,
    of_one: Report,
) {
    for edge in &case.edges {
        let Some(now) = edge.trained(case) else { continue };
        if let Some(best) = edge.both_can(case) {
            if let Some(then) = better(now, best) {
                of_both(case, found, edge, now, then);
            }
        } else if let Some(best) = edge.lower_can(case) {
            if let Some(then) = better(now, best) {
                of_one(case, found, edge, now, then);
            }
        } else {
            lower_end_unseen(case, found, edge, now);
        }
    }
}

/// Reports a port that supports more than the trained state, above a device whose capability was not seen. Most ports do.
fn lower_end_unseen(case: &Case<'_>, found: &mut Collector, edge: &Edge, now: LinkRate) {
    let more = |link: &lanemark_inventory::Link| {
        link.fastest.get().is_some_and(|speed| speed.code() > now.generation)
            || link.widest.get().is_some_and(|width| width > Width(now.width_lanes))
    };
    if edge.upper_link(case).is_some_and(more) {
        let because = "the port supports more than the trained state, and the device was not seen";
        let enable = "include the device in the dump, as root";
        found.add_unseen("whether the link is below its capability", because, enable, edge.lower(case));
    }
}

/// Vendor ID of AMD's GPUs, whose accelerators without a display are of class 12; so are FPGA cards of other vendors.
const AMD: u16 = 0x1002;

/// Whether it is a GPU, which lowers the speed of its link while it is idle.
pub(crate) fn is_gpu(function: &Function) -> bool {
    function.class.get().is_some_and(|class| match class.base() {
        0x03 => true,
        0x12 => function.vendor.get() == Some(AMD),
        _ => false,
    })
}

/// Words before a remedy of the speed: an idle GPU needs none.
const UNDER_LOAD: &str = "GPU: look again under load, because an idle GPU lowers the speed of its link; ";

fn under_load(function: &Function) -> &'static str {
    if is_gpu(function) { UNDER_LOAD } else { "" }
}

/// The way to see the port above a device.
fn port_above(case: &Case<'_>) -> &'static str {
    if case.is_virtual_machine() {
        "a virtual machine may hide the port: look on the host"
    } else {
        "look at the port above: sudo lspci -D -nn -vvv without -s lists it"
    }
}

fn slow_alone(case: &Case<'_>, found: &mut Collector, edge: &Edge, now: LinkRate, then: LinkRate) {
    let lower = edge.lower(case);
    let reason = format!(
        "the link runs at Gen{} although the device supports Gen{}; the port above was not seen and may support less",
        now.generation, then.generation
    );
    let words = format!(
        "{}{}; if it supports Gen{}, reseat the card and check the slot's speed setting in the firmware setup",
        under_load(lower),
        port_above(case),
        then.generation
    );
    found.add(Severity::Minor, [lower], Some(End::Lower), reason, gain_alone(case, edge, now, then), by_hand(&words));
}

fn narrow_alone(case: &Case<'_>, found: &mut Collector, edge: &Edge, now: LinkRate, then: LinkRate) {
    let reason = format!(
        "the link runs with {} of the {} lanes that the device supports; the port above was not seen and may have fewer",
        now.width_lanes, then.width_lanes
    );
    let words = format!(
        "{}; if it has more lanes, reseat the card, or check bifurcation in the firmware setup; if not, move the card to a slot with all lanes",
        port_above(case)
    );
    let lower = edge.lower(case);
    found.add(Severity::Minor, [lower], Some(End::Lower), reason, gain_alone(case, edge, now, then), by_hand(&words));
}

/// Gain if the port above supports the rate too.
fn gain_alone(case: &Case<'_>, edge: &Edge, now: LinkRate, then: LinkRate) -> Gain {
    let mut gain = gain::link(now, then, edge.mps(case));
    if let Gain::Computed { assumes, .. } = &mut gain {
        assumes.push_str(", if the port above supports it");
    }
    gain
}

fn slow(case: &Case<'_>, found: &mut Collector, edge: &Edge, now: LinkRate, then: LinkRate) {
    let (lower, upper) = (edge.lower(case), edge.upper(case));
    let target = |link: Option<&lanemark_inventory::Link>| link.and_then(|link| link.target.get());
    let holds = |link| target(link).is_some_and(|speed| speed.code() < then.generation);
    let (end, why) = match (holds(edge.upper_link(case)), holds(edge.lower_link(case))) {
        (true, _) => (End::Upper, "software limits the speed at the upstream port (Target Link Speed)"),
        (false, true) => (End::Lower, "software limits the speed at the lower end (Target Link Speed)"),
        (false, false) if is_gpu(lower) => (
            End::Both,
            "the GPU is idle, or training settled below the capability of both ends: signal quality, riser, or a firmware setting",
        ),
        (false, false) => (
            End::Both,
            "training settled below the capability of both ends: signal quality, riser, or a firmware setting",
        ),
    };
    let reason =
        format!("the link runs at Gen{} although both ends support Gen{}: {why}", now.generation, then.generation);
    let fix = match upper {
        Some(port) => {
            let (port, target) = (port.address, then.generation);
            let set = format!("setpci -s {port} CAP_EXP+30.w={target}:f && setpci -s {port} CAP_EXP+10.w=20:20");
            let words = "sets the target speed and retrains the link; if it falls back, reseat the card and check the slot's speed setting in the firmware setup";
            command(set, &format!("{}{words}", under_load(lower)))
        }
        None => by_hand(&format!(
            "{}reseat the card and check the slot's speed setting in the firmware setup",
            under_load(lower)
        )),
    };
    let gain = gain::link(now, then, edge.mps(case));
    found.add(severity(&gain), [lower], Some(end), reason, gain, fix);
}

fn narrow(case: &Case<'_>, found: &mut Collector, edge: &Edge, now: LinkRate, then: LinkRate) {
    let reason = format!(
        "the link runs with {} of the {} lanes that both ends support: the card is not fully seated, the slot has fewer lanes wired, or bifurcation is set",
        now.width_lanes, then.width_lanes
    );
    let words = "reseat the card, or move it to a slot with all lanes; check bifurcation in the firmware setup";
    let gain = gain::link(now, then, edge.mps(case));
    found.add(severity(&gain), [edge.lower(case)], Some(End::Both), reason, gain, by_hand(words));
}

/// Severity of a lost link rate: costly also if the payload size is unknown.
fn severity(gain: &Gain) -> Severity {
    match gain {
        Gain::Unknown { .. } => Severity::Costly,
        Gain::Computed { .. } => gain::severity(gain),
    }
}

/// Whether the link partner signalled in training that no equalization is needed, as is possible from 32 GT/s on.
///
/// Source: PCI Express Base Specification 6.0, section 7.7.6.4, bits 7:6 and 10.
fn needs_none(space: ConfigSpace<'_>) -> bool {
    let status = space.capability(CapabilityId::PHYSICAL_32).ok().and_then(|found| found.region().read(0x0c, 4));
    status.is_some_and(|status| status >> 6 & 3 == 2 || status & 1 << 10 != 0)
}

/// Finds links from 8 GT/s on whose equalization did not complete, which may have a higher error rate.
pub(crate) fn equalization(case: &Case<'_>, found: &mut Collector) {
    // Emulated links are never equalised, so this needs a machine known to be physical.
    let flags = case.inventory.processors.flags.known();
    if flags.is_none_or(|flags| flags.iter().any(|flag| flag == "hypervisor")) {
        return;
    }
    for edge in &case.edges {
        let lower = edge.lower(case);
        let speed = edge.trained(case).and_then(|rate| LinkSpeed::from_code(rate.generation.into()));
        let (Some(speed), Some(bytes)) = (speed, lower.config.known()) else { continue };
        let space = ConfigSpace::new(bytes);
        // Only the current speed counts: both ends may agree to skip equalization at lower speeds, or entirely.
        if space.equalization(speed).is_ok_and(|done| !done.complete) && !needs_none(space) {
            let reason = format!("the link runs at {speed}, but its equalization did not complete");
            let gain = unknown("only the error counters show the effect");
            let fix = match edge.upper(case) {
                Some(port) => command(format!("setpci -s {} CAP_EXP+10.w=20:20", port.address), "retrains the link"),
                None => by_hand("retrain the link: remove and rescan the device, or power-cycle the machine"),
            };
            found.add(Severity::Minor, [lower], Some(End::Lower), reason, gain, fix);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, PORT, findings_of, known, link};
    use lanemark_inventory::Width;
    use lanemark_record::diagnosis::{End, Severity};
    use lanemark_wire::config::LinkSpeed;

    fn trained(speed: LinkSpeed, width: u8) -> lanemark_inventory::Inventory {
        let mut machine = sample::healthy();
        for place in [PORT, CARD] {
            link(&mut machine, place).speed = known(speed);
            link(&mut machine, place).width = known(Width(width));
        }
        machine
    }

    #[test]
    fn a_link_below_both_ends_is_found_with_its_gain() {
        let found = findings_of(&trained(LinkSpeed::Gt8, 8), "link_speed");
        assert_eq!((found.len(), found[0].severity, found[0].end), (1, Severity::Costly, Some(End::Both)));
        assert!((found[0].gain.factor().unwrap() - 2.0).abs() < 0.02, "{:?}", found[0].gain);
        assert_eq!(
            found[0].fix.command.as_deref(),
            Some("setpci -s 0000:00:01.0 CAP_EXP+30.w=4:f && setpci -s 0000:00:01.0 CAP_EXP+10.w=20:20")
        );
        let found = findings_of(&trained(LinkSpeed::Gt16, 8), "link_width");
        assert!(found[0].reason.starts_with("the link runs with 8 of the 16 lanes"), "{}", found[0].reason);
        assert!((found[0].gain.factor().unwrap() - 2.0).abs() < 1e-9);
        for check in ["link_speed", "link_width"] {
            assert_eq!(findings_of(&trained(LinkSpeed::Gt16, 16), check), []);
        }
    }

    #[test]
    fn a_limited_partner_explains_the_link() {
        for place in [PORT, CARD] {
            let mut machine = trained(LinkSpeed::Gt8, 8);
            link(&mut machine, place).fastest = known(LinkSpeed::Gt8);
            link(&mut machine, place).widest = known(Width(8));
            assert_eq!(findings_of(&machine, "link_speed"), []);
            assert_eq!(findings_of(&machine, "link_width"), []);
        }
    }

    #[test]
    fn the_end_that_limits_the_speed_is_named() {
        for (place, end) in [(PORT, End::Upper), (CARD, End::Lower)] {
            let mut machine = trained(LinkSpeed::Gt8, 16);
            link(&mut machine, place).target = known(LinkSpeed::Gt8);
            assert_eq!(findings_of(&machine, "link_speed")[0].end, Some(end));
        }
    }

    #[test]
    fn a_link_without_completed_equalization_at_its_speed_is_found() {
        // LnkSta2 is at 0x72 with bit 1, Physical Layer 16 and 32 GT/s at 0x100 and 0x200 with bit 0 at 0x0c.
        let at = |speed, status_8: u8, status_16: u8, status_32: [u8; 2]| {
            let mut machine = trained(speed, 16);
            machine.processors.flags = known(vec![]);
            machine.functions[CARD].config = known(sample::config(|bytes| {
                bytes[0x72] = status_8;
                bytes[0x100..0x104].copy_from_slice(&[0x26, 0, 1, 0x20]);
                bytes[0x10c] = status_16;
                bytes[0x200..0x204].copy_from_slice(&[0x2a, 0, 1, 0]);
                bytes[0x20c..0x20e].copy_from_slice(&status_32);
            }));
            findings_of(&machine, "equalization").len()
        };
        assert_eq!((at(LinkSpeed::Gt8, 2, 0, [0, 0]), at(LinkSpeed::Gt8, 0, 1, [1, 0])), (0, 1));
        assert_eq!((at(LinkSpeed::Gt16, 0, 1, [0, 0]), at(LinkSpeed::Gt16, 2, 0, [1, 0])), (0, 1));
        // Directly to 32 GT/s: the status of lower speeds stays 0.
        assert_eq!((at(LinkSpeed::Gt32, 0, 0, [1, 0]), at(LinkSpeed::Gt32, 2, 1, [0, 0])), (0, 1));
        // No Equalization Needed, received in either of two ways.
        assert_eq!((at(LinkSpeed::Gt32, 0, 0, [0x80, 0]), at(LinkSpeed::Gt32, 0, 0, [0, 4])), (0, 0));
    }

    #[test]
    fn a_device_below_its_own_capability_is_minor_if_the_port_was_not_seen() {
        let without_port = |mut machine: lanemark_inventory::Inventory| {
            machine.functions.remove(PORT);
            machine.functions[0].parent = known(None);
            machine
        };
        let alone = without_port(trained(LinkSpeed::Gt8, 8));
        let found = findings_of(&alone, "link_speed");
        assert_eq!((found.len(), found[0].severity, found[0].end), (1, Severity::Minor, Some(End::Lower)));
        assert!((found[0].gain.factor().unwrap() - 2.0).abs() < 0.02, "{:?}", found[0].gain);
        assert!(!found[0].fix.words.contains("GPU"), "{}", found[0].fix.words);
        let found = findings_of(&alone, "link_width");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Minor));
        assert!(found[0].reason.starts_with("the link runs with 8 of the 16 lanes"), "{}", found[0].reason);
        for check in ["link_speed", "link_width"] {
            assert_eq!(findings_of(&without_port(trained(LinkSpeed::Gt16, 16)), check), []);
        }
        // The port was seen, but not its capability.
        let mut denied = trained(LinkSpeed::Gt8, 16);
        denied.functions[PORT].express = sample::unseen();
        assert_eq!(findings_of(&denied, "link_speed")[0].severity, Severity::Minor);
    }

    #[test]
    fn functions_of_a_device_without_a_port_share_one_link() {
        let mut machine = trained(LinkSpeed::Gt8, 16);
        let mut second = machine.functions[CARD].clone();
        second.address = "0000:01:00.1".parse().unwrap();
        let mut other = second.clone();
        other.address = "0000:01:01.0".parse().unwrap();
        machine.functions.remove(PORT);
        machine.functions.extend([second, other]);
        machine.functions.iter_mut().for_each(|function| function.parent = known(None));
        let found = findings_of(&machine, "link_speed");
        let functions: Vec<_> = found.iter().flat_map(|finding| finding.functions.clone()).collect();
        assert_eq!(functions, ["0000:01:00.0", "0000:01:01.0"]);
    }

    #[test]
    fn the_speed_of_a_gpu_is_to_be_looked_at_under_load() {
        for (class, vendor, is_gpu) in [
            (0x03_02_00, 0x10de, true),
            (0x12_00_00, 0x1002, true),
            (0x12_00_00, 0x10ee, false),
            (0x02_00_00, 0x15b3, false),
        ] {
            let mut machine = trained(LinkSpeed::Gt2_5, 16);
            machine.functions[CARD].vendor = known(vendor);
            machine.functions[CARD].class = known(lanemark_inventory::Class(class));
            let words = &findings_of(&machine, "link_speed")[0].fix.words;
            assert_eq!(words.contains("GPU: look again under load"), is_gpu, "{words}");
        }
    }

    #[test]
    fn a_port_above_an_unseen_device_is_reported_and_is_no_finding() {
        let mut machine = trained(LinkSpeed::Gt8, 8);
        let mut blind = link(&mut machine, CARD).clone();
        (blind.fastest, blind.widest) = (sample::unseen(), sample::unseen());
        *link(&mut machine, CARD) = blind;
        let diagnosis = crate::doctor::diagnose(&machine, &crate::doctor::DiagnosisRequest::default());
        assert!(diagnosis.findings.iter().all(|finding| !finding.check.starts_with("link_")));
        let blind = diagnosis.unseen.iter().filter(|unseen| unseen.what.starts_with("whether the link"));
        assert_eq!(blind.map(|unseen| unseen.functions.len()).collect::<Vec<_>>(), [1]);
    }
}
