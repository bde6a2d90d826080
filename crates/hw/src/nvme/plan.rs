//! Check of plans with DMA against an NVMe drive: its reads or writes, or the reason for a refusal.

use super::controller::IoQueues;
use super::drive_queue::DataAt;
use super::limits::{CmbData, CmbLimits, DriveLimits, Queues};
use super::memory::PAGE;
use crate::x86::refusal::Refusal;
use lanemark_machine::{
    Completion, CoreWork, Descriptors, DmaCall, EngineJob, EngineWork, HostMemory, Lane, OnChannels, Partner, Pattern,
    Plan, Share, Task, Transfer, Verb, Window, Work,
};
use lanemark_units::{MemoryType, format_size};
use std::fmt;

/// Reads or writes of a drive: DMA writes to host memory, or reads of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrivePlan {
    /// Index of the core that submits them.
    pub(crate) core: u32,
    pub(crate) transfer: Transfer,
    /// DMA reads that alternate with the DMA writes of `transfer`, as many and as long, with other memory and other blocks.
    pub(crate) reads: Option<Transfer>,
    /// Number of I/O queue pairs, over which the commands are distributed round-robin.
    pub(crate) pairs: u32,
    /// Most outstanding commands of each pair.
    pub(crate) depth: u32,
    /// Places of the queues, if this program owns them.
    pub(crate) queues: IoQueues,
    /// Place of the data.
    pub(crate) data: DataAt,
    /// Whether an interrupt announces completions; else they are polled.
    pub(crate) by_interrupt: bool,
}

impl DrivePlan {
    /// The transfers of each direction.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = Transfer> + use<> {
        std::iter::once(self.transfer).chain(self.reads)
    }

    /// Bytes of the controller memory buffer that its queues take: a page for each queue there.
    pub(crate) const fn queue_bytes_in_cmb(&self) -> u64 {
        let queues = match self.queues {
            IoQueues::Host => 0,
            IoQueues::SubmissionsInCmb => 1,
            IoQueues::InCmb => 2,
        };
        queues * self.pairs as u64 * PAGE
    }

    /// Bytes at the start of the namespace that it overwrites: each place has blocks of its own, because two writes to one block
    /// have no order.
    pub(crate) fn overwritten(&self) -> u64 {
        let lost = |of: Transfer| of.window.places(of.bytes).saturating_mul(of.bytes);
        self.transfers().filter(|transfer| transfer.verb == Verb::Load).map(lost).max().unwrap_or(0)
    }

    /// The commands in words, for a dry run; `other` is the other card of transfers between cards.
    pub(crate) fn in_words(&self, other: &dyn fmt::Display) -> String {
        let Transfer { verb, bytes, count, .. } = self.transfer;
        let (queue, queues) =
            if self.pairs > 1 { ("submission queues", "all queues") } else { ("a submission queue", "both queues") };
        let by = match self.queues {
            IoQueues::Host => String::new(),
            IoQueues::SubmissionsInCmb => format!(", by {queue} in the controller memory buffer"),
            IoQueues::InCmb => format!(", by {queues} in the controller memory buffer"),
        };
        let completions = if self.by_interrupt { ", completions by interrupt" } else { "" };
        let pairs = if self.pairs > 1 { format!(" on each of {} I/O queue pairs", self.pairs) } else { String::new() };
        let (size, depth) = (format_size(bytes), self.depth);
        let offsets = |of: &Transfer| {
            let Transfer { bytes, window, .. } = *of;
            format!("offsets {:#x} to {:#x}", window.offset, window.offset + window.len.max(bytes) - 1)
        };
        let place = match (self.transfer.partner, self.data) {
            (Partner::Peer { bar, .. }, _) => format!("BAR{bar} of {other}"),
            (Partner::Host, DataAt::Cmb) if self.queue_bytes_in_cmb() == 0 => "the controller memory buffer".to_owned(),
            (Partner::Host, DataAt::Cmb) => "the controller memory buffer behind its queues".to_owned(),
            (Partner::Host, DataAt::Host | DataAt::Peer) => "the mapped memory".to_owned(),
        };
        let overwritten = format!("the first {} of the namespace is overwritten", format_size(self.overwritten()));
        let (what, each, memory, blocks) = match (verb, &self.reads) {
            (Verb::Store, None) => ("reads of the drive", "", format!("to {}", offsets(&self.transfer)), String::new()),
            (Verb::Load, _) => {
                ("writes to the drive", "", format!("from {}", offsets(&self.transfer)), format!("; {overwritten}"))
            }
            (Verb::Store, Some(reads)) => (
                if self.pairs > 1 {
                    "reads of the drive and writes to it"
                } else {
                    "reads of the drive and writes to it, alternately"
                },
                " of each",
                format!("reads to {}, writes from {}", offsets(&self.transfer), offsets(reads)),
                format!("; {overwritten}, and blocks behind it are read"),
            ),
        };
        format!(
            "{what}: {count} x {size}{each} per iteration, at most {depth} outstanding{pairs}, {memory} of {place}\
             {by}{completions}{blocks}; the blocks of the last iteration are read once more at the end, and compared"
        )
    }
}

impl fmt::Display for DrivePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&"the other card"))
    }
}

/// The plan of one iteration that reads `len` bytes by commands of `bytes` bytes, on this many queue pairs.
pub(crate) fn whole(bytes: u64, len: u64, depth: u32, pairs: u32) -> Plan {
    let window = Window { offset: 0, len, pattern: Pattern::Sequential };
    let (verb, partner, outstanding) = (Verb::Store, Partner::Host, Some(depth));
    let count = len.div_ceil(bytes.max(1));
    let transfer = Transfer { card: 0, verb, partner, bytes, count, window, outstanding };
    Plan::new(OnChannels { transfer, channels: pairs }, 1)
}

/// The commands of a plan with DMA; `None` for other work.
pub(crate) fn of(plan: &Plan, limits: &DriveLimits) -> Option<Result<DrivePlan, Refusal>> {
    let asked = match &plan.work {
        Work::Engines(work) => engines(work, limits),
        Work::Cores(CoreWork { lanes, before }) if plan.work.dma_calls().next().is_some() => match lanes.as_slice() {
            [Lane { core, task: Task::DmaCall(call) }] if before.is_empty() => self::call(*core, call, limits),
            _ => refused("driver calls of several cores", "one core serves all I/O queue pairs of the drive"),
        },
        Work::Relay(_) => refused("a relay by cards", "one drive is open"),
        Work::Cores(_) | Work::Exchange(_) | Work::Queue(_) => return None,
    };
    let checked = plan.check().map_err(|impossible| Refusal::new(impossible.what, impossible.because));
    Some(checked.and(asked).and_then(|asked| fits(asked, limits)))
}

fn refused<T>(what: impl Into<String>, because: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(what, because))
}

fn engines(work: &EngineWork, limits: &DriveLimits) -> Result<DrivePlan, Refusal> {
    let (transfer, reads, pairs, outstanding) = match work.jobs.as_slice() {
        [EngineJob::Transfer(transfer)] => (*transfer, None, 1, transfer.outstanding),
        [EngineJob::WriteRead(both)] if both.is_mixed => {
            (both.write, Some(both.read()), 1, both.write.outstanding.map(|pairs| pairs.saturating_mul(2)))
        }
        [EngineJob::WriteRead(_)] => {
            return refused("a read that follows a write", "a drive may execute its commands in any order");
        }
        [EngineJob::OnChannels(dealt)] => (dealt.transfer, None, dealt.channels, dealt.transfer.outstanding),
        [EngineJob::OnChannels(write), EngineJob::OnChannels(read)] if is_one_each(write, read) => {
            (write.transfer, Some(read.transfer), 2, write.transfer.outstanding)
        }
        jobs => {
            return refused(format!("{} jobs of devices", jobs.len()), "one drive is open");
        }
    };
    if work.memory != HostMemory::default() {
        return refused(
            "this cache state or socket of host memory",
            "its memory was written by a core of its own socket",
        );
    }
    let depth = outstanding.unwrap_or(limits.depth);
    let queues = if limits.cmb.is_some() { IoQueues::SubmissionsInCmb } else { IoQueues::Host };
    let (data, by_interrupt) = (data_at(&transfer, limits), limits.by_interrupt);
    Ok(DrivePlan { core: 0, transfer, reads, pairs, depth, queues, data, by_interrupt })
}

const fn data_at(transfer: &Transfer, limits: &DriveLimits) -> DataAt {
    match transfer.partner {
        Partner::Peer { .. } => DataAt::Peer,
        Partner::Host if limits.data_in_cmb.is_some() => DataAt::Cmb,
        Partner::Host => DataAt::Host,
    }
}

/// Whether one channel writes and the other one reads, as many transfers of the same length.
fn is_one_each(write: &OnChannels, read: &OnChannels) -> bool {
    let (one, other) = (write.transfer, read.transfer);
    let alike = Transfer { verb: Verb::Load, window: other.window, ..one };
    [write.channels, read.channels] == [1, 1] && one.verb == Verb::Store && other == alike
}

fn call(core: u32, call: &DmaCall, limits: &DriveLimits) -> Result<DrivePlan, Refusal> {
    let DmaCall { transfer, channel, share, descriptors, completion } = *call;
    match share {
        Share::Doorbell => {}
        Share::Call => return refused("a call of a kernel driver", "commands are prepared in advance"),
        Share::List => return refused("a list that is built by the call", "commands are prepared in advance"),
    }
    if channel != 0 {
        return refused(format!("channel {channel} of a card"), "a call uses channel 0, the first I/O queue pair");
    }
    let queues = self::queues(descriptors, completion, limits)?;
    let by_interrupt = completion == Completion::Interrupt;
    if by_interrupt && !limits.interrupts {
        let because = match limits.queues {
            Queues::Own => "the drive has neither MSI-X nor MSI vectors",
            Queues::Kernel | Queues::Ioctl => "interrupts of the drive go to its driver",
        };
        return refused("an interrupt at the end of a transfer", because);
    }
    let (reads, data) = (None, data_at(&transfer, limits));
    Ok(DrivePlan { core, transfer, reads, pairs: 1, depth: 1, queues, data, by_interrupt })
}

/// The queues of a call: descriptors that a core writes to the device are commands in its memory buffer, and a register that
/// the core polls is a completion there.
fn queues(descriptors: Descriptors, completion: Completion, limits: &DriveLimits) -> Result<IoQueues, Refusal> {
    let is_in_device = completion == Completion::Register;
    match (descriptors, limits.cmb) {
        (Descriptors::Fetched, _) if is_in_device => {
            refused("a register that shows the end", "the drive writes completions to host memory")
        }
        (Descriptors::Fetched, _) => Ok(IoQueues::Host),
        (Descriptors::Written(_), None) => {
            let because = match limits.queues {
                Queues::Own => {
                    "the drive fetches commands from host memory; a drive with a controller memory buffer also takes them there \
                     (--nvme-queues cmb)"
                }
                Queues::Kernel | Queues::Ioctl => {
                    "the drive fetches commands from host memory, from the queues of its driver"
                }
            };
            refused("descriptors that a core writes to the device", because)
        }
        (Descriptors::Written(memory_type), Some(_)) if memory_type != MemoryType::Uc => {
            refused(format!("descriptors in {memory_type} memory"), "the controller memory buffer is mapped as UC")
        }
        (Descriptors::Written(_), Some(cmb)) if is_in_device && !cmb.holds_completions => refused(
            "completions in the device",
            "the controller memory buffer of this drive cannot hold completion queues (CMBSZ.CQS)",
        ),
        (Descriptors::Written(_), Some(_)) if is_in_device => Ok(IoQueues::InCmb),
        (Descriptors::Written(_), Some(_)) => Ok(IoQueues::SubmissionsInCmb),
    }
}

/// Checks the transfers against the drive and the mapped memory.
fn fits(asked: DrivePlan, limits: &DriveLimits) -> Result<DrivePlan, Refusal> {
    let DriveLimits { namespace, depth, queues, pairs, cores, expendable_bytes, .. } = *limits;
    asked.transfers().try_for_each(|transfer| fits_one(&transfer, limits))?;
    if asked.core >= cores {
        return refused(format!("core {}", asked.core), format!("{cores} cores are usable, counted from 0"));
    }
    if asked.depth > depth {
        // Both directions on one pair have half of its depth each.
        let what = match asked.reads.filter(|_| asked.pairs == 1) {
            Some(_) => format!("{} outstanding transfers of each direction", asked.depth / 2),
            None => format!("{} outstanding transfers", asked.depth),
        };
        return refused(what, queues.limit(depth));
    }
    if asked.pairs > pairs {
        return refused(format!("{} channels of a card", asked.pairs), queues.limit_of_pairs(pairs));
    }
    let in_cmb = asked.queue_bytes_in_cmb() / PAGE;
    if let Some(CmbLimits { pages, .. }) = limits.cmb.filter(|cmb| cmb.pages < in_cmb) {
        let pages = if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
        let because = format!("the controller memory buffer has {pages}: use fewer --channels");
        return refused(format!("{in_cmb} queues in the drive"), because);
    }
    let window_end = |of: Transfer| of.window.offset.saturating_add(of.window.len.max(of.bytes));
    let end = asked.transfers().map(window_end).max().unwrap_or(0);
    let in_cmb = limits.data_in_cmb.filter(|_| asked.data == DataAt::Cmb);
    if let Some(CmbData { bytes, .. }) = in_cmb.filter(|cmb| end > cmb.bytes - asked.queue_bytes_in_cmb()) {
        let free = format_size(bytes - asked.queue_bytes_in_cmb());
        let because = format!("{free} are free behind the queues: use a smaller --window");
        return refused(format!("{} of the controller memory buffer", format_size(end)), because);
    }
    let id = namespace.id;
    let lost = asked.overwritten();
    if lost > expendable_bytes {
        let permitted = format_size(expendable_bytes);
        let because = format!("--destructive permits {permitted}: name more, as {id}:64MiB, or use a smaller --window");
        return refused(format!("writes to {} of the medium", format_size(lost)), because);
    }
    if lost > namespace.bytes() {
        let because = format!("the namespace has {}: use a smaller --window", format_size(namespace.bytes()));
        return refused(format!("writes to {} of the medium", format_size(lost)), because);
    }
    let Some(reads) = asked.reads else { return Ok(asked) };
    if asked.data == DataAt::Peer {
        return refused("both directions between cards", "both directions can be mixed only with host memory");
    }
    if asked.transfer.window.offset < window_end(reads) && reads.window.offset < window_end(asked.transfer) {
        return refused("both directions with the same host memory", "their bytes could not be verified");
    }
    if namespace.bytes() - lost < asked.transfer.bytes {
        let because = format!("the namespace has {}: use a smaller --window", format_size(namespace.bytes()));
        return refused(format!("reads behind the first {}, which are overwritten", format_size(lost)), because);
    }
    Ok(asked)
}

/// Checks the transfers of one direction.
fn fits_one(transfer: &Transfer, limits: &DriveLimits) -> Result<(), Refusal> {
    let Transfer { card, verb, partner, bytes, window, .. } = *transfer;
    let DriveLimits { namespace, most_bytes, queues, mapped_bytes, expendable_bytes, .. } = *limits;
    if card != 0 {
        return refused(format!("transfers by card {card}"), "only the target, card 0, issues DMA");
    }
    let permitted = match (partner, limits.peer) {
        (Partner::Host, _) => 0..mapped_bytes,
        (Partner::Peer { .. }, _) if limits.data_in_cmb.is_some() => {
            return refused("DMA between cards", "--nvme-data-place cmb keeps all data in the drive: remove it");
        }
        (Partner::Peer { card: 1, bar }, Some(peer)) if bar == peer.bar => peer.from..peer.to,
        (Partner::Peer { .. }, _) => {
            let because = "name memory of a second card with --peer, and bind the drive to vfio-pci";
            return refused("DMA between cards", because);
        }
    };
    if verb == Verb::Load && expendable_bytes == 0 {
        let because = match queues {
            Queues::Own => {
                "they need commands that write to the medium, which are sent only to a namespace that --destructive names"
            }
            Queues::Kernel | Queues::Ioctl => {
                "they need commands that write to the medium, and none is ever sent through the kernel's driver"
            }
        };
        let of = if partner == Partner::Host { "DMA reads of host memory" } else { "DMA reads of another card" };
        return refused(of, because);
    }
    if let Some(cmb) = limits.data_in_cmb {
        let (may_hold, register) =
            if verb == Verb::Store { (cmb.takes_reads, "RDS") } else { (cmb.takes_writes, "WDS") };
        if !may_hold {
            let what = if verb == Verb::Store { "reads of the drive" } else { "writes to the drive" };
            let because = format!("the controller memory buffer cannot hold their data (CMBSZ.{register})");
            return refused(what, because);
        }
    }
    let block = namespace.block_bytes;
    let size = || format!("a transfer of {}", format_size(bytes));
    if bytes == 0 || !bytes.is_multiple_of(block) {
        let because = format!("a command moves whole logical blocks, of {} here", format_size(block));
        return refused(size(), because);
    }
    if bytes > most_bytes {
        return refused(size(), format!("a command of this drive moves at most {}", format_size(most_bytes)));
    }
    if bytes > namespace.bytes() {
        return refused(size(), format!("the namespace has {}", format_size(namespace.bytes())));
    }
    // Source: NVM Express Base Specification 2.0, 4.1.1: the offset of the first PRP entry is a multiple of 4 B.
    if !window.offset.is_multiple_of(4) || !window.step(bytes).is_multiple_of(4) {
        return refused(
            format!("transfers at offsets such as {}", window.place(1, bytes)),
            "a drive needs multiples of 4 B",
        );
    }
    let end = window.offset.checked_add(window.len.max(bytes));
    if window.offset < permitted.start || end.is_none_or(|end| end > permitted.end) {
        let (of, may) = match data_at(transfer, limits) {
            DataAt::Host => ("host memory", "can be mapped"),
            DataAt::Cmb => ("the controller memory buffer", "are there for data"),
            DataAt::Peer => {
                let last = end.map_or(u64::MAX, |end| end - 1);
                return refused(
                    format!("offsets {:#x} to {last:#x} of the other card's BAR", window.offset),
                    format!("--peer names {:#x} to {:#x}", permitted.start, permitted.end - 1),
                );
            }
        };
        let because = format!("{} {may}: use a smaller --window", format_size(permitted.end - permitted.start));
        return refused(format!("a window of {} of {of}", format_size(window.len)), because);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::identify::Namespace;
    use super::*;
    use crate::drive_options::DriveOptions;
    use lanemark_machine::WriteRead;

    fn limits() -> DriveLimits {
        let namespace = Namespace { id: 1, blocks: 256, block_bytes: 512, metadata_bytes: 0 };
        let any = DriveLimits::unidentified(DriveOptions::default(), 1 << 20, 1);
        DriveLimits { namespace, most_bytes: 64 << 10, interrupts: false, ..any }
    }

    fn cmb_of(holds_completions: bool) -> CmbLimits {
        CmbLimits { holds_completions, pages: 2 }
    }

    fn transfer(bytes: u64) -> Transfer {
        let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
        Transfer { card: 0, verb: Verb::Store, partner: Partner::Host, bytes, count: 2, window, outstanding: None }
    }

    fn verdict(plan: &Plan, limits: &DriveLimits) -> String {
        match of(plan, limits).unwrap() {
            Ok(asked) => format!("depth {}", asked.depth),
            Err(Refusal::Unsupported { what, because }) => format!("{what}: {because}"),
            Err(Refusal::OutOfRange(_)) => "out of range".to_owned(),
        }
    }

    fn of_transfer(transfer: Transfer) -> String {
        verdict(&Plan::new(vec![EngineJob::Transfer(transfer)], 1), &limits())
    }

    #[test]
    fn a_transfer_has_whole_blocks_up_to_the_limit_of_the_drive() {
        assert_eq!(of_transfer(transfer(512)), "depth 63");
        assert_eq!(of_transfer(transfer(64 << 10)), "depth 63");
        assert!(of_transfer(transfer(513)).contains("513B: a command moves whole logical blocks, of 512B here"));
        assert!(of_transfer(transfer(64)).contains("whole logical blocks"));
        assert!(of_transfer(transfer((64 << 10) + 512)).contains("moves at most 64KiB"));
        let small = Namespace { blocks: 8, ..limits().namespace };
        let plan = |bytes| Plan::new(vec![EngineJob::Transfer(transfer(bytes))], 1);
        assert_eq!(verdict(&plan(4096), &DriveLimits { namespace: small, ..limits() }), "depth 63");
        assert!(verdict(&plan(4608), &DriveLimits { namespace: small, ..limits() }).contains("the namespace has 4KiB"));
    }

    #[test]
    fn reads_of_host_memory_write_to_the_medium_and_need_a_namespace_that_is_named() {
        let window = |len| Window { offset: 0, len, pattern: Pattern::Sequential };
        let read = Transfer { verb: Verb::Load, window: window(128 << 10), ..transfer(512) };
        assert!(of_transfer(read).contains("only to a namespace that --destructive names"));
        let plan = |transfer| Plan::new(vec![EngineJob::Transfer(transfer)], 1);
        let of_kernel = DriveLimits { queues: Queues::Kernel, ..limits() };
        assert!(verdict(&plan(read), &of_kernel).contains("none is ever sent through the kernel's driver"));
        // The namespace has 128 KiB.
        let named = |expendable_bytes| DriveLimits { expendable_bytes, ..limits() };
        assert_eq!(verdict(&plan(read), &named(128 << 10)), "depth 63");
        let said = verdict(&plan(read), &named((128 << 10) - 512));
        assert!(said.contains("writes to 128KiB of the medium: --destructive permits 130560B"), "{said}");
        let beyond = Transfer { window: window((128 << 10) + 512), ..read };
        assert!(verdict(&plan(beyond), &named(1 << 20)).contains("the namespace has 128KiB: use a smaller --window"));
        // A transfer that is longer than its window counts as a whole.
        let long = Transfer { bytes: 4096, window: window(512), ..read };
        assert!(verdict(&plan(long), &named(512)).contains("writes to 4KiB of the medium"));
        let named = named(1 << 20);
        assert_eq!(verdict(&plan(Transfer { verb: Verb::Store, ..beyond }), &named), "depth 63");
        let words = of(&plan(read), &named).unwrap().ok().unwrap().to_string();
        assert!(
            words.contains("writes to the drive") && words.contains("the first 128KiB of the namespace is overwritten"),
            "{words}"
        );
    }

    #[test]
    fn as_many_commands_are_outstanding_as_asked_for_up_to_the_depth_of_the_queues() {
        let of_depth = |depth| of_transfer(Transfer { outstanding: Some(depth), ..transfer(512) });
        assert_eq!([of_depth(1), of_depth(63)], ["depth 1", "depth 63"]);
        assert!(of_depth(64).contains("hold 63 outstanding commands"));
    }

    #[test]
    fn channels_are_queue_pairs_up_to_those_that_are_granted_and_fit_into_the_memory_buffer() {
        let on = |channels| Plan::new(OnChannels { transfer: transfer(512), channels }, 1);
        let granted = DriveLimits { pairs: 4, ..limits() };
        let words = of(&on(4), &granted).unwrap().ok().unwrap().to_string();
        assert!(words.contains("at most 63 outstanding on each of 4 I/O queue pairs"), "{words}");
        let said = verdict(&on(5), &granted);
        assert!(said.contains("5 channels of a card: 4 I/O queue pairs can be used"), "{said}");
        let of_kernel = DriveLimits { queues: Queues::Kernel, pairs: 1, ..limits() };
        assert!(verdict(&on(2), &of_kernel).contains("the kernel's driver chooses the queue"));
        let in_cmb = DriveLimits { cmb: Some(cmb_of(true)), ..granted };
        assert_eq!(verdict(&on(2), &in_cmb), "depth 63");
        let said = verdict(&on(3), &in_cmb);
        assert!(said.contains("3 queues in the drive: the controller memory buffer has 2 pages"), "{said}");
    }

    #[test]
    fn reads_and_writes_alternate_on_one_pair_or_have_a_pair_each_with_other_memory_and_other_blocks() {
        let window = |offset| Window { offset, len: 64 << 10, pattern: Pattern::Sequential };
        let write = Transfer { window: window(0), ..transfer(512) };
        let mixed = |read, outstanding, is_mixed| {
            let write = Transfer { outstanding, ..write };
            Plan::new(vec![EngineJob::WriteRead(WriteRead { write, read, is_mixed })], 1)
        };
        let named = |expendable_bytes| DriveLimits { expendable_bytes, ..limits() };
        let both = mixed(window(64 << 10), None, true);
        assert!(verdict(&both, &limits()).contains("only to a namespace that --destructive names"));
        let words = of(&both, &named(64 << 10)).unwrap().ok().unwrap().to_string();
        assert!(words.contains("reads of the drive and writes to it, alternately: 2 x 512B of each"), "{words}");
        assert!(words.contains("the first 64KiB of the namespace is overwritten, and blocks behind it are read"));
        assert_eq!(verdict(&mixed(window(64 << 10), Some(3), true), &named(64 << 10)), "depth 6");
        let said = verdict(&mixed(window(64 << 10), Some(32), true), &named(64 << 10));
        assert_eq!(said, "32 outstanding transfers of each direction: the queues hold 63 outstanding commands");
        assert!(verdict(&mixed(window(512), None, true), &named(64 << 10)).contains("the same host memory"));
        assert!(verdict(&mixed(window(0), None, false), &named(64 << 10)).contains("in any order"));
        // The namespace has 128 KiB, of which all would be overwritten.
        let long = Window { len: 128 << 10, ..window(64 << 10) };
        assert!(verdict(&mixed(long, None, true), &named(1 << 20)).contains("reads behind the first 128KiB"));
        let job = |transfer| EngineJob::OnChannels(OnChannels { transfer, channels: 1 });
        let read = Transfer { verb: Verb::Load, window: window(64 << 10), ..write };
        let found = of(&Plan::new(vec![job(write), job(read)], 1), &named(64 << 10)).unwrap().ok().unwrap();
        assert_eq!((found.pairs, found.reads), (2, Some(read)));
        assert!(found.to_string().contains("reads of the drive and writes to it: 2 x 512B of each"), "{found}");
        assert!(
            verdict(&Plan::new(vec![job(write), job(Transfer { count: 3, ..read })], 1), &named(64 << 10))
                .contains("2 jobs")
        );
    }

    #[test]
    fn data_in_the_memory_buffer_need_its_support_and_the_room_that_queues_leave() {
        let cmb = CmbData { bytes: 64 << 10, takes_reads: true, takes_writes: false };
        let with =
            |cmb| DriveLimits { data_in_cmb: Some(cmb), expendable_bytes: 1 << 20, mapped_bytes: 64 << 10, ..limits() };
        let window = |len| Window { offset: 0, len, pattern: Pattern::Sequential };
        let on = |channels, verb, len| {
            Plan::new(OnChannels { transfer: Transfer { verb, window: window(len), ..transfer(4096) }, channels }, 1)
        };
        let words = of(&on(1, Verb::Store, 64 << 10), &with(cmb)).unwrap().ok().unwrap().to_string();
        assert!(words.contains("to offsets 0x0 to 0xffff of the controller memory buffer;"), "{words}");
        let said = verdict(&on(1, Verb::Load, 64 << 10), &with(cmb));
        assert_eq!(said, "writes to the drive: the controller memory buffer cannot hold their data (CMBSZ.WDS)");
        let none = CmbData { takes_reads: false, ..cmb };
        assert!(verdict(&on(1, Verb::Store, 64 << 10), &with(none)).contains("CMBSZ.RDS"));
        assert!(verdict(&on(1, Verb::Store, 128 << 10), &with(cmb)).contains("64KiB are there for data"));
        let queues = DriveLimits { cmb: Some(CmbLimits { holds_completions: false, pages: 16 }), ..with(cmb) };
        assert_eq!(verdict(&on(4, Verb::Store, 48 << 10), &queues), "depth 63");
        let said = verdict(&on(5, Verb::Store, 48 << 10), &queues);
        assert_eq!(
            said,
            "48KiB of the controller memory buffer: 44KiB are free behind the queues: use a smaller --window"
        );
    }

    #[test]
    fn the_window_is_mapped_and_its_places_are_multiples_of_4_b() {
        let at = |offset, len| {
            let window = Window { offset, len, pattern: Pattern::Sequential };
            of_transfer(Transfer { window, ..transfer(512) })
        };
        assert_eq!(at(4, (1 << 20) - 4), "depth 63");
        assert!(at(4, 1 << 20).contains("1MiB can be mapped"));
        assert!(at(2, 4096).contains("multiples of 4 B"));
    }

    #[test]
    fn a_call_rings_a_doorbell_and_polls_a_flag() {
        let call = DmaCall {
            transfer: transfer(4096),
            channel: 0,
            share: Share::Doorbell,
            descriptors: Descriptors::Fetched,
            completion: Completion::Flag,
        };
        let said = |call: DmaCall| verdict(&Plan::new(call, 1), &limits());
        assert_eq!(said(call), "depth 1");
        for (other, words) in [
            (DmaCall { completion: Completion::Register, ..call }, "a register that shows the end"),
            (DmaCall { completion: Completion::Interrupt, ..call }, "neither MSI-X nor MSI"),
            (DmaCall { descriptors: Descriptors::Written(MemoryType::Uc), ..call }, "fetches commands"),
            (DmaCall { channel: 1, ..call }, "channel 1"),
        ] {
            assert!(said(other).contains(words), "{words}: {}", said(other));
        }
    }

    #[test]
    fn completions_are_announced_as_the_plan_says_or_else_as_the_option_says() {
        let by_interrupt = |option: bool, plan: &Plan| {
            let limits = DriveLimits { interrupts: true, by_interrupt: option, ..limits() };
            super::of(plan, &limits).unwrap().ok().unwrap().by_interrupt
        };
        let transfers = Plan::new(vec![EngineJob::Transfer(transfer(512))], 1);
        assert_eq!([false, true].map(|option| by_interrupt(option, &transfers)), [false, true]);
        let call = |completion| {
            let (share, descriptors, channel) = (Share::Doorbell, Descriptors::Fetched, 0);
            Plan::new(DmaCall { transfer: transfer(512), channel, share, descriptors, completion }, 1)
        };
        assert!(!by_interrupt(true, &call(Completion::Flag)) && by_interrupt(false, &call(Completion::Interrupt)));
    }

    #[test]
    fn the_place_of_both_queues_follows_from_descriptors_and_completion_with_a_memory_buffer() {
        let of = |cmb: Option<bool>, descriptors, completion| {
            let (share, channel) = (Share::Doorbell, 0);
            let call = DmaCall { transfer: transfer(4096), channel, share, descriptors, completion };
            match super::of(&Plan::new(call, 1), &DriveLimits { cmb: cmb.map(cmb_of), ..limits() }).unwrap() {
                Ok(asked) => format!("{:?}", asked.queues),
                Err(Refusal::Unsupported { because, .. }) => because,
                Err(Refusal::OutOfRange(_)) => "out of range".to_owned(),
            }
        };
        let (uc, fetched) = (Descriptors::Written(MemoryType::Uc), Descriptors::Fetched);
        assert_eq!(of(Some(false), fetched, Completion::Flag), "Host");
        assert_eq!(of(Some(false), uc, Completion::Flag), "SubmissionsInCmb");
        assert_eq!(of(Some(true), uc, Completion::Register), "InCmb");
        assert!(of(Some(false), uc, Completion::Register).contains("CMBSZ.CQS"));
        assert!(of(None, uc, Completion::Flag).contains("--nvme-queues cmb"));
        assert!(of(Some(true), Descriptors::Written(MemoryType::Wc), Completion::Flag).contains("mapped as UC"));
        assert!(of(Some(true), fetched, Completion::Register).contains("to host memory"));
        let transfers = Plan::new(vec![EngineJob::Transfer(transfer(512))], 1);
        let queues = |cmb: Option<bool>| {
            super::of(&transfers, &DriveLimits { cmb: cmb.map(cmb_of), ..limits() }).unwrap().ok().unwrap().queues
        };
        assert_eq!(of(Some(false), uc, Completion::Interrupt), "the drive has neither MSI-X nor MSI vectors");
        assert_eq!([queues(None), queues(Some(false))], [IoQueues::Host, IoQueues::SubmissionsInCmb]);
    }
}
