//! Where a driver and a card's DMA engine meet: addresses, which simulation and formulas must agree on.

use crate::{Platform, RegionKind};

/// Bus addresses of what a driver and the DMA engine of one card tell each other by.
///
/// On the card: the first region of registers, whose first register is the doorbell and whose second tells how many
/// transfers are done; descriptors are written to its upper half. In host memory: the end of what is lent, of which every
/// card has an equal part for its driver, 1/64 of all together: a line for the flag, then the descriptors.
///
/// ```
/// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// let mailbox = card.mailbox(0).unwrap();
/// assert_eq!((mailbox.doorbell, mailbox.status), (0x200_1000_0000, 0x200_1000_0008));
/// assert_eq!(mailbox.flag, (4 << 30) + card.bytes_for_plans());
/// assert!(card.mailbox(1).is_none(), "there is one card");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mailbox {
    /// The register that starts a transfer when it is written.
    pub doorbell: u64,
    /// The register that says how many transfers are done.
    pub status: u64,
    /// Where descriptors are written to.
    pub list: u64,
    /// Bytes there, a multiple of 64: more descriptors begin at its start again.
    pub list_bytes: u64,
    /// The word in host memory that the card writes when a transfer is done.
    pub flag: u64,
    /// Where the card fetches descriptors from.
    pub ring: u64,
    /// Bytes there, a multiple of 64.
    pub ring_bytes: u64,
    /// Where the card writes to interrupt a core.
    pub message: u64,
}

impl Mailbox {
    /// Where messages that interrupt a core are written to; no memory lies there.
    ///
    /// Source: Intel SDM volume 3, "Message Address Register Format".
    pub const MESSAGES: std::ops::Range<u64> = 0xFEE0_0000..0xFEF0_0000;
}

/// Bytes of a page, of which a card's part for its driver is a multiple.
const PAGE: u64 = 4096;
/// Bytes of a line.
const LINE: u64 = 64;
/// The driver's part of what is lent.
const DRIVERS_SHARE: u64 = 64;

impl Platform {
    /// How many cards there are.
    #[must_use]
    pub fn cards(&self) -> u32 {
        self.slots.len().max(1) as u32
    }

    /// Bytes at the end of what is lent that the driver of one card has; none without a driver.
    fn driver_bytes(&self) -> u64 {
        match (&self.driver, &self.memory) {
            (Some(_), Some(memory)) => memory.size_bytes.value / DRIVERS_SHARE / u64::from(self.cards()) / PAGE * PAGE,
            _ => 0,
        }
    }

    /// Bytes that are lent, without those of drivers.
    #[must_use]
    pub fn bytes_for_plans(&self) -> u64 {
        let lent = self.memory.as_ref().map_or(0, |memory| memory.size_bytes.value);
        lent - self.driver_bytes() * u64::from(self.cards())
    }

    /// Where the driver and the DMA engine of card `card` meet; `None` without a driver, an engine, 256 B of registers or
    /// a page for each driver, and for a card that is not there.
    #[must_use]
    pub fn mailbox(&self, card: u32) -> Option<Mailbox> {
        let (memory, _) = (self.memory.as_ref()?, self.dma.as_ref()?);
        let (mine, cards) = (self.driver_bytes(), self.cards());
        let registers = self.regions.iter().find(|region| region.kind.value == RegionKind::Registers)?;
        let len = registers.size_bytes.value;
        if mine == 0 || card >= cards || len < 4 * LINE {
            return None;
        }
        let shift = self.slots.get(card as usize).map_or(0, |slot| slot.bar_shift_bytes.value);
        let bar = self.bar(u8::try_from(registers.bar.value).ok()?)?.address_bytes.value;
        let doorbell = bar + shift + registers.offset_bytes.value;
        let list = doorbell + len / 2 / LINE * LINE;
        let flag = memory.address_bytes.value + self.bytes_for_plans() + u64::from(card) * mine;
        Some(Mailbox {
            doorbell,
            status: doorbell + 8,
            list,
            list_bytes: (doorbell + len - list) / LINE * LINE,
            flag,
            ring: flag + LINE,
            ring_bytes: mine - LINE,
            message: Mailbox::MESSAGES.start + u64::from(card) * PAGE,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Origin, Platform, preset};

    fn card() -> Platform {
        preset("card-gen5-x16").unwrap().unwrap()
    }

    fn with(platform: &Platform, key: &str, value: u64) -> Platform {
        platform.with(key, value as f64, Origin::Assumed("a test".to_owned())).unwrap()
    }

    #[test]
    fn a_driver_needs_a_page_of_what_is_lent_and_256_bytes_of_registers() {
        let lent = |bytes| with(&card(), "memory.size_bytes", bytes).mailbox(0).map(|mailbox| mailbox.ring_bytes);
        assert_eq!((lent(256 << 10), lent((256 << 10) - 4096)), (Some(4096 - 64), None));
        let registers = |bytes| with(&card(), "region.registers.size_bytes", bytes).mailbox(0);
        assert_eq!(registers(256).map(|mailbox| mailbox.list_bytes), Some(128));
        assert_eq!(registers(252), None);
        assert_eq!(Platform { driver: None, ..card() }.mailbox(0), None);
        assert_eq!(Platform { driver: None, ..card() }.bytes_for_plans(), 1 << 30);
    }

    #[test]
    fn parts_of_several_cards_lie_side_by_side_at_the_end_of_what_is_lent() {
        let mut tree = preset("rosta-virtex7").unwrap().unwrap();
        tree.driver = card().driver;
        let boxes: Vec<_> = (0..tree.cards()).map(|card| tree.mailbox(card).unwrap()).collect();
        for pair in boxes.windows(2) {
            assert_eq!(pair[0].ring + pair[0].ring_bytes, pair[1].flag);
            assert!(pair[0].list + pair[0].list_bytes <= pair[1].doorbell && pair[0].message < pair[1].message);
        }
        let memory = tree.memory.as_ref().unwrap();
        let end = memory.address_bytes.value + memory.size_bytes.value;
        assert_eq!(boxes[7].ring + boxes[7].ring_bytes, end);
    }
}
