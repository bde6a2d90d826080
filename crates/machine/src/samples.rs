//! What came out.

use crate::Cause;
use lanemark_units::Ticks;

/// One repetition of a plan, timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// From the first timestamp to the second: all instructions were issued, stores may still be buffered.
    pub issue: Ticks,
    /// From the first timestamp until the last byte was accepted where it was meant to go.
    pub delivered: Ticks,
}

/// Time lane 0 spent waiting, by what it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// What for.
    pub cause: Cause,
    /// How long in all samples together.
    pub span: Ticks,
}

/// What crossed the link while samples were taken (warm-up not counted).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Memory writes sent downstream.
    pub write_tlps: u64,
    /// Memory reads sent downstream.
    pub read_tlps: u64,
    /// Completions sent upstream.
    pub completion_tlps: u64,
    /// Payload bytes of all of them.
    pub payload_bytes: u64,
}

/// Bytes that were to arrive, and those found to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confirmed {
    /// Distinct bytes that one pass of the plan stores.
    pub claimed_bytes: u64,
    /// Those of them found at the far end with the values stored last.
    pub confirmed_bytes: u64,
}

/// What a machine fills: first made for a number of samples, then handed to
/// [`Machine::run`](crate::Machine::run).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Samples {
    wanted: usize,
    /// The samples, in the order they were taken.
    pub taken: Vec<Sample>,
    /// What lane 0 waited for; empty where the machine cannot see it.
    pub waits: Vec<Wait>,
    /// What crossed the link; `None` where the machine cannot see it.
    pub traffic: Option<Traffic>,
    /// Whether the bytes arrived; `None` where nothing was moved that could be checked.
    pub confirmed: Option<Confirmed>,
    /// What an empty sample takes; already subtracted from `taken`.
    pub timer_cost: Ticks,
}

impl Samples {
    /// Room for `wanted` samples; at least one is taken.
    #[must_use]
    pub fn wanted(wanted: usize) -> Samples {
        let wanted = wanted.max(1);
        Samples {
            wanted,
            taken: Vec::with_capacity(wanted),
            waits: Vec::new(),
            traffic: None,
            confirmed: None,
            timer_cost: Ticks::ZERO,
        }
    }

    /// How many samples the asker wants.
    #[must_use]
    pub fn count_wanted(&self) -> usize {
        self.wanted
    }

    /// Forgets what was taken and keeps the room.
    pub fn clear(&mut self) {
        self.taken.clear();
        self.waits.clear();
        self.traffic = None;
        self.confirmed = None;
        self.timer_cost = Ticks::ZERO;
    }
}
