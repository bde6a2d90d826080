//! Addresses shared by a driver and a card's DMA engine, used by both simulator and formulas.

use crate::{Platform, RegionKind};
use std::ops::Range;

/// Bus addresses through which a driver and one channel of a card's DMA engine communicate.
///
/// On the card, the first register region starts with two 8 B registers per channel: the doorbell, and the number of
/// completed transfers. Its upper half, divided equally among channels, receives descriptors. In host memory, the
/// driver uses the last 1/64 of the mapped memory, divided equally among cards and then channels. Each part is one
/// line for the completion flag, followed by the descriptors. Each channel has an interrupt message of its own.
///
/// ```
/// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// let mailbox = card.mailbox(0, 0).unwrap();
/// assert_eq!((mailbox.doorbell, mailbox.status), (0x200_1000_0000, 0x200_1000_0008));
/// assert_eq!(mailbox.flag, (4 << 30) + card.bytes_for_plans());
/// assert!(card.mailbox(1, 0).is_none(), "there is one card");
/// assert!(card.mailbox(0, card.dma.as_ref().unwrap().channels.value).is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mailbox {
    /// Doorbell register: a write starts a transfer.
    pub doorbell: u64,
    /// Status register: the number of completed transfers.
    pub status: u64,
    /// Start of the descriptor list on the card.
    pub list: u64,
    /// Length of that list in bytes, a multiple of 64; it is used as a ring.
    pub list_bytes: u64,
    /// Completion flag in host memory, written by the card after each transfer.
    pub flag: u64,
    /// Start of the descriptor ring in host memory.
    pub ring: u64,
    /// Length of that ring in bytes, a multiple of 64.
    pub ring_bytes: u64,
    /// Address of the interrupt message.
    pub message: u64,
}

impl Mailbox {
    /// Addresses of interrupt messages, which contain no memory.
    ///
    /// Source: Intel SDM volume 3, "Message Address Register Format".
    pub const MESSAGES: std::ops::Range<u64> = 0xFEE0_0000..0xFEF0_0000;

    /// Bytes of the registers of one channel, doorbell and status.
    pub const REGISTER_BYTES: u64 = 16;

    /// Requirements of [`Platform::mailbox`], for messages.
    pub const NEEDS: &str = "it needs a register region of 256 B plus 128 B per channel, and mapped memory of 256 KiB per \
                             card, or 512 KiB with more than 32 channels";
}

/// Bus addresses through which a runtime and the kernels of a card communicate: the last 16 B before the descriptor
/// lists in the first register region, and an interrupt message after those of all channels of all cards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelDoorbell {
    /// Doorbell register: a write starts a kernel.
    pub doorbell: u64,
    /// Address of the interrupt message that signals the end of a kernel.
    pub message: u64,
}

/// Page size; a card's part of the driver memory is a multiple of it.
const PAGE: u64 = 4096;
/// Bytes of a line.
const LINE: u64 = 64;
/// Fraction of the mapped memory that drivers use.
const DRIVERS_SHARE: u64 = 64;
/// Number of message destinations with a page of their own.
const DESTINATIONS: u64 = 256;

impl Platform {
    /// Number of cards.
    #[must_use]
    pub fn cards(&self) -> u32 {
        self.slots.len().max(1) as u32
    }

    /// Number of channels of each card's DMA engine; none without an engine.
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.dma.as_ref().map_or(0, |dma| dma.channels.value)
    }

    /// Bytes of the mapped memory that the driver of one card uses, at its end; none without a driver.
    fn driver_bytes(&self) -> u64 {
        match (&self.driver, &self.memory) {
            (Some(_), Some(memory)) => memory.size_bytes.value / DRIVERS_SHARE / u64::from(self.cards()) / PAGE * PAGE,
            _ => 0,
        }
    }

    /// Bytes of the mapped memory that plans may use.
    #[must_use]
    pub fn bytes_for_plans(&self) -> u64 {
        let lent = self.memory.as_ref().map_or(0, |memory| memory.size_bytes.value);
        lent - self.driver_bytes() * u64::from(self.cards())
    }

    /// Mailbox of a channel of the DMA engine of card `card`. `None` without a driver or engine, without enough
    /// [space](Mailbox::NEEDS) for all channels, or if the card or channel does not exist.
    #[must_use]
    pub fn mailbox(&self, card: u32, channel: u32) -> Option<Mailbox> {
        let (memory, dma) = (self.memory.as_ref()?, self.dma.as_ref()?);
        let (channels, nth) = (u64::from(dma.channels.value), u64::from(channel));
        let (of_card, cards) = (self.driver_bytes(), self.cards());
        let mine = of_card / channels / LINE * LINE;
        let registers = self.regions.iter().find(|region| region.kind.value == RegionKind::Registers)?;
        let len = registers.size_bytes.value;
        if mine < 2 * LINE || card >= cards || nth >= channels || len < 2 * LINE * channels.max(2) {
            return None;
        }
        let shift = self.slots.get(card as usize).map_or(0, |slot| slot.bar_shift_bytes.value);
        let bar = self.bar(u8::try_from(registers.bar.value).ok()?)?.address_bytes.value;
        let start = bar + shift + registers.offset_bytes.value;
        let lists = start + len / 2 / LINE * LINE;
        let list_bytes = (start + len - lists) / channels / LINE * LINE;
        let doorbell = start + nth * Mailbox::REGISTER_BYTES;
        let flag = memory.address_bytes.value + self.bytes_for_plans() + u64::from(card) * of_card + nth * mine;
        let number = u64::from(card) * channels + nth;
        Some(Mailbox {
            doorbell,
            status: doorbell + 8,
            list: lists + nth * list_bytes,
            list_bytes,
            flag,
            ring: flag + LINE,
            ring_bytes: mine - LINE,
            message: message(number),
        })
    }

    /// Addresses shared by a runtime and the kernels of card `card`; `None` if its driver has no mailbox.
    ///
    /// ```
    /// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    /// let (bell, mailbox) = (card.kernel_doorbell(0).unwrap(), card.mailbox(0, 0).unwrap());
    /// assert_eq!((bell.doorbell, bell.message), (mailbox.list - 16, mailbox.message + 4096));
    /// ```
    #[must_use]
    pub fn kernel_doorbell(&self, card: u32) -> Option<KernelDoorbell> {
        let doorbell = self.mailbox(card, 0)?.list - Mailbox::REGISTER_BYTES;
        let number = u64::from(self.cards()) * u64::from(self.channels()) + u64::from(card);
        Some(KernelDoorbell { doorbell, message: message(number) })
    }
}

/// Address of message `number`: one destination each, and from the 257th on the bits of an extended destination.
const fn message(number: u64) -> u64 {
    Mailbox::MESSAGES.start + number % DESTINATIONS * PAGE + number / DESTINATIONS * 32
}

/// Offsets in the first register region that drivers use: doorbells with status registers, and lists.
pub(crate) fn drivers_registers(platform: &Platform) -> impl Iterator<Item = (Range<u64>, &'static str)> {
    let last = platform.channels().checked_sub(1);
    let ends = platform.mailbox(0, 0).zip(last.and_then(|last| platform.mailbox(0, last)));
    ends.into_iter().flat_map(|(first, last)| {
        let from = first.doorbell;
        let bells = 0..last.doorbell + Mailbox::REGISTER_BYTES - from;
        let lists = first.list - from..last.list + last.list_bytes - from;
        let bell = platform
            .runtime
            .is_some()
            .then(|| (lists.start - Mailbox::REGISTER_BYTES..lists.start, "the kernels' doorbell"));
        [(bells, "doorbells"), (lists, "lists of descriptors")].into_iter().chain(bell)
    })
}

#[cfg(test)]
mod tests {
    use super::Mailbox;
    use crate::{Origin, Platform, preset};

    /// The platform with enough tags for the descriptors of many channels.
    fn card() -> Platform {
        with(&preset("card-gen5-x16").unwrap().unwrap(), "dma.prefetch_descriptors", 1)
    }

    fn with(platform: &Platform, key: &str, value: u64) -> Platform {
        platform.with(key, value as f64, Origin::Assumed("a test".to_owned())).unwrap()
    }

    #[test]
    fn a_driver_needs_a_mapped_page_and_256_bytes_of_registers() {
        let lent = |bytes| with(&card(), "memory.size_bytes", bytes).mailbox(0, 0).map(|mailbox| mailbox.ring_bytes);
        assert_eq!((lent(256 << 10), lent((256 << 10) - 4096)), (Some(4096 - 64), None));
        let registers = |bytes| with(&card(), "region.registers.size_bytes", bytes).mailbox(0, 0);
        assert_eq!(registers(256).map(|mailbox| mailbox.list_bytes), Some(128));
        assert_eq!(registers(252), None);
        assert_eq!(Platform { driver: None, ..card() }.mailbox(0, 0), None);
        assert_eq!(Platform { driver: None, ..card() }.bytes_for_plans(), 1 << 30);
    }

    #[test]
    fn mailboxes_of_cards_are_adjacent_at_the_end_of_mapped_memory() {
        let mut tree = preset("rosta-virtex7").unwrap().unwrap();
        tree.driver = card().driver;
        tree = with(&tree, "dma.channels", 1);
        let boxes: Vec<_> = (0..tree.cards()).map(|card| tree.mailbox(card, 0).unwrap()).collect();
        for pair in boxes.windows(2) {
            assert_eq!(pair[0].ring + pair[0].ring_bytes, pair[1].flag);
            assert!(pair[0].list + pair[0].list_bytes <= pair[1].doorbell && pair[0].message < pair[1].message);
        }
        let memory = tree.memory.as_ref().unwrap();
        let end = memory.address_bytes.value + memory.size_bytes.value;
        assert_eq!(boxes[7].ring + boxes[7].ring_bytes, end);
    }

    #[test]
    fn mailboxes_of_channels_are_disjoint_and_exist_for_all_or_none() {
        let mut tree = preset("rosta-virtex7").unwrap().unwrap();
        tree = with(&tree, "dma.channels", 64);
        let boxes: Vec<_> = (0..8 * 64).map(|nth| tree.mailbox(nth / 64, nth % 64).unwrap()).collect();
        let mut spans: Vec<[u64; 2]> = boxes
            .iter()
            .flat_map(|mailbox| {
                let ring_end = mailbox.ring + mailbox.ring_bytes;
                let list_end = mailbox.list + mailbox.list_bytes;
                let message = [mailbox.message, mailbox.message + 4];
                [[mailbox.doorbell, mailbox.status + 8], [mailbox.list, list_end], [mailbox.flag, ring_end], message]
            })
            .collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0][0] < pair[0][1] && pair[0][1] <= pair[1][0]));
        assert!(boxes.iter().all(|mailbox| Mailbox::MESSAGES.contains(&mailbox.message)));
        assert!(tree.mailbox(0, 64).is_none());
        // In one page, each of 32 channels has two lines.
        let lent = |channels, bytes| {
            with(&with(&card(), "dma.channels", channels), "memory.size_bytes", bytes).mailbox(0, 0).is_some()
        };
        assert_eq!([lent(32, 256 << 10), lent(33, 256 << 10), lent(64, 512 << 10)], [true, false, true]);
        let registers = |channels, bytes| {
            with(&with(&card(), "dma.channels", channels), "region.registers.size_bytes", bytes).mailbox(0, 0)
        };
        assert_eq!(registers(4, 512).map(|mailbox| mailbox.list_bytes), Some(64));
        assert_eq!(registers(4, 508), None);
        assert!(registers(1, 256).is_some() && registers(2, 256).is_some());
    }
}
