//! One plan, two cards: the TLPs of the compiled card against those of the simulated card of `rtl/platform.toml`.
//!
//! The simulated host is the partner of both. What it sends to the simulated card is sent to the compiled one, after the
//! TLPs of the card that came before it. TLPs are compared as bytes, in the order of their class. Two things are the
//! choice of a card: the tag of a read, as long as no outstanding read has it (section 2.2.6.2), and the tag and
//! the disabled bytes of a write.

use crate::card::{Card, Checked, MEMORY, Sent, class, command, header_bytes, payload};
use crate::plans::Simulated;
use lanemark_machine::{Direction, Frame, Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;

/// Offset in the card's memory at which the first transfer begins, or up to 6 B behind it.
const SKIPPED: u64 = 0x800;

/// Numbers of TLPs that a comparison has found equal on both cards.
#[derive(Clone, Copy, Default, Debug)]
pub struct Compared {
    pub writes: u64,
    pub reads: u64,
    pub completions: u64,
    /// Reads whose tag both cards had to use, because it was the only free one.
    pub forced_tags: u64,
}

/// A read of a card, and the end of a read, in the order in which they happened.
#[derive(Clone, Copy)]
enum TagEvent {
    Read(u16),
    Ended(u16),
}

/// The frames of a trace in the order of their times: when the card began to send, or when it had received.
pub fn in_order(frames: &[Frame]) -> Vec<&Frame> {
    let at = |frame: &&Frame| if frame.direction == Direction::Upstream { frame.starts } else { frame.arrives };
    let mut frames: Vec<&Frame> = frames.iter().collect();
    frames.sort_by_key(at);
    frames
}

/// Tag of a request or of a completion.
pub fn tag(tlp: &[u8]) -> u16 {
    let low = if class(tlp) == FlowClass::Completion { tlp[10] } else { tlp[6] };
    u16::from(tlp[1] >> 7) << 9 | u16::from(tlp[1] >> 3 & 1) << 8 | u16::from(low)
}

/// A completion for another tag, below 256.
pub fn with_tag(tlp: &[u8], tag: u16) -> Vec<u8> {
    let mut changed = tlp.to_vec();
    changed[1] &= !0x88;
    changed[10] = tag as u8;
    changed
}

/// Whether a completion is the last one of its read.
pub fn is_last(tlp: &[u8]) -> bool {
    let byte_count = usize::from(tlp[6] & 0xf) << 8 | usize::from(tlp[7]);
    let byte_count = if byte_count == 0 { 4096 } else { byte_count };
    payload(tlp).len() >= byte_count + usize::from(tlp[11] & 3)
}

/// A TLP without what a card may choose.
fn plain(tlp: &[u8]) -> Vec<u8> {
    let mut tlp = tlp.to_vec();
    if class(&tlp) == FlowClass::Completion {
        return tlp;
    }
    tlp[1] &= !0x88;
    tlp[6] = 0;
    if class(&tlp) == FlowClass::Posted {
        let (first, last, start) = (tlp[7] & 0xf, tlp[7] >> 4, header_bytes(&tlp));
        let end = tlp.len();
        let mut blank = |from: usize, enabled: u8| {
            for byte in (0..4).filter(|byte| enabled >> byte & 1 == 0) {
                tlp[from + byte] = 0;
            }
        };
        blank(start, first);
        if end > start + 4 {
            blank(end - 4, last);
        }
    }
    tlp
}

/// The enabled bytes of a write without holes.
fn enabled(tlp: &[u8]) -> &[u8] {
    let data = payload(tlp);
    let (first, last) = (tlp[7] & 0xf, tlp[7] >> 4);
    let end = if last == 0 { first } else { last };
    &data[first.trailing_zeros() as usize..data.len() - (end.leading_zeros() as usize - 4)]
}

/// For each read the number of the read that had its tag before, if that tag was the only free one: all others have been
/// in use since all were.
fn predecessors(events: &[TagEvent], tags: usize, who: &str) -> Checked<Vec<Option<usize>>> {
    // Tag and number of each outstanding read.
    let mut outstanding: Vec<(u16, usize)> = Vec::new();
    let (mut found, mut only_free) = (Vec::new(), None);
    for event in events {
        match *event {
            TagEvent::Ended(tag) => {
                let was_full = outstanding.len() == tags;
                let ended = outstanding.iter().position(|(other, _)| *other == tag);
                only_free = ended.map(|place| outstanding.swap_remove(place).1).filter(|_| was_full);
            }
            TagEvent::Read(tag) => {
                let number = found.len();
                if outstanding.iter().any(|(other, _)| *other == tag) || usize::from(tag) >= tags {
                    return Err(format!("read {number} of {who} has tag {tag}; tags and reads are {outstanding:?}"));
                }
                outstanding.push((tag, number));
                found.push(only_free.take());
            }
        }
    }
    Ok(found)
}

/// The tag events of the simulated card: a read takes its tag before its beats, and a completion frees it after its own.
fn tag_events(frames: &[Frame], platform: &Platform) -> Vec<TagEvent> {
    let Some(dma) = &platform.dma else { return Vec::new() };
    let beats = |tlp: &[u8]| Ticks(dma.beat_ns.value.0 * tlp.len() as u64 / u64::from(dma.beat_bytes.value));
    let (ingress, egress) = (platform.endpoint.ingress_ns.value, platform.endpoint.egress_ns.value);
    let mut events: Vec<(Ticks, bool, TagEvent)> = Vec::new();
    for Frame { direction, tlp, ready, arrives, .. } in frames {
        match (direction, class(tlp)) {
            (Direction::Upstream, FlowClass::NonPosted) => {
                let at = ready.since(egress + beats(tlp) + dma.read_request_ns.value);
                events.push((at, true, TagEvent::Read(tag(tlp))));
            }
            (Direction::Downstream, FlowClass::Completion) if is_last(tlp) => {
                events.push((*arrives + ingress + beats(tlp), false, TagEvent::Ended(tag(tlp))));
            }
            _ => {}
        }
    }
    events.sort_by_key(|(at, is_read, _)| (*at, *is_read));
    events.into_iter().map(|(.., event)| event).collect()
}

/// The progress of a plan on the compiled card.
struct Replay<'a> {
    card: &'a mut Card,
    /// TLPs of the card by class, and how many of each are compared.
    sent: [Vec<Vec<u8>>; 3],
    compared: [usize; 3],
    /// The reads of the simulated card that are outstanding: its tag and that of the compiled card.
    reads: Vec<(u16, u16)>,
    tag_events: Vec<TagEvent>,
}

fn place(class: FlowClass) -> usize {
    match class {
        FlowClass::Posted => 0,
        FlowClass::NonPosted => 1,
        FlowClass::Completion => 2,
    }
}

impl Replay<'_> {
    /// Sorts what the card has sent.
    fn collect(&mut self) {
        for Sent { tlp, .. } in self.card.sent.drain(..) {
            let class = class(&tlp);
            if class == FlowClass::NonPosted {
                self.tag_events.push(TagEvent::Read(tag(&tlp)));
            }
            self.sent[place(class)].push(tlp);
        }
    }

    /// Compares the next TLP of a class with that of the simulated card.
    fn expect(&mut self, wanted: &[u8]) -> Checked<()> {
        let class = class(wanted);
        let nth = self.compared[place(class)];
        let wanted_text = hex(&plain(wanted));
        self.collect();
        if self.sent[place(class)].len() <= nth {
            let missing = nth - self.sent[place(class)].len();
            let has_come =
                |card: &Card| card.sent.iter().filter(|sent| self::class(&sent.tlp) == class).count() > missing;
            self.card
                .run_until("send it", has_come)
                .map_err(|error| format!("{error}: TLP {nth} of its class, {wanted_text}"))?;
            self.collect();
        }
        let found = &self.sent[place(class)][nth];
        if plain(found) != plain(wanted) {
            return Err(format!(
                "TLP {nth} of its class is\n  {}, and of the simulated card\n  {wanted_text}",
                hex(&plain(found))
            ));
        }
        if class == FlowClass::NonPosted {
            self.reads.push((tag(wanted), tag(found)));
        }
        self.compared[place(class)] += 1;
        Ok(())
    }

    /// Sends a TLP of the simulated host to the card.
    fn send(&mut self, tlp: &[u8]) -> Checked<()> {
        if class(tlp) != FlowClass::Completion {
            self.card.push(0, tlp.to_vec());
        } else if let Some(nth) = self.reads.iter().position(|(simulated, _)| *simulated == tag(tlp)) {
            let own = self.reads[nth].1;
            self.card.push(0, with_tag(tlp, own));
            if is_last(tlp) {
                self.reads.remove(nth);
                self.card.run_until("take a completion", Card::has_all)?;
                self.collect();
                self.tag_events.push(TagEvent::Ended(own));
            }
        } else {
            return Err(format!("the simulated host completes an unknown read: {}", hex(tlp)));
        }
        self.card.run_until("take a TLP", Card::has_all)
    }

    /// Sends nothing more, and looks whether the card does.
    fn end(&mut self) -> Checked<()> {
        for _ in 0..200 {
            self.card.tick();
        }
        self.collect();
        for (sent, compared) in self.sent.iter().zip(self.compared) {
            if let Some(more) = sent.get(compared) {
                return Err(format!("the simulated card does not send {}", hex(more)));
            }
        }
        Ok(())
    }
}

/// A TLP as text, DW by DW.
pub fn hex(tlp: &[u8]) -> String {
    let word = |dw: &[u8]| dw.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    tlp.chunks(4).map(|dw| format!("{:08x}", word(dw))).collect::<Vec<_>>().join(" ")
}

/// Runs a plan on the compiled card with the host of a simulated run, and compares each TLP.
///
/// `transfer` is what the engine does; without it, the host accesses the card.
pub fn compare(
    card: &mut Card,
    platform: &Platform,
    transfer: Option<Transfer>,
    simulated: &Simulated,
) -> Checked<Compared> {
    card.reset(platform.link.mps_bytes.value, platform.link.mrrs_bytes.value);
    if transfer.is_none() {
        card.store(0, &simulated.registers)?;
        card.store(MEMORY, &simulated.memory)?;
        card.take_beats()?;
    }
    let (sent, compared, reads) = (Default::default(), [0; 3], Vec::new());
    let mut replay = Replay { card, sent, compared, reads, tag_events: Vec::new() };
    let frames = in_order(&simulated.trace.frames);
    let mut transfers = transfer.map(|transfer| Transfers::new(transfer, platform, &frames));
    for frame in &frames {
        if frame.direction == Direction::Downstream {
            replay.send(&frame.tlp)?;
            continue;
        }
        if let Some(transfers) = &mut transfers {
            transfers.before(&frame.tlp, &mut replay)?;
        }
        replay.expect(&frame.tlp)?;
    }
    if transfer.is_some() {
        replay.card.wait_for_end()?;
    }
    replay.end()?;
    let tags = platform.dma.as_ref().map_or(1, |dma| dma.tags.value as usize);
    let of_simulated = predecessors(&tag_events(&simulated.trace.frames, platform), tags, "the simulated card")?;
    let of_compiled = predecessors(&replay.tag_events, tags, "the compiled card")?;
    let mut forced_tags = 0;
    for (number, both) in of_simulated.into_iter().zip(of_compiled).enumerate() {
        if let (Some(one), Some(other)) = both {
            if one != other {
                return Err(format!(
                    "read {number} has the tag of read {other}, and of the simulated card of read {one}"
                ));
            }
            forced_tags += 1;
        }
    }
    let [writes, reads, completions] = replay.compared.map(|count| count as u64);
    let beats = replay.card.take_beats()?;
    if transfer.is_none() && (u64::from(beats.0), u64::from(beats.1)) != simulated.beats {
        return Err(format!("{beats:?} beats written and read, and {:?} of the simulated card", simulated.beats));
    }
    Ok(Compared { writes, reads, completions, forced_tags })
}

/// The transfers of a plan, which the host of the compiled card starts one by one.
struct Transfers {
    transfer: Transfer,
    base: u64,
    started: u64,
    /// Bytes of the current transfer that have not been requested.
    left: u64,
    /// Data of all writes.
    data: Vec<u8>,
}

impl Transfers {
    fn new(transfer: Transfer, platform: &Platform, frames: &[&Frame]) -> Transfers {
        let is_write =
            |frame: &&&Frame| frame.direction == Direction::Upstream && class(&frame.tlp) == FlowClass::Posted;
        let data = frames.iter().filter(is_write).flat_map(|frame| enabled(&frame.tlp).iter().copied()).collect();
        let base = platform.memory.as_ref().map_or(0, |memory| memory.address_bytes.value);
        Transfers { transfer, base, started: 0, left: 0, data }
    }

    /// Starts the next transfer, if the request of the simulated card is its first one.
    fn before(&mut self, request: &[u8], replay: &mut Replay<'_>) -> Checked<()> {
        let Transfer { verb, bytes, .. } = self.transfer;
        if self.left == 0 {
            if self.started > 0 {
                replay.card.wait_for_end()?;
            }
            let host = self.base + self.transfer.window.place(self.started, bytes);
            // Any place in the memory of the card, so that both ends are not aligned.
            let own = SKIPPED + host % 7 + self.started;
            if verb == Verb::Store {
                let from = (self.started * bytes) as usize;
                preload(replay.card, own as u32, &self.data[from..from + bytes as usize])?;
            }
            let is_to_device = verb == Verb::Load;
            replay.card.program(is_to_device, host, own as u32, bytes as u32)?;
            replay.card.push(0, command(is_to_device));
            (self.left, self.started) = (bytes, self.started + 1);
        }
        let count = lanemark_wire::byte_enable::byte_count(request[7] & 0xf, request[7] >> 4, length(request));
        self.left -= u64::from(count).min(self.left);
        Ok(())
    }
}

/// Length field of a TLP in DWs.
fn length(tlp: &[u8]) -> u16 {
    let length = u16::from(tlp[2] & 3) << 8 | u16::from(tlp[3]);
    if length == 0 { 1024 } else { length }
}

/// Puts data into the memory of the card.
fn preload(card: &mut Card, own: u32, data: &[u8]) -> Checked<()> {
    let skip = (own % 4) as usize;
    let mut whole = vec![0; skip];
    whole.extend_from_slice(data);
    whole.resize(whole.len().next_multiple_of(4), 0);
    card.store(MEMORY + own - skip as u32, &whole)
}
