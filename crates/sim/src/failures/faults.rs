//! The injected faults of a platform, and their effects that no port detects.
//!
//! Every fault counts every TLP that it can affect. Other effects are kept until the link is reset: withheld and
//! lost TLPs, outstanding completion timeouts, and cards that decode no address.

use crate::fabric::link::Sent;
use crate::index::{DirectionIndex, LinkIndex, Side};
use crate::noticed::PortLimit;
use crate::tlp::{AddressType, Flaw, Tlp, TlpKind};
use lanemark_platform::{Fault, FaultKind, Mailbox, Platform};
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use std::collections::BTreeMap;

/// The effect of faults on a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The TLP continues, with this flaw.
    GoesOn(Flaw),
    /// The TLP is lost, because the link is down since `since`; `is_first` for the first such TLP.
    Lost { since: Ticks, is_first: bool },
    /// The TLP stays in the receive buffer.
    Withheld,
}

/// A fault of the platform and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Armed {
    /// Index in the platform's list.
    pub(super) number: usize,
    pub(super) kind: FaultKind,
    /// The direction whose receiver is the port.
    pub(super) direction: DirectionIndex,
    /// The card whose driver it affects.
    pub(super) card: Option<u32>,
    /// TLPs up to the fault, with the affected one.
    pub(super) left: u64,
    /// Time from which TLPs count.
    pub(super) from: Ticks,
    /// Duration of a link-down fault.
    pub(super) down: Ticks,
    /// Time at which it was triggered.
    pub(super) since: Option<Ticks>,
    /// Whether its effect has ended.
    pub(super) is_over: bool,
    /// Whether a port has detected it.
    pub(super) is_noticed: bool,
    /// Whether another fault already affected its TLP.
    pub(super) is_eclipsed: bool,
}

impl Armed {
    fn new(platform: &Platform, number: usize, fault: &Fault, ports: &[[PortLimit; 2]]) -> Option<Armed> {
        let kind = fault.kind.value;
        let (left, from, down) = (fault.tlp.value, fault.at_ns.value, fault.down_ns.value);
        Some(Armed {
            number,
            kind,
            direction: DirectionIndex(ports.iter().position(|ends| ends[Side::Receiver].name == fault.port)?),
            card: card_of(platform, kind, &fault.port),
            left,
            from,
            down: if down == Ticks::ZERO { Ticks::NEVER } else { down },
            // A link-down fault at the first TLP is triggered at its time, without a TLP.
            since: (kind.is_of_link() && left == 1).then_some(from),
            is_over: false,
            is_noticed: false,
            is_eclipsed: false,
        })
    }

    /// Returns whether it can affect a TLP of this kind.
    const fn is_for(&self, kind: TlpKind) -> bool {
        match self.kind {
            FaultKind::UnsupportedRequest | FaultKind::CompleterAbort | FaultKind::Unmapped => {
                matches!(kind, TlpKind::MRd | TlpKind::MWr)
            }
            FaultKind::ReadOnly => matches!(kind, TlpKind::MWr),
            FaultKind::StuckInvalidation | FaultKind::Unpinnable => false,
            FaultKind::Poisoned => matches!(kind, TlpKind::MWr | TlpKind::CplD),
            FaultKind::NoCompletion => matches!(kind, TlpKind::MRd | TlpKind::MsgD),
            FaultKind::Ecrc | FaultKind::CreditStarvation | FaultKind::LinkDown | FaultKind::SurpriseRemoval => true,
        }
    }

    /// Counts a TLP; returns whether the fault affects it.
    fn is_now(&mut self, kind: TlpKind, arrives: Ticks) -> bool {
        if self.since.is_some() || !self.is_for(kind) || arrives < self.from {
            return false;
        }
        self.left -= 1;
        if self.left == 0 {
            self.since = Some(arrives);
        }
        self.left == 0
    }

    /// Returns the effect on a TLP sent at `went` in this direction.
    ///
    /// `ends_here` if this is the destination: a flaw takes effect there.
    fn fate(&mut self, direction: DirectionIndex, went: Ticks, sent: &Sent, ends_here: bool) -> Option<Fate> {
        if self.is_over || direction.link() != self.direction.link() {
            return None;
        }
        let is_here = direction == self.direction;
        if self.kind.is_of_link() {
            let _ = is_here && self.is_now(sent.tlp.kind, sent.arrives);
            let since = self.since.filter(|since| *since <= sent.arrives)?;
            if Ticks(since.0.saturating_add(self.down.0)) <= went {
                self.is_over = true;
                return None;
            }
            let is_first = !std::mem::replace(&mut self.is_noticed, true);
            return Some(Fate::Lost { since, is_first });
        }
        let is_its_end = ends_here || self.kind == FaultKind::CreditStarvation;
        // Messages are not translated, and translated requests are not looked up.
        let is_translated = || sent.tlp.at == AddressType::Translated || Mailbox::MESSAGES.contains(&sent.tlp.address);
        if self.kind.is_of_iommu() && is_translated() {
            return None;
        }
        if !is_here || !self.is_for(sent.tlp.kind) || !is_its_end {
            return None;
        }
        if self.since.is_none() && !self.is_now(sent.tlp.kind, sent.arrives) {
            return None;
        }
        let flaw = match self.kind {
            FaultKind::NoCompletion => return Some(Fate::GoesOn(Flaw::Unanswered)),
            FaultKind::CreditStarvation => return Some(Fate::Withheld),
            FaultKind::UnsupportedRequest => Flaw::Unsupported,
            FaultKind::CompleterAbort => Flaw::Abort,
            FaultKind::Poisoned => Flaw::Poisoned,
            FaultKind::Ecrc => Flaw::BadEcrc,
            FaultKind::Unmapped => Flaw::Unmapped,
            FaultKind::ReadOnly => Flaw::ReadOnly,
            FaultKind::LinkDown | FaultKind::SurpriseRemoval | FaultKind::StuckInvalidation | FaultKind::Unpinnable => {
                return None;
            }
        };
        self.is_over = true;
        Some(Fate::GoesOn(flaw))
    }
}

/// TLPs that stay in the receive buffer of a port (injected fault).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The port, and the sender at the other end, which waits for credits.
    pub port: String,
    /// See `port`.
    pub sender: String,
    /// Arrival time of the first one.
    pub since: Ticks,
    /// The first one; its payload slot is no longer valid.
    pub first: Tlp,
    /// Number of TLPs of each class, by [`FlowClass`].
    pub tlps: [u64; FlowClass::ALL.len()],
    /// Number of TLPs that wait at the sender.
    pub waiting: usize,
    /// The direction of the TLPs.
    pub(crate) direction: DirectionIndex,
}

/// TLPs lost on a link that is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// The port above the link.
    pub port: String,
    /// The component below the link.
    pub below: String,
    /// Time since which it is down.
    pub since: Ticks,
    /// The first one; its payload slot is no longer valid.
    pub first: Tlp,
    /// Arrival time of the first one.
    pub at: Ticks,
    /// Number of lost TLPs.
    pub tlps: u64,
}

/// Injected faults, and their effects that no port detects.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(super) armed: Vec<Armed>,
    pub(super) withheld: Vec<Withheld>,
    pub(super) cut_off: Option<CutOff>,
    /// Reads that will time out: by time, requester ID and tag.
    pub(super) given_up: BTreeMap<(Ticks, u16, u16), Tlp>,
    /// Completion timeouts of cores and of cards.
    pub(super) timeouts: [Ticks; 2],
    /// Directions to cards that have not been configured since they were programmed: they decode no address.
    pub(super) unconfigured: Vec<DirectionIndex>,
}

/// Returns the completion timeouts of cores and of cards.
fn timeouts(platform: &Platform) -> [Ticks; 2] {
    [platform.root_complex.completion_timeout_ns.value, platform.endpoint.completion_timeout_ns.value]
}

impl Faults {
    /// Creates the faults of a platform with these ports; `None` without faults.
    pub(super) fn new(platform: &Platform, ports: &[[PortLimit; 2]]) -> Option<Box<Faults>> {
        let timeouts = timeouts(platform);
        let each = platform.faults.iter().enumerate();
        let mut armed: Vec<Armed> =
            each.filter_map(|(number, fault)| Armed::new(platform, number, fault, ports)).collect();
        // A TLP lost on a link is not affected by other faults.
        armed.sort_by_key(|fault| !fault.kind.is_of_link());
        (!armed.is_empty()).then(|| Box::new(Faults { armed, timeouts, ..Faults::default() }))
    }

    /// Returns the effect on a TLP that arrives by this direction, was sent at `now`, and ends there if `ends_here`;
    /// `None` without one.
    pub(crate) fn fate(&mut self, direction: DirectionIndex, now: Ticks, sent: &Sent, ends_here: bool) -> Option<Fate> {
        // Every fault counts every TLP; if several meet, the first one affects it.
        let mut fate = None;
        for fault in &mut self.armed {
            let its = fault.fate(direction, now, sent, ends_here);
            fault.is_eclipsed |= its.is_some() && fate.is_some() && fault.is_over;
            fate = fate.or(its);
        }
        fate
    }

    /// Counts an invalidation command; returns whether it hangs.
    pub(crate) fn hangs_invalidation(&mut self, now: Ticks) -> bool {
        let waiting = self
            .armed
            .iter_mut()
            .filter(|fault| fault.kind == FaultKind::StuckInvalidation && fault.since.is_none() && now >= fault.from);
        // Every fault counts every command.
        waiting.fold(false, |hangs, fault| {
            fault.left -= 1;
            let is_it = fault.left == 0;
            fault.since = is_it.then_some(now);
            hangs || is_it
        })
    }

    /// Counts a TLP that stays in the receive buffer of a port; `ports` are those of its direction.
    pub(crate) fn withhold(&mut self, direction: DirectionIndex, ports: &[PortLimit; 2], sent: &Sent) {
        if !self.withheld.iter().any(|held| held.direction == direction) {
            let [sender, port] = ports;
            let (port, sender) = (port.name.clone(), sender.name.clone());
            let (since, first, tlps) = (sent.arrives, sent.tlp, [0; FlowClass::ALL.len()]);
            self.withheld.push(Withheld { port, sender, since, first, tlps, waiting: 0, direction });
        }
        if let Some(held) = self.withheld.iter_mut().find(|held| held.direction == direction) {
            held.tlps[sent.tlp.kind.class() as usize] += 1;
        }
    }

    /// Counts a TLP lost on a link that is down since `since`; `ports` are those of its downstream direction.
    pub(crate) fn cut_off(&mut self, ports: &[PortLimit; 2], since: Ticks, at: Ticks, first: Tlp) {
        let [above, below] = ports;
        let (port, below) = (above.name.clone(), below.name.clone());
        self.cut_off.get_or_insert(CutOff { port, below, since, first, at, tlps: 0 }).tlps += 1;
    }

    /// Schedules the completion timeout of a lost request or completion of a card or a core, requested at `asked`.
    pub(crate) fn give_up_later(&mut self, now: Ticks, asked: Option<Ticks>, is_of_card: bool, tlp: &Tlp) {
        let at = asked.unwrap_or(now) + self.timeouts[usize::from(is_of_card)];
        self.given_up.insert((at.max(now), tlp.requester, tlp.tag), *tlp);
    }

    /// Returns the time of the next completion timeout.
    pub(crate) fn timeout_due(&self) -> Ticks {
        self.given_up.keys().next().map_or(Ticks::NEVER, |(at, ..)| *at)
    }

    /// Takes the next lost TLP whose requester times out.
    pub(crate) fn take_timeout(&mut self) -> Option<Tlp> {
        self.given_up.pop_first().map(|(_, lost)| lost)
    }

    /// Handles a link reset: withheld TLPs are lost, and completers that did not answer work again. A link that is
    /// down stays down.
    pub(super) fn reset(&mut self) {
        (self.withheld, self.cut_off, self.given_up) = (Vec::new(), None, BTreeMap::new());
        for fault in self.armed.iter_mut().filter(|fault| fault.since.is_some() && !fault.kind.is_of_link()) {
            fault.is_over = true;
        }
    }

    /// Returns whether a link is down at a time.
    pub(super) fn is_down(&self, link: LinkIndex, at: Ticks) -> bool {
        let mut those = self.armed.iter().filter(|fault| fault.kind.is_of_link() && fault.direction.link() == link);
        those.any(|fault| {
            let until = |since: Ticks| Ticks(since.0.saturating_add(fault.down.0));
            !fault.is_over && fault.since.is_some_and(|since| since <= at && at < until(since))
        })
    }

    /// Ends the triggered faults of a link and of the card below it, which is reprogrammed and decodes no address.
    /// Returns whether the port above had detected that the link was down.
    pub(crate) fn reprogram(&mut self, link: LinkIndex, now: Ticks, platform: &Platform) -> bool {
        let mut of_link = self.armed.iter().filter(|fault| fault.kind.is_of_link() && fault.direction.link() == link);
        let is_known = of_link.any(|fault| fault.is_noticed && !fault.is_over);
        self.withheld.retain(|held| held.direction.link() != link);
        self.cut_off = None;
        for fault in self.armed.iter_mut().filter(|fault| fault.direction.link() == link) {
            fault.is_over |= fault.since.is_some_and(|since| since <= now);
        }
        self.timeouts = timeouts(platform);
        self.unconfigured.push(link.down());
        is_known
    }

    /// Returns whether the port of a card withholds TLPs.
    pub(super) fn is_starved(&self, down: DirectionIndex) -> bool {
        self.armed.iter().any(|fault| {
            fault.kind == FaultKind::CreditStarvation
                && fault.direction == down
                && fault.since.is_some()
                && !fault.is_over
        })
    }
}

/// Returns the card whose driver a fault affects, if any.
fn card_of(platform: &Platform, kind: FaultKind, port: &str) -> Option<u32> {
    let cards = (0..platform.cards()).filter(|_| kind == FaultKind::Unpinnable);
    cards.into_iter().find(|card| platform.card_name(*card as usize) == Some(port))
}
