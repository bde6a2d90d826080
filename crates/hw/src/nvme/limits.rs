//! Properties of a drive that decide which plans it can run.

use super::identify::Namespace;
use super::prp::MOST_BYTES;
use super::queue::MOST_DEPTH;
use super::several::MOST_PAIRS;
use crate::drive_options::{CompletionBy, DataPlace, DriveOptions, QueuePlace};
use crate::linux_sysfs::Range;

/// A controller memory buffer that holds queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CmbLimits {
    /// Whether it can hold completion queues.
    pub(crate) holds_completions: bool,
    /// Number of its pages, each for one queue.
    pub(crate) pages: u64,
}

/// A controller memory buffer that holds data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CmbData {
    /// Bytes of the buffer, of which queues may take the first ones.
    pub(crate) bytes: u64,
    /// Whether it can hold data of reads of the drive.
    pub(crate) takes_reads: bool,
    /// Whether it can hold data of writes to the drive.
    pub(crate) takes_writes: bool,
}

/// Properties of a drive that decide which plans it can run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveLimits {
    pub(crate) namespace: Namespace,
    /// Largest transfer.
    pub(crate) most_bytes: u64,
    pub(crate) depth: u32,
    pub(crate) queues: Queues,
    /// Number of I/O queue pairs.
    pub(crate) pairs: u32,
    /// The controller memory buffer; `None` if it is not used for queues.
    pub(crate) cmb: Option<CmbLimits>,
    /// The controller memory buffer for data; `None` if they are in host memory.
    pub(crate) data_in_cmb: Option<CmbData>,
    /// Memory of another card.
    pub(crate) peer: Option<Range>,
    /// Whether an interrupt can announce completions.
    pub(crate) interrupts: bool,
    /// Whether completions are announced by an interrupt in plans that do not say.
    pub(crate) by_interrupt: bool,
    /// Bytes at the start of the namespace that may be overwritten; 0 for none.
    pub(crate) expendable_bytes: u64,
    /// Largest window of memory for data.
    pub(crate) mapped_bytes: u64,
    pub(crate) cores: u32,
}

/// The owner of the queues, for depths and refusals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queues {
    /// This program.
    Own,
    /// The kernel's driver, which takes commands by `io_uring`.
    Kernel,
    /// The kernel's driver, which takes commands by ioctl.
    Ioctl,
}

impl Queues {
    /// Most outstanding commands of this program.
    pub(crate) const fn depth(self) -> u32 {
        match self {
            Queues::Own | Queues::Kernel => MOST_DEPTH,
            Queues::Ioctl => 1,
        }
    }

    /// Why no more than `depth` commands can be outstanding.
    pub(super) fn limit(self, depth: u32) -> String {
        match self {
            Queues::Own | Queues::Kernel => format!("the queues hold {depth} outstanding commands"),
            Queues::Ioctl => "an ioctl runs one command at a time, and io_uring cannot be used here".to_owned(),
        }
    }

    /// Why no more than `pairs` queue pairs are used.
    pub(super) fn limit_of_pairs(self, pairs: u32) -> String {
        match self {
            Queues::Own => {
                let pairs = if pairs == 1 { "1 I/O queue pair".to_owned() } else { format!("{pairs} I/O queue pairs") };
                format!("{pairs} can be used (Number of Queues, doorbells in the BAR, at most {MOST_PAIRS})")
            }
            Queues::Kernel | Queues::Ioctl => "the kernel's driver chooses the queue of a command".to_owned(),
        }
    }
}

impl DriveLimits {
    /// Limits before a drive is identified: blocks of 512 B, and no further restriction. If `options` ask for a controller
    /// memory buffer, it is assumed to hold both queues.
    pub(crate) fn unidentified(options: DriveOptions, mapped_bytes: u64, cores: u32) -> DriveLimits {
        let namespace = Namespace { id: 1, blocks: u64::MAX >> 9, block_bytes: 512, metadata_bytes: 0 };
        let largest = CmbLimits { holds_completions: true, pages: u64::MAX };
        let cmb = (options.queues() == QueuePlace::Cmb).then_some(largest);
        let any = CmbData { bytes: u64::MAX, takes_reads: true, takes_writes: true };
        let data_in_cmb = (options.data_place() == DataPlace::Cmb).then_some(any);
        let (most_bytes, depth, queues, pairs) = (MOST_BYTES, MOST_DEPTH, Queues::Own, MOST_PAIRS);
        let (interrupts, by_interrupt) = (true, options.completions() == CompletionBy::Interrupt);
        let expendable_bytes = options.destructive.map_or(0, |named| named.bytes);
        DriveLimits {
            namespace,
            most_bytes,
            depth,
            queues,
            pairs,
            cmb,
            data_in_cmb,
            peer: None,
            interrupts,
            by_interrupt,
            expendable_bytes,
            mapped_bytes,
            cores,
        }
    }

    /// Largest transfer of a controller with this limit, by its data pointers.
    pub(crate) fn most_bytes(limit: Option<u64>) -> u64 {
        limit.unwrap_or(MOST_BYTES).min(MOST_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::commands_of;
    use crate::x86::refusal::Refusal;
    use lanemark_machine::{EngineJob, OnChannels, Partner, Pattern, Plan, Transfer, Verb, Window};

    #[test]
    fn a_window_at_another_card_is_within_the_memory_named_for_it() {
        let peer = Some(Range { bar: 2, from: 4096, to: 12288, kind: None });
        let limits = DriveLimits { peer, ..DriveLimits::unidentified(DriveOptions::default(), 1 << 20, 1) };
        let verdicts = |jobs: Vec<EngineJob>, limits: &DriveLimits| match commands_of(&Plan::new(jobs, 1), limits) {
            Some(Ok(asked)) => asked.to_string(),
            Some(Err(Refusal::Unsupported { what, because })) => format!("{what}: {because}"),
            _ => "another verdict".to_owned(),
        };
        let verdict = |job, limits: &DriveLimits| verdicts(vec![job], limits);
        let transfer = |card, bar, offset, len| {
            let (verb, partner) = (Verb::Store, Partner::Peer { card, bar });
            let window = Window { offset, len, pattern: Pattern::Sequential };
            Transfer { card: 0, verb, partner, bytes: 4096, count: 2, window, outstanding: None }
        };
        let at = |card, bar, offset, len| verdict(EngineJob::Transfer(transfer(card, bar, offset, len)), &limits);
        let words = at(1, 2, 4096, 8192);
        assert!(words.contains("to offsets 0x1000 to 0x2fff of BAR2 of the other card;"), "{words}");
        let named = "of the other card's BAR: --peer names 0x1000 to 0x2fff";
        assert_eq!(at(1, 2, 0, 8192), format!("offsets 0x0 to 0x1fff {named}"));
        assert_eq!(at(1, 2, 4096, 8193), format!("offsets 0x1000 to 0x3000 {named}"));
        let unnamed = "with --peer, and bind the drive to vfio-pci";
        assert!(at(1, 0, 4096, 8192).contains(unnamed) && at(2, 2, 4096, 8192).contains(unnamed));
        let named = transfer(1, 2, 4096, 8192);
        let read = EngineJob::Transfer(Transfer { verb: Verb::Load, ..named });
        let words = verdict(read, &limits);
        assert!(words.starts_with("DMA reads of another card: ") && words.contains("--destructive"), "{words}");
        let expendable = DriveLimits { expendable_bytes: 8192, ..limits };
        assert!(verdict(read, &expendable).contains("the first 8KiB of the namespace is overwritten"));
        let on = |transfer| EngineJob::OnChannels(OnChannels { transfer, channels: 1 });
        let both =
            vec![on(transfer(1, 2, 4096, 4096)), on(Transfer { verb: Verb::Load, ..transfer(1, 2, 8192, 4096) })];
        let words = verdicts(both, &expendable);
        assert!(words.contains("both directions can be mixed only with host memory"), "{words}");
        let any = CmbData { bytes: 1 << 20, takes_reads: true, takes_writes: true };
        let kept = DriveLimits { data_in_cmb: Some(any), ..limits };
        assert!(verdict(EngineJob::Transfer(named), &kept).contains("--nvme-data-place cmb"));
    }
}
