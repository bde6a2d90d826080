//! What one sender queues for a link, by class.
//!
//! What is offered first is ready first. Which TLP may go before which says [`lanemark_wire::may_pass`]; here lies what the
//! transmitter needs to apply it.

use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_engine::Wire;
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, Pass, may_pass};

/// TLPs of one sender that have not started to go.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Input {
    queues: [Wire<(u64, Tlp)>; FlowClass::ALL.len()],
    /// Which of the queues hold something, a bit each.
    holding: u8,
    /// No offer is ready before the one before it.
    last: Ticks,
    /// How many have relaxed or ID-based ordering.
    free: u32,
}

/// One that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// Which class, as an index.
    pub class: usize,
    /// How many of its class wait before it here.
    pub place: usize,
    /// Its place among all that were offered to the link.
    pub order: u64,
    /// When it is ready.
    pub ready: Ticks,
    /// The packet.
    pub tlp: &'a Tlp,
}

const POSTED: usize = FlowClass::Posted as usize;

impl Input {
    /// Queues a TLP that may go from `at` on, but not before those that already wait; `order` counts those of the link.
    #[inline]
    pub fn offer(&mut self, at: Ticks, order: u64, tlp: Tlp) {
        self.last = self.last.max(at);
        let class = tlp.kind.class() as usize;
        self.holding |= 1 << class;
        self.free += u32::from(tlp.is_free());
        self.queues[class].send(self.last, (order, tlp));
    }

    /// Shows everything that changes; `offered` were offered to the link, and all orders move on by `moved`.
    pub(crate) fn visit(&mut self, view: &mut impl Survey, offered: u64, moved: u64) {
        let Input { queues, holding, last, free } = self;
        for queue in queues {
            queue.visit(view, |view, (order, tlp)| {
                view.state(offered - *order);
                *order += moved;
                view.tlp(tlp);
            });
        }
        view.state(u64::from(*holding));
        view.time(last);
        view.state(u64::from(*free));
    }

    /// Takes one of a class to where the caller wants it; says whether there was one.
    #[inline]
    pub fn take(&mut self, class: usize, place: usize, to: &mut Tlp) -> bool {
        let queue = &mut self.queues[class];
        let Some((_, tlp)) = queue.at(place) else { return false };
        *to = *tlp;
        self.free -= u32::from(tlp.is_free());
        queue.remove(place);
        if queue.is_empty() {
            self.holding &= !(1 << class);
        }
        true
    }

    /// The first of all, if all are of one class: what is most often there, and nothing here it could pass.
    #[inline]
    #[must_use]
    pub fn only_head(&self) -> Option<Waiting<'_>> {
        if self.holding.is_power_of_two() { self.head(self.holding.trailing_zeros() as usize) } else { None }
    }

    /// The first of each class that holds some.
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

    /// The first `most` of each class.
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

    /// Whether a posted request waits here that was there before `later`.
    #[inline]
    #[must_use]
    pub fn has_posted_before(&self, later: &Waiting<'_>) -> bool {
        let posted = &self.queues[POSTED];
        posted.first().is_some_and(|(order, _)| (posted.due(), *order) < (later.ready, later.order))
    }

    /// Whether the table lets `later` go before every posted request that was here before it.
    #[must_use]
    pub fn lets_pass_posted(&self, later: &Waiting<'_>) -> bool {
        self.lets_pass(later, POSTED)
    }

    /// Whether the table lets it go before all that were here before it.
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

    /// Whether some have relaxed or ID-based ordering.
    #[inline]
    #[must_use]
    pub fn has_free(&self) -> bool {
        self.free > 0
    }

    /// Whether all that wait are of this class, and some do.
    #[inline]
    #[must_use]
    pub fn holds_only(&self, class: FlowClass) -> bool {
        self.holding == 1 << class as u8
    }

    /// Whether none waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holding == 0
    }
}
