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

use crate::memory_port::MemoryPort;
use crate::pipeline::{Pipeline, Spec};
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

/// When an element came, and those behind it in its burst.
#[derive(Clone, Copy)]
struct Came {
    at: Ticks,
    /// How long after each other words did.
    word: Ticks,
    element: u64,
    /// Elements of a word, less one.
    mask: u64,
}

impl Came {
    /// The next element; `KEEPS` where a word may have several.
    #[inline]
    fn next<const KEEPS: bool>(&mut self) {
        self.element += 1;
        if !KEEPS || self.element & self.mask == 0 {
            self.at += self.word;
        }
    }
}

/// A unit that loads an array in order, a burst at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    port: usize,
    /// Elements of a word are 2 to the power of this.
    shift: u32,
    /// Elements in all and of a burst; words of one.
    elements: u64,
    burst: u64,
    burst_words: u64,
    /// Bursts that it has room for, and how many if one of them is the last, which may be shorter.
    room: u64,
    last_room: u64,
    /// When it asks for a burst; never where it does not.
    asked_at: Ticks,
    /// Bursts it has asked for, behind the last element of them, and behind the last that came.
    asked_bursts: u64,
    asked: u64,
    here: u64,
    /// When the first word of each burst came, and how long after each other the others did.
    came_at_first: Latest,
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
        let (burst, room) = (spec.burst_words << shift, spec.unit_words / spec.burst_words);
        let last_words = (((elements.max(1) - 1) % burst) >> shift) + 1;
        let last_fits_beside = last_words <= spec.unit_words % spec.burst_words;
        Unit {
            port,
            shift,
            elements,
            burst,
            burst_words: spec.burst_words,
            room,
            last_room: room + u64::from(last_fits_beside),
            asked_at: Ticks::NEVER,
            asked_bursts: 0,
            asked: 0,
            here: 0,
            came_at_first: Latest::of(room + 2),
            came_bursts: 0,
            word: Ticks::ZERO,
            used: Latest::of(room + 2),
            used_bursts: 0,
            use_end: burst.min(elements),
        }
    }

    /// Until when there is room for the next burst, by those that were used; and if they are not yet, behind which element they end.
    fn room_at(&self) -> Result<Ticks, u64> {
        let room = if self.asked + self.burst < self.elements { self.room } else { self.last_room };
        let Some(burst) = self.asked_bursts.checked_sub(room) else { return Ok(Ticks::ZERO) };
        if burst < self.used_bursts { Ok(self.used.at(burst)) } else { Err((burst + 1) * self.burst) }
    }

    /// When this element of the burst in use came.
    #[inline]
    fn came_at(&self, element: u64) -> Ticks {
        let words = (element >> self.shift) - self.used_bursts * self.burst_words;
        self.came_at_first.at(self.used_bursts) + self.word * words
    }

    /// When this element of the burst in use and those behind it came.
    #[inline]
    fn came(&self, element: u64) -> Came {
        Came { at: self.came_at(element), word: self.word, element, mask: (1 << self.shift) - 1 }
    }

    /// Its elements before this one have been used.
    #[inline]
    fn use_up_to(&mut self, behind: u64, at: Ticks) {
        if behind == self.use_end {
            self.end_use(at);
        }
    }

    /// The burst in use has been used.
    // A call, so that those who use one element after the other do not keep all of this at hand.
    #[inline(never)]
    fn end_use(&mut self, at: Ticks) {
        self.used.set(self.used_bursts, at);
        self.used_bursts += 1;
        self.use_end = (self.use_end + self.burst).min(self.elements);
    }

    /// Asks for the next burst.
    fn ask(&mut self, at: Ticks) {
        self.asked_at = at;
        self.asked_bursts += 1;
        self.asked = (self.asked + self.burst).min(self.elements);
    }

    /// What was asked for comes.
    fn load(&mut self, ports: &mut [MemoryPort]) {
        let words = ((self.asked - 1) >> self.shift) + 1 - (self.here >> self.shift);
        let port = &mut ports[self.port];
        self.word = port.spec().word;
        self.came_at_first.set(self.came_bursts, port.load(self.asked_at, words));
        self.came_bursts += 1;
        (self.here, self.asked_at) = (self.asked, Ticks::NEVER);
    }
}

/// Rows of a matrix, their entries counted from the first of them, and what they are multiplied by.
struct Block<'a> {
    starts: &'a [u32],
    columns: &'a [u32],
    values: &'a [f64],
    x: &'a [f64],
}

impl<'a> Block<'a> {
    #[inline]
    fn of(matrix: &'a Csr, rows: &Range<u32>, x: &'a [f64]) -> Block<'a> {
        let starts = &matrix.row_starts()[rows.start as usize..=rows.end as usize];
        let first = starts[0] as usize;
        Block { starts, columns: &matrix.column_of()[first..], values: &matrix.values()[first..], x }
    }

    /// Behind the last entry of this row; of a row that is not there, never.
    #[inline]
    fn end_of(&self, row: u64) -> u64 {
        self.starts.get(row as usize + 1).map_or(u64::MAX, |end| u64::from(end - self.starts[0]))
    }

    /// The sum of each of these rows.
    #[inline]
    fn sums(&self, rows: Range<usize>) -> impl Iterator<Item = f64> {
        let first = self.starts[0];
        self.starts[rows.start..=rows.end].windows(2).map(move |ends| {
            let entries = (ends[0] - first) as usize..(ends[1] - first) as usize;
            let of_row = self.columns[entries.clone()].iter().zip(&self.values[entries]);
            of_row.fold(0.0, |sum, (column, value)| sum + value * self.x[*column as usize])
        })
    }
}

/// The first loop, over where rows end.
#[derive(Clone, Debug)]
struct Starts {
    unit: Unit,
    /// When it issued last.
    at: Ticks,
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
        // The first one is used as soon as it comes.
        if self.unit.came_bursts == 1 {
            self.unit.use_up_to(1, self.unit.came_at_first.at(0));
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
    /// Rows whose first step it has issued, and the row starts before which all have come by then.
    begun: u64,
    known: u64,
    /// Whether the last loop is sure to be no sooner at the next step than this one, if this one does not wait before it.
    leads: bool,
    /// When it issued the first step of rows that the last loop has to wait for and has not begun, by their number: rows without entries, and
    /// those that it may be sooner at.
    awaited: VecDeque<(u64, Ticks)>,
}

impl Entries {
    /// Issues what it can until it has to ask and what it has asked for has not come.
    fn issue(&mut self, interval: Ticks, block: &Block, starts: &mut Unit) {
        while self.row_end != u64::MAX {
            if self.begun == self.row {
                self.issue_rows(interval, block);
            }
            if self.entry == self.asked() && self.asks_at() < Ticks::NEVER {
                return;
            }
            let next_at = self.at + interval;
            let mut at = next_at;
            let (begins, end) = (self.begun == self.row, self.row + 1);
            // Where a row begins is known from the one before.
            if begins && end >= self.known {
                if starts.here <= end {
                    return;
                }
                at = at.max(starts.came_at(end));
                if starts.here >= starts.use_end && starts.came_at(starts.use_end - 1) <= next_at {
                    self.known = starts.use_end;
                }
            }
            let is_empty = begins && self.row_end == self.entry;
            let asks_column = !is_empty && self.entry == self.columns.asked;
            let asks_value = !is_empty && self.entry == self.values.asked;
            if asks_column || asks_value {
                let Some(room_at) = self.room_at(asks_column, asks_value) else { return };
                at = at.max(room_at);
            }
            // A column comes after it was asked for, and the last loop waits for it.
            let leads = asks_column || self.leads && at == next_at;
            if begins {
                starts.use_up_to(end + 1, at);
                self.begun = end;
                if is_empty || !leads {
                    self.awaited.push_back((self.row, at));
                }
            }
            self.leads = !is_empty && (begins || leads);
            self.at = at;
            if !is_empty {
                if asks_column {
                    self.columns.ask(at);
                }
                if asks_value {
                    self.values.ask(at);
                }
                let next = self.row_end.min(self.asked());
                self.at += interval * (next - self.entry - 1);
                self.entry = next;
            }
            if self.entry == self.row_end {
                self.row = end;
                self.row_end = block.end_of(end);
            }
        }
    }

    /// Issues rows that wait for nothing and that nothing waits for: a step an interval.
    fn issue_rows(&mut self, interval: Ticks, block: &Block) {
        let (asked, first) = (self.asked(), self.entry);
        // When the last start of a burst is used is for the unit to know.
        while self.leads && self.row + 2 < self.known && self.entry < self.row_end.min(asked) {
            self.begun = self.row + 1;
            self.entry = self.row_end.min(asked);
            if self.entry == self.row_end {
                self.row += 1;
                self.row_end = block.end_of(self.row);
            }
        }
        self.at += interval * (self.entry - first);
    }

    /// When it asks; never where it does not.
    #[inline]
    fn asks_at(&self) -> Ticks {
        self.columns.asked_at.min(self.values.asked_at)
    }

    /// Behind the last entry whose column and value are asked for.
    #[inline]
    fn asked(&self) -> u64 {
        self.columns.asked.min(self.values.asked)
    }

    /// When units that have to ask now have room; `None` where that is not known yet.
    fn room_at(&mut self, asks_column: bool, asks_value: bool) -> Option<Ticks> {
        let no_wait = Ok(Ticks::ZERO);
        let column = if asks_column { self.columns.room_at() } else { no_wait };
        let value = if asks_value { self.values.room_at() } else { no_wait };
        match (column, value) {
            (Ok(column), Ok(value)) => {
                self.waits_for = 0;
                Some(column.max(value))
            }
            (Err(behind), _) | (_, Err(behind)) => {
                self.waits_for = behind;
                None
            }
        }
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
    /// Its row, where that ends, and its entry.
    row: u64,
    end: u64,
    entry: u64,
    /// When it asked for `x`, when it added, and when that addition is over for the next one.
    x_at: Ticks,
    added_at: Ticks,
    free_at: Ticks,
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
            end,
            entry: 0,
            x_at: Ticks::ZERO,
            added_at: Ticks::ZERO,
            free_at: spec.interval,
            added: vec![Ticks::ZERO; spec.unit_words as usize],
            place: 0,
            burst,
            in_word,
            burst_end: burst.min(count),
            stores: VecDeque::new(),
            y: Vec::with_capacity(count as usize),
        }
    }

    /// Begins the next row if it has to wait for the second loop; rows without entries end at once.
    #[inline]
    fn begin(&mut self, spec: &Spec, block: &Block, entries: &mut Entries) {
        while let Some((_, at)) = entries.awaited.pop_front_if(|(row, _)| *row == self.row) {
            if self.end == self.entry {
                self.added_at = (self.added_at + spec.interval).max(at);
                self.free_at = self.added_at + spec.interval;
                self.row += 1;
                self.end = block.end_of(self.row);
                self.end_burst(spec, block);
            } else {
                // No entry before its own step was issued.
                self.x_at = self.x_at.max(at.since(spec.interval));
            }
        }
    }

    /// If the rows so far end a burst, their sums are made, and stored when the last of them is there.
    fn end_burst(&mut self, spec: &Spec, block: &Block) {
        if self.row < self.burst_end {
            return;
        }
        let rows = self.y.len()..self.row as usize;
        self.stores.push_back((self.added_at + spec.depth, (rows.len() as u64).div_ceil(self.in_word)));
        self.y.extend(block.sums(rows));
        self.burst_end = (self.row + self.burst).min(block.starts.len() as u64 - 1);
    }

    /// When the next burst is stored.
    #[inline]
    fn store_at(&self) -> Ticks {
        self.stores.front().map_or(Ticks::NEVER, |(at, _)| *at)
    }

    /// When `x` is asked for the next entry; never where its row has not begun or its column has not come.
    #[inline]
    fn asks_at(&self, spec: &Spec, entries: &Entries) -> Ticks {
        if self.row >= entries.begun || self.entry >= entries.here() {
            return Ticks::NEVER;
        }
        (self.x_at + spec.interval).max(entries.columns.came_at(self.entry)).max(self.added[self.place])
    }

    /// Whether `x` is asked for the next entry before this time.
    #[inline]
    fn asks_before(&self, spec: &Spec, entries: &Entries, before: Ticks) -> bool {
        self.x_at + spec.interval < before && self.asks_at(spec, entries) < before
    }

    /// Up to which row all have entries and nothing happens but their additions.
    #[inline]
    fn rows_end(&self, entries: &Entries) -> u64 {
        let end = self.burst_end.min(entries.begun);
        entries.awaited.front().map_or(end, |(row, _)| end.min(*row))
    }

    /// Adds entries of the bursts in use, up to this one at the most, whose `x` is asked for before this time; says whether that was too late
    /// for one of them. `KEEPS` where a word may have several elements.
    // A call, so that its loops have all registers.
    #[inline(never)]
    fn add_some<const KEEPS: bool>(
        &mut self,
        spec: &Spec,
        block: &Block,
        entries: &mut Entries,
        port: &mut MemoryPort,
        (before, stop): (Ticks, u64),
    ) -> bool {
        let Entries { columns, values, .. } = entries;
        let to_wrap = (self.added.len() - self.place) as u64;
        let end = stop.min(columns.use_end).min(values.use_end).min(self.entry + to_wrap);
        let places = &mut self.added[self.place..][..(end - self.entry) as usize];
        let asked = ask::<KEEPS>(places, columns.came(self.entry), (&mut self.x_at, spec.interval), port, before);
        self.end_additions::<KEEPS>(spec, block, values.came(self.entry), asked);
        columns.use_up_to(self.entry, self.x_at);
        values.use_up_to(self.entry, self.added_at);
        self.entry < end
    }

    /// Says of so many entries whose `x` came when each was added.
    #[inline]
    fn end_additions<const KEEPS: bool>(&mut self, spec: &Spec, block: &Block, mut value: Came, count: usize) {
        let in_row = spec.interval.max(spec.addition);
        let (mut added_at, mut free_at) = (self.added_at, self.free_at);
        let mut places = &mut self.added[self.place..][..count];
        while !places.is_empty() {
            let in_row_count = places.len().min((self.end - self.entry) as usize);
            let (of_row, others) = places.split_at_mut(in_row_count);
            for place in of_row {
                added_at = free_at.max(value.at.max(*place));
                *place = added_at;
                free_at = added_at + in_row;
                value.next::<KEEPS>();
            }
            places = others;
            self.entry += in_row_count as u64;
            if self.entry == self.end {
                free_at = added_at + spec.interval;
                self.row += 1;
                self.end = block.end_of(self.row);
            }
        }
        (self.added_at, self.free_at) = (added_at, free_at);
        self.place += count;
        if self.place == self.added.len() {
            self.place = 0;
        }
    }

    /// Adds entries whose `x` is asked for before this time, and before anything else that this kernel asks its port for.
    fn add<const KEEPS: bool>(
        &mut self,
        spec: &Spec,
        block: &Block,
        entries: &mut Entries,
        port: &mut MemoryPort,
        (mut before, is_alone): (Ticks, bool),
    ) {
        let mut stop = entries.here();
        if entries.waits_for > self.entry {
            stop = stop.min(entries.waits_for);
        }
        while self.row < entries.begun && self.entry < stop {
            let rows_end = self.rows_end(entries);
            let stop = stop.min(block.end_of(rows_end - 1));
            if self.add_some::<KEEPS>(spec, block, entries, port, (before, stop)) {
                return;
            }
            if self.row == rows_end {
                self.end_burst(spec, block);
                self.begin(spec, block, entries);
                if !is_alone {
                    before = before.min(self.store_at());
                }
            }
        }
    }
}

/// Asks for `x` of entries whose places in its unit these are, and says of how many before this time; each place has then when it came. `KEEPS`
/// where a word may have several elements.
#[inline]
fn ask<const KEEPS: bool>(
    places: &mut [Ticks],
    mut column: Came,
    (x_at, interval): (&mut Ticks, Ticks),
    port: &mut MemoryPort,
    before: Ticks,
) -> usize {
    let (mut at, mut asked, mut count) = (*x_at, *port, 0);
    for place in places {
        let next_at = (at + interval).max(column.at.max(*place));
        if next_at >= before {
            break;
        }
        at = next_at;
        *place = asked.load(at, 1);
        column.next::<KEEPS>();
        count += 1;
    }
    (*x_at, *port) = (at, asked);
    count
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
        let (block, count) = (Block::of(&matrix, &rows, &x), u64::from(rows.end - rows.start));
        let count_entries = u64::from(block.starts[count as usize] - block.starts[0]);
        let unit = |array: Array, elements| Unit::new(&spec, array, ports[array.index()], elements);
        let end = block.end_of(0);
        SpmvKernel {
            starts: Starts { unit: unit(Array::RowStarts, if count > 0 { count + 1 } else { 0 }), at: Ticks::ZERO },
            entries: Entries {
                columns: unit(Array::Columns, count_entries),
                values: unit(Array::Values, count_entries),
                row: 0,
                row_end: end,
                entry: 0,
                at: Ticks::ZERO,
                waits_for: 0,
                begun: 0,
                known: 0,
                leads: true,
                awaited: VecDeque::new(),
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
    fn issue(spec: &Spec, block: &Block, starts: &mut Starts, entries: &mut Entries, sums: &mut Sums) {
        if entries.asks_at() == Ticks::NEVER {
            entries.issue(spec.interval, block, &mut starts.unit);
        }
        if starts.unit.asked_at == Ticks::NEVER && starts.unit.asked < starts.unit.elements {
            starts.issue(spec.interval);
        }
        sums.begin(spec, block, entries);
    }
}

/// When units ask, and when sums are stored.
#[inline]
fn others_at(starts: &Starts, entries: &Entries, sums: &Sums) -> Ticks {
    starts.unit.asked_at.min(entries.asks_at()).min(sums.store_at())
}

impl Pipeline for SpmvKernel {
    fn ports(&self) -> &[usize] {
        &self.ports
    }

    fn next_at(&mut self) -> Ticks {
        let SpmvKernel { spec, matrix, x, rows, starts, entries, sums, .. } = self;
        SpmvKernel::issue(spec, &Block::of(matrix, rows, x), starts, entries, sums);
        others_at(starts, entries, sums).min(sums.asks_at(spec, entries))
    }

    fn run_until(&mut self, ports: &mut [MemoryPort], before: Ticks) {
        let SpmvKernel { spec, matrix, x, rows, is_alone, starts, entries, sums, .. } = self;
        let (block, x_port, y_port) =
            (Block::of(matrix, rows, x), self.ports[Array::X.index()], self.ports[Array::Y.index()]);
        let keeps = entries.columns.shift > 0 || entries.values.shift > 0;
        loop {
            SpmvKernel::issue(spec, &block, starts, entries, sums);
            // Of those who ask at one time, the first here.
            let other = others_at(starts, entries, sums);
            if sums.asks_before(spec, entries, other) {
                let limit = if *is_alone { before } else { before.min(other) };
                let asked = sums.entry;
                let add = if keeps { Sums::add::<true> } else { Sums::add::<false> };
                add(sums, spec, &block, entries, &mut ports[x_port], (limit, *is_alone));
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
    use crate::{memory_port, pipeline};
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
