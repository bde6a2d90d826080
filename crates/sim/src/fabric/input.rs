//! The queue of TLPs of one sender at a link, by flow-control class.
//!
//! TLPs become ready in the order in which they are queued. [`lanemark_wire::may_pass`] states which TLP may pass
//! which; the transmitter applies it.

use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_engine::Wire;
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, Pass, may_pass};

/// Queued TLPs of one sender.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Input {
    queues: [Wire<(u64, Tlp)>; FlowClass::ALL.len()],
    /// Bit mask of the classes with queued TLPs.
    holding: u8,
    /// Ready time of the last TLP; ready times do not decrease.
    last: Ticks,
}

/// A queued TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// Flow-control class, as an index.
    pub class: usize,
    /// Position in the queue of its class.
    pub place: usize,
    /// Position among all TLPs queued for the link.
    pub order: u64,
    /// Ready time.
    pub ready: Ticks,
    /// The TLP.
    pub tlp: &'a Tlp,
}

const POSTED: usize = FlowClass::Posted as usize;

impl Input {
    /// Returns when a TLP offered at `at` is ready: not before those already queued.
    #[inline]
    pub fn ready(&mut self, at: Ticks) -> Ticks {
        self.last = self.last.max(at);
        self.last
    }

    /// Queues a TLP that is ready at `at`, but not before those already queued; `order` is its number on the link.
    #[inline]
    pub fn offer(&mut self, at: Ticks, order: u64, tlp: Tlp) {
        let ready = self.ready(at);
        self.put(ready, order, tlp);
    }

    /// Queues a TLP that is ready at `ready`, as [`Input::ready`] returned it.
    #[inline]
    pub fn put(&mut self, ready: Ticks, order: u64, tlp: Tlp) {
        let class = tlp.kind.class() as usize;
        self.holding |= 1 << class;
        self.queues[class].send(ready, (order, tlp));
    }

    /// Visits the state; `offered` is the number of TLPs queued for the link, and every order number is moved by
    /// `moved`.
    pub(crate) fn visit(&mut self, view: &mut impl Survey, offered: u64, moved: u64) {
        let Input { queues, holding, last } = self;
        for queue in queues {
            queue.visit(view, |view, (order, tlp)| {
                view.state(offered - *order);
                *order += moved;
                view.tlp(tlp);
            });
        }
        view.state(u64::from(*holding));
        view.time(last);
    }

    /// Removes a TLP of a class into `to`; returns whether there was one.
    #[inline]
    pub fn take(&mut self, class: usize, place: usize, to: &mut Tlp) -> bool {
        let queue = &mut self.queues[class];
        let Some((_, tlp)) = queue.at(place) else { return false };
        *to = *tlp;
        queue.remove(place);
        if queue.is_empty() {
            self.holding &= !(1 << class);
        }
        true
    }

    /// Returns the first TLP, if all queued ones are of one class: the common case, in which no TLP can pass another.
    #[inline]
    #[must_use]
    pub fn only_head(&self) -> Option<Waiting<'_>> {
        if self.holding.is_power_of_two() { self.head(self.holding.trailing_zeros() as usize) } else { None }
    }

    /// Returns the first TLP of each class.
    #[inline]
    pub fn heads(&self) -> impl Iterator<Item = Waiting<'_>> {
        (0..FlowClass::ALL.len()).filter_map(|class| self.head(class))
    }

    #[inline]
    fn head(&self, class: usize) -> Option<Waiting<'_>> {
        let queue = &self.queues[class];
        let (order, tlp) = queue.first()?;
        Some(Waiting { class, place: 0, order: *order, ready: queue.due(), tlp })
    }

    /// Returns the first `most` TLPs of each class.
    pub fn first_of_each(&self, most: usize) -> impl Iterator<Item = Waiting<'_>> {
        self.queues.iter().enumerate().flat_map(move |(class, queue)| {
            queue.iter().take(most).enumerate().map(move |(place, (ready, (order, tlp)))| Waiting {
                class,
                place,
                order: *order,
                ready: *ready,
                tlp,
            })
        })
    }

    /// Returns whether a posted request was queued before `later`.
    #[inline]
    #[must_use]
    pub fn has_posted_before(&self, later: &Waiting<'_>) -> bool {
        let posted = &self.queues[POSTED];
        posted.first().is_some_and(|(order, _)| (posted.due(), *order) < (later.ready, later.order))
    }

    /// Returns whether `later` may pass every earlier posted request.
    #[must_use]
    pub fn lets_pass_posted(&self, later: &Waiting<'_>) -> bool {
        self.lets_pass(later, POSTED)
    }

    /// Returns whether `later` may pass every earlier TLP.
    #[must_use]
    pub fn lets_pass_all(&self, later: &Waiting<'_>) -> bool {
        (0..FlowClass::ALL.len()).all(|class| self.lets_pass(later, class))
    }

    fn lets_pass(&self, later: &Waiting<'_>, class: usize) -> bool {
        let ordered = later.tlp.ordered();
        let mut before =
            self.queues[class].iter().take_while(|(ready, (order, _))| (*ready, *order) < (later.ready, later.order));
        before.all(|(_, (_, tlp))| may_pass(ordered, tlp.ordered()) != Pass::No)
    }

    /// Returns whether TLPs of this class are queued, and no others.
    #[inline]
    #[must_use]
    pub fn holds_only(&self, class: FlowClass) -> bool {
        self.holding == 1 << class as u8
    }

    /// Returns whether no TLP is queued.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holding == 0
    }
}
