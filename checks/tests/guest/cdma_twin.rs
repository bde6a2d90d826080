//! An emulated AXI CDMA in simple mode, behind a bridge from PCI Express to AXI: BAR2 of [the card](crate::xdma_twin).
//!
//! It follows the document and not our driver. Its AXI addresses: those of [`HOST`] are addresses of the host, from 0 on; those from
//! [`MEMORY`] on are the memory of the card; others have no slave.
//!
//! Source: AMD, PG034, "Register Space" and "Simple DMA Mode".

use crate::xdma_twin::{Card, Fault};
use std::ops::Range;

/// AXI addresses of host memory.
const HOST: Range<u64> = 0x2000_0000..0x3000_0000;
/// First AXI address of the card's memory.
const MEMORY: u64 = 0xc000_0000;
/// Width of BTT: 23 bits.
const MOST_BYTES: u32 = (1 << 23) - 1;

/// Bits of CDMACR that may be set: `TailPntrEn`, `IOC_IrqEn`, `Err_IrqEn` and `IRQThreshold`.
const CONTROL: u32 = 0x00ff_5002;
/// Bits of CDMASR.
const IDLE: u32 = 1 << 1;
const INTERNAL: u32 = 1 << 4;
const SLAVE: u32 = 1 << 5;
const DECODE: u32 = 1 << 6;
const IOC: u32 = 1 << 12;
const ERROR: u32 = 1 << 14;

/// Its registers.
#[derive(Clone, Copy, Debug)]
pub struct Cdma {
    control: u32,
    status: u32,
    source: [u32; 2],
    destination: [u32; 2],
    count: u32,
}

impl Default for Cdma {
    fn default() -> Cdma {
        Cdma { control: 0x1_0002, status: IDLE, source: [0; 2], destination: [0; 2], count: 0 }
    }
}

impl Cdma {
    /// Whether the interrupt line is high.
    const fn has_interrupt(&self) -> bool {
        self.status & self.control & (IOC | ERROR) != 0
    }
}

impl Card {
    pub fn load_cdma(&self, offset: u64) -> u32 {
        let Cdma { control, status, source, destination, count } = self.cdma;
        match offset {
            0x00 => control,
            0x04 => status,
            0x18 => source[0],
            0x1c => source[1],
            0x20 => destination[0],
            0x24 => destination[1],
            0x28 => count,
            _ => 0,
        }
    }

    /// Stores to a register; returns whether a transfer starts.
    pub fn store_cdma(&mut self, offset: u64, value: u32) -> bool {
        self.seen.stores += 1;
        if self.cdma.status & IDLE == 0 {
            self.violation(format!("a store to {offset:#x} of the CDMA, which is busy"));
        }
        let before = self.cdma.has_interrupt();
        let cdma = &mut self.cdma;
        match offset {
            0x00 if value & !CONTROL == 0 && value >> 16 != 0 => cdma.control = value | 1 << 1,
            0x04 => cdma.status &= !(value & (IOC | ERROR)),
            0x18 => cdma.source[0] = value,
            0x1c => cdma.source[1] = value,
            0x20 => cdma.destination[0] = value,
            0x24 => cdma.destination[1] = value,
            0x28 if cdma.status & (INTERNAL | SLAVE | DECODE) != 0 => {
                self.violation("a transfer is started after an error, without a reset");
            }
            0x28 => {
                (cdma.count, cdma.status) = (value, cdma.status & !IDLE);
                return self.fault != Some(Fault::Hangs);
            }
            _ => self.violation(format!("{value:#x} is stored to {offset:#x} of the CDMA")),
        }
        self.raise_cdma(before);
        false
    }

    /// Makes the transfer that was started.
    pub fn run_cdma(&mut self) {
        let before = self.cdma.has_interrupt();
        let ended = match self.copy_by_cdma() {
            Ok(()) => IOC,
            Err(error) => error | ERROR,
        };
        self.cdma.status |= IDLE | ended;
        self.raise_cdma(before);
    }

    /// Sends an MSI if the interrupt line has risen, as the bridge does.
    fn raise_cdma(&mut self, before: bool) {
        if self.cdma.has_interrupt() && !before {
            self.interrupt(0);
        }
    }

    fn copy_by_cdma(&mut self) -> Result<(), u32> {
        let Cdma { source, destination, count, .. } = self.cdma;
        let address = |[low, high]: [u32; 2]| u64::from(low) | u64::from(high) << 32;
        let (source, destination) = (address(source), address(destination));
        if count == 0 || count > MOST_BYTES {
            return Err(INTERNAL);
        }
        let lost = if self.fault == Some(Fault::LosesBytes) { 8 } else { 0 };
        let len = (count as usize).saturating_sub(lost);
        let bytes = match self.of_memory(source, len) {
            Some(own) => self.memory[own].to_vec(),
            None => self.read_host(self.of_host(source, len).ok_or(DECODE)?, len).ok_or(SLAVE)?,
        };
        match self.of_memory(destination, len) {
            Some(own) => self.memory[own].copy_from_slice(&bytes),
            None => self.write_host(self.of_host(destination, len).ok_or(DECODE)?, &bytes),
        }
        Ok(())
    }

    /// Bytes of the card's memory at AXI addresses.
    fn of_memory(&self, address: u64, len: usize) -> Option<Range<usize>> {
        let start = address.checked_sub(MEMORY)? as usize;
        (start + len <= self.memory.len()).then_some(start..start + len)
    }

    /// Address of the host at AXI addresses; `None` if the bridge has none, or may not be bus master.
    fn of_host(&self, address: u64, len: usize) -> Option<u64> {
        let is_host = HOST.contains(&address) && address + len as u64 <= HOST.end;
        (is_host && self.is_bus_master()).then(|| address - HOST.start)
    }
}
