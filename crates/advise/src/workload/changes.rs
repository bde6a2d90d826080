//! Changes of the machine: another method, settings, other hardware; each simulated with the methods of a choice.

use super::candidates::{Candidate, Kind};
use super::compared::Compared;
use super::figure::{fastest, times_slower};
use lanemark_machine::{Completion, Descriptors, Share};
use lanemark_method::Method;
use lanemark_platform::{Origin, Platform};
use lanemark_record::WaitShare;
use lanemark_record::guidance::{ChangeKind, Effect, LEAST_GAIN_PERCENT, MachineChange, Ranked, Traffic};
use lanemark_runner::{Cancel, RunError};
use lanemark_units::{MemoryType, format_size};

/// Largest transfer by UC accesses that is simulated, in bytes. Its rate does not change beyond.
const LONGEST_UC: u64 = 1 << 20;

/// A change of keys of the platform.
struct KeyChange {
    kind: ChangeKind,
    what: String,
    how: String,
    with: Vec<(String, f64)>,
}

/// Every change with its effects, in the order in which they are tried.
///
/// # Errors
/// [`RunError::Interrupted`].
pub(super) fn changes(
    platform: &Platform,
    compared: &[Compared],
    cancel: &Cancel,
) -> Result<Vec<MachineChange>, RunError> {
    let mut changes = software(platform, compared, cancel)?;
    let mut settings: Vec<MachineChange> = Vec::new();
    for change in settings_of(platform) {
        let Some(effects) = with_keys(platform, &change.with, compared, cancel)? else { continue };
        let change = described(change, effects);
        // Of several values of one key, the smallest one with the largest gain is kept.
        let same_key =
            |other: &MachineChange| other.with.first().map(|with| &with.0) == change.with.first().map(|with| &with.0);
        match settings.iter_mut().find(|other| same_key(other)) {
            None => settings.push(change),
            Some(smaller) if change.largest_gain_percent() >= smaller.largest_gain_percent() + LEAST_GAIN_PERCENT => {
                *smaller = change;
            }
            Some(_) => {}
        }
    }
    let useful = settings.iter().filter(|change| change.largest_gain_percent() >= LEAST_GAIN_PERCENT);
    let together: Vec<(String, f64)> = useful
        .flat_map(|change| &change.with)
        .filter_map(|(key, value)| Some((key.clone(), value.parse().ok()?)))
        .collect();
    changes.extend(settings);
    if together.len() > 1
        && let Some(effects) = with_keys(platform, &together, compared, cancel)?
    {
        let all = KeyChange {
            kind: ChangeKind::AllSettings,
            what: "all of these settings".to_owned(),
            how: "the steps above".to_owned(),
            with: together,
        };
        changes.push(described(all, effects));
    }
    for change in hardware(platform) {
        let Some(effects) = with_keys(platform, &change.with, compared, cancel)? else { continue };
        changes.push(described(change, effects));
    }
    Ok(changes)
}

/// Removes changes without an effect of [`LEAST_GAIN_PERCENT`] and returns their names; sorts the others by kind, then
/// by the largest gain.
pub(super) fn without_effect(changes: &mut Vec<MachineChange>) -> Vec<String> {
    let has_effect = |change: &MachineChange| change.largest_gain_percent() >= LEAST_GAIN_PERCENT;
    let without = changes.iter().filter(|change| !has_effect(change)).map(|change| change.what.clone()).collect();
    changes.retain(has_effect);
    let kind = |change: &MachineChange| change.kind as u8;
    changes.sort_by(|one, other| {
        let by_gain = other.largest_gain_percent().total_cmp(&one.largest_gain_percent());
        kind(one).cmp(&kind(other)).then(by_gain)
    });
    without
}

fn described(change: KeyChange, effects: Vec<Effect>) -> MachineChange {
    let KeyChange { kind, what, how, with } = change;
    let with = with.into_iter().map(|(key, value)| (key, value.to_string())).collect();
    MachineChange { kind, what, how, with, effects }
}

/// The effects of changed keys on every choice; `None` if the platform refuses the change.
fn with_keys(
    platform: &Platform,
    with: &[(String, f64)],
    compared: &[Compared],
    cancel: &Cancel,
) -> Result<Option<Vec<Effect>>, RunError> {
    let mut changed = platform.clone();
    for (key, value) in with {
        let origin = Origin::Assumed("a change that advise tries".to_owned());
        let Ok(next) = changed.with(key, *value, origin) else { return Ok(None) };
        changed = next;
    }
    let mut effects = Vec::new();
    for Compared { choice, simulated } in compared {
        let Some(before) = fastest(choice) else { continue };
        let mut best: Option<(f64, Option<WaitShare>)> = None;
        for candidate in simulated {
            if cancel.is_cancelled() {
                return Err(RunError::Interrupted);
            }
            let Ok((answer, figure)) = candidate.simulate(&changed, cancel) else { continue };
            if best.as_ref().is_none_or(|(best, _)| times_slower(choice.traffic, figure, *best) > 1.0) {
                best = Some((figure, answer.waits.first().cloned()));
            }
        }
        let Some((after, bound_after)) = best else { continue };
        effects.push(effect(choice.traffic, compared_at(choice), before, after, bound_after));
    }
    Ok(Some(effects))
}

type At = (lanemark_method::CopyDirection, u64);

const fn compared_at(choice: &lanemark_record::guidance::Choice) -> At {
    (choice.direction, choice.size_bytes)
}

fn effect(traffic: Traffic, at: At, before: &Ranked, after: f64, bound_after: Option<WaitShare>) -> Effect {
    let (direction, size_bytes) = at;
    Effect {
        direction,
        traffic,
        size_bytes,
        before: before.figure,
        after,
        gain_percent: 100.0 * (times_slower(traffic, after, before.figure) - 1.0),
        bound_before: before.bound.clone(),
        bound_after,
    }
}

/// Settings of PCIe functions, of the IOMMU and of the engine that may improve transfers. Registers are those of the
/// PCI Express Base Specification, sections 7.5.3.4 (Device Control) and 7.5.3.16 (Device Control 2).
fn settings_of(platform: &Platform) -> Vec<KeyChange> {
    let number = |key: &str| platform.number(key).map(|(value, _)| value);
    let mut changes = Vec::new();
    let mut set = |key: &str, to: f64, what: String, how: String| {
        changes.push(KeyChange { kind: ChangeKind::Setting, what, how, with: vec![(key.to_owned(), to)] });
    };
    let bytes = |bytes: f64| format_size(bytes as u64);
    let ports = platform.port_names();
    let supported = ports.iter().map(|port| platform.mps_supported_bytes_of(port)).min().map_or(0.0, f64::from);
    if let Some(now) = number("link.mps_bytes") {
        for (code, to) in [(1, 256.0), (2, 512.0), (3, 1024.0)] {
            if to > now {
                let what = format!("Max_Payload_Size {} instead of {}", bytes(to), bytes(now));
                let how = format!("for every port on the path: setpci -s BDF CAP_EXP+8.w={:02x}:e0", code << 5);
                if to <= supported {
                    set("link.mps_bytes", to, what, how);
                }
            }
        }
    }
    if let Some(now) = number("link.mrrs_bytes") {
        for (code, to) in [(2, 512.0), (3, 1024.0), (5, 4096.0)] {
            if to > now {
                let what = format!("Max_Read_Request_Size {} instead of {}", bytes(to), bytes(now));
                let how = format!("for the card: setpci -s BDF CAP_EXP+8.w={:x}:7000", code << 12);
                set("link.mrrs_bytes", to, what, how);
            }
        }
    }
    // 5-bit tags are 32, and extended tags are 256. Other numbers are those of the engine.
    let generation = number("link.generation").unwrap_or_default();
    match number("dma.tags").map(|tags| tags as u64) {
        Some(32) => {
            let what = "256 tags (extended tags) instead of 32".to_owned();
            let how = "requires an engine with 256 tags: setpci -s BDF CAP_EXP+8.w=100:100".to_owned();
            set("dma.tags", 256.0, what, how);
        }
        Some(256) if generation >= 4.0 => {
            let what = "768 tags (10-bit tags) instead of 256".to_owned();
            let how = "requires an engine with 768 tags, and a root complex that supports 10-bit tags as completer: \
                       setpci -s BDF CAP_EXP+28.w=1000:1000";
            set("dma.tags", 768.0, what, how.to_owned());
        }
        _ => {}
    }
    if let Some(now) = number("iommu.page_bytes").filter(|now| *now < HUGE_PAGE) {
        let what = format!("IOMMU pages of 2MiB instead of {}", bytes(now));
        set("iommu.page_bytes", HUGE_PAGE, what, "allocate DMA buffers from huge pages".to_owned());
    }
    changes
}

const HUGE_PAGE: f64 = 2_097_152.0;

/// Other hardware: faster and wider links, and faster parts of the card.
fn hardware(platform: &Platform) -> Vec<KeyChange> {
    let parameters = platform.parameters();
    let scaled = |ending: &str, prefix: &str, factor: f64| -> Vec<(String, f64)> {
        let named = parameters.iter().filter(|one| one.key.ends_with(ending) && one.key.starts_with(prefix));
        named.filter_map(|one| Some((one.key.clone(), one.scaled(factor)?))).collect()
    };
    let links = |ending: &str| [scaled(ending, "link.", 2.0), scaled(ending, "switch.", 2.0)].concat();
    // No slot has more than 16 lanes.
    let mut wider = links(".width_lanes");
    wider.retain(|(_, lanes)| *lanes <= 16.0);
    let rows = [
        ("every link one generation faster", links(".generation")),
        ("every link of at most 8 lanes twice as wide", wider),
        ("a DMA engine with a data path twice as fast", scaled("beat_ns", "dma.", 0.5)),
        ("a DMA engine with half the time per request", scaled("_request_ns", "dma.", 0.5)),
        ("twice as many tags", scaled("tags", "dma.", 2.0)),
        ("card memory twice as fast", scaled("beat_ns", "region.", 0.5)),
        ("card memory with half the read latency", scaled("read_ns", "region.", 0.5)),
        ("host memory with half the read latency", scaled("read_ns", "memory.", 0.5)),
        ("a root complex with half the round trip to a core", scaled("core_round_trip_ns", "root_complex.", 0.5)),
    ];
    let named = rows.into_iter().map(|(what, with)| (what.to_owned(), with));
    named
        .chain(larger_payload(platform))
        .filter(|(_, with)| !with.is_empty())
        .map(|(what, with)| KeyChange { kind: ChangeKind::Hardware, what, how: "other hardware".to_owned(), with })
        .collect()
}

/// Ports that support twice the largest payload that all ports support now.
fn larger_payload(platform: &Platform) -> Option<(String, Vec<(String, f64)>)> {
    let ports = platform.port_names();
    let supported = ports.iter().map(|port| platform.mps_supported_bytes_of(port)).min()?;
    let now = platform.number("link.mps_bytes")?.0;
    let to = 2.0 * f64::from(supported).max(now);
    let what = format!("ports that support Max_Payload_Size {}", format_size(to as u64));
    Some((what, vec![("link.mps_bytes".to_owned(), to)]))
}

/// Changes of a usual driver or program: polling instead of an interrupt, another place of the descriptors, a program
/// that writes them itself, write combining.
fn software(platform: &Platform, compared: &[Compared], cancel: &Cancel) -> Result<Vec<MachineChange>, RunError> {
    let mut changes = Vec::new();
    let usual = (Share::Call, Descriptors::Written(MemoryType::Uc), Completion::Interrupt);
    let (share, descriptors, completion) = usual;
    let calls = [
        ("poll a word in host memory instead of an interrupt", (share, descriptors, Completion::Flag)),
        ("let the device fetch descriptors from host memory", (share, Descriptors::Fetched, completion)),
        (
            "write descriptors through a write-combining mapping",
            (share, Descriptors::Written(MemoryType::Wc), completion),
        ),
        ("write descriptors from the program, and poll a word", (Share::List, descriptors, Completion::Flag)),
    ];
    for (what, (to_share, to_descriptors, to_completion)) in calls {
        let mut effects = Vec::new();
        for Compared { choice, simulated } in compared {
            let Some(call) = simulated.iter().find(|candidate| matches!(candidate.kind, Kind::Call(..))) else {
                continue;
            };
            let from = call.called(share, descriptors, completion);
            let to = call.called(to_share, to_descriptors, to_completion);
            effects.extend(of_methods(platform, choice.traffic, compared_at(choice), &from, &to, cancel)?);
        }
        let how = "a driver call that writes UC descriptors and sleeps until the interrupt";
        changes.extend(software_change(what, how, effects));
    }
    let mut effects = Vec::new();
    for Compared { choice, simulated } in compared.iter().filter(|one| one.choice.size_bytes <= LONGEST_UC) {
        let Some(wc) = simulated.iter().find(|candidate| candidate.kind == Kind::Core(MemoryType::Wc)) else {
            continue;
        };
        let mut uc = wc.clone();
        if let Method::Core(core) = &mut uc.case.method {
            core.memory_type = MemoryType::Uc;
            core.access = lanemark_method::Access::Plain(lanemark_method::Width::B8);
        }
        effects.extend(of_methods(platform, choice.traffic, compared_at(choice), &uc, wc, cancel)?);
    }
    let how = "accesses of 8 B to a UC mapping";
    let what = "map the card's memory write-combining: resourceN_wc of a prefetchable BAR, or ioremap_wc";
    changes.extend(software_change(what, how, effects));
    Ok(changes)
}

fn software_change(what: &str, how: &str, effects: Vec<Effect>) -> Option<MachineChange> {
    (!effects.is_empty()).then(|| MachineChange {
        kind: ChangeKind::Software,
        what: what.to_owned(),
        how: how.to_owned(),
        with: Vec::new(),
        effects,
    })
}

/// The effect of one method instead of another; `None` if either is not supported.
fn of_methods(
    platform: &Platform,
    traffic: Traffic,
    (direction, size_bytes): At,
    from: &Candidate,
    to: &Candidate,
    cancel: &Cancel,
) -> Result<Option<Effect>, RunError> {
    if cancel.is_cancelled() {
        return Err(RunError::Interrupted);
    }
    let Ok((was, before)) = from.simulate(platform, cancel) else { return Ok(None) };
    let Ok((is, after)) = to.simulate(platform, cancel) else { return Ok(None) };
    Ok(Some(Effect {
        direction,
        traffic,
        size_bytes,
        before,
        after,
        gain_percent: 100.0 * (times_slower(traffic, after, before) - 1.0),
        bound_before: was.waits.first().cloned(),
        bound_after: is.waits.first().cloned(),
    }))
}
