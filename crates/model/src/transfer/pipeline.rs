//! The stages that a read passes, and when each is free again.

use super::sum::Sum;
use super::way::Way;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// A limited number of places, and when each is free again.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) unused: u64,
    /// The earliest first.
    free_at: VecDeque<Ticks>,
    /// Sum of these, modulo 2^64.
    sum: u64,
}

impl Places {
    fn new(count: u64) -> Places {
        Places { unused: count, free_at: VecDeque::new(), sum: 0 }
    }

    /// Takes the place that is free first; returns when it is.
    fn take(&mut self) -> Ticks {
        match self.unused.checked_sub(1) {
            Some(left) => {
                self.unused = left;
                Ticks::ZERO
            }
            None => self.next().unwrap_or(Ticks::ZERO),
        }
    }

    fn next(&mut self) -> Option<Ticks> {
        let at = self.free_at.pop_front()?;
        self.sum = self.sum.wrapping_sub(at.0);
        Some(at)
    }

    fn give_back(&mut self, at: Ticks) {
        self.sum = self.sum.wrapping_add(at.0);
        // Most places are given back in the order in which they were taken.
        match self.free_at.iter().rev().take_while(|other| **other > at).count() {
            0 => self.free_at.push_back(at),
            later => self.free_at.insert(self.free_at.len() - later, at),
        }
    }

    /// Moves those that are free at `now` to `unused`.
    fn retire(&mut self, now: Ticks) {
        while self.free_at.front().is_some_and(|at| *at <= now) {
            self.next();
            self.unused += 1;
        }
    }

    /// Whether each of these places is free again exactly `later` after one of `earlier`.
    fn are_busy_like(&self, earlier: &Places, later: Ticks) -> bool {
        let count = self.free_at.len();
        let sum = earlier.sum.wrapping_add(later.0.wrapping_mul(count as u64));
        // The sum differs most of the time, and is found without looking at every place.
        count == earlier.free_at.len()
            && self.sum == sum
            && self.free_at.iter().zip(&earlier.free_at).all(|(at, before)| *at == *before + later)
    }
}

/// Times that are the same for all requests.
pub(super) struct Fixed {
    pub(super) egress: Ticks,
    pub(super) root: Ticks,
    pub(super) memory: Ticks,
    /// From the end of the data until the place of the request is free.
    pub(super) apart: Option<Ticks>,
}

impl Fixed {
    pub(super) fn of(way: &Way<'_>) -> Fixed {
        let places = way.transfer.outstanding.filter(|most| *most > 1);
        let data = way.read_data().filter(|_| places.is_some_and(|most| most <= way.dma.tags.value));
        Fixed {
            egress: way.platform.endpoint.egress_ns.value,
            root: way.root_pace(),
            memory: way.pace(),
            apart: data.map(|data| data.signal + data.queue),
        }
    }
}

/// When each stage behind the requests of the engine is free again. Times are those at the engine, without the path.
#[derive(Clone, Default)]
pub(super) struct Downstream {
    root: Ticks,
    memory: Ticks,
    on_link: Ticks,
    at_engine: Ticks,
    /// When the last request has ended.
    pub(super) ended: Ticks,
}

impl Downstream {
    /// Runs a request that the engine has issued at `issued` through all stages; returns when its tag is free.
    pub(super) fn pass(&mut self, issued: Ticks, of_one: &Sum, fixed: &Fixed) -> Ticks {
        let at_root = issued.max(self.root);
        let at_memory = at_root.max(self.memory);
        (self.root, self.memory) = (at_root + fixed.root, at_memory + fixed.memory);
        self.on_link = (at_memory + of_one.before_link).max(self.on_link) + of_one.link;
        self.at_engine = (at_memory + of_one.before_beats).max(self.at_engine) + of_one.beats;
        let ends = (at_memory + of_one.last_way).max(self.on_link + of_one.behind_link).max(self.at_engine);
        self.ended = self.ended.max(ends);
        ends + fixed.apart.map_or(Ticks::ZERO, |apart| of_one.after + apart)
    }

    fn times(&self) -> [Ticks; 5] {
        [self.root, self.memory, self.on_link, self.at_engine, self.ended]
    }
}

/// When each stage is free again.
#[derive(Clone)]
pub(super) struct Stages {
    pub(super) engine: Ticks,
    pub(super) send_buffers: Places,
    pub(super) tags: Places,
    pub(super) downstream: Downstream,
}

impl Stages {
    pub(super) fn new(send_buffers: u64, tags: u64) -> Stages {
        let [send_buffers, tags] = [send_buffers, tags].map(Places::new);
        Stages { engine: Ticks::ZERO, send_buffers, tags, downstream: Downstream::default() }
    }

    /// Runs one request through all stages.
    pub(super) fn run(&mut self, of_one: &Sum, fixed: &Fixed) {
        self.engine = self.engine.max(self.tags.take()).max(self.send_buffers.take()) + of_one.engine;
        self.send_buffers.give_back(self.engine + fixed.egress);
        let free_at = self.downstream.pass(self.engine, of_one, fixed);
        self.tags.give_back(free_at);
    }

    /// Drops the times of places that are free again.
    pub(super) fn retire(&mut self) {
        self.send_buffers.retire(self.engine);
        self.tags.retire(self.engine);
    }

    /// Whether every stage is busy for as long as in `earlier`, so that the same requests take the same times. Both are
    /// without places that are free again.
    pub(super) fn repeat(&self, earlier: &Stages) -> bool {
        let passed = self.engine - earlier.engine;
        self.downstream.times() == earlier.downstream.times().map(|at| at + passed)
            && self.send_buffers.are_busy_like(&earlier.send_buffers, passed)
            && self.tags.are_busy_like(&earlier.tags, passed)
    }
}
