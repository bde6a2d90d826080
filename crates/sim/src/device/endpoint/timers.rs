//! Timers of an endpoint, as cores access them in its register region.

use super::Endpoint;
use crate::device::registers::Registers;
use crate::tlp::Tlp;
use lanemark_units::Ticks;
use std::ops::Range;

impl Endpoint {
    /// Returns the timers that a TLP to region `place` touches: the card's clock first, then those of channels.
    #[inline]
    pub(super) fn timers_in(&self, place: usize, tlp: &Tlp) -> Range<usize> {
        match (&self.registers, self.regions.get(place)) {
            (Some(registers), Some(region)) => registers.touched(place, tlp.address - region.spec.address, tlp),
            _ => 0..0,
        }
    }

    /// Copies the current values of these timers to the region.
    #[inline]
    pub(super) fn show_timers(&mut self, now: Ticks, timers: Range<usize>) {
        for timer in timers {
            let Some((registers, region)) = self.timed() else { return };
            let offset = registers.offset_of(timer);
            let value = match timer.checked_sub(1) {
                None => registers.clock_at(now),
                Some(channel) => self.dma.as_ref().map_or(0, |engine| engine.timer_at(channel, now)),
            };
            self.regions[region].memory.write(offset, &value.to_le_bytes());
        }
    }

    /// Sets these timers from the region.
    #[inline]
    pub(super) fn set_timers(&mut self, now: Ticks, timers: Range<usize>) {
        for timer in timers {
            let Some((registers, region)) = self.timed() else { return };
            let (offset, mut bytes) = (registers.offset_of(timer), [0; 8]);
            self.regions[region].memory.read(offset, &mut bytes);
            let value = u64::from_le_bytes(bytes);
            match (timer.checked_sub(1), &mut self.registers, &mut self.dma) {
                (None, Some(registers), _) => registers.set_clock(now, value),
                (Some(channel), _, Some(engine)) => engine.set_timer(channel, now, value),
                _ => {}
            }
        }
    }

    fn timed(&self) -> Option<(&Registers, usize)> {
        let registers = self.registers.as_ref()?;
        Some((registers, registers.place()))
    }
}
