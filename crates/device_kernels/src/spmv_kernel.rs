//! A kernel that multiplies a block of rows of a sparse matrix by a vector.
//!
//! Ports: [`Pipeline`]; the memory ports are passed to it.
//!
//! The kernel has three coupled loops:
//!
//! 1. The first one loads the row starts.
//! 2. The second one iterates over entries, one an initiation interval, once the end of their row is known. It loads
//!    their columns and values.
//! 3. The last one loads an element of `x` once its column has arrived, one an interval. It adds the product when
//!    value and element have arrived and the previous addition has ended. Sums are gathered into bursts and stored.
//!
//! No loop runs ahead of the previous one. A load unit requests a burst at its first element, when it has space for
//! all of its words. The space is free once the last entry that needs the burst has used it. A row without entries
//! takes an iteration.

use crate::kernel_time::{KernelTime, Part};
use crate::memory_port::MemoryPort;
use crate::pipeline::{Pipeline, Spec};
use lanemark_compute::{Array, Csr};
use lanemark_units::Ticks;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Times of the latest bursts, by burst number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Latest<T> {
    times: Vec<T>,
    mask: usize,
}

impl<T: KernelTime> Latest<T> {
    /// Creates a table for at least `count` bursts.
    fn of(count: u64) -> Latest<T> {
        let len = count.next_power_of_two() as usize;
        Latest { times: vec![T::ZERO; len], mask: len - 1 }
    }

    #[inline]
    fn at(&self, place: u64) -> T {
        self.times[place as usize & self.mask]
    }

    #[inline]
    fn set(&mut self, place: u64, at: T) {
        self.times[place as usize & self.mask] = at;
    }
}

/// Arrival times of an element and of those that follow it in its burst.
#[derive(Clone, Copy)]
struct Came<T> {
    at: T,
    /// Time between words.
    word: Ticks,
    element: u64,
    /// Elements of a word, less one.
    mask: u64,
}

impl<T: KernelTime> Came<T> {
    /// Advances to the next element; `KEEPS` where a word may hold several.
    #[inline]
    fn next<const KEEPS: bool>(&mut self) {
        self.element += 1;
        if !KEEPS || self.element & self.mask == 0 {
            self.at = self.at.plus(self.word, Part::Port);
        }
    }
}

/// A unit that loads an array in order, in bursts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit<T> {
    port: usize,
    /// Binary logarithm of the elements of a word.
    shift: u32,
    /// Elements of the array, elements of a burst, and words of a burst.
    elements: u64,
    burst: u64,
    burst_words: u64,
    /// Capacity in bursts, and the capacity if one of them is the last burst, which may be shorter.
    room: u64,
    last_room: u64,
    /// Time of the pending request; [`Ticks::NEVER`] if there is none.
    asked_at: T,
    /// Bursts requested, end of the last requested element, and end of the last arrived element.
    asked_bursts: u64,
    asked: u64,
    here: u64,
    /// Arrival time of the first word of each burst, bursts arrived, and the time between words.
    came_at_first: Latest<T>,
    came_bursts: u64,
    word: Ticks,
    /// Time of the last use of each burst, bursts used, and the end of the burst in use.
    used: Latest<T>,
    used_bursts: u64,
    use_end: u64,
}

impl<T: KernelTime> Unit<T> {
    fn new(spec: &Spec, array: Array, port: usize, elements: u64) -> Unit<T> {
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
            asked_at: T::NEVER,
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

    /// Returns when the next burst has space, if the burst that it replaces has been used; otherwise the end of that
    /// burst.
    fn room_at(&self) -> Result<T, u64> {
        let room = if self.asked + self.burst < self.elements { self.room } else { self.last_room };
        let Some(burst) = self.asked_bursts.checked_sub(room) else { return Ok(T::ZERO) };
        if burst < self.used_bursts { Ok(self.used.at(burst).released()) } else { Err((burst + 1) * self.burst) }
    }

    /// Returns the arrival time of an element of the burst in use.
    #[inline]
    fn came_at(&self, element: u64) -> T {
        let words = (element >> self.shift) - self.used_bursts * self.burst_words;
        self.came_at_first.at(self.used_bursts).plus(self.word * words, Part::Port)
    }

    /// Returns the arrival times of an element of the burst in use and of those that follow it.
    #[inline]
    fn came(&self, element: u64) -> Came<T> {
        Came { at: self.came_at(element), word: self.word, element, mask: (1 << self.shift) - 1 }
    }

    /// Records that every element before `behind` has been used.
    #[inline]
    fn use_up_to(&mut self, behind: u64, at: T) {
        if behind == self.use_end {
            self.end_use(at);
        }
    }

    /// Records that the burst in use has been used.
    // Not inlined, so that its state does not occupy registers of the callers' loops.
    #[inline(never)]
    fn end_use(&mut self, at: T) {
        self.used.set(self.used_bursts, at);
        self.used_bursts += 1;
        self.use_end = (self.use_end + self.burst).min(self.elements);
    }

    /// Schedules the request of the next burst.
    fn ask(&mut self, at: T) {
        self.asked_at = at;
        self.asked_bursts += 1;
        self.asked = (self.asked + self.burst).min(self.elements);
    }

    /// Issues the pending request to its memory port.
    fn load(&mut self, ports: &mut [MemoryPort<T>]) {
        let words = ((self.asked - 1) >> self.shift) + 1 - (self.here >> self.shift);
        let port = &mut ports[self.port];
        self.word = port.spec().word;
        self.came_at_first.set(self.came_bursts, port.load(self.asked_at, words));
        self.came_bursts += 1;
        (self.here, self.asked_at) = (self.asked, T::NEVER);
    }
}

/// The rows of a block, their entries counted from the first one, and the vector.
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

    /// Returns the end of a row, as an entry number; `u64::MAX` for a row beyond the block.
    #[inline]
    fn end_of(&self, row: u64) -> u64 {
        self.starts.get(row as usize + 1).map_or(u64::MAX, |end| u64::from(end - self.starts[0]))
    }

    /// Computes the sum of each row.
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

/// The first loop: row starts.
#[derive(Clone, Debug)]
struct Starts<T> {
    unit: Unit<T>,
    /// Time of its last iteration.
    at: T,
}

impl<T: KernelTime> Starts<T> {
    fn issue(&mut self, interval: Ticks) {
        let Ok(room_at) = self.unit.room_at() else { return };
        let at = self.at.plus(interval, Part::Interval).later(room_at);
        let first = self.unit.asked;
        self.unit.ask(at);
        self.at = at.plus(interval * (self.unit.asked - first - 1), Part::Interval);
    }

    fn load(&mut self, ports: &mut [MemoryPort<T>]) {
        self.unit.load(ports);
        // The first start is used on arrival.
        if self.unit.came_bursts == 1 {
            self.unit.use_up_to(1, self.unit.came_at_first.at(0));
        }
    }
}

/// The second loop: entries.
#[derive(Clone, Debug)]
struct Entries<T> {
    columns: Unit<T>,
    values: Unit<T>,
    /// Current row, end of that row, next entry, and time of the last iteration.
    row: u64,
    row_end: u64,
    entry: u64,
    at: T,
    /// The entry end at which a full unit gets space; 0 if the loop is not stalled.
    waits_for: u64,
    /// Rows whose first iteration has been issued, and the number of row starts that have arrived by then.
    begun: u64,
    known: u64,
    /// Whether the last loop cannot be earlier than this loop at the next iteration, if this loop does not stall.
    leads: bool,
    /// Rows that the last loop must wait for and has not begun, with the time of their first iteration: rows without
    /// entries, and rows at which the last loop could be early.
    awaited: VecDeque<(u64, T)>,
}

impl<T: KernelTime> Entries<T> {
    /// Issues iterations until a request is due or an element has not arrived.
    fn issue(&mut self, interval: Ticks, block: &Block, starts: &mut Unit<T>) {
        while self.row_end != u64::MAX {
            if self.begun == self.row {
                self.issue_rows(interval, block);
            }
            if self.entry == self.asked() && self.asks_at() < Ticks::NEVER {
                return;
            }
            let next_at = self.at.plus(interval, Part::Interval);
            let mut at = next_at;
            let (begins, end) = (self.begun == self.row, self.row + 1);
            // The start of a row is the end of the previous one.
            if begins && end >= self.known {
                if starts.here <= end {
                    return;
                }
                at = at.later(starts.came_at(end));
                if starts.here >= starts.use_end && starts.came_at(starts.use_end - 1).ticks() <= next_at.ticks() {
                    self.known = starts.use_end;
                }
            }
            let is_empty = begins && self.row_end == self.entry;
            let asks_column = !is_empty && self.entry == self.columns.asked;
            let asks_value = !is_empty && self.entry == self.values.asked;
            if asks_column || asks_value {
                let Some(room_at) = self.room_at(asks_column, asks_value) else { return };
                at = at.later(room_at);
            }
            // The last loop waits for a column, which arrives after its request.
            let leads = asks_column || self.leads && at.ticks() == next_at.ticks();
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
                self.at = self.at.plus(interval * (next - self.entry - 1), Part::Interval);
                self.entry = next;
            }
            if self.entry == self.row_end {
                self.row = end;
                self.row_end = block.end_of(end);
            }
        }
    }

    /// Issues the rows without stalls or requests: an iteration each interval.
    fn issue_rows(&mut self, interval: Ticks, block: &Block) {
        let (asked, first) = (self.asked(), self.entry);
        // The unit handles the last start of a burst.
        while self.leads && self.row + 2 < self.known && self.entry < self.row_end.min(asked) {
            self.begun = self.row + 1;
            self.entry = self.row_end.min(asked);
            if self.entry == self.row_end {
                self.row += 1;
                self.row_end = block.end_of(self.row);
            }
        }
        self.at = self.at.plus(interval * (self.entry - first), Part::Interval);
    }

    /// Returns the time of the next request; [`Ticks::NEVER`] if there is none.
    #[inline]
    fn asks_at(&self) -> Ticks {
        self.columns.asked_at.ticks().min(self.values.asked_at.ticks())
    }

    /// Returns the end of the entries whose column and value have been requested.
    #[inline]
    fn asked(&self) -> u64 {
        self.columns.asked.min(self.values.asked)
    }

    /// Returns when the units that must request have space; `None` if that is not known yet.
    fn room_at(&mut self, asks_column: bool, asks_value: bool) -> Option<T> {
        let no_wait = Ok(T::ZERO);
        let column = if asks_column { self.columns.room_at() } else { no_wait };
        let value = if asks_value { self.values.room_at() } else { no_wait };
        match (column, value) {
            (Ok(column), Ok(value)) => {
                self.waits_for = 0;
                Some(column.later(value))
            }
            (Err(behind), _) | (_, Err(behind)) => {
                self.waits_for = behind;
                None
            }
        }
    }

    /// Returns the end of the entries whose column and value have arrived.
    #[inline]
    fn here(&self) -> u64 {
        self.columns.here.min(self.values.here)
    }
}

/// The last loop: sums, over entries whose column has arrived.
#[derive(Clone, Debug)]
struct Sums<T> {
    /// Current row, its end, and next entry.
    row: u64,
    end: u64,
    entry: u64,
    /// Time of the last request of `x`, and the earliest time of the next one by the interval and its row.
    x_at: T,
    x_due: T,
    /// Time of the last addition, and the end of that addition for the next one.
    added_at: T,
    free_at: T,
    /// Addition times of the entries still in the unit for `x`, as a ring, and the slot of the next entry.
    added: Vec<T>,
    place: usize,
    /// Sums of a burst, sums of a word, the row that ends the next burst, and the pending stores: time and words.
    burst: u64,
    in_word: u64,
    burst_end: u64,
    stores: VecDeque<(T, u64)>,
    y: Vec<f64>,
}

impl<T: KernelTime> Sums<T> {
    fn new(spec: &Spec, count: u64, end: u64) -> Sums<T> {
        let in_word = spec.words.elements(Array::Y.bytes()).into();
        let burst = spec.burst_words * in_word;
        Sums {
            row: 0,
            end,
            entry: 0,
            x_at: T::ZERO,
            x_due: T::ZERO.plus(spec.interval, Part::Interval),
            added_at: T::ZERO,
            free_at: T::ZERO.plus(spec.interval, Part::Interval),
            added: vec![T::ZERO; spec.unit_words as usize],
            place: 0,
            burst,
            in_word,
            burst_end: burst.min(count),
            stores: VecDeque::new(),
            y: Vec::with_capacity(count as usize),
        }
    }

    /// Begins the next row if it waits for the second loop; rows without entries end immediately.
    #[inline]
    fn begin(&mut self, spec: &Spec, block: &Block, entries: &mut Entries<T>) {
        while let Some((_, at)) = entries.awaited.pop_front_if(|(row, _)| *row == self.row) {
            if self.end == self.entry {
                self.added_at = self.added_at.plus(spec.interval, Part::Interval).later(at);
                self.free_at = self.added_at.plus(spec.interval, Part::Interval);
                self.row += 1;
                self.end = block.end_of(self.row);
                self.end_burst(spec, block);
            } else {
                // An entry is not processed before its iteration is issued.
                self.x_due = self.x_due.later(at);
            }
        }
    }

    /// Computes and schedules the sums of a burst for storing, if the rows so far complete one.
    fn end_burst(&mut self, spec: &Spec, block: &Block) {
        if self.row < self.burst_end {
            return;
        }
        let rows = self.y.len()..self.row as usize;
        let at = self.added_at.plus(spec.depth, Part::Latency);
        self.stores.push_back((at, (rows.len() as u64).div_ceil(self.in_word)));
        self.y.extend(block.sums(rows));
        self.burst_end = (self.row + self.burst).min(block.starts.len() as u64 - 1);
    }

    /// Returns the time of the next store.
    #[inline]
    fn store_at(&self) -> Ticks {
        self.stores.front().map_or(Ticks::NEVER, |(at, _)| at.ticks())
    }

    /// Returns when `x` is requested for the next entry; [`Ticks::NEVER`] if its row has not begun or its column has
    /// not arrived.
    #[inline]
    fn asks_at(&self, entries: &Entries<T>) -> Ticks {
        if self.row >= entries.begun || self.entry >= entries.here() {
            return Ticks::NEVER;
        }
        self.x_due.later(entries.columns.came_at(self.entry)).later(self.added[self.place]).ticks()
    }

    /// Returns whether `x` is requested for the next entry before `before`.
    #[inline]
    fn asks_before(&self, entries: &Entries<T>, before: Ticks) -> bool {
        self.x_due.ticks() < before && self.asks_at(entries) < before
    }

    /// Returns the end of the rows that have entries and need nothing but additions.
    #[inline]
    fn rows_end(&self, entries: &Entries<T>) -> u64 {
        let end = self.burst_end.min(entries.begun);
        entries.awaited.front().map_or(end, |(row, _)| end.min(*row))
    }

    /// Adds entries of the bursts in use, up to `end` at most, whose `x` is requested before `before`; returns
    /// whether one of them was too late. `KEEPS` where a word may hold several elements.
    // Not inlined, so that its loops have all registers.
    #[inline(never)]
    fn add_some<const KEEPS: bool>(
        &mut self,
        spec: &Spec,
        block: &Block,
        entries: &mut Entries<T>,
        port: &mut MemoryPort<T>,
        (before, stop): (Ticks, u64),
    ) -> bool {
        let Entries { columns, values, .. } = entries;
        let to_wrap = (self.added.len() - self.place) as u64;
        let end = stop.min(columns.use_end).min(values.use_end).min(self.entry + to_wrap);
        let places = &mut self.added[self.place..][..(end - self.entry) as usize];
        let column = columns.came(self.entry);
        let asked = ask::<T, KEEPS>(places, column, (&mut self.x_at, &mut self.x_due), (spec.interval, before), port);
        self.end_additions::<KEEPS>(spec, block, values.came(self.entry), asked);
        columns.use_up_to(self.entry, self.x_at);
        values.use_up_to(self.entry, self.added_at);
        self.entry < end
    }

    /// Records when each of `count` entries whose `x` has arrived was added.
    #[inline]
    fn end_additions<const KEEPS: bool>(&mut self, spec: &Spec, block: &Block, mut value: Came<T>, count: usize) {
        let is_addition = spec.addition > spec.interval;
        let (in_row, part) =
            if is_addition { (spec.addition, Part::Additions) } else { (spec.interval, Part::Interval) };
        let (mut added_at, mut free_at) = (self.added_at, self.free_at);
        let mut places = &mut self.added[self.place..][..count];
        while !places.is_empty() {
            let in_row_count = places.len().min((self.end - self.entry) as usize);
            let (of_row, others) = places.split_at_mut(in_row_count);
            for place in of_row {
                added_at = free_at.later(value.at.later(*place));
                *place = added_at.released();
                free_at = added_at.plus(in_row, part);
                value.next::<KEEPS>();
            }
            places = others;
            self.entry += in_row_count as u64;
            if self.entry == self.end {
                free_at = added_at.plus(spec.interval, Part::Interval);
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

    /// Adds entries whose `x` is requested before `before`, and before any other request of this kernel to that port.
    fn add<const KEEPS: bool>(
        &mut self,
        spec: &Spec,
        block: &Block,
        entries: &mut Entries<T>,
        port: &mut MemoryPort<T>,
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

/// Requests `x` for the entries of these slots, returns the number requested before `before`, and sets each slot to
/// the arrival time. `KEEPS` where a word may hold several elements.
#[inline]
fn ask<T: KernelTime, const KEEPS: bool>(
    places: &mut [T],
    mut column: Came<T>,
    (x_at, x_due): (&mut T, &mut T),
    (interval, before): (Ticks, Ticks),
    port: &mut MemoryPort<T>,
) -> usize {
    let (mut at, mut due, mut asked, mut count) = (*x_at, *x_due, *port, 0);
    for place in places {
        let next_at = due.later(column.at.later(*place));
        if next_at.ticks() >= before {
            break;
        }
        (at, due) = (next_at, next_at.plus(interval, Part::Interval));
        *place = asked.load(at, 1);
        column.next::<KEEPS>();
        count += 1;
    }
    (*x_at, *x_due, *port) = (at, due, asked);
    count
}

/// State of the kernel.
#[derive(Clone, Debug)]
pub struct SpmvKernel<T> {
    spec: Spec,
    matrix: Arc<Csr>,
    x: Arc<Vec<f64>>,
    rows: Range<u32>,
    /// The memory port of each array.
    ports: [usize; 5],
    /// Whether no other kernel uses the port of `x`.
    is_alone: bool,
    starts: Starts<T>,
    entries: Entries<T>,
    sums: Sums<T>,
    ended: T,
}

impl<T: KernelTime> SpmvKernel<T> {
    /// Creates a kernel for these rows. `ports` is in the order of [`Array::ALL`]; `is_alone` means that no other
    /// kernel uses the port of `x`.
    #[must_use]
    pub fn new(
        spec: Spec,
        matrix: Arc<Csr>,
        x: Arc<Vec<f64>>,
        rows: Range<u32>,
        ports: [usize; 5],
        is_alone: bool,
    ) -> SpmvKernel<T> {
        let (block, count) = (Block::of(&matrix, &rows, &x), u64::from(rows.end - rows.start));
        let count_entries = u64::from(block.starts[count as usize] - block.starts[0]);
        let unit = |array: Array, elements| Unit::new(&spec, array, ports[array.index()], elements);
        let end = block.end_of(0);
        SpmvKernel {
            starts: Starts { unit: unit(Array::RowStarts, if count > 0 { count + 1 } else { 0 }), at: T::ZERO },
            entries: Entries {
                columns: unit(Array::Columns, count_entries),
                values: unit(Array::Values, count_entries),
                row: 0,
                row_end: end,
                entry: 0,
                at: T::ZERO,
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
            ended: T::ZERO,
        }
    }

    /// Returns the sums so far, in row order.
    #[must_use]
    pub fn y(&self) -> &[f64] {
        &self.sums.y
    }

    /// Runs the first two loops until a request is due.
    #[inline]
    fn issue(spec: &Spec, block: &Block, starts: &mut Starts<T>, entries: &mut Entries<T>, sums: &mut Sums<T>) {
        if entries.asks_at() == Ticks::NEVER {
            entries.issue(spec.interval, block, &mut starts.unit);
        }
        if starts.unit.asked_at.ticks() == Ticks::NEVER && starts.unit.asked < starts.unit.elements {
            starts.issue(spec.interval);
        }
        sums.begin(spec, block, entries);
    }
}

/// Returns the time of the next request of a load unit or the next store.
#[inline]
fn others_at<T: KernelTime>(starts: &Starts<T>, entries: &Entries<T>, sums: &Sums<T>) -> Ticks {
    starts.unit.asked_at.ticks().min(entries.asks_at()).min(sums.store_at())
}

impl<T: KernelTime> Pipeline for SpmvKernel<T> {
    type Time = T;

    fn ports(&self) -> &[usize] {
        &self.ports
    }

    fn next_at(&mut self) -> Ticks {
        let SpmvKernel { spec, matrix, x, rows, starts, entries, sums, .. } = self;
        SpmvKernel::issue(spec, &Block::of(matrix, rows, x), starts, entries, sums);
        others_at(starts, entries, sums).min(sums.asks_at(entries))
    }

    fn run_until(&mut self, ports: &mut [MemoryPort<T>], before: Ticks) {
        let SpmvKernel { spec, matrix, x, rows, is_alone, starts, entries, sums, .. } = self;
        let (block, x_port, y_port) =
            (Block::of(matrix, rows, x), self.ports[Array::X.index()], self.ports[Array::Y.index()]);
        let keeps = entries.columns.shift > 0 || entries.values.shift > 0;
        loop {
            SpmvKernel::issue(spec, &block, starts, entries, sums);
            // At equal times, the first in this list issues first.
            let other = others_at(starts, entries, sums);
            if sums.asks_before(entries, other) {
                let limit = if *is_alone { before } else { before.min(other) };
                let asked = sums.entry;
                let add = if keeps { Sums::add::<true> } else { Sums::add::<false> };
                add(sums, spec, &block, entries, &mut ports[x_port], (limit, *is_alone));
                if sums.entry == asked {
                    return;
                }
            } else if other >= before {
                return;
            } else if starts.unit.asked_at.ticks() == other {
                starts.load(ports);
            } else if entries.columns.asked_at.ticks() == other || entries.values.asked_at.ticks() == other {
                for unit in [&mut entries.columns, &mut entries.values] {
                    if unit.asked_at.ticks() == other {
                        unit.load(ports);
                    }
                }
            } else if let Some((at, words)) = sums.stores.pop_front() {
                self.ended = ports[y_port].store(at, words);
            }
        }
    }

    fn ended(&self) -> T {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_time::{KernelPath, Traced};
    use crate::{memory_port, pipeline};
    use lanemark_compute::PortWords;

    fn ns(ns: u64) -> Ticks {
        Ticks::whole_ns(ns)
    }

    /// Returns the end of the multiplication of rows of these lengths, with the given memory port for each array.
    fn ended(lengths: &[u32], addition: Ticks, ports: [usize; 5]) -> Traced {
        let memory = memory_port::Spec { word: ns(2), read: ns(10), turnaround: ns(0) };
        let words = PortWords { port_bytes: 8, keeps: false };
        let (interval, depth) = (ns(1), ns(5));
        let spec = Spec { interval, depth, addition, unit_words: 8, burst_words: 1, words };
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length);
        }
        let entries = starts[lengths.len()];
        let values = (0..entries).map(|entry| f64::from(entry) + 1.0).collect();
        let matrix = Arc::new(Csr::new(1, starts, vec![0; entries as usize], values).unwrap());
        let x = Arc::new(vec![2.0]);
        let is_alone = ports == OWN;
        let rows = 0..lengths.len() as u32;
        let mut kernels = [SpmvKernel::new(spec, Arc::clone(&matrix), Arc::clone(&x), rows, ports, is_alone)];
        let ended = pipeline::run(&mut kernels, &mut [MemoryPort::new(memory); 5]);
        assert_eq!(kernels[0].y(), matrix.times(&x));
        ended
    }

    /// A port for each array.
    const OWN: [usize; 5] = [0, 1, 2, 3, 4];

    fn multiplied(lengths: &[u32], ports: [usize; 5]) -> Ticks {
        ended(lengths, ns(4), ports).ticks()
    }

    #[test]
    fn an_entry_waits_for_its_row_column_element_and_the_previous_addition() {
        // The second start, which ends the row, arrives at 15; column and value at 27, x at 39; stored from 44 to 46.
        assert_eq!(multiplied(&[1], OWN), ns(46));
        // The next entry of the same row is added 4 ns later; of another row, when its element arrives, at 41.
        assert_eq!(multiplied(&[2], OWN), ns(50));
        assert_eq!(multiplied(&[1, 1], OWN), ns(48));
        // A row without entries is stored; it waits for its turn only.
        assert_eq!(multiplied(&[0], OWN), ns(15 + 5 + 2));
        assert_eq!(multiplied(&[], OWN), ns(0));
    }

    #[test]
    fn arrays_behind_one_port_are_serialised() {
        // Column and value are requested at 15; the value arrives 2 ns later, which x hides.
        assert_eq!(multiplied(&[1], [0; 5]), ns(46));
        assert!(multiplied(&[40], [0; 5]) > multiplied(&[40], OWN));
    }

    fn path(port: u64, additions: u64, unit_words: u64, latency: u64) -> KernelPath {
        // The first request of the path is issued after one interval.
        KernelPath {
            port: ns(port),
            interval: ns(1),
            additions: ns(additions),
            unit_words: ns(unit_words),
            latency: ns(latency),
        }
    }

    #[test]
    fn the_path_of_one_entry_goes_through_four_ports() {
        // Two row starts, a column or value, an element of x and the sum; three reads and the pipeline.
        assert_eq!(ended(&[1], ns(4), OWN).path().unwrap(), path(5 * 2, 0, 0, 3 * 10 + 5));
        assert_eq!(ended(&[], ns(4), OWN).path().unwrap(), KernelPath { interval: ns(0), ..path(0, 0, 0, 0) });
    }

    #[test]
    fn a_long_row_is_bound_by_its_additions() {
        assert_eq!(ended(&[100], ns(4), OWN).path().unwrap(), path(5 * 2, 99 * 4, 0, 3 * 10 + 5));
    }

    #[test]
    fn rows_without_entries_are_bound_by_the_port_of_their_starts() {
        assert_eq!(ended(&[0; 10], ns(4), OWN).path().unwrap(), path(11 * 2 + 2, 0, 0, 10 + 5));
    }

    #[test]
    fn an_entry_without_space_for_its_value_is_bound_by_the_unit() {
        // The ninth value is requested when the first one is added, at 39; it is added at 63, with its element of x.
        // The latency before 39 belongs to the unit, the latency after it does not.
        assert_eq!(ended(&[9], ns(1), OWN).path().unwrap(), path(7 * 2, 0, 3 * 10, 2 * 10 + 5));
    }
}
