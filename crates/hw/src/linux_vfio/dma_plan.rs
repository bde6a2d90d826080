//! Check of plans with DMA: the transfers of one engine, or the reason for a refusal.

use crate::linux_sysfs::Range;
use crate::x86::refusal::Refusal;
use lanemark_devices::{DeviceFile, DmaLimits, Polled};
use lanemark_machine::{
    Completion, CoreWork, Descriptors, DmaCall, DmaFacts, EngineJob, EngineWork, HostMemory, Lane, Partner, Plan,
    Share, Task, Transfer, Verb, Work,
};
use lanemark_units::{MemoryType, format_size};

/// Transfers that the engine can do: one at a time, or one of each direction at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DmaPlan {
    /// Index of the core that starts them.
    pub(super) core: u32,
    pub(super) transfer: Transfer,
    /// DMA reads at the same time as the DMA writes of `transfer`, as many and as long, with other memory of the device.
    pub(super) reads: Option<Transfer>,
    /// Method by which the core sees the end of each transfer.
    pub(super) completion: Completion,
    /// Method by which the core sees the end of a transfer that is not timed; never an interrupt.
    pub(super) polled: Completion,
}

impl DmaPlan {
    /// The transfers of each direction.
    pub(super) fn transfers(&self) -> impl Iterator<Item = Transfer> + use<> {
        std::iter::once(self.transfer).chain(self.reads)
    }

    /// Offset in the device's own memory of the transfers of a direction: both have memory of their own.
    pub(super) const fn own(&self, verb: Verb) -> u64 {
        match (self.reads, verb) {
            (Some(reads), Verb::Load) => reads.bytes,
            _ => 0,
        }
    }
}

/// Properties of an engine that decide which plans it can run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) engine: EngineKind,
    pub(super) mapped_bytes: u64,
    /// Memory of another device.
    pub(super) peer: Option<Range>,
    pub(super) cores: u32,
}

/// The engine of a device file, started by registers or by descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EngineKind {
    pub(super) limits: DmaLimits,
    pub(super) interrupts: bool,
    /// Place to poll of an engine that fetches descriptors; `None` of one that is started by registers.
    pub(super) descriptors: Option<Polled>,
}

impl EngineKind {
    /// The engine of a device file; `None` if it describes none.
    pub(super) fn of(file: &DeviceFile) -> Option<EngineKind> {
        let descriptors = file.descriptors.map(|engine| engine.polled);
        Some(EngineKind { limits: file.limits()?, interrupts: file.interrupts(), descriptors })
    }

    /// The facts of a card with this engine.
    pub(super) const fn facts(&self, mapped_bytes: u64, page_bytes: u64) -> DmaFacts {
        DmaFacts {
            has_flag: matches!(self.descriptors, Some(Polled::WriteBack)),
            fetches_only: self.descriptors.is_some(),
            ..DmaFacts::of_register_engine(mapped_bytes, page_bytes)
        }
    }

    /// The place that a core polls.
    const fn polled(&self) -> Completion {
        match self.descriptors {
            Some(Polled::WriteBack) => Completion::Flag,
            Some(Polled::Status) | None => Completion::Register,
        }
    }
}

/// The transfers of a plan with DMA; `None` for other work.
pub(super) fn of(plan: &Plan, limits: &Limits) -> Option<Result<DmaPlan, Refusal>> {
    let asked = match &plan.work {
        Work::Engines(work) => engines(work, limits),
        Work::Cores(CoreWork { lanes, before }) if plan.work.dma_calls().next().is_some() => match lanes.as_slice() {
            [Lane { core, task: Task::DmaCall(call) }] if before.is_empty() => self::call(*core, call, limits),
            _ => refused("driver calls of several cores", "the engine does one transfer at a time"),
        },
        Work::Relay(_) => refused("a relay by cards", "one device is open"),
        Work::Cores(_) | Work::Exchange(_) | Work::Queue(_) => return None,
    };
    let checked = plan.check().map_err(|impossible| Refusal::new(impossible.what, impossible.because));
    Some(checked.and(asked).and_then(|asked| fits(asked, limits)))
}

fn refused<T>(what: impl Into<String>, because: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(what, because))
}

fn engines(work: &EngineWork, limits: &Limits) -> Result<DmaPlan, Refusal> {
    let (transfer, reads) = match work.jobs.as_slice() {
        [EngineJob::Transfer(transfer)] => (*transfer, None),
        [EngineJob::WriteRead(pairs)] if pairs.is_mixed && limits.engine.descriptors.is_some() => {
            (pairs.write, Some(pairs.read()))
        }
        [EngineJob::WriteRead(pairs)] if !pairs.is_mixed => {
            return refused("a read that follows a write", "the engine does not order its directions with each other");
        }
        [EngineJob::WriteRead(_)] => {
            return refused("writes and reads of one card", "the engine does one transfer at a time");
        }
        [EngineJob::OnChannels(dealt)] => {
            return refused(
                format!("{} channels of a card", dealt.channels),
                "the engine has one, which it does not name",
            );
        }
        jobs => {
            return refused(
                format!("{} jobs of devices", jobs.len()),
                "one device is open, whose engine does one transfer at a time",
            );
        }
    };
    if work.memory != HostMemory::default() {
        return refused(
            "this cache state or socket of host memory",
            "its memory was written by a core of its own socket",
        );
    }
    let polled = limits.engine.polled();
    Ok(DmaPlan { core: 0, transfer, reads, completion: polled, polled })
}

fn call(core: u32, call: &DmaCall, limits: &Limits) -> Result<DmaPlan, Refusal> {
    let DmaCall { transfer, channel, share, descriptors, completion } = *call;
    let is_fetching = limits.engine.descriptors.is_some();
    match share {
        Share::List => {}
        // The few stores of the list are included: it is written for each transfer.
        Share::Doorbell if is_fetching => {}
        Share::Call => return refused("a call of a kernel driver", "the registers are mapped into this program"),
        Share::Doorbell => {
            return refused("a doorbell with descriptors prepared in advance", "the registers hold one transfer");
        }
    }
    if is_fetching && descriptors != Descriptors::Fetched {
        return refused("descriptors written to the card", "the engine fetches them from host memory");
    }
    if !is_fetching && descriptors != Descriptors::Written(MemoryType::Uc) {
        return refused(
            "descriptors in host memory or in WC memory",
            "a transfer is described by registers, mapped as UC",
        );
    }
    if channel != 0 {
        return refused(format!("channel {channel} of a card"), "the engine has one, counted from 0");
    }
    let polled = limits.engine.polled();
    match completion {
        _ if completion == polled => {}
        Completion::Register => {
            return refused(
                "a register that shows the end of a transfer",
                "the device file has descriptors.polled = \"write-back\", a word in host memory",
            );
        }
        Completion::Flag => {
            return refused(
                "a completion flag in host memory",
                "the device file describes a register that shows the end",
            );
        }
        Completion::Interrupt if limits.engine.interrupts => {}
        Completion::Interrupt => {
            let because = if is_fetching {
                "the device file has no section [interrupt]"
            } else {
                "the device file has no section [interrupt] or no key engine.interrupt_command"
            };
            return refused("an interrupt at the end of a transfer", because);
        }
    }
    Ok(DmaPlan { core, transfer, reads: None, completion, polled })
}

/// Checks the transfers against the engine and the mapped memory.
fn fits(asked: DmaPlan, limits: &Limits) -> Result<DmaPlan, Refusal> {
    if asked.core >= limits.cores {
        return refused(format!("core {}", asked.core), format!("{} cores are usable, counted from 0", limits.cores));
    }
    asked.transfers().try_for_each(|transfer| fits_one(&transfer, limits))?;
    let Some(reads) = asked.reads else { return Ok(asked) };
    let (bytes, own) = (reads.bytes, limits.engine.limits.memory_bytes);
    if bytes > own / 2 {
        let least = format_size(bytes.saturating_mul(2));
        return refused(
            format!("concurrent transfers of {} in both directions", format_size(bytes)),
            format!("each needs memory of the device of its own: descriptors.memory_bytes must be at least {least}"),
        );
    }
    let end = |of: &Transfer| of.window.offset.saturating_add(of.window.len.max(of.bytes));
    if asked.transfer.partner != Partner::Host {
        return refused(
            "concurrent transfers in both directions between cards",
            "both directions can run concurrently only with host memory",
        );
    }
    if asked.transfer.window.offset < end(&reads) && reads.window.offset < end(&asked.transfer) {
        return refused("both directions with the same host memory", "their bytes could not be verified");
    }
    Ok(asked)
}

/// Checks a transfer.
fn fits_one(transfer: &Transfer, limits: &Limits) -> Result<(), Refusal> {
    let Transfer { card, verb, partner, bytes, window, outstanding, .. } = *transfer;
    let engine = limits.engine.limits;
    if card != 0 {
        return refused(format!("transfers by card {card}"), "only the target, card 0, issues DMA");
    }
    let room = match (partner, limits.peer) {
        (Partner::Host, _) => 0..limits.mapped_bytes,
        (Partner::Peer { card: 1, bar }, Some(peer)) if bar == peer.bar => peer.from..peer.to,
        (Partner::Peer { .. }, _) => {
            return refused("DMA between cards", "name memory of a second card with --peer");
        }
    };
    if bytes == 0 || bytes > engine.most_bytes {
        let most = format_size(engine.most_bytes);
        return refused(
            format!("a transfer of {}", format_size(bytes)),
            format!("the engine moves 1 B to {most} at once"),
        );
    }
    if outstanding.is_some_and(|outstanding| outstanding > 1) {
        return refused(
            format!("{} outstanding transfers", outstanding.unwrap_or(0)),
            "the engine does one transfer at a time",
        );
    }
    let alignment = engine.alignment_bytes;
    let is_aligned = [bytes, window.offset, window.step(bytes)].iter().all(|at| at.is_multiple_of(alignment));
    if !is_aligned {
        let what = format!("a {} of {bytes} B at offsets such as {}", verb_name(verb), window.place(1, bytes));
        return refused(what, format!("the engine needs multiples of {alignment} B"));
    }
    let end = window.offset.checked_add(window.len.max(bytes));
    if window.offset < room.start || end.is_none_or(|end| end > room.end) {
        let of = if partner == Partner::Host { "host memory" } else { "the other card's memory" };
        return refused(
            format!("a window of {} of {of}", format_size(window.len)),
            format!("{} can be mapped", format_size(room.end - room.start)),
        );
    }
    Ok(())
}

const fn verb_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Load => "DMA read",
        Verb::Store => "DMA write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Pattern, Window, WriteRead, Writer};

    fn limits(engine: &EngineKind) -> Limits {
        Limits { engine: *engine, mapped_bytes: 1 << 20, peer: None, cores: 1 }
    }

    fn built_in(name: &str) -> EngineKind {
        EngineKind::of(&lanemark_devices::built_in(name).unwrap().unwrap()).unwrap()
    }

    fn edu() -> EngineKind {
        built_in("edu")
    }

    fn transfer(bytes: u64, window_bytes: u64) -> Transfer {
        let window = Window { offset: 0, len: window_bytes, pattern: Pattern::Sequential };
        Transfer { card: 0, verb: Verb::Store, partner: Partner::Host, bytes, count: 2, window, outstanding: None }
    }

    fn plan(transfer: Transfer) -> Plan {
        Plan::new(vec![EngineJob::Transfer(transfer)], 1)
    }

    fn verdict(plan: &Plan, engine: &EngineKind) -> Option<String> {
        match of(plan, &limits(engine))? {
            Ok(_) => Some(String::new()),
            Err(Refusal::Unsupported { what, because }) => Some(format!("{what}: {because}")),
            Err(Refusal::OutOfRange(_)) => Some("out of range".to_owned()),
        }
    }

    #[test]
    fn a_transfer_may_be_as_large_as_the_engine_permits_and_the_window_as_the_mapped_memory() {
        let edu = edu();
        assert_eq!(verdict(&plan(transfer(2048, 1 << 20)), &edu).unwrap(), "");
        assert!(verdict(&plan(transfer(2049, 1 << 20)), &edu).unwrap().contains("1 B to 2KiB at once"));
        assert!(verdict(&plan(transfer(0, 1 << 20)), &edu).is_some_and(|said| !said.is_empty()));
        assert!(verdict(&plan(transfer(64, (1 << 20) + 1)), &edu).unwrap().contains("1MiB can be mapped"));
        assert!(
            verdict(&plan(Transfer { card: 1, ..transfer(64, 4096) }), &edu)
                .unwrap()
                .contains("only the target, card 0, issues DMA")
        );
        let one = Transfer { outstanding: Some(1), ..transfer(64, 4096) };
        assert_eq!(verdict(&plan(one), &edu).unwrap(), "");
        assert!(verdict(&plan(Transfer { outstanding: Some(2), ..one }), &edu).unwrap().contains("2 outstanding"));
    }

    #[test]
    fn a_window_at_another_card_is_within_the_memory_named_for_it() {
        let edu = edu();
        let peer = Some(Range { bar: 2, from: 4096, to: 12288, kind: None });
        let at = |card, bar, offset, len| {
            let window = Window { offset, len, pattern: Pattern::Sequential };
            let plan = plan(Transfer { partner: Partner::Peer { card, bar }, window, ..transfer(64, 4096) });
            match of(&plan, &Limits { peer, ..limits(&edu) }).unwrap() {
                Ok(_) => String::new(),
                Err(Refusal::Unsupported { what, because }) => format!("{what}: {because}"),
                Err(Refusal::OutOfRange(_)) => "out of range".to_owned(),
            }
        };
        assert_eq!(at(1, 2, 4096, 8192), "");
        assert!(at(1, 2, 4096, 8193).contains("of the other card's memory: 8KiB can be mapped"));
        assert!(at(1, 2, 4092, 4096).contains("8KiB can be mapped"));
        assert!(at(1, 0, 4096, 4096).contains("--peer") && at(2, 2, 4096, 4096).contains("--peer"));
    }

    #[test]
    fn addresses_and_lengths_are_multiples_of_the_alignment() {
        let engine = EngineKind { limits: DmaLimits { alignment_bytes: 8, ..edu().limits }, ..edu() };
        assert_eq!(verdict(&plan(transfer(64, 4096)), &engine).unwrap(), "");
        assert!(verdict(&plan(transfer(60, 4096)), &engine).unwrap().contains("multiples of 8 B"));
        let mut shifted = transfer(64, 2048);
        shifted.window.offset = 4;
        assert!(verdict(&plan(shifted), &engine).unwrap().contains("multiples of 8 B"));
    }

    #[test]
    fn a_call_writes_registers_and_ends_with_a_register_or_an_interrupt() {
        let edu = edu();
        let call = DmaCall {
            transfer: transfer(64, 4096),
            channel: 0,
            share: Share::List,
            descriptors: Descriptors::Written(MemoryType::Uc),
            completion: Completion::Interrupt,
        };
        let said = |call: DmaCall| verdict(&Plan::new(call, 1), &edu).unwrap();
        assert_eq!(said(call), "");
        assert_eq!(said(DmaCall { completion: Completion::Register, ..call }), "");
        for (other, words) in [
            (DmaCall { completion: Completion::Flag, ..call }, "a completion flag"),
            (DmaCall { share: Share::Doorbell, ..call }, "hold one transfer"),
            (DmaCall { share: Share::Call, ..call }, "kernel driver"),
            (DmaCall { descriptors: Descriptors::Fetched, ..call }, "described by registers"),
            (DmaCall { channel: 1, ..call }, "channel 1"),
        ] {
            assert!(said(other).contains(words), "{words}: {}", said(other));
        }
        let limits = limits(&EngineKind { interrupts: false, ..edu });
        assert!(of(&Plan::new(call, 1), &limits).unwrap().is_err());
    }

    #[test]
    fn an_engine_with_descriptors_fetches_them_and_ends_as_its_file_says() {
        let written_back = built_in("xdma");
        let status = EngineKind { descriptors: Some(Polled::Status), ..written_back };
        let call = |descriptors, completion| {
            let (transfer, share) = (transfer(64, 4096), Share::Doorbell);
            Plan::new(DmaCall { transfer, channel: 0, share, descriptors, completion }, 1)
        };
        let said = |engine, completion| verdict(&call(Descriptors::Fetched, completion), engine).unwrap();
        assert_eq!(said(&written_back, Completion::Flag), "");
        assert_eq!(said(&status, Completion::Register), "");
        assert_eq!(said(&status, Completion::Interrupt), "");
        assert!(said(&written_back, Completion::Register).contains("descriptors.polled"));
        assert!(said(&status, Completion::Flag).contains("shows the end"));
        let silent = EngineKind { interrupts: false, ..status };
        assert!(said(&silent, Completion::Interrupt).contains("no section [interrupt]"));
        let written = call(Descriptors::Written(MemoryType::Uc), Completion::Flag);
        assert!(verdict(&written, &written_back).unwrap().contains("fetches them from host memory"));
        let facts = written_back.facts(4096, 4096);
        assert!(facts.fetches_only && facts.has_flag && !status.facts(4096, 4096).has_flag);
        assert!(!edu().facts(4096, 4096).fetches_only);
    }

    #[test]
    fn both_directions_at_once_need_descriptors_and_memory_of_the_device_for_each() {
        let xdma = built_in("xdma");
        let both = |bytes, read_offset, is_mixed| {
            let write = transfer(bytes, 4096);
            let read = Window { offset: read_offset, ..write.window };
            Plan::new(vec![EngineJob::WriteRead(WriteRead { write, read, is_mixed })], 1)
        };
        let said = |plan: &Plan| verdict(plan, &xdma).unwrap();
        assert_eq!(said(&both(2048, 4096, true)), "");
        assert!(said(&both(2049, 4096, true)).contains("descriptors.memory_bytes must be at least 4098B"));
        assert!(said(&both(64, 4095, true)).contains("could not be verified"));
        assert!(said(&both(64, 1 << 20, true)).contains("1MiB can be mapped"));
        assert!(said(&both(64, 4096, false)).contains("does not order"));
        assert!(verdict(&both(64, 4096, true), &edu()).unwrap().contains("one transfer at a time"));
        let asked = of(&both(2048, 4096, true), &limits(&xdma)).unwrap().unwrap();
        assert_eq!([Verb::Store, Verb::Load].map(|verb| asked.own(verb)), [0, 2048]);
    }

    #[test]
    fn other_work_is_no_dma_and_a_cold_window_is_refused() {
        let edu = edu();
        let fence = lanemark_machine::Step::Fence(lanemark_machine::Fence::Sfence);
        assert_eq!(verdict(&Plan::new(fence, 1), &edu), None);
        let memory = HostMemory { written_by: Writer::Nobody, ..HostMemory::default() };
        let cold = EngineWork { jobs: vec![EngineJob::Transfer(transfer(64, 4096))], memory };
        assert!(verdict(&Plan::new(cold, 1), &edu).unwrap().contains("cache state"));
    }
}
