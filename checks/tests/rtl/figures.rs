//! Published figures of other cards, as predictions for this one: F7 and F8 of the AWS application note (beats of
//! stores), and R10 of Rosta (start of a TLP).

use crate::card::{Card, class, command, payload};
use crate::design::card;
use crate::plans::{Simulated, simulate};
use crate::sequence::{compare, hex};
use crate::three_ways::platform;
use lanemark_machine::{Access, Direction, Fence, Order, Plan, Span, Step, Stream, Verb, Width};
use lanemark_units::{BarOffset, MemoryType};
use lanemark_wire::FlowClass;

/// A rule, the steps of a core, address and DWs of the writes in their order, and the beats read.
type Row = (&'static str, Vec<Step>, Vec<(u64, usize)>, u64);

/// Offset of a line in the memory of the card.
const LINE: u64 = 0x4400;

fn access(verb: Verb, width: Width, memory_type: MemoryType, offset: u64, len: u64, times: u64) -> Step {
    let span = Span { at: BarOffset { bar: 0, offset }, len, memory_type };
    let order = if times > 1 { Order::SameAddress { times } } else { Order::Ascending };
    Step::Stream(Stream { order, ..Stream::over(verb, Access::Plain(width), span) })
}

fn store(width: Width, memory_type: MemoryType, offset: u64, len: u64) -> Step {
    access(Verb::Store, width, memory_type, offset, len, 1)
}

/// Address and DWs of each write of a run, in order.
fn writes(simulated: &Simulated) -> Vec<(u64, usize)> {
    let is_write = |tlp: &[u8]| class(tlp) == FlowClass::Posted;
    let down = simulated.trace.frames.iter().filter(|frame| frame.direction == Direction::Downstream);
    let writes = down.filter(|frame| is_write(&frame.tlp));
    let address = |tlp: &[u8]| u64::from(u16::from_be_bytes([tlp[10], tlp[11]]));
    writes.map(|frame| (address(&frame.tlp), payload(&frame.tlp).len() / 4)).collect()
}

pub fn beats_follow_the_published_rules_of_write_combining() {
    use MemoryType::{Uc, Wc};
    let library = card();
    let mut card = Card::new(library, 128, 128);
    let platform = platform(&[]);
    let fence = || Step::Fence(Fence::Sfence);
    let line = |first: u64, dws: usize| (LINE + first, dws);
    let six = |memory_type| access(Verb::Store, Width::B1, memory_type, LINE, 1, 6);
    let load = || access(Verb::Load, Width::B4, Uc, LINE, 4, 1);
    let singles: Vec<(u64, usize)> = (0..16).map(|nth| line(4 * nth, 1)).collect();
    let pairs: Vec<(u64, usize)> = (0..8).map(|nth| line(8 * nth, if nth < 7 { 2 } else { 1 })).collect();
    // A beat of this memory is a DW.
    let rows: Vec<Row> = vec![
        ("F7: 16 stores without write-combining", vec![store(Width::B4, Uc, LINE, 64)], singles, 0),
        ("F7: with it, one write", vec![store(Width::B4, Wc, LINE, 64), fence()], vec![line(0, 16)], 0),
        ("F8: six stores to one address", vec![six(Uc)], vec![line(0, 1); 6], 0),
        ("F8: writes to the same address are eaten", vec![six(Wc), fence()], vec![line(0, 1)], 0),
        (
            "F8: the order is not kept",
            vec![store(Width::B8, Wc, LINE, 8), store(Width::B64, Wc, LINE + 64, 64), fence()],
            vec![line(64, 16), line(0, 2)],
            0,
        ),
        ("F8: a partial flush splits", vec![store(Width::B4, Wc, LINE, 60), fence()], pairs, 0),
        ("F8: without a fence, nothing leaves", vec![store(Width::B4, Wc, LINE, 4)], vec![], 0),
        ("F8: SFENCE drains", vec![store(Width::B4, Wc, LINE, 4), fence()], vec![line(0, 1)], 0),
        ("loads are counted, too", vec![store(Width::B4, Uc, LINE, 4), load(), load()], vec![line(0, 1)], 2),
    ];
    for (rule, steps, wanted, read) in rows {
        let simulated = simulate(&platform, &Plan::new(steps, 1));
        assert_eq!(writes(&simulated), wanted, "{rule}");
        // Both cards count the same beats: `compare` looks.
        let beats = wanted.iter().map(|(_, dws)| *dws as u64).sum();
        assert_eq!(simulated.beats, (beats, read), "{rule}");
        compare(&mut card, &platform, None, &simulated).unwrap_or_else(|what| panic!("{rule}: {what}"));
    }
}

/// R10 is explained by TLPs that start at multiples of 8 B, on a stream of 64 bits. The stream of this card has 32 bits,
/// so a TLP starts at any DW: each write takes the clocks of its DWs, and one more.
pub fn a_write_starts_at_any_dw_of_the_stream() {
    let library = card();
    let mut card = Card::new(library, 128, 128);
    assert_eq!(platform(&[]).link.tlp_alignment_bytes.value, 4);
    for host in [0x1000_0000_u64, 0x1_0000_0000] {
        for dws in 1..=32_u32 {
            card.reset(128, 128);
            // A full write, then one of these DWs up to 4 KiB, and one after it.
            let from = host + 4096 - u64::from(128 + 4 * dws);
            card.program(false, from, 0, 128 + 4 * dws + 128).unwrap();
            card.push(0, command(false));
            card.run_until("send three writes", |card| card.sent.len() == 3).unwrap();
            let lengths: Vec<usize> = card.sent.iter().map(|sent| sent.tlp.len() / 4).collect();
            let header = if host < 1 << 32 { 3 } else { 4 };
            assert_eq!(lengths, [header + 32, header + dws as usize, header + 32], "{}", hex(&card.sent[1].tlp));
            for nth in 1..3 {
                let clocks = card.sent[nth].ended - card.sent[nth - 1].ended;
                assert_eq!(clocks, lengths[nth] as u64 + 1, "write {nth} of {lengths:?}");
            }
        }
    }
}
