//! Check of plans with DMA: the transfers of one engine, or the reason for a refusal.

use crate::linux_sysfs::Range;
use crate::x86::refusal::Refusal;
use lanemark_devices::Engine;
use lanemark_machine::{
    Completion, CoreWork, Descriptors, DmaCall, EngineJob, EngineWork, HostMemory, Lane, Partner, Plan, Share, Task,
    Transfer, Verb, Work,
};
use lanemark_units::{MemoryType, format_size};

/// Transfers that the engine can do, one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DmaPlan {
    /// Index of the core that starts them.
    pub(super) core: u32,
    pub(super) transfer: Transfer,
    /// Method by which the core sees the end of each transfer.
    pub(super) completion: Completion,
}

/// Properties of an engine that decide which plans it can run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    pub(super) engine: &'a Engine,
    pub(super) interrupts: bool,
    pub(super) mapped_bytes: u64,
    /// Memory of another device.
    pub(super) peer: Option<Range>,
    pub(super) cores: u32,
}

/// The transfers of a plan with DMA; `None` for other work.
pub(super) fn of(plan: &Plan, limits: &Limits<'_>) -> Option<Result<DmaPlan, Refusal>> {
    let asked = match &plan.work {
        Work::Engines(work) => engines(work),
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

fn engines(work: &EngineWork) -> Result<DmaPlan, Refusal> {
    let transfer = match work.jobs.as_slice() {
        [EngineJob::Transfer(transfer)] => *transfer,
        [EngineJob::WriteRead(_)] => {
            return refused("writes that are followed by reads", "the engine does one transfer at a time");
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
    Ok(DmaPlan { core: 0, transfer, completion: Completion::Register })
}

fn call(core: u32, call: &DmaCall, limits: &Limits<'_>) -> Result<DmaPlan, Refusal> {
    let DmaCall { transfer, channel, share, descriptors, completion } = *call;
    match share {
        Share::List => {}
        Share::Call => return refused("a call of a kernel driver", "the registers are mapped into this program"),
        Share::Doorbell => {
            return refused("a doorbell with descriptors prepared in advance", "the registers hold one transfer");
        }
    }
    if descriptors != Descriptors::Written(MemoryType::Uc) {
        return refused(
            "descriptors in host memory or in WC memory",
            "a transfer is described by registers, mapped as UC",
        );
    }
    if channel != 0 {
        return refused(format!("channel {channel} of a card"), "the engine has one, counted from 0");
    }
    match completion {
        Completion::Register => {}
        Completion::Flag => {
            return refused(
                "a completion flag in host memory",
                "the device file describes a register that shows the end",
            );
        }
        Completion::Interrupt if limits.interrupts => {}
        Completion::Interrupt => {
            let because = "the device file has no section [interrupt] or no key engine.interrupt_command";
            return refused("an interrupt at the end of a transfer", because);
        }
    }
    Ok(DmaPlan { core, transfer, completion })
}

/// Checks a transfer against the engine and the mapped memory.
fn fits(asked: DmaPlan, limits: &Limits<'_>) -> Result<DmaPlan, Refusal> {
    let Transfer { card, verb, partner, bytes, window, outstanding, .. } = asked.transfer;
    let engine = limits.engine;
    if card != 0 {
        return refused(format!("transfers by card {card}"), "only the device of the target has an engine here");
    }
    let room = match (partner, limits.peer) {
        (Partner::Host, _) => 0..limits.mapped_bytes,
        (Partner::Peer { card: 1, bar }, Some(peer)) if bar == peer.bar => peer.from..peer.to,
        (Partner::Peer { .. }, _) => {
            return refused("DMA between cards", "no memory of a second card is named (--peer)");
        }
    };
    if asked.core >= limits.cores {
        return refused(format!("core {}", asked.core), format!("{} cores are usable, counted from 0", limits.cores));
    }
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
    Ok(asked)
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
    use lanemark_machine::{Pattern, Window, Writer};

    fn limits(engine: &Engine) -> Limits<'_> {
        Limits { engine, interrupts: true, mapped_bytes: 1 << 20, peer: None, cores: 1 }
    }

    fn edu() -> Engine {
        lanemark_devices::built_in("edu").unwrap().unwrap().engine.unwrap()
    }

    fn transfer(bytes: u64, window_bytes: u64) -> Transfer {
        let window = Window { offset: 0, len: window_bytes, pattern: Pattern::Sequential };
        Transfer { card: 0, verb: Verb::Store, partner: Partner::Host, bytes, count: 2, window, outstanding: None }
    }

    fn plan(transfer: Transfer) -> Plan {
        Plan::new(vec![EngineJob::Transfer(transfer)], 1)
    }

    fn verdict(plan: &Plan, engine: &Engine) -> Option<String> {
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
            verdict(&plan(Transfer { card: 1, ..transfer(64, 4096) }), &edu).unwrap().contains("has an engine here")
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
        let engine = Engine { alignment_bytes: 8, ..edu() };
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
        let limits = Limits { interrupts: false, ..limits(&edu) };
        assert!(of(&Plan::new(call, 1), &limits).unwrap().is_err());
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
