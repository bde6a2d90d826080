//! Use of the resources of a board: link time, and time of engines, cards, memory, root complex and IOMMU.

use super::Board;
use crate::critical_path::Place;
use crate::fabric::carried::Carried;
use crate::index::CardIndex;
use lanemark_machine::{Cause, Direction};
use lanemark_units::Ticks;

/// A resource that is not a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) place: Place,
    pub(crate) cause: Cause,
    pub(crate) direction: Option<Direction>,
    /// Number of its parts that work at the same time.
    pub(crate) servers: u32,
}

/// Use of all resources since construction, or over a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// Traffic of each direction of each link, link after link, the downstream direction first.
    pub(crate) links: Vec<Carried>,
    /// Time of each of [`Board::resources`].
    pub(crate) busy: Vec<Ticks>,
}

impl Used {
    /// Adds `other`.
    pub(crate) fn add(&mut self, other: &Used) {
        self.links.iter_mut().zip(&other.links).for_each(|(used, other)| used.add(other));
        self.busy.iter_mut().zip(&other.busy).for_each(|(used, other)| *used += *other);
    }

    /// Returns the use since `before`.
    pub(crate) fn since(&self, before: &Used) -> Used {
        Used {
            links: self.links.iter().zip(&before.links).map(|(now, before)| now.since(before)).collect(),
            busy: self.busy.iter().zip(&before.busy).map(|(now, before)| now.since(*before)).collect(),
        }
    }

    /// Returns `times` this use.
    pub(crate) fn times(&self, times: u64) -> Used {
        Used {
            links: self.links.iter().map(|one| one.times(times)).collect(),
            busy: self.busy.iter().map(|one| *one * times).collect(),
        }
    }
}

impl Board {
    /// Returns the use of all resources up to now, or up to `at` if that is later. Bytes may be delivered after the last
    /// event.
    pub(crate) fn used(&mut self, at: Ticks) -> Used {
        let links = self.carried();
        Used { links, busy: self.resources_with_use(at).into_iter().map(|(_, busy)| busy).collect() }
    }

    /// Returns the resources, in the order of [`Used::busy`].
    pub(crate) fn resources(&self) -> Vec<Resource> {
        self.resources_with_use(Ticks::ZERO).into_iter().map(|(resource, _)| resource).collect()
    }

    fn resources_with_use(&self, at: Ticks) -> Vec<(Resource, Ticks)> {
        use Direction::{Downstream, Upstream};
        let now = self.events.now.max(at);
        let resource = |place, cause, direction, servers| Resource { place, cause, direction, servers };
        let mut all = Vec::new();
        for root in &self.root_complex.roots {
            let of = |direction| resource(Place::MEMORY, Cause::Memory, Some(direction), 1);
            all.push((of(Downstream), root.port.read_busy.up_to(now)));
            all.push((of(Upstream), root.port.write_busy.up_to(now)));
        }
        let ingress = resource(Place::ROOT_COMPLEX, Cause::RootComplex, None, 1);
        all.push((ingress, self.root_complex.ingress.busy.up_to(now)));
        if let Some(iommu) = &self.iommu {
            let walkers = resource(Place::IOMMU, Cause::Translation, None, iommu.walkers());
            all.push((walkers, iommu.busy.up_to(now)));
        }
        let issue = |number| resource(Place::core(number), Cause::Issue, None, 1);
        all.extend((0..self.cores.len()).map(|number| (issue(number), self.cores[number].busy.up_to(now))));
        for card in (0..self.endpoints.len()).map(CardIndex) {
            let endpoint = &self.endpoints[card];
            let of = |direction| resource(Place::card(card), Cause::Device, Some(direction), 1);
            all.push((of(Downstream), endpoint.busy.up_to(now)));
            all.extend(endpoint.regions.iter().map(|region| (of(Upstream), region.busy.up_to(now))));
            let Some(engine) = &endpoint.dma else { continue };
            let place = Place::engine(card);
            let requests = resource(place, Cause::Engine, None, 1);
            all.extend(engine.busy.requests.iter().map(|busy| (requests, busy.up_to(now))));
            let beats = |direction| resource(place, Cause::DataPath, Some(direction), 1);
            all.push((beats(Upstream), engine.busy.sent.up_to(now)));
            if engine.is_full_duplex() {
                all.push((beats(Upstream), engine.busy.sent_reads.up_to(now)));
                all.push((requests, engine.busy.shared_part.up_to(now)));
            }
            all.push((beats(Downstream), engine.busy.received.up_to(now)));
        }
        all
    }
}
