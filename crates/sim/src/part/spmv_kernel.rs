//! A kernel that multiplies a block of rows of a sparse matrix by a vector.
//!
//! Ports: [`Pipeline`]; the memory ports that it asks are handed to it.
//!
//! Three loops hang on each other. One goes over where rows end. The next one goes over entries, an interval apart and not before the end of
//! their row is known, and has their columns and values loaded. The last one asks for an element of `x` when the column has come, an interval
//! apart, and adds the product when value and element are there and the addition before is over; sums of rows are gathered until they are a
//! burst to store. No loop is ahead of the one before it. A unit that goes over an array in order asks for a burst at its first element, when
//! it has room for all of its words; the room of a burst is free when the last entry that needs it has used it. A row without entries is a step
//! of its own.

use crate::part::memory_port::MemoryPort;
use crate::part::pipeline::{Pipeline, Spec};
use lanemark_compute::{Array, Csr};
use lanemark_units::Ticks;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Times by the number of a word or entry, of the latest ones only.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Latest {
    times: Vec<Ticks>,
    mask: usize,
}

impl Latest {
    /// Of at least so many.
    fn of(count: u64) -> Latest {
        let len = count.next_power_of_two() as usize;
        Latest { times: vec![Ticks::ZERO; len], mask: len - 1 }
    }

    #[inline]
    fn at(&self, place: u64) -> Ticks {
        self.times[place as usize & self.mask]
    }

    #[inline]
    fn set(&mut self, place: u64, at: Ticks) {
        self.times[place as usize & self.mask] = at;
    }
}

/// A unit that loads an array in order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    port: usize,
    /// Elements of a word are 2 to the power of this.
    shift: u32,
    /// Elements in all, of a burst, and words that it has room for.
    elements: u64,
    burst: u64,
    room: u64,
    /// When it asks for a burst; never where it does not.
    asked_at: Ticks,
    /// Behind the last element it has asked for, and behind the last that came.
    asked: u64,
    here: u64,
    /// When each word came.
    came: Latest,
    /// When the last of each burst was used, how many of them were, and behind the last element of the next one.
    used: Latest,
    used_bursts: u64,
    use_end: u64,
}

impl Unit {
    fn new(spec: &Spec, array: Array, port: usize, elements: u64) -> Unit {
        let shift = spec.words.elements(array.bytes()).trailing_zeros();
        let (burst, room) = (spec.burst_words << shift, spec.unit_words);
        Unit {
            port,
            shift,
            elements,
            burst,
            room,
            asked_at: Ticks::NEVER,
            asked: 0,
            here: 0,
            came: Latest::of(spec.unit_words + spec.burst_words),
            used: Latest::of(spec.unit_words / spec.burst_words + 2),
            used_bursts: 0,
            use_end: burst.min(elements),
        }
    }

    /// Whether it has to ask before this element is issued.
    fn has_to_ask(&self, element: u64) -> bool {
        element == self.asked && element < self.elements
    }

    /// Until when there is room for the next burst, by those that were used; and if they are not yet, behind which element they end.
    fn room_at(&self) -> Result<Ticks, u64> {
        let words = ((self.asked + self.burst).min(self.elements) - 1) >> self.shift;
        let Some(word) = words.checked_sub(self.room) else { return Ok(Ticks::ZERO) };
        let burst = (word << self.shift) / self.burst;
        if burst < self.used_bursts { Ok(self.used.at(burst)) } else { Err((burst + 1) * self.burst) }
    }

    /// Its elements before this one have been used.
    fn use_up_to(&mut self, behind: u64, at: Ticks) {
        if behind == self.use_end {
            self.used.set(self.used_bursts, at);
            self.used_bursts += 1;
            self.use_end = (self.use_end + self.burst).min(self.elements);
        }
    }

    /// Asks for the next burst.
    fn ask(&mut self, at: Ticks) {
        self.asked_at = at;
        self.asked = (self.asked + self.burst).min(self.elements);
    }

    /// What was asked for comes.
    fn load(&mut self, ports: &mut [MemoryPort]) {
        let words = self.here >> self.shift..((self.asked - 1) >> self.shift) + 1;
        let port = &mut ports[self.port];
        let mut came = port.load(self.asked_at, words.end - words.start);
        for word in words {
            self.came.set(word, came);
            came += port.spec().word;
        }
        (self.here, self.asked_at) = (self.asked, Ticks::NEVER);
    }
}

/// Everything that changes.
#[derive(Clone, Debug)]
pub struct SpmvKernel {
    spec: Spec,
    matrix: Arc<Csr>,
    x: Arc<Vec<f64>>,
    rows: Range<u32>,
    /// Whether nobody else asks the port of `x`.
    is_alone: bool,
    starts: Unit,
    columns: Unit,
    values: Unit,
    x_port: usize,
    y_port: usize,
    /// Of the first loop: when it issued last, and how many elements the second one has used: the first as soon as it comes.
    starts_at: Ticks,
    starts_used: u64,
    /// Of the second: its row, the entry where that ends, its entry, counted from the first of the block, and when it issued last.
    row: u32,
    row_end: u64,
    entry: u64,
    entry_at: Ticks,
    /// Behind the entry that it waits for because a unit has no room; 0 where it does not.
    waits_for: u64,
    /// When it issued the first step of each row that the last loop has not begun.
    begun: VecDeque<Ticks>,
    /// Of the last: its row, whether that has begun, where it begins and ends, its entry, when it asked for `x`, when it added, and when each of
    /// the latest entries was added.
    sum_row: u32,
    is_begun: bool,
    sum_begin: u64,
    sum_end: u64,
    sum_entry: u64,
    sum: f64,
    x_at: Ticks,
    added_at: Ticks,
    added: Latest,
    /// Sums to store: when, and how many words.
    sums: VecDeque<(Ticks, u64)>,
    y: Vec<f64>,
    ended: Ticks,
}

impl SpmvKernel {
    /// One for these rows, by ports in the order of [`Array::ALL`]; it `is_alone` where nobody else asks the port of `x`.
    #[must_use]
    pub fn new(
        spec: Spec,
        matrix: Arc<Csr>,
        x: Arc<Vec<f64>>,
        rows: Range<u32>,
        ports: [usize; 5],
        is_alone: bool,
    ) -> SpmvKernel {
        let starts = matrix.row_starts();
        let entries = u64::from(starts[rows.end as usize] - starts[rows.start as usize]);
        let count = u64::from(rows.end - rows.start);
        let of = |array: Array, elements| Unit::new(&spec, array, ports[array.index()], elements);
        let mut kernel = SpmvKernel {
            starts: of(Array::RowStarts, if count > 0 { count + 1 } else { 0 }),
            columns: of(Array::Columns, entries),
            values: of(Array::Values, entries),
            x_port: ports[Array::X.index()],
            y_port: ports[Array::Y.index()],
            spec,
            matrix,
            x,
            rows,
            is_alone,
            starts_at: Ticks::ZERO,
            starts_used: 1,
            row: 0,
            row_end: 0,
            entry: 0,
            entry_at: Ticks::ZERO,
            waits_for: 0,
            begun: VecDeque::new(),
            sum_row: 0,
            is_begun: false,
            sum_begin: 0,
            sum_end: 0,
            sum_entry: 0,
            sum: 0.0,
            x_at: Ticks::ZERO,
            added_at: Ticks::ZERO,
            added: Latest::of(spec.unit_words + spec.burst_words),
            sums: VecDeque::new(),
            y: Vec::with_capacity(count as usize),
            ended: Ticks::ZERO,
        };
        (kernel.row_end, kernel.sum_end) = (kernel.end_of(0), kernel.end_of(0));
        kernel
    }

    /// The sums so far, row after row.
    #[must_use]
    pub fn y(&self) -> &[f64] {
        &self.y
    }

    fn count(&self) -> u32 {
        self.rows.end - self.rows.start
    }

    /// Behind the last entry of this row, counted from the first of the block; of a row that is not there, never.
    fn end_of(&self, row: u32) -> u64 {
        let starts = &self.matrix.row_starts()[self.rows.start as usize..=self.rows.end as usize];
        starts.get(row as usize + 1).map_or(u64::MAX, |end| u64::from(end - starts[0]))
    }

    /// Lets the first two loops issue what they can, until they have something to ask for.
    fn issue(&mut self) {
        if self.columns.asked_at == Ticks::NEVER && self.values.asked_at == Ticks::NEVER {
            self.issue_entries();
        }
        if self.starts.asked_at == Ticks::NEVER && self.starts.asked < self.starts.elements {
            self.issue_starts();
        }
        self.begin_sums();
    }

    fn issue_starts(&mut self) {
        let mut at = self.starts_at + self.spec.interval;
        let Ok(room_at) = self.starts.room_at() else { return };
        at = at.max(room_at);
        let first = self.starts.asked;
        self.starts.ask(at);
        self.starts_at = at + self.spec.interval * (self.starts.asked - first - 1);
    }

    fn issue_entries(&mut self) {
        while self.row < self.count() {
            let mut at = self.entry_at + self.spec.interval;
            let end = u64::from(self.row) + 1;
            // Where a row begins is known from the one before.
            let begins = self.starts_used == end;
            if begins {
                if self.starts.here <= end {
                    return;
                }
                at = at.max(self.starts.came.at(end >> self.starts.shift));
            }
            let is_empty = begins && self.row_end == self.entry;
            if !is_empty {
                let Some(room_at) = self.room_at() else { return };
                at = at.max(room_at);
            }
            self.entry_at = at;
            if begins {
                self.starts.use_up_to(end + 1, at);
                self.starts_used = end + 1;
                self.begun.push_back(at);
            }
            if is_empty {
                self.begin_row();
                continue;
            }
            let mut asks = false;
            for unit in [&mut self.columns, &mut self.values] {
                if unit.has_to_ask(self.entry) {
                    unit.ask(at);
                    asks = true;
                }
            }
            let next = self.row_end.min(self.columns.asked).min(self.values.asked);
            self.entry_at += self.spec.interval * (next - self.entry - 1);
            self.entry = next;
            if next == self.row_end {
                self.begin_row();
            }
            if asks {
                return;
            }
        }
    }

    fn begin_row(&mut self) {
        self.row += 1;
        self.row_end = self.end_of(self.row);
    }

    /// When units that have to ask now have room; `None` where that is not known yet.
    fn room_at(&mut self) -> Option<Ticks> {
        self.waits_for = 0;
        let mut at = Ticks::ZERO;
        for unit in [&self.columns, &self.values] {
            if !unit.has_to_ask(self.entry) {
                continue;
            }
            match unit.room_at() {
                Ok(room_at) => at = at.max(room_at),
                Err(behind) => {
                    self.waits_for = behind;
                    return None;
                }
            }
        }
        Some(at)
    }

    /// Begins the next row that the second loop has issued; rows without entries end at once.
    fn begin_sums(&mut self) {
        while !self.is_begun
            && let Some(at) = self.begun.pop_front()
        {
            if self.sum_end == self.sum_entry {
                self.added_at = (self.added_at + self.spec.interval).max(at);
                self.end_row();
            } else {
                // No entry before its own step was issued.
                self.x_at = self.x_at.max(at.since(self.spec.interval));
                self.is_begun = true;
            }
        }
    }

    fn end_row(&mut self) {
        self.y.push(self.sum);
        self.sum = 0.0;
        self.sum_row += 1;
        self.is_begun = false;
        (self.sum_begin, self.sum_end) = (self.sum_end, self.end_of(self.sum_row));
        let elements = u64::from(self.spec.words.elements(Array::Y.bytes()));
        let burst = self.spec.burst_words * elements;
        let done = u64::from(self.sum_row);
        if done.is_multiple_of(burst) || self.sum_row == self.count() {
            let gathered = (done - 1) % burst + 1;
            self.sums.push_back((self.added_at + self.spec.depth, gathered.div_ceil(elements)));
        }
    }

    /// Up to which entry columns and values have come.
    fn here(&self) -> u64 {
        self.columns.here.min(self.values.here)
    }

    /// When `x` is asked for the next entry; never where its row has not begun or its column has not come.
    fn x_asked_at(&self) -> Ticks {
        if !self.is_begun || self.sum_entry >= self.here() {
            return Ticks::NEVER;
        }
        let came = self.columns.came.at(self.sum_entry >> self.columns.shift);
        // Of those before the first, nothing was ever added.
        let room = self.added.at(self.sum_entry.wrapping_sub(self.spec.unit_words));
        (self.x_at + self.spec.interval).max(came).max(room)
    }

    /// Adds entries whose `x` is asked for before this time, and before anything else that this kernel asks its port for.
    fn add(&mut self, port: &mut MemoryPort, before: Ticks) {
        let mut before = before;
        let mut stop = self.here();
        if self.waits_for > self.sum_entry {
            stop = stop.min(self.waits_for);
        }
        while self.is_begun && self.sum_entry < stop {
            let end = self.sum_end.min(stop).min(self.columns.use_end).min(self.values.use_end);
            if !self.add_to_row(port, before, end) {
                return;
            }
            if end == self.sum_end {
                self.end_row();
                self.begin_sums();
                if let Some((at, _)) = self.sums.front().filter(|_| !self.is_alone) {
                    before = before.min(*at);
                }
            }
        }
    }

    /// Adds entries of one row up to `end`, and says whether it came so far.
    fn add_to_row(&mut self, port: &mut MemoryPort, before: Ticks, end: u64) -> bool {
        let first = self.sum_entry;
        let base = self.matrix.row_starts()[self.rows.start as usize] as usize;
        let place = base + first as usize..base + end as usize;
        let entries = self.matrix.column_of()[place.clone()].iter().zip(&self.matrix.values()[place]);
        let (interval, in_row) = (self.spec.interval, self.spec.interval.max(self.spec.addition));
        let mut step = if first == self.sum_begin { interval } else { in_row };
        let (mut x_at, mut added_at, mut sum) = (self.x_at, self.added_at, self.sum);
        let (columns, values, x) = (&mut self.columns, &mut self.values, self.x.as_slice());
        // All of one length, and said so here: then no place in them is looked at twice.
        let added = self.added.times.as_mut_slice();
        let (length, mask) = (added.len(), added.len().wrapping_sub(1));
        let (column_came, value_came) = (&columns.came.times[..length], &values.came.times[..length]);
        let (column_shift, value_shift) = (columns.shift, values.shift);
        let room = self.spec.unit_words;
        let mut entry = first;
        for (column, value) in entries {
            let column_came = column_came[(entry >> column_shift) as usize & mask];
            let room_at = added[entry.wrapping_sub(room) as usize & mask];
            let at = (x_at + interval).max(column_came).max(room_at);
            if at >= before {
                break;
            }
            x_at = at;
            let value_came = value_came[(entry >> value_shift) as usize & mask];
            added_at = (added_at + step).max(port.load(at, 1).max(value_came));
            step = in_row;
            added[entry as usize & mask] = added_at;
            sum += value * x[*column as usize];
            entry += 1;
        }
        columns.use_up_to(entry, x_at);
        values.use_up_to(entry, added_at);
        (self.x_at, self.added_at, self.sum, self.sum_entry) = (x_at, added_at, sum, entry);
        entry == end
    }
}

impl Pipeline for SpmvKernel {
    fn next_at(&mut self) -> Ticks {
        self.issue();
        let sums = self.sums.front().map_or(Ticks::NEVER, |(at, _)| *at);
        let units = self.starts.asked_at.min(self.columns.asked_at).min(self.values.asked_at);
        units.min(sums).min(self.x_asked_at())
    }

    fn run_until(&mut self, ports: &mut [MemoryPort], before: Ticks) {
        loop {
            self.issue();
            // Of those who ask at one time, the first here.
            let sums = self.sums.front().map_or(Ticks::NEVER, |(at, _)| *at);
            let units = self.starts.asked_at.min(self.columns.asked_at).min(self.values.asked_at);
            let other = units.min(sums);
            if self.x_asked_at() < other {
                let limit = if self.is_alone { before } else { before.min(other) };
                let asked = self.sum_entry;
                self.add(&mut ports[self.x_port], limit);
                if self.sum_entry == asked {
                    return;
                }
            } else if other >= before {
                return;
            } else if self.starts.asked_at == other {
                let is_first = self.starts.here == 0;
                self.starts.load(ports);
                if is_first {
                    self.starts.use_up_to(1, self.starts.came.at(0));
                }
            } else if self.columns.asked_at == other {
                self.columns.load(ports);
            } else if self.values.asked_at == other {
                self.values.load(ports);
            } else if let Some((at, words)) = self.sums.pop_front() {
                self.ended = ports[self.y_port].store(at, words);
            }
        }
    }

    fn ended(&self) -> Ticks {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::{memory_port, pipeline};
    use lanemark_compute::PortWords;

    fn ns(ns: u64) -> Ticks {
        Ticks::whole_ns(ns)
    }

    /// When rows of these lengths have been multiplied, by ports of their own or one for all.
    fn multiplied(lengths: &[u32], ports: [usize; 5]) -> Ticks {
        let memory = memory_port::Spec { word: ns(2), read: ns(10), turnaround: ns(0) };
        let words = PortWords { port_bytes: 8, keeps: false };
        let (interval, depth, addition) = (ns(1), ns(5), ns(4));
        let spec = Spec { interval, depth, addition, unit_words: 8, burst_words: 1, words };
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length);
        }
        let entries = starts[lengths.len()];
        let values = (0..entries).map(|entry| f64::from(entry) + 1.0).collect();
        let matrix = Arc::new(Csr::new(1, starts, vec![0; entries as usize], values).unwrap());
        let x = Arc::new(vec![2.0]);
        let is_alone = ports == [0, 1, 2, 3, 4];
        let rows = 0..lengths.len() as u32;
        let mut kernels = [SpmvKernel::new(spec, Arc::clone(&matrix), Arc::clone(&x), rows, ports, is_alone)];
        let ended = pipeline::run(&mut kernels, &mut vec![MemoryPort::new(memory); 5], false);
        assert_eq!(kernels[0].y(), matrix.times(&x));
        ended
    }

    #[test]
    fn an_entry_waits_for_row_column_element_and_the_addition_before() {
        let own = [0, 1, 2, 3, 4];
        // Its row ends where the second start says, here at 15; column and value at 27, x at 39; stored from 44 to 46.
        assert_eq!(multiplied(&[1], own), ns(46));
        // The next entry of the row is added 4 ns later, of another row when its element has come, at 41.
        assert_eq!(multiplied(&[2], own), ns(50));
        assert_eq!(multiplied(&[1, 1], own), ns(48));
        // A row without entries is stored, and waits for nobody but its place.
        assert_eq!(multiplied(&[0], own), ns(15 + 5 + 2));
        assert_eq!(multiplied(&[], own), ns(0));
    }

    #[test]
    fn arrays_behind_one_port_wait_for_each_other() {
        // Column and value are asked for at 15 at once: the value comes 2 ns later, and does not count beside x.
        assert_eq!(multiplied(&[1], [0; 5]), ns(46));
        assert!(multiplied(&[40], [0; 5]) > multiplied(&[40], [0, 1, 2, 3, 4]));
    }
}
