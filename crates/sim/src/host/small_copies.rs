//! Copies of many pieces by a runtime: what the core does for each method, one action after the other.
//!
//! ```text
//!  loop:     (submit, enter, build, ring, leave)* --> wait --> return
//!  batch:    submit the list --> enter, build all, ring, leave --> wait --> return
//!  in place: submit the list, ring --> wait --> return
//!  packed:   pack* --> submit, enter, build, ring, leave --> launch --> wait --> return          host to device
//!            launch --> submit, enter, build, ring, leave --> wait --> return --> unpack*        device to host
//! ```
//!
//! The pieces are in page-locked memory of the runtime, so nothing is pinned. A packed buffer follows them. A kernel that
//! distributes or gathers pieces moves them within the memory of the card, which takes no time here: that memory is many
//! times faster than a link. The list of pieces reaches a kernel with its launch.

use crate::host::driver::blocks;
use lanemark_machine::{
    Completion, CopyBy, Descriptors, DmaCall, Partner, Pattern, Share, SmallCopies, Transfer, Verb, Window,
};
use lanemark_platform::{Platform, Runtime};
use lanemark_units::{MemoryType, Ticks};

/// The card of the program's queue.
const CARD: u32 = 0;
/// Bytes of a line that a core copies.
const LINE_BYTES: u64 = 64;

/// Costs of the core and of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    submit: Ticks,
    copy: Ticks,
    entry: Ticks,
    enter: Ticks,
    leave: Ticks,
    build: Ticks,
    descriptor_bytes: u64,
    copy_line: Ticks,
    returns: Ticks,
    kernel_start: Ticks,
    kernel_end: Ticks,
    mapped_at: u64,
}

impl Spec {
    /// Reads the constants of a platform; `None` without a runtime, a driver or a DMA engine.
    #[must_use]
    pub fn new(platform: &Platform) -> Option<Spec> {
        let (runtime, driver) = (platform.runtime.as_ref()?, platform.driver.as_ref()?);
        let scaled = |span| runtime.at_its_clock(platform, span);
        let call = scaled(driver.call_ns.value);
        Some(Spec {
            submit: scaled(runtime.submit_ns.value),
            copy: scaled(runtime.usm_copy_ns.value),
            entry: scaled(runtime.copy_entry_ns.value),
            enter: call / 2,
            leave: call - call / 2,
            build: scaled(driver.build_descriptor_ns.value),
            descriptor_bytes: platform.dma.as_ref()?.descriptor_bytes.value.into(),
            copy_line: scaled(runtime.copy_line_ns.value),
            returns: scaled(runtime.return_ns.value) + scaled(runtime.finish_ns.value),
            kernel_start: runtime.kernel_start_ns.value,
            kernel_end: runtime.kernel_end_ns.value,
            mapped_at: platform.memory.as_ref()?.address_bytes.value,
        })
    }
}

/// What a core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs code of the runtime.
    Library(Ticks),
    /// Runs code of the operating system.
    Kernel(Ticks),
    /// Builds descriptors.
    Work(Ticks),
    /// Copies from one bus address to another.
    Copy {
        /// Source and destination.
        addresses: [u64; 2],
        /// Duration.
        span: Ticks,
    },
    /// Rings the doorbell.
    Ring,
    /// Waits for the notification of all pieces.
    Wait,
}

/// What each doorbell of a group starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rings {
    /// One transfer per doorbell.
    Each,
    /// All transfers.
    All,
    /// A kernel that makes all transfers: they begin `start` later, and the kernel ends `end` after the last of them.
    Kernel {
        /// From the doorbell to the first transfer.
        start: Ticks,
        /// From the last transfer to the notification.
        end: Ticks,
    },
    /// First all transfers, then a kernel that waits for them and takes `span`.
    ThenKernel {
        /// Duration of the kernel.
        span: Ticks,
    },
    /// First a kernel that takes `span`, then all transfers, which wait for it.
    AfterKernel {
        /// Duration of the kernel.
        span: Ticks,
    },
}

/// Copies of many pieces, with the transfers of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The pieces.
    pub asked: SmallCopies,
    /// The transfers of the card.
    pub call: DmaCall,
    /// What a doorbell of the core starts.
    pub rings: Rings,
    /// Offset of the packed buffer in host memory.
    pub packed_at: u64,
    spec: Spec,
}

impl Group {
    /// Plans the transfers of the card.
    #[must_use]
    pub fn new(spec: Spec, asked: SmallCopies) -> Group {
        let SmallCopies { verb, bytes, count, by } = asked;
        let packed_at = asked.memory_bytes().next_multiple_of(Runtime::PAGE_BYTES);
        let is_packed = by == CopyBy::Packed;
        let (bytes, count) = if is_packed { (asked.bytes_in_all(), 1) } else { (bytes, u64::from(count)) };
        let window = if is_packed {
            Window { offset: packed_at, len: bytes, pattern: Pattern::Sequential }
        } else {
            Window { offset: 0, len: asked.memory_bytes(), pattern: Pattern::Strided(asked.distance_bytes()) }
        };
        // The card reads what the program writes to it.
        let of_card = if verb == Verb::Store { Verb::Load } else { Verb::Store };
        let (partner, outstanding) = (Partner::Host, None);
        let transfer = Transfer { card: CARD, verb: of_card, partner, bytes, count, window, outstanding };
        let (start, end) = (spec.kernel_start, spec.kernel_end);
        let rings = match (by, verb) {
            (CopyBy::Loop | CopyBy::Stores, _) => Rings::Each,
            (CopyBy::Batch, _) => Rings::All,
            (CopyBy::InPlace, _) => Rings::Kernel { start, end },
            (CopyBy::Packed, Verb::Store) => Rings::ThenKernel { span: start + end },
            (CopyBy::Packed, Verb::Load) => Rings::AfterKernel { span: start + end },
        };
        // A kernel needs no descriptors, and the list of pieces reaches it with its launch.
        let is_kernel = by == CopyBy::InPlace;
        let descriptors = if is_kernel { Descriptors::Written(MemoryType::Uc) } else { Descriptors::Fetched };
        let completion = Completion::Interrupt;
        let call = DmaCall { transfer, channel: 0, share: Share::List, descriptors, completion };
        Group { asked, call, rings, packed_at, spec }
    }

    /// Returns the end of the host memory that it uses.
    #[must_use]
    pub fn end(&self) -> u64 {
        if self.asked.by == CopyBy::Packed {
            self.packed_at + self.asked.bytes_in_all()
        } else {
            self.asked.memory_bytes()
        }
    }

    /// Returns the offset of piece `nth` in host memory.
    #[must_use]
    pub fn place(&self, nth: u64) -> u64 {
        self.asked.distance_bytes() * nth
    }

    /// Returns action number `nth` of the core; `None` after the last one.
    #[must_use]
    pub fn action(&self, nth: u64) -> Option<Action> {
        let spec = &self.spec;
        let (count, is_store) = (u64::from(self.asked.count), self.asked.verb == Verb::Store);
        let list = spec.submit + spec.entry * count;
        let copy = |nth: u64, first: u64, pieces: u64| match nth {
            0 => Action::Library(spec.submit + spec.copy),
            1 => Action::Kernel(spec.enter),
            2 => Action::Work(spec.build * (first..first + pieces).map(|piece| self.descriptors(piece)).sum::<u64>()),
            3 => Action::Ring,
            _ => Action::Kernel(spec.leave),
        };
        let launch = |nth: u64| if nth == 0 { Action::Library(list) } else { Action::Ring };
        let ending = |nth: u64| match nth {
            0 => Some(Action::Wait),
            1 => Some(Action::Library(spec.returns)),
            _ => None,
        };
        match self.asked.by {
            CopyBy::Loop if nth < 5 * count => Some(copy(nth % 5, nth / 5, 1)),
            CopyBy::Loop => ending(nth - 5 * count),
            CopyBy::Batch if nth == 0 => Some(Action::Library(list + spec.copy)),
            CopyBy::Batch if nth < 5 => Some(copy(nth, 0, count)),
            CopyBy::Batch => ending(nth - 5),
            CopyBy::InPlace if nth < 2 => Some(launch(nth)),
            CopyBy::InPlace => ending(nth - 2),
            CopyBy::Packed if is_store => match nth.checked_sub(count) {
                None => Some(self.packing(nth)),
                Some(nth @ 0..5) => Some(copy(nth, 0, 1)),
                Some(nth @ 5..7) => Some(launch(nth - 5)),
                Some(nth) => ending(nth - 7),
            },
            CopyBy::Packed => match nth {
                0..2 => Some(launch(nth)),
                2..7 => Some(copy(nth - 2, 0, 1)),
                7..9 => ending(nth - 7),
                _ => Some(nth - 9).filter(|nth| *nth < count).map(|nth| self.packing(nth)),
            },
            CopyBy::Stores => None,
        }
    }

    /// Returns whether action `nth` is the first doorbell.
    #[must_use]
    pub fn is_first_bell(&self, nth: u64) -> bool {
        let before = match (self.asked.by, self.asked.verb) {
            (CopyBy::Loop | CopyBy::Batch, _) => 3,
            (CopyBy::Packed, Verb::Store) => u64::from(self.asked.count) + 3,
            (CopyBy::InPlace | CopyBy::Packed | CopyBy::Stores, _) => 1,
        };
        nth == before
    }

    /// Returns the number of descriptors of a transfer.
    fn descriptors(&self, nth: u64) -> u64 {
        let transfer = &self.call.transfer;
        let start = self.spec.mapped_at + transfer.window.place(nth, transfer.bytes);
        blocks(start, transfer.bytes, self.spec.descriptor_bytes)
    }

    /// Copies piece `nth` into the packed buffer, or out of it.
    fn packing(&self, nth: u64) -> Action {
        let bytes = self.asked.bytes;
        let own = self.spec.mapped_at + self.place(nth);
        let packed = self.spec.mapped_at + self.packed_at + nth * bytes;
        let addresses = if self.asked.verb == Verb::Store { [own, packed] } else { [packed, own] };
        Action::Copy { addresses, span: self.spec.copy_line * bytes.div_ceil(LINE_BYTES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_platform::preset;

    fn actions(verb: Verb, by: CopyBy) -> String {
        let spec = Spec::new(&preset("card-stratix10mx").unwrap().unwrap()).unwrap();
        let group = Group::new(spec, SmallCopies { verb, bytes: 64, count: 2, by });
        let letter = |action| match action {
            Action::Library(_) => 'l',
            Action::Kernel(_) => 'k',
            Action::Work(_) => 'b',
            Action::Copy { .. } => 'c',
            Action::Ring => 'r',
            Action::Wait => 'w',
        };
        (0..).map_while(|nth| group.action(nth)).map(letter).collect()
    }

    #[test]
    fn a_core_does_the_steps_of_each_method_in_order() {
        for verb in [Verb::Store, Verb::Load] {
            assert_eq!(actions(verb, CopyBy::Loop), "lkbrklkbrkwl");
            assert_eq!(actions(verb, CopyBy::Batch), "lkbrkwl");
            assert_eq!(actions(verb, CopyBy::InPlace), "lrwl");
        }
        assert_eq!(actions(Verb::Store, CopyBy::Packed), "cclkbrklrwl");
        assert_eq!(actions(Verb::Load, CopyBy::Packed), "lrlkbrkwlcc");
    }

    #[test]
    fn the_first_doorbell_is_the_first_that_is_rung() {
        let spec = Spec::new(&preset("card-stratix10mx").unwrap().unwrap()).unwrap();
        for by in [CopyBy::Loop, CopyBy::Batch, CopyBy::Packed, CopyBy::InPlace] {
            for verb in [Verb::Store, Verb::Load] {
                let group = Group::new(spec, SmallCopies { verb, bytes: 64, count: 3, by });
                let first = (0..40).find(|nth| group.action(*nth) == Some(Action::Ring)).unwrap();
                let found: Vec<u64> = (0..40).filter(|nth| group.is_first_bell(*nth)).collect();
                assert_eq!(found, [first], "{by} {verb:?}");
            }
        }
    }
}
