//! The times of both cards, stage by stage.
//!
//! The compiled card receives each TLP of the simulated host at the clock in which the simulated card has it behind the
//! hard block, or at the next clock edge; that wait is taken off. Its TLPs are then compared in time: the last DW at the
//! stream against the moment in which the simulated card gives the TLP to the hard block.

use crate::card::{Card, Checked, MEMORY, class, command};
use crate::plans::Simulated;
use crate::sequence::{in_order, is_last, tag, with_tag};
use lanemark_machine::{Direction, Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use std::collections::BTreeMap;

/// Clocks of the parser of the card that `endpoint.ingress_ns` contains besides the hard block.
const CHECK: u64 = 1;

/// The stage that differs. The stream carries a header and data at a DW a clock. On the simulated card, which has the beats
/// of the data only, a load is not held up by the rest of a long store that came before it.
pub const BEHIND: &str = "load behind a store to completion";

/// By how many clocks the TLPs of the compiled card are later than those of the simulated one: by stage, the least, the
/// most and the number of TLPs.
#[derive(Default, Debug)]
pub struct Stages(pub BTreeMap<&'static str, (f64, f64, u64)>);

impl Stages {
    fn add(&mut self, stage: &'static str, later: f64) {
        let (least, most, count) = self.0.entry(stage).or_insert((later, later, 0));
        (*least, *most, *count) = (least.min(later), most.max(later), *count + 1);
    }
}

/// Runs a simulated plan on the compiled card at the times of the simulated one.
///
/// `transfer` is what the engine does, once; without it, the host accesses the card.
pub fn compare_times(
    card: &mut Card,
    platform: &Platform,
    transfer: Option<Transfer>,
    simulated: &Simulated,
    stages: &mut Stages,
) -> Checked<()> {
    let dma = platform.dma.as_ref().ok_or("no DMA engine")?;
    let period = dma.beat_ns.value;
    let in_clocks = |at: Ticks| at.0 as f64 / period.0 as f64;
    let hard_block = platform.endpoint.ingress_ns.value.since(Ticks(CHECK * period.0));
    card.reset(platform.link.mps_bytes.value, platform.link.mrrs_bytes.value);
    if let Some(Transfer { verb, bytes, window, .. }) = transfer {
        let is_to_device = verb == Verb::Load;
        let base = platform.memory.as_ref().map_or(0, |memory| memory.address_bytes.value);
        card.store(MEMORY, &[0; 8])?;
        card.program(is_to_device, base + window.place(0, bytes), 0, bytes as u32)?;
        card.push(0, command(is_to_device));
        card.run_until("take its command", Card::has_all)?;
    }
    let zero = card.clock;
    let mut reads: Vec<(u16, u16)> = Vec::new();
    let (mut requests, mut outstanding, mut to_edge) = (0, 0, 0.0);
    for frame in in_order(&simulated.trace.frames) {
        if frame.direction == Direction::Downstream {
            let arrives = in_clocks(frame.arrives + hard_block);
            // The simulated card has no clock edges.
            to_edge = arrives.ceil() - arrives;
            let earliest = zero + arrives.ceil() as u64;
            let mut tlp = frame.tlp.clone();
            if class(&tlp) == FlowClass::Completion {
                let nth = reads.iter().position(|(simulated, _)| *simulated == tag(&tlp));
                let nth = nth.ok_or("the simulated host completes an unknown read")?;
                tlp = with_tag(&tlp, reads[nth].1);
                if is_last(&tlp) {
                    reads.remove(nth);
                    outstanding -= 1;
                }
            }
            card.push(earliest, tlp);
            continue;
        }
        card.run_until("send a TLP", |card| !card.sent.is_empty())?;
        let sent = card.sent.pop_front().ok_or("no TLP")?;
        if class(&sent.tlp) != class(&frame.tlp) {
            return Err("the TLPs of the cards are of other classes".to_owned());
        }
        let given = in_clocks(frame.ready.since(platform.endpoint.egress_ns.value));
        let later = (sent.ended - zero) as f64 - to_edge - given;
        let stage = match class(&frame.tlp) {
            FlowClass::Completion if card.load_waits.pop_front().unwrap_or(0) > 0 => BEHIND,
            FlowClass::Completion => "load to completion",
            _ if requests == 0 => "command to first request",
            FlowClass::Posted => "write to next write",
            FlowClass::NonPosted if outstanding < dma.tags.value && requests < dma.tags.value => "read to next read",
            FlowClass::NonPosted => "completion to next read",
        };
        stages.add(stage, later);
        if class(&frame.tlp) == FlowClass::NonPosted {
            reads.push((tag(&frame.tlp), tag(&sent.tlp)));
            outstanding += 1;
        }
        requests += 1;
    }
    Ok(())
}
