//! A DMA engine that is started by registers, one transfer at a time.

use crate::descriptors::{self, DmaLimits};
use crate::read::Values;

/// A DMA engine that is started by registers, one transfer at a time. Registers are offsets in its BAR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    /// BAR of the registers.
    pub bar: u8,
    /// Width of the registers: 4 or 8.
    pub register_bytes: u8,
    /// Register of the source address.
    pub source: u64,
    /// Register of its upper half.
    pub source_high: Option<u64>,
    /// Register of the destination address.
    pub destination: u64,
    /// Register of its upper half.
    pub destination_high: Option<u64>,
    /// Register of the number of bytes.
    pub count: u64,
    /// Register of the command.
    pub command: u64,
    /// Which of both registers starts a transfer.
    pub started_by: StartedBy,
    /// Command for a transfer from host memory to the device.
    pub to_device: u64,
    /// Command for a transfer from the device to host memory.
    pub to_host: u64,
    /// Bits added to a command for an interrupt at the end.
    pub with_interrupt: Option<u64>,
    /// Register that shows the end of a transfer.
    pub done: u64,
    /// Bits of it that are compared.
    pub done_mask: u64,
    /// Their value after the end.
    pub done_value: u64,
    /// Bits of it that are set after a failed transfer.
    pub failed_mask: Option<u64>,
    /// Address at which the engine sees address 0 of the host.
    pub host_start: u64,
    /// Addresses, memory and lengths of its transfers.
    pub limits: DmaLimits,
}

/// The register that starts a transfer: it is stored last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartedBy {
    /// The command.
    Command,
    /// The number of bytes.
    Count,
}

/// Direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From host memory to the device.
    ToDevice,
    /// From the device to host memory.
    ToHost,
}

impl Engine {
    /// Registers and values of a transfer of `bytes` between the address `host` of the host and `own` of the device's memory,
    /// in the order of the stores: the last one starts it. A register is `None` if the engine has none for the upper half of an
    /// address. Values may be wider than a register, which takes their lower bits.
    #[must_use]
    #[inline]
    pub fn stores(
        &self,
        direction: Direction,
        (host, own): (u64, u64),
        bytes: u64,
        has_interrupt: bool,
    ) -> [(Option<u64>, u64); 6] {
        let host = self.host_start.wrapping_add(host);
        let (source, destination, command) = match direction {
            Direction::ToDevice => (host, own, self.to_device),
            Direction::ToHost => (own, host, self.to_host),
        };
        let interrupt = self.with_interrupt.filter(|_| has_interrupt).unwrap_or(0);
        let (count, command) = ((Some(self.count), bytes), (Some(self.command), command | interrupt));
        let (before, last) = match self.started_by {
            StartedBy::Command => (count, command),
            StartedBy::Count => (command, count),
        };
        [
            (Some(self.source), source),
            (self.source_high, source >> 32),
            (Some(self.destination), destination),
            (self.destination_high, destination >> 32),
            before,
            last,
        ]
    }
}

/// Reads the section `[engine]`.
pub(crate) fn read(values: &Values) -> Engine {
    Engine {
        bar: values.number("bar") as u8,
        register_bytes: values.number("register_bytes") as u8,
        source: values.number("source_register"),
        source_high: values.some_number("source_high_register"),
        destination: values.number("destination_register"),
        destination_high: values.some_number("destination_high_register"),
        count: values.number("count_register"),
        command: values.number("command_register"),
        started_by: if values.text("started_by") == "count" { StartedBy::Count } else { StartedBy::Command },
        to_device: values.number("to_device_command"),
        to_host: values.number("to_host_command"),
        with_interrupt: values.some_number("interrupt_command"),
        done: values.number("done_register"),
        done_mask: values.number("done_mask"),
        done_value: values.number("done_value"),
        failed_mask: values.some_number("failed_mask"),
        host_start: values.some_number("host_start").unwrap_or(0),
        limits: descriptors::limits(values),
    }
}

/// Broken rules about directions and addresses of host memory: key and rule.
pub(crate) fn broken(engine: &Engine) -> Vec<(&'static str, String)> {
    let DmaLimits { address_bits, memory_start, memory_bytes, .. } = engine.limits;
    let last = u64::MAX >> (64 - address_bits.clamp(1, 64));
    let mut broken = Vec::new();
    let Some(end) = engine.host_start.checked_add(last) else {
        let message = format!("with {address_bits} address bits, the last address of host memory is beyond 64 bits");
        return vec![("host_start", message)];
    };
    let is_narrow = engine.register_bytes == 4 && engine.source_high.is_none();
    if is_narrow && end > u64::from(u32::MAX) {
        let message =
            format!("with {address_bits} address bits, host memory ends at {end:#x}, beyond a register of 4 B");
        broken.push(("host_start", message));
    }
    let own_end = memory_start.saturating_add(memory_bytes - 1);
    if engine.to_device == engine.to_host && memory_start <= end && engine.host_start <= own_end {
        let start = engine.host_start;
        let message = format!(
            "equals to_device_command; each direction needs its own command, or the device's memory must be outside of the \
             addresses of host memory, {start:#x} to {end:#x} (host_start, address_bits)"
        );
        broken.push(("to_host_command", message));
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEVICES, DeviceFile, built_in};

    #[test]
    fn the_register_that_starts_a_transfer_is_stored_last() {
        let edu = built_in("edu").unwrap().unwrap().engine.unwrap();
        let stores = |engine: Engine, direction, host, own, has_interrupt| {
            let all = engine.stores(direction, (host, own), 64, has_interrupt);
            all.into_iter().filter_map(|(register, value)| Some((register?, value))).collect::<Vec<_>>()
        };
        assert_eq!(
            stores(edu, Direction::ToHost, 0x20_0000, 0x4_0000, true),
            [(0x80, 0x4_0000), (0x88, 0x20_0000), (0x90, 64), (0x98, 0x7)]
        );
        let cdma = built_in("axi-cdma").unwrap().unwrap().engine.unwrap();
        assert_eq!(
            stores(cdma, Direction::ToDevice, 0x20_0000, 0xc000_0000, false),
            [(0x18, 0x2020_0000), (0x1c, 0), (0x20, 0xc000_0000), (0x24, 0), (0x00, 0x1_0000), (0x28, 64)]
        );
    }

    #[test]
    fn directions_without_commands_need_memory_outside_of_the_addresses_of_host_memory() {
        let text = DEVICES.iter().find(|device| device.name == "axi-cdma").unwrap().text;
        let with = |start: &str| {
            let text = text.replacen("memory_start = 0xc0000000", &format!("memory_start = {start}"), 1);
            DeviceFile::parse("mine.toml", &text).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!((with("0x30000000"), with("0x1fff0000")), (Ok(()), Ok(())));
        for start in ["0x2fffffc0", "0x1fff0040"] {
            let error = with(start).unwrap_err();
            assert!(error.contains("engine.to_host_command: equals") && error.contains("0x20000000 to 0x2fffffff"));
        }
    }

    #[test]
    fn host_memory_ends_within_the_address_registers() {
        let text = DEVICES.iter().find(|device| device.name == "edu").unwrap().text;
        let with = |width: u8, start: &str| {
            let text = text.replacen("register_bytes = 8", &format!("register_bytes = {width}"), 1);
            let text = text.replacen("address_bits = 28", &format!("address_bits = 28\nhost_start = {start}"), 1);
            DeviceFile::parse("mine.toml", &text).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!((with(4, "0xf0000000"), with(8, "0xf0000001")), (Ok(()), Ok(())));
        assert!(with(4, "0xf0000001").unwrap_err().contains("engine.host_start: with 28 address bits"));
    }
}
