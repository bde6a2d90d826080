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

/// Times by the number of a burst, of the latest ones only.
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

/// When the words of a burst came.
#[derive(Clone, Copy)]
struct Came {
    /// The first word, and how long after each other the others did.
    first: Ticks,
    word: Ticks,
    /// The number of that word, and elements of a word: 2 to the power of this.
    number: u64,
    shift: u32,
}

impl Came {
    /// When this element did.
    #[inline]
    fn at(&self, element: u64) -> Ticks {
        self.first + self.word * ((element >> self.shift) - self.number)
    }
}

/// A unit that loads an array in order, a burst at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    port: usize,
    /// Elements of a word are 2 to the power of this.
    shift: u32,
    /// Elements in all and of a burst; words of one, and those that it has room for.
    elements: u64,
    burst: u64,
    burst_words: u64,
    room: u64,
    /// When it asks for a burst; never where it does not.
    asked_at: Ticks,
    /// Behind the last element it has asked for, and behind the last that came.
    asked: u64,
    here: u64,
    /// When the first word of each burst came, and how long after each other the others did.
    came: Latest,
    came_bursts: u64,
    word: Ticks,
    /// When the last of each burst was used, how many of them were, and behind the last element of the next one.
    used: Latest,
    used_bursts: u64,
    use_end: u64,
}

impl Unit {
    fn new(spec: &Spec, array: Array, port: usize, elements: u64) -> Unit {
        let shift = spec.words.elements(array.bytes()).trailing_zeros();
        let (burst, room) = (spec.burst_words << shift, spec.unit_words);
        let bursts = spec.unit_words / spec.burst_words + 2;
        Unit {
            port,
            shift,
            elements,
            burst,
            burst_words: spec.burst_words,
            room,
            asked_at: Ticks::NEVER,
            asked: 0,
            here: 0,
            came: Latest::of(bursts),
            came_bursts: 0,
            word: Ticks::ZERO,
            used: Latest::of(bursts),
            used_bursts: 0,
            use_end: burst.min(elements),
        }
    }

    /// Whether it has to ask before this element is issued.
    #[inline]
    fn has_to_ask(&self, element: u64) -> bool {
        element == self.asked && element < self.elements
    }

    /// Until when there is room for the next burst, by those that were used; and if they are not yet, behind which element they end.
    fn room_at(&self) -> Result<Ticks, u64> {
        let words = ((self.asked + self.burst).min(self.elements) - 1) >> self.shift;
        let Some(word) = words.checked_sub(self.room) else { return Ok(Ticks::ZERO) };
        let burst = word / self.burst_words;
        if burst < self.used_bursts { Ok(self.used.at(burst)) } else { Err((burst + 1) * self.burst) }
    }

    /// When the burst in use came.
    #[inline]
    fn in_use(&self) -> Came {
        Came {
            first: self.came.at(self.used_bursts),
            word: self.word,
            number: self.used_bursts * self.burst_words,
            shift: self.shift,
        }
    }

    /// When this element of the burst in use came.
    #[inline]
    fn came_at(&self, element: u64) -> Ticks {
        self.in_use().at(element)
    }

    /// Its elements before this one have been used.
    #[inline]
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
        let words = ((self.asked - 1) >> self.shift) + 1 - (self.here >> self.shift);
        let port = &mut ports[self.port];
        self.word = port.spec().word;
        self.came.set(self.came_bursts, port.load(self.asked_at, words));
        self.came_bursts += 1;
        (self.here, self.asked_at) = (self.asked, Ticks::NEVER);
    }
}

/// Rows of a matrix, their entries counted from the first of them.
#[derive(Clone, Copy)]
struct Block<'a> {
    starts: &'a [u32],
    columns: &'a [u32],
    values: &'a [f64],
}

impl<'a> Block<'a> {
    #[inline]
    fn of(matrix: &'a Csr, rows: &Range<u32>) -> Block<'a> {
        let starts = &matrix.row_starts()[rows.start as usize..=rows.end as usize];
        let first = starts[0] as usize;
        Block { starts, columns: &matrix.column_of()[first..], values: &matrix.values()[first..] }
    }

    /// Behind the last entry of this row; of a row that is not there, never.
    #[inline]
    fn end_of(&self, row: u64) -> u64 {
        self.starts.get(row as usize + 1).map_or(u64::MAX, |end| u64::from(end - self.starts[0]))
    }
}

/// The first loop, over where rows end.
#[derive(Clone, Debug)]
struct Starts {
    unit: Unit,
    /// When it issued last, and how many elements the second one has used: the first as soon as it comes.
    at: Ticks,
    used: u64,
}

impl Starts {
    fn issue(&mut self, interval: Ticks) {
        let Ok(room_at) = self.unit.room_at() else { return };
        let at = (self.at + interval).max(room_at);
        let first = self.unit.asked;
        self.unit.ask(at);
        self.at = at + interval * (self.unit.asked - first - 1);
    }

    fn load(&mut self, ports: &mut [MemoryPort]) {
        self.unit.load(ports);
        if self.unit.came_bursts == 1 {
            self.unit.use_up_to(1, self.unit.came.at(0));
        }
    }
}

/// The second loop, over entries.
#[derive(Clone, Debug)]
struct Entries {
    columns: Unit,
    values: Unit,
    /// Its row, the entry where that ends, its entry, and when it issued last.
    row: u64,
    row_end: u64,
    entry: u64,
    at: Ticks,
    /// Behind the entry that it waits for because a unit has no room; 0 where it does not.
    waits_for: u64,
    /// When it issued the first step of each row that the last loop has not begun.
    begun: VecDeque<Ticks>,
}

impl Entries {
    /// Issues what it can until it has something to ask for.
    fn issue(&mut self, interval: Ticks, block: Block, starts: &mut Starts) {
        while self.row_end != u64::MAX {
            let mut at = self.at + interval;
            let end = self.row + 1;
            // Where a row begins is known from the one before.
            let begins = starts.used == end;
            if begins {
                if starts.unit.here <= end {
                    return;
                }
                at = at.max(starts.unit.came_at(end));
            }
            let is_empty = begins && self.row_end == self.entry;
            let asks = !is_empty && (self.columns.has_to_ask(self.entry) || self.values.has_to_ask(self.entry));
            if asks {
                let Some(room_at) = self.room_at() else { return };
                at = at.max(room_at);
            }
            if begins {
                starts.unit.use_up_to(end + 1, at);
                starts.used = end + 1;
                self.begun.push_back(at);
            }
            self.at = at;
            if !is_empty {
                if asks {
                    self.ask(at);
                }
                let next = self.row_end.min(self.columns.asked).min(self.values.asked);
                self.at += interval * (next - self.entry - 1);
                self.entry = next;
            }
            if self.entry == self.row_end {
                self.row += 1;
                self.row_end = block.end_of(self.row);
            }
            if asks {
                return;
            }
        }
    }

    fn ask(&mut self, at: Ticks) {
        for unit in [&mut self.columns, &mut self.values] {
            if unit.has_to_ask(self.entry) {
                unit.ask(at);
            }
        }
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

    /// Up to which entry columns and values have come.
    #[inline]
    fn here(&self) -> u64 {
        self.columns.here.min(self.values.here)
    }
}

/// The last loop, over entries whose column has come.
#[derive(Clone, Debug)]
struct Sums {
    /// Its row, whether that has begun, where it begins and ends, its entry, and the sum so far.
    row: u64,
    is_begun: bool,
    begin: u64,
    end: u64,
    entry: u64,
    sum: f64,
    /// When it asked for `x`, and when it added.
    x_at: Ticks,
    added_at: Ticks,
    /// When each entry was added whose place in the unit for `x` is the next one's, or that of one behind it; and that place.
    added: Vec<Ticks>,
    place: usize,
    /// Sums of a burst, those of a word, the row that ends the next burst, and the bursts to store: when, and how many words.
    burst: u64,
    in_word: u64,
    burst_end: u64,
    stores: VecDeque<(Ticks, u64)>,
    y: Vec<f64>,
}

impl Sums {
    fn new(spec: &Spec, count: u64, end: u64) -> Sums {
        let in_word = spec.words.elements(Array::Y.bytes()).into();
        let burst = spec.burst_words * in_word;
        Sums {
            row: 0,
            is_begun: false,
            begin: 0,
            end,
            entry: 0,
            sum: 0.0,
            x_at: Ticks::ZERO,
            added_at: Ticks::ZERO,
            added: vec![Ticks::ZERO; spec.unit_words as usize],
            place: 0,
            burst,
            in_word,
            burst_end: burst.min(count),
            stores: VecDeque::new(),
            y: Vec::with_capacity(count as usize),
        }
    }

    /// Begins the next row that the second loop has issued; rows without entries end at once.
    #[inline]
    fn begin(&mut self, spec: &Spec, block: Block, begun: &mut VecDeque<Ticks>) {
        while !self.is_begun
            && let Some(at) = begun.pop_front()
        {
            if self.end == self.entry {
                self.added_at = (self.added_at + spec.interval).max(at);
                self.end_row(spec, block);
            } else {
                // No entry before its own step was issued.
                self.x_at = self.x_at.max(at.since(spec.interval));
                self.is_begun = true;
            }
        }
    }

    #[inline]
    fn end_row(&mut self, spec: &Spec, block: Block) {
        self.y.push(self.sum);
        self.sum = 0.0;
        self.row += 1;
        self.is_begun = false;
        (self.begin, self.end) = (self.end, block.end_of(self.row));
        if self.row == self.burst_end {
            self.end_burst(spec, block.starts.len() as u64 - 1);
        }
    }

    fn end_burst(&mut self, spec: &Spec, rows: u64) {
        let gathered = (self.row - 1) % self.burst + 1;
        self.stores.push_back((self.added_at + spec.depth, gathered.div_ceil(self.in_word)));
        self.burst_end = (self.row + self.burst).min(rows);
    }

    /// When the next burst is stored.
    #[inline]
    fn store_at(&self) -> Ticks {
        self.stores.front().map_or(Ticks::NEVER, |(at, _)| *at)
    }

    /// When `x` is asked for the next entry; never where its row has not begun or its column has not come.
    #[inline]
    fn asks_at(&self, spec: &Spec, entries: &Entries) -> Ticks {
        if !self.is_begun || self.entry >= entries.here() {
            return Ticks::NEVER;
        }
        (self.x_at + spec.interval).max(entries.columns.came_at(self.entry)).max(self.added[self.place])
    }

    /// Asks for `x`, of entries of this row up to `end`, before this time, and says when each was added. `KEEPS` where a word has several
    /// elements.
    #[inline]
    fn ask<const KEEPS: bool>(
        &mut self,
        spec: &Spec,
        (column, value): (Came, Came),
        port: &mut MemoryPort,
        before: Ticks,
        end: u64,
    ) {
        let (first, mut entry, mut place, mut asked) = (self.entry, self.entry, self.place, *port);
        let (mut column_came, mut value_came) = (column.at(first), value.at(first));
        let (mut x_at, mut added_at) = (self.x_at, self.added_at);
        let in_row = spec.interval.max(spec.addition);
        // When the addition before is over.
        let mut free_at = added_at + if first == self.begin { spec.interval } else { in_row };
        while entry < end {
            let added = &mut self.added[place];
            let at = (x_at + spec.interval).max(column_came.max(*added));
            if at >= before {
                break;
            }
            x_at = at;
            added_at = asked.load(at, 1).max(value_came).max(free_at);
            free_at = added_at + in_row;
            *added = added_at;
            place = if place + 1 == self.added.len() { 0 } else { place + 1 };
            entry += 1;
            (column_came, value_came) = if KEEPS {
                (column.at(entry), value.at(entry))
            } else {
                (column_came + column.word, value_came + value.word)
            };
        }
        (self.x_at, self.added_at, self.entry, self.place, *port) = (x_at, added_at, entry, place, asked);
    }

    /// Adds entries whose `x` is asked for before this time, and before anything else that this kernel asks its port for.
    fn add<const KEEPS: bool>(
        &mut self,
        spec: &Spec,
        (block, x): (Block, &[f64]),
        entries: &mut Entries,
        port: &mut MemoryPort,
        (mut before, is_alone): (Ticks, bool),
    ) {
        let mut stop = entries.here();
        if entries.waits_for > self.entry {
            stop = stop.min(entries.waits_for);
        }
        while self.is_begun && self.entry < stop {
            let came = (entries.columns.in_use(), entries.values.in_use());
            let burst_end = stop.min(entries.columns.use_end).min(entries.values.use_end);
            while self.is_begun && self.entry < burst_end {
                let (first, end) = (self.entry, self.end.min(burst_end));
                self.ask::<KEEPS>(spec, came, port, before, end);
                // By themselves: elements come from anywhere, and only their sum has to wait for them.
                let place = first as usize..self.entry as usize;
                let added = block.columns[place.clone()].iter().zip(&block.values[place]);
                self.sum = added.fold(self.sum, |sum, (column, value)| sum + value * x[*column as usize]);
                if self.entry == burst_end {
                    entries.columns.use_up_to(burst_end, self.x_at);
                    entries.values.use_up_to(burst_end, self.added_at);
                }
                if self.entry < end {
                    return;
                }
                if end == self.end {
                    self.end_row(spec, block);
                    self.begin(spec, block, &mut entries.begun);
                    if !is_alone {
                        before = before.min(self.store_at());
                    }
                }
            }
        }
    }
}

/// Everything that changes.
#[derive(Clone, Debug)]
pub struct SpmvKernel {
    spec: Spec,
    matrix: Arc<Csr>,
    x: Arc<Vec<f64>>,
    rows: Range<u32>,
    /// Where each array is.
    ports: [usize; 5],
    /// Whether nobody else asks the port of `x`.
    is_alone: bool,
    starts: Starts,
    entries: Entries,
    sums: Sums,
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
        let (block, count) = (Block::of(&matrix, &rows), u64::from(rows.end - rows.start));
        let count_entries = u64::from(block.starts[count as usize] - block.starts[0]);
        let unit = |array: Array, elements| Unit::new(&spec, array, ports[array.index()], elements);
        let end = block.end_of(0);
        SpmvKernel {
            starts: Starts {
                unit: unit(Array::RowStarts, if count > 0 { count + 1 } else { 0 }),
                at: Ticks::ZERO,
                used: 1,
            },
            entries: Entries {
                columns: unit(Array::Columns, count_entries),
                values: unit(Array::Values, count_entries),
                row: 0,
                row_end: end,
                entry: 0,
                at: Ticks::ZERO,
                waits_for: 0,
                begun: VecDeque::new(),
            },
            sums: Sums::new(&spec, count, end),
            spec,
            matrix,
            x,
            rows,
            ports,
            is_alone,
            ended: Ticks::ZERO,
        }
    }

    /// The sums so far, row after row.
    #[must_use]
    pub fn y(&self) -> &[f64] {
        &self.sums.y
    }

    /// Lets the first two loops issue what they can, until they have something to ask for.
    #[inline]
    fn issue(spec: &Spec, block: Block, starts: &mut Starts, entries: &mut Entries, sums: &mut Sums) {
        if entries.columns.asked_at == Ticks::NEVER && entries.values.asked_at == Ticks::NEVER {
            entries.issue(spec.interval, block, starts);
        }
        if starts.unit.asked_at == Ticks::NEVER && starts.unit.asked < starts.unit.elements {
            starts.issue(spec.interval);
        }
        sums.begin(spec, block, &mut entries.begun);
    }
}

/// When units ask, and when sums are stored.
#[inline]
fn others_at(starts: &Starts, entries: &Entries, sums: &Sums) -> Ticks {
    starts.unit.asked_at.min(entries.columns.asked_at).min(entries.values.asked_at).min(sums.store_at())
}

impl Pipeline for SpmvKernel {
    fn ports(&self) -> &[usize] {
        &self.ports
    }

    fn next_at(&mut self) -> Ticks {
        let SpmvKernel { spec, matrix, rows, starts, entries, sums, .. } = self;
        SpmvKernel::issue(spec, Block::of(matrix, rows), starts, entries, sums);
        others_at(starts, entries, sums).min(sums.asks_at(spec, entries))
    }

    fn run_until(&mut self, ports: &mut [MemoryPort], before: Ticks) {
        let SpmvKernel { spec, matrix, x, rows, is_alone, starts, entries, sums, .. } = self;
        let (block, x_port, y_port) =
            (Block::of(matrix, rows), self.ports[Array::X.index()], self.ports[Array::Y.index()]);
        let keeps = entries.columns.shift > 0 || entries.values.shift > 0;
        loop {
            SpmvKernel::issue(spec, block, starts, entries, sums);
            // Of those who ask at one time, the first here.
            let other = others_at(starts, entries, sums);
            if sums.asks_at(spec, entries) < other {
                let limit = if *is_alone { before } else { before.min(other) };
                let asked = sums.entry;
                let add = if keeps { Sums::add::<true> } else { Sums::add::<false> };
                add(sums, spec, (block, x), entries, &mut ports[x_port], (limit, *is_alone));
                if sums.entry == asked {
                    return;
                }
            } else if other >= before {
                return;
            } else if starts.unit.asked_at == other {
                starts.load(ports);
            } else if entries.columns.asked_at == other || entries.values.asked_at == other {
                for unit in [&mut entries.columns, &mut entries.values] {
                    if unit.asked_at == other {
                        unit.load(ports);
                    }
                }
            } else if let Some((at, words)) = sums.stores.pop_front() {
                self.ended = ports[y_port].store(at, words);
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
        let ended = pipeline::run(&mut kernels, &mut [MemoryPort::new(memory); 5]);
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
