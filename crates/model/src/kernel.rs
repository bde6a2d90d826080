//! Time of kernels that work on a card's own memory.
//!
//! Each term is a lower bound of the time of one resource, with the shortest path of one iteration before and after
//! it. The result is the largest term.
//!
//! | bound | all words and iterations |
//! | --- | --- |
//! | port | words through one port in sequence, and the turnaround of each burst of stores |
//! | interval | iterations of one kernel, one initiation interval apart |
//! | outstanding words | words of one unit with a limited number outstanding, each with the latency of an idle port |
//! | additions | sequential additions of each row |
//!
//! If two terms are close, the true time exceeds both: a unit that waits for words does not issue, and its
//! outstanding requests decrease.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::ceiling::Ceiling;
use crate::prediction::Prediction;
use lanemark_compute::{Array, PortWords, Spmv, StreamCopy, Workload};
use lanemark_platform::{DeviceMemory, Kernel, Platform};
use lanemark_units::Rate;
use std::ops::Range;

/// Parameters of both sections, in nanoseconds.
struct Card {
    ports: u32,
    word: f64,
    read: f64,
    turnaround: f64,
    interval: f64,
    depth: f64,
    addition: f64,
    unit_words: f64,
    burst_words: u64,
    words: PortWords,
}

impl Card {
    fn new(memory: &DeviceMemory, kernel: &Kernel, kernels: u32) -> Card {
        let cycles = |count| kernel.cycles(count, kernels).as_ns();
        Card {
            ports: memory.ports.value,
            word: memory.word_ns.value.as_ns(),
            read: memory.read_ns.value.as_ns(),
            turnaround: memory.turnaround_ns.value.as_ns(),
            interval: cycles(kernel.interval_cycles.value),
            depth: cycles(kernel.pipeline_cycles.value),
            addition: cycles(kernel.addition_cycles.value),
            unit_words: f64::from(kernel.unit_words.value),
            burst_words: kernel.burst_words.value.into(),
            words: PortWords { port_bytes: memory.port_bytes.value, keeps: kernel.keeps_words.value },
        }
    }

    /// Latency of a word from an idle port.
    fn latency(&self) -> f64 {
        self.word + self.read
    }

    /// Time for which a port is occupied by this many stored words.
    fn stored(&self, words: u64, most_at_once: u64) -> f64 {
        self.word * words as f64 + self.turnaround * words.div_ceil(most_at_once) as f64
    }

    /// Time of this many words of one unit, with the maximum number outstanding.
    fn outstanding(&self, words: u64) -> f64 {
        (words as f64 / self.unit_words).ceil() * self.latency()
    }

    /// From the last operand of an iteration until its word is stored.
    fn last(&self) -> f64 {
        self.depth + self.turnaround + self.word
    }
}

/// Predicts `passes` iterations of a workload.
pub(crate) fn predict(platform: &Platform, work: &Workload, passes: u64) -> Option<Prediction> {
    let card = Card::new(platform.device_memory.as_ref()?, platform.kernel.as_ref()?, work.kernels());
    let largest = match work {
        Workload::StreamCopy(copy) => stream_copy(&card, copy),
        Workload::Spmv(spmv) => multiply(&card, spmv),
    }
    .times(passes as f64, 0.0);
    let holds_for = "kernels with ports of their own, from their first iteration to their last word";
    Some(Prediction {
        issue_ns: largest.ns,
        delivered_ns: largest.ns,
        bound: largest.bound,
        lead: largest.lead(),
        holds_for,
    })
}

/// One kernel with its port.
fn stream_copy(card: &Card, copy: &StreamCopy) -> Largest {
    let (words, steps) = (copy.words(card.words), copy.steps());
    let most_at_once = card.burst_words.max(copy.vector_words.into());
    let port = card.word * words as f64 + card.stored(words, most_at_once);
    let one = card.interval + card.latency() + card.last();
    Largest::of([
        (Bound::Port, card.interval + port),
        (Bound::Interval, card.interval * steps as f64 + card.latency() + card.last()),
        (Bound::OutstandingWords, card.interval + card.outstanding(words) + card.last()),
        (Bound::OutstandingWords, one),
    ])
}

fn multiply(card: &Card, spmv: &Spmv) -> Largest {
    let blocks = spmv.blocks();
    let mut held = vec![0.0_f64; card.ports as usize];
    // Minimum time before the first word of a port and after the last one.
    let mut before = vec![f64::INFINITY; card.ports as usize];
    let mut behind = before.clone();
    let mut alone: Vec<(Bound, f64)> = Vec::new();
    for (kernel, rows) in (0..).zip(&blocks).filter(|(_, rows)| !rows.is_empty()) {
        let words = spmv.words(rows, card.words);
        let ports = spmv.ports_of(kernel, words, card.ports);
        for array in Array::ALL.into_iter().filter(|array| words[array.index()] > 0) {
            let (words, port) = (words[array.index()], ports[array.index()] as usize);
            held[port] += match array {
                Array::Y => card.stored(words, card.burst_words),
                _ => card.word * words as f64,
            };
            let (first, last) = around(card, array);
            before[port] = before[port].min(first);
            behind[port] = behind[port].min(last);
        }
        alone.extend(of_kernel(card, spmv, rows, &words));
    }
    let shared = held.iter().zip(before.iter().zip(&behind)).filter(|(held, _)| **held > 0.0);
    let by_port = shared.map(|(held, (before, behind))| (Bound::Port, before + held + behind));
    let largest = Largest::of(by_port.chain(alone));
    // If values come in more bursts than columns, some are kept for both; their number is unknown.
    let is_blurred = largest.bound == Bound::OutstandingWords && !comes_with_its_column(card);
    if is_blurred { largest.blurred() } else { largest }
}

/// Whether a value is always requested together with its column.
fn comes_with_its_column(card: &Card) -> bool {
    card.words.elements(Array::Columns.bytes()) == card.words.elements(Array::Values.bytes())
}

/// Minimum time before the first request of this array, and from its last word at the port to the end.
fn around(card: &Card, array: Array) -> (f64, f64) {
    let step = card.interval;
    match array {
        Array::RowStarts | Array::Y => (step, 0.0),
        Array::Columns => (step + card.latency(), card.read + card.latency() + card.last()),
        Array::Values => (step + card.latency(), card.read + card.last()),
        Array::X => (step + 2.0 * card.latency(), card.read + card.last()),
    }
}

/// Time of a kernel with infinitely fast ports.
fn of_kernel(card: &Card, spmv: &Spmv, rows: &Range<u32>, words: &[u64; 5]) -> [(Bound, f64); 5] {
    let starts = &spmv.matrix.row_starts()[rows.start as usize..=rows.end as usize];
    let in_row = card.interval.max(card.addition);
    let (mut steps, mut steps_to_last, mut added) = (0_u64, 0_u64, 0.0);
    for pair in starts.windows(2) {
        let entries = u64::from(pair[1] - pair[0]);
        steps += entries.max(1);
        steps_to_last = if entries > 0 { steps } else { steps_to_last };
        added += card.interval + in_row * entries.saturating_sub(1) as f64;
    }
    let entries = words[Array::X.index()];
    let (first, last) = if entries > 0 { around(card, Array::X) } else { (0.0, card.last()) };
    // A value that arrives with its column is kept until its element of x has arrived, too.
    let ways = if comes_with_its_column(card) { 2.0 } else { 1.0 };
    let outstanding = [Array::RowStarts, Array::Columns, Array::X].map(|array| card.outstanding(words[array.index()]));
    let outstanding = outstanding.into_iter().fold(ways * card.outstanding(words[Array::Values.index()]), f64::max);
    // The first iteration waits for its row; the last one with an entry is followed by its column and its element of
    // x.
    let ways = if entries > 0 { 3.0 * card.latency() } else { 0.0 };
    [
        (Bound::Interval, card.interval * steps as f64 + card.latency() + card.last()),
        (Bound::Interval, card.interval * steps_to_last as f64 + ways + card.last()),
        (Bound::Additions, added + ways + card.last() - if entries > 0 { card.interval } else { 0.0 }),
        (Bound::OutstandingWords, outstanding + card.last()),
        (Bound::OutstandingWords, if entries > 0 { first + card.latency() + last - card.read } else { 0.0 }),
    ]
}

/// Ceiling of the bytes per second of a workload: all its words, through all ports it uses.
#[must_use]
pub fn compute_ceiling(platform: &Platform, work: &Workload) -> Option<Ceiling> {
    let (memory, kernel) = (platform.device_memory.as_ref()?, platform.kernel.as_ref()?);
    let card = Card::new(memory, kernel, work.kernels());
    let (width, time) = (memory.port_bytes.value, memory.word_ns.value);
    match work {
        Workload::StreamCopy(copy) => {
            let ports = copy.ports;
            let rate = Rate::from_bytes_per_s(f64::from(ports) * f64::from(width) * 1e9 / time.as_ns())?;
            Some(Ceiling { rate, because: format!("{ports} ports x {width} B / {time}") })
        }
        Workload::Spmv(spmv) => {
            let blocks = spmv.blocks();
            let words: u64 = blocks.iter().flat_map(|rows| spmv.words(rows, card.words)).sum();
            // A kernel without rows uses no port.
            let kernels = blocks.iter().filter(|rows| !rows.is_empty()).count() as u64;
            let ports = kernels.saturating_mul(spmv.ports_each.into()).min(card.ports.into());
            let rate = work.bytes() as f64 * ports as f64 * 1e9 / (words as f64 * time.as_ns());
            let because = format!("{words} words of {width} B through {ports} ports, {time} each");
            Some(Ceiling { rate: Rate::from_bytes_per_s(rate)?, because })
        }
    }
}
