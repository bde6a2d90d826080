//! Checks of `[registers]`: timers and user registers.

use crate::mailbox::drivers_registers;
use crate::notes::Notes;
use crate::{Param, Platform, RegionKind, Registers};

/// Bytes of a timer.
const REGISTER: u64 = 8;

impl Registers {
    /// Bytes of the timers of a card with this many channels.
    #[must_use]
    pub fn timer_bytes(channels: u32) -> u64 {
        REGISTER * (1 + u64::from(channels))
    }
}

/// Timers and user registers are within one register region, and overlap neither each other nor the driver's
/// registers.
pub(crate) fn check_registers(platform: &Platform, notes: &mut Notes<'_>) {
    let Some(registers) = &platform.registers else { return };
    let path = Registers::PATH;
    let kinds = |region: &&crate::Region| region.kind.value == RegionKind::Registers;
    let Some(region) = platform.regions.iter().filter(kinds).find(|region| region.name == registers.region) else {
        let names: Vec<&str> = platform.regions.iter().filter(kinds).map(|region| region.name.as_str()).collect();
        let message = format!("is {:?}; regions of registers: {}", registers.region, names.join(", "));
        return notes.at_line(registers.clock_ghz.line, format!("{path}.region"), message);
    };
    let Registers { timer_offset_bytes: timers, user_offset_bytes: user, user_bytes, .. } = registers;
    let of_timers = Registers::timer_bytes(platform.channels());
    let len = region.size_bytes.value;
    let first = platform.regions.iter().find(|region| region.kind.value == RegionKind::Registers);
    let is_drivers = first.is_some_and(|first| first.name == region.name);
    let of_drivers = drivers_registers(platform).filter(|_| is_drivers);
    let mut taken: Vec<_> = of_drivers.map(|(span, what)| (what, span.start, span.end)).collect();
    for (key, start, bytes, what) in [
        ("timer_offset_bytes", timers, of_timers, "timers"),
        ("user_offset_bytes", user, user_bytes.value, "the user's registers"),
    ] {
        let mut note = |at: &Param<u64>, message: String| notes.at_line(at.line, format!("{path}.{key}"), message);
        let from = start.value;
        if !from.is_multiple_of(REGISTER) || !bytes.is_multiple_of(REGISTER) {
            note(start, format!("from {from:#x}, {bytes} B: both must be multiples of {REGISTER} B, a register"));
        }
        let Some(end) = from.checked_add(bytes).filter(|end| *end <= len) else {
            note(start, format!("is {from:#x}; {what}, {bytes} B, extend beyond region {}, {len} B", region.name));
            continue;
        };
        if let Some((other, ..)) = taken.iter().find(|(_, other, until)| from < *until && *other < end) {
            note(start, format!("is {from:#x}; {what}, {bytes} B, overlap {other}"));
        }
        taken.push((what, from, end));
    }
}

#[cfg(test)]
mod tests {
    use crate::{PRESETS, Platform};

    /// Problems of the preset with timers if `from` is replaced by `to`.
    fn problem(from: &str, to: &str) -> String {
        let text = PRESETS.iter().find(|preset| preset.name == "rosta-virtex7").unwrap().text;
        assert!(text.contains(from), "{from}");
        Platform::parse("timers.toml", &text.replacen(from, to, 1))
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    fn timers_at(offset: u64) -> String {
        problem("timer_offset_bytes = { value = 4096,", &format!("timer_offset_bytes = {{ value = {offset},"))
    }

    fn user_at(offset: u64) -> String {
        problem("user_offset_bytes = { value = 8192,", &format!("user_offset_bytes = {{ value = {offset},"))
    }

    #[test]
    fn timers_fit_between_doorbells_and_lists() {
        // Three channels: doorbells up to offset 48, four timers of 8 B, lists from 32 KiB.
        assert_eq!([timers_at(48), timers_at(32768 - 32)], ["", ""]);
        assert!(timers_at(40).contains("registers.timer_offset_bytes: is 0x28; timers, 32 B, overlap doorbells"));
        assert!(timers_at(32768 - 24).contains("overlap lists of descriptors"));
        assert!(timers_at(52).contains("multiples of 8 B"));
        assert!(timers_at(65536).contains("extend beyond region registers, 65536 B"));
    }

    #[test]
    fn user_registers_must_not_overlap_timers() {
        assert_eq!([user_at(4096 + 32), user_at(4096 - 256)], ["", ""]);
        for offset in [4096 + 24, 4096 - 248] {
            assert!(
                user_at(offset).contains("registers.user_offset_bytes") && user_at(offset).contains("overlap timers")
            );
        }
        let long = problem("user_bytes = { value = 256,", "user_bytes = { value = 260,");
        assert!(long.contains("multiples of 8 B"), "{long}");
        let high = problem("user_offset_bytes = { value = 8192,", "user_offset_bytes = { value = 0x7FFFFFFFFFFFFF00,");
        assert!(high.contains("extend beyond"), "{high}");
    }

    #[test]
    fn both_need_a_register_region() {
        for name in ["ep_rx", "nowhere"] {
            let refused = problem("region = \"registers\"", &format!("region = \"{name}\""));
            assert!(
                refused.contains("registers.region") && refused.contains("regions of registers: registers"),
                "{refused}"
            );
        }
    }
}
