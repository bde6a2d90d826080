//! Root-complex ingress: requests of all root ports, one at a time, round-robin.
//!
//! ```text
//!  root port 0 --requests, completions--+
//!  root port 1 --requests, completions--+--> one request at a time, round-robin --> memory, peers
//! ```
//!
//! Ports: [`RcIngress::receive`] queues a TLP, [`RcIngress::take`] forwards it when it is [due](RcIngress::due).
//! Requests of a root port stay in order. Completions take no time; they pass reads, but no write.
//!
//! Source: PCI Express Base Specification, "Ordering Rules": a completion passes a read, and no posted request.

use crate::busy::Busy;
use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::index::RootPortIndex;
use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::Wire;
use lanemark_machine::Cause;
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use std::collections::VecDeque;

/// A TLP leaving the ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The root port that received it.
    pub port: RootPortIndex,
    /// Whether it waited for earlier requests.
    pub waited: bool,
    /// The TLP.
    pub tlp: Tlp,
}

/// A completion, with the number of writes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Behind {
    at: Ticks,
    writes: u64,
    tlp: Tlp,
}

/// Queue of a root port.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct AtPort {
    requests: Wire<Tlp>,
    /// Number of writes in `requests`.
    writes: u64,
    completions: VecDeque<Behind>,
}

/// State of the ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RcIngress {
    /// Time of a request.
    request: Ticks,
    ports: Vec<AtPort>,
    /// Time from which the next request is accepted.
    next: Ticks,
    /// Acceptance of the last request.
    last: Milestone,
    /// Root port served last.
    served: usize,
    /// Its use.
    pub(crate) busy: Busy,
}

impl AtPort {
    fn completion_due(&self) -> Ticks {
        self.completions.front().filter(|first| first.writes == 0).map_or(Ticks::NEVER, |first| first.at)
    }
}

impl RcIngress {
    /// Creates an ingress of `root_ports` root ports; with a request time of zero it delays nothing and can be
    /// bypassed.
    #[must_use]
    pub fn new(request: Ticks, root_ports: usize) -> RcIngress {
        let ports = vec![AtPort::default(); root_ports];
        let served = root_ports.saturating_sub(1);
        RcIngress { request, ports, next: Ticks::ZERO, last: Milestone::NONE, served, busy: Busy::default() }
    }

    /// Returns whether it can delay a TLP.
    #[inline]
    #[must_use]
    pub fn limits(&self) -> bool {
        self.request > Ticks::ZERO
    }

    /// Receives a TLP of root port `port` that arrives at `at`. The call may precede that time, because TLPs of a
    /// port arrive in order.
    pub fn receive(&mut self, at: Ticks, port: RootPortIndex, tlp: Tlp) {
        let to = &mut self.ports[port];
        match tlp.kind {
            TlpKind::CplD | TlpKind::Cpl => to.completions.push_back(Behind { at, writes: to.writes, tlp }),
            TlpKind::MRd | TlpKind::MWr | TlpKind::MsgD | TlpKind::Msg => {
                to.writes += u64::from(tlp.kind.class() == FlowClass::Posted);
                to.requests.send(at, tlp);
            }
        }
    }

    /// Returns when the next TLP is forwarded, as far as is known now.
    #[must_use]
    pub fn due(&self) -> Ticks {
        let of = |port: &AtPort| port.completion_due().min(port.requests.due().max(self.next));
        self.ports.iter().map(of).min().unwrap_or(Ticks::NEVER)
    }

    /// Returns the time from which earlier requests delay no other.
    #[must_use]
    pub fn quiet_at(&self) -> Ticks {
        self.next
    }

    /// Returns the next TLP to forward at `now`.
    pub fn take(&mut self, now: Ticks, path: &mut CriticalPath) -> Option<Taken> {
        if let Some(port) = self.ports.iter().position(|port| port.completion_due() <= now) {
            let first = self.ports[port].completions.pop_front()?;
            return Some(Taken { port: RootPortIndex(port), waited: false, tlp: first.tlp });
        }
        let count = self.ports.len();
        let mut turns = (1..=count).map(|turn| (self.served + turn) % count).filter(|_| self.next <= now);
        let port = turns.find(|port| self.ports[*port].requests.due() <= now)?;
        let from = &mut self.ports[port];
        let waited = from.requests.due() < now;
        let mut tlp = from.requests.take(now)?;
        if waited {
            tlp.milestone = path.add(self.last, now, Place::ROOT_COMPLEX, Cause::RootComplex);
        }
        self.last = tlp.milestone;
        if tlp.kind.class() == FlowClass::Posted {
            from.writes -= 1;
            from.completions.iter_mut().for_each(|behind| behind.writes = behind.writes.saturating_sub(1));
        }
        (self.served, self.next) = (port, now + self.request);
        self.busy.occupy(self.request, self.next);
        Some(Taken { port: RootPortIndex(port), waited, tlp })
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let RcIngress { request: _, ports, next, last: _, served, busy } = self;
        busy.visit(view);
        for AtPort { requests, writes, completions } in ports {
            requests.visit(view, Survey::tlp);
            view.state(*writes);
            view.count(completions.len());
            for Behind { at, writes, tlp } in completions {
                view.moment(at);
                view.state(*writes);
                view.tlp(tlp);
            }
        }
        view.time(next);
        view.count(*served);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlp(kind: TlpKind, tag: u16) -> Tlp {
        Tlp { tag, ..Tlp::of(kind) }
    }

    /// Returns the TLPs forwarded up to `until`, with their times.
    fn all(ingress: &mut RcIngress, until: u64) -> Vec<(u64, usize, u16, bool)> {
        let (mut gone, mut now) = (Vec::new(), Ticks::ZERO);
        while ingress.due() <= Ticks(until) {
            now = now.max(ingress.due());
            let taken = ingress.take(now, &mut CriticalPath::default()).unwrap();
            gone.push((now.0, taken.port.0, taken.tlp.tag, taken.waited));
        }
        assert_eq!(ingress.take(Ticks(until), &mut CriticalPath::default()), None);
        gone
    }

    #[test]
    fn requests_of_all_root_ports_are_serialised_round_robin() {
        let mut ingress = RcIngress::new(Ticks(10), 2);
        for (at, port, tag) in [(5, 0, 1), (5, 0, 2), (6, 1, 3), (40, 1, 4)] {
            ingress.receive(Ticks(at), RootPortIndex(port), tlp(TlpKind::MRd, tag));
        }
        let gone = all(&mut ingress, 100);
        assert_eq!(gone, [(5, 0, 1, false), (15, 1, 3, true), (25, 0, 2, true), (40, 1, 4, false)]);
    }

    #[test]
    fn completions_pass_reads_and_no_writes() {
        let mut ingress = RcIngress::new(Ticks(10), 1);
        let kinds = [TlpKind::MRd, TlpKind::MRd, TlpKind::CplD, TlpKind::MWr, TlpKind::CplD, TlpKind::MRd];
        for (kind, tag) in kinds.into_iter().zip(0..) {
            ingress.receive(Ticks(1), RootPortIndex(0), tlp(kind, tag));
        }
        let order: Vec<(u64, u16)> = all(&mut ingress, 100).into_iter().map(|(at, _, tag, _)| (at, tag)).collect();
        assert_eq!(order, [(1, 2), (1, 0), (11, 1), (21, 3), (21, 4), (31, 5)]);
    }
}
