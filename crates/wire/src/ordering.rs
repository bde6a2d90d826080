//! TLP ordering rules.
//!
//! Within one traffic class and direction, [`may_pass`] tells whether a TLP may pass an older one. *No* preserves the
//! producer/consumer model, *Yes* prevents deadlock, and *Y/N* leaves the choice to the component.

use crate::tlp::FlowClass;

/// Whether a TLP passes an older TLP queued for the same link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pass {
    /// Must not pass.
    No,
    /// Must pass if the older TLP is blocked; otherwise a deadlock is possible.
    Yes,
    /// May pass: `Y/N` in the specification.
    Either,
}

/// Properties of a TLP that the ordering rules use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ordered {
    /// Flow class. Non-posted requests with data are treated as reads, which differ only in side effects of their data.
    pub class: FlowClass,
    /// Relaxed Ordering, Attr\[1\].
    pub relaxed: bool,
    /// ID-Based Ordering, Attr\[2\].
    pub id_based: bool,
    /// Requester ID.
    pub requester: u16,
    /// Tag of the request.
    pub tag: u16,
}

/// One table entry: the rule for `later` passing `earlier`, and the exception to it.
struct Cell {
    later: FlowClass,
    earlier: FlowClass,
    /// Rule unless `exempt` holds.
    usual: Pass,
    exempt: fn(Ordered, Ordered) -> bool,
    otherwise: Pass,
}

const fn never(_: Ordered, _: Ordered) -> bool {
    false
}

/// ID-based ordering lets a TLP pass TLPs of other requesters.
const fn is_of_another(later: Ordered, earlier: Ordered) -> bool {
    later.id_based && later.requester != earlier.requester
}

const fn is_free(later: Ordered, earlier: Ordered) -> bool {
    later.relaxed || is_of_another(later, earlier)
}

const fn is_relaxed(later: Ordered, _: Ordered) -> bool {
    later.relaxed
}

const fn is_of_one_request(later: Ordered, earlier: Ordered) -> bool {
    later.requester == earlier.requester && later.tag == earlier.tag
}

/// The ordering table: the class that passes, and the class that is passed.
///
/// Source: PCI Express Base Specification 5.0, section 2.4.1, Table 2-40, entries A2 to D5. A posted request may always
/// pass a completion, as bridges must (A5b). ID-based ordering does not apply to completions here: it depends on the
/// completer, which [`Ordered`] does not contain, and *Y/N* leaves the choice to the component.
const CELLS: [Cell; 9] = {
    const POSTED: FlowClass = FlowClass::Posted;
    const NON_POSTED: FlowClass = FlowClass::NonPosted;
    const COMPLETION: FlowClass = FlowClass::Completion;
    const fn cell(later: FlowClass, earlier: FlowClass, usual: Pass) -> Cell {
        Cell { later, earlier, usual, exempt: never, otherwise: usual }
    }
    [
        Cell { exempt: is_free, otherwise: Pass::Either, ..cell(POSTED, POSTED, Pass::No) },
        cell(POSTED, NON_POSTED, Pass::Yes),
        cell(POSTED, COMPLETION, Pass::Yes),
        Cell { exempt: is_of_another, otherwise: Pass::Either, ..cell(NON_POSTED, POSTED, Pass::No) },
        cell(NON_POSTED, NON_POSTED, Pass::Either),
        cell(NON_POSTED, COMPLETION, Pass::Either),
        Cell { exempt: is_relaxed, otherwise: Pass::Either, ..cell(COMPLETION, POSTED, Pass::No) },
        cell(COMPLETION, NON_POSTED, Pass::Yes),
        Cell { exempt: is_of_one_request, otherwise: Pass::No, ..cell(COMPLETION, COMPLETION, Pass::Either) },
    ]
};

/// Whether `later` may pass `earlier`, which arrived first.
///
/// ```
/// use lanemark_wire::{FlowClass, Ordered, Pass, may_pass};
/// let write = Ordered { class: FlowClass::Posted, relaxed: false, id_based: false, requester: 1, tag: 0 };
/// let read = Ordered { class: FlowClass::NonPosted, ..write };
/// assert_eq!(may_pass(read, write), Pass::No); // a read pushes writes before it
/// assert_eq!(may_pass(write, read), Pass::Yes);
/// assert_eq!(may_pass(Ordered { relaxed: true, ..write }, write), Pass::Either);
/// ```
#[must_use]
pub fn may_pass(later: Ordered, earlier: Ordered) -> Pass {
    let of_classes = |cell: &&Cell| cell.later == later.class && cell.earlier == earlier.class;
    CELLS
        .iter()
        .find(of_classes)
        .map_or(Pass::No, |cell| if (cell.exempt)(later, earlier) { cell.otherwise } else { cell.usual })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(class: FlowClass, requester: u16, tag: u16) -> Ordered {
        Ordered { class, relaxed: false, id_based: false, requester, tag }
    }

    #[test]
    fn every_pair_of_classes_has_one_table_entry() {
        for later in FlowClass::ALL {
            for earlier in FlowClass::ALL {
                assert_eq!(CELLS.iter().filter(|cell| cell.later == later && cell.earlier == earlier).count(), 1);
            }
        }
    }

    #[test]
    fn the_table_without_attributes_is_that_of_the_specification() {
        let rows = FlowClass::ALL
            .map(|later| FlowClass::ALL.map(|earlier| may_pass(ordered(later, 1, 1), ordered(earlier, 1, 2))));
        let [no, yes, either] = [Pass::No, Pass::Yes, Pass::Either];
        assert_eq!(rows, [[no, yes, yes], [no, either, either], [no, yes, either]]);
    }

    #[test]
    fn relaxed_ordering_lets_writes_and_completions_pass_and_no_reads() {
        let earlier = ordered(FlowClass::Posted, 1, 0);
        for (class, wanted) in
            [(FlowClass::Posted, Pass::Either), (FlowClass::NonPosted, Pass::No), (FlowClass::Completion, Pass::Either)]
        {
            assert_eq!(may_pass(Ordered { relaxed: true, ..ordered(class, 1, 0) }, earlier), wanted, "{class:?}");
        }
    }

    #[test]
    fn id_based_ordering_lets_requests_pass_those_of_other_requesters_only() {
        for class in FlowClass::ALL {
            let later = Ordered { id_based: true, ..ordered(class, 1, 0) };
            let wanted = if class == FlowClass::Completion { Pass::No } else { Pass::Either };
            assert_eq!(may_pass(later, ordered(FlowClass::Posted, 2, 0)), wanted, "{class:?}");
            assert_eq!(may_pass(later, ordered(FlowClass::Posted, 1, 0)), Pass::No, "{class:?}");
        }
    }

    #[test]
    fn completions_of_one_read_stay_in_order() {
        let later = Ordered { relaxed: true, id_based: true, ..ordered(FlowClass::Completion, 1, 7) };
        assert_eq!(may_pass(later, ordered(FlowClass::Completion, 1, 7)), Pass::No);
        assert_eq!(may_pass(later, ordered(FlowClass::Completion, 1, 8)), Pass::Either);
        assert_eq!(may_pass(later, ordered(FlowClass::Completion, 2, 7)), Pass::Either);
    }
}
