//! The Address Translation Cache (ATC) of a device.
//!
//! ```text
//!  a channel's next request --hit----------------------------> translated, to the link
//!                            \--miss--> Translation Request --> cached, and the request continues
//! ```
//!
//! Ports: [`Atc::find`] looks up the page of a channel's next request, and [`Atc::translate`] translates that
//! request. After a miss, [`Atc::ask`] builds the Translation Request, and [`Atc::comes`] and [`Atc::take_answer`]
//! receive its completion; until then the channel [stalls](Atc::held_until). [`Atc::invalidate`] receives an
//! Invalidate Request, and [`Atc::take_done`] returns its completion.
//!
//! A channel has at most one outstanding Translation Request, with a tag that no read uses. This prevents deadlock
//! between Translation Requests and reads: neither exhausted tags nor completions blocked by a full queue delay a
//! translation.
//!
//! The cache is fully associative, with LRU replacement. A page that the device may not access is not cached. Its
//! request is sent untranslated, so that the IOMMU refuses and records it.
//!
//! New requests do not use an invalidated translation. The Invalidate Completion follows every earlier write, and
//! waits for every outstanding read that used the translation. A translation that arrives meanwhile may be stale, so
//! it is requested again.
//!
//! Source: PCI Express Base Specification 5.0, sections 10.2 and 10.3.

use crate::iommu::iotlb::{self, Iotlb};
use crate::iommu::translation_table::Entry;
use crate::tlp::{AddressType, Flaw, Tlp, TlpKind, span};
use lanemark_dma::Permission;
use lanemark_engine::Wire;
use lanemark_units::Ticks;
use lanemark_wire::ats::{AddressRange, ENTRY_BYTES, TranslationEntry};
use std::collections::BTreeMap;

/// Constants of the ATC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Requester ID of the device.
    pub requester: u16,
    /// Number of cached translations.
    pub entries: usize,
    /// Page size in bytes, a power of two.
    pub page_bytes: u64,
    /// Number of channels.
    pub channels: usize,
    /// Tag of the first channel's Translation Requests; each further channel uses the next tag.
    pub first_tag: u16,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A hit: the translation; `None` if the IOMMU returned no permission.
    Known(Option<Entry>),
    /// A miss: a Translation Request is needed.
    Unknown,
}

/// The event that a channel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    ForAnswer,
    /// The answer is kept for the channel's next request, even if it has left the cache.
    Answered {
        page: u64,
        entry: Option<Entry>,
    },
}

/// An outstanding Translation Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Question {
    channel: usize,
    page: u64,
    asked: Ticks,
    /// Whether the page was invalidated since.
    is_stale: bool,
}

/// An outstanding read with a translated address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    page: u64,
    /// Difference between the requester's address and the host address.
    above: u64,
}

/// An Invalidate Request whose completion is outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Invalidating {
    itag: u16,
    /// Whether every earlier request has left.
    has_left: bool,
    /// Tags of the outstanding reads to wait for.
    reads: Vec<u16>,
}

/// Lookup counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests looked up.
    pub lookups: u64,
    /// Translation Requests issued.
    pub questions: u64,
}

/// State of the ATC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atc {
    spec: Spec,
    cache: Iotlb,
    /// Cached translations, by page.
    held: BTreeMap<u64, Entry>,
    /// What each channel waits for, and the time of its last answer.
    waits: Vec<(Waits, Ticks)>,
    /// Time at which each channel first requested the translation of its next request, if it missed.
    asking: Vec<Option<Ticks>>,
    /// Outstanding Translation Requests, by tag.
    questions: BTreeMap<u16, Question>,
    /// Answers in flight, in the order in which their last beats are received.
    coming: Wire<Tlp>,
    reads: BTreeMap<u16, Read>,
    /// Page and translation of the next request.
    next: Option<(u64, Option<Entry>)>,
    /// Time at which that translation was first requested, after a miss.
    begun: Option<Ticks>,
    forgetting: Option<Invalidating>,
    /// Counters since construction.
    pub counted: Counted,
}

impl Atc {
    /// Creates an empty ATC.
    #[must_use]
    pub fn new(spec: Spec) -> Atc {
        Atc {
            cache: Iotlb::new(iotlb::Spec { sets: 1, ways: spec.entries, index_bit: 0 }),
            held: BTreeMap::new(),
            waits: vec![(Waits::Nothing, Ticks::ZERO); spec.channels],
            asking: vec![None; spec.channels],
            begun: None,
            questions: BTreeMap::new(),
            coming: Wire::default(),
            reads: BTreeMap::new(),
            next: None,
            forgetting: None,
            counted: Counted::default(),
            spec,
        }
    }

    /// Returns the time until which a channel is stalled by the ATC.
    #[must_use]
    pub fn held_until(&self, channel: usize) -> Ticks {
        if self.forgetting.as_ref().is_some_and(|forgetting| !forgetting.has_left) {
            return Ticks::NEVER;
        }
        match self.waits[channel].0 {
            Waits::Nothing | Waits::Answered { .. } => Ticks::ZERO,
            Waits::ForAnswer => Ticks::NEVER,
        }
    }

    /// Returns the time of the last answer for a channel.
    #[must_use]
    pub fn answered_at(&self, channel: usize) -> Ticks {
        self.waits[channel].1
    }

    /// Returns whether any Translation Request is outstanding.
    #[must_use]
    pub fn awaits_answers(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Marks the next request of a channel as one that needs no translation.
    pub fn skip(&mut self) {
        (self.next, self.begun) = (None, None);
    }

    /// Returns when the translation of the next request was first requested; `now` after a hit.
    #[must_use]
    pub fn begun(&self, now: Ticks) -> Ticks {
        self.begun.unwrap_or(now)
    }

    /// Looks up the page of a channel's next request.
    pub fn find(&mut self, channel: usize, address: u64) -> Lookup {
        let page = address / self.spec.page_bytes;
        let waited = std::mem::replace(&mut self.waits[channel].0, Waits::Nothing);
        let entry = match waited {
            Waits::Answered { page: other, entry } if other == page => entry,
            _ if self.cache.find(page) => self.held.get(&page).copied(),
            _ => return Lookup::Unknown,
        };
        self.counted.lookups += 1;
        self.next = Some((page, entry));
        self.begun = self.asking[channel].take();
        Lookup::Known(entry)
    }

    /// Builds the Translation Request for an address.
    pub fn ask(&mut self, now: Ticks, channel: usize, address: u64) -> Tlp {
        self.counted.questions += 1;
        let tag = self.spec.first_tag + channel as u16;
        let page = address / self.spec.page_bytes;
        self.waits[channel].0 = Waits::ForAnswer;
        self.asking[channel].get_or_insert(now);
        self.questions.insert(tag, Question { channel, page, asked: now, is_stale: false });
        let (address, length_dw, first_be, last_be) = span(page * self.spec.page_bytes, u64::from(ENTRY_BYTES));
        let (requester, at) = (self.spec.requester, AddressType::TranslationRequest);
        Tlp { address, length_dw, first_be, last_be, requester, tag, at, ..Tlp::of(TlpKind::MRd) }
    }

    /// Returns when the Translation Request of this tag was issued, if it is outstanding.
    #[must_use]
    pub fn asked_at(&self, tag: u16) -> Option<Ticks> {
        self.questions.get(&tag).map(|question| question.asked)
    }

    /// Receives a completion with arrival time `at`; returns whether it answers an outstanding Translation Request.
    pub fn comes(&mut self, at: Ticks, tlp: Tlp) -> bool {
        let is_answer = self.questions.contains_key(&tlp.tag);
        if is_answer {
            self.coming.send(at, tlp);
        }
        is_answer
    }

    /// Returns when the next answer arrives.
    #[inline]
    #[must_use]
    pub fn answer_due(&self) -> Ticks {
        self.coming.due()
    }

    /// Returns the next answer that has arrived by `now`.
    pub fn take_answer(&mut self, now: Ticks) -> Option<Tlp> {
        self.coming.take(now)
    }

    /// Processes an answer of the IOMMU, or its failure; the channel continues.
    pub fn learn(&mut self, now: Ticks, tlp: &Tlp, data: [u8; 8]) {
        let Some(Question { channel, page, is_stale, .. }) = self.questions.remove(&tlp.tag) else { return };
        let is_good = tlp.kind == TlpKind::CplD && tlp.flaw == Flaw::None;
        let entry = if is_good { self.entry_of(data) } else { None };
        let waits = if is_stale { Waits::Nothing } else { Waits::Answered { page, entry } };
        self.waits[channel] = (waits, now);
        if let Some(entry) = entry.filter(|_| !is_stale) {
            // Another channel may have requested the same page.
            if !self.cache.find(page)
                && let Some(left) = self.cache.enter(page)
            {
                self.held.remove(&left);
            }
            self.held.insert(page, entry);
        }
    }

    /// Decodes a translation; `None` if it permits no access.
    fn entry_of(&self, data: [u8; 8]) -> Option<Entry> {
        let TranslationEntry { leads_to, reads, writes } = TranslationEntry::from_bytes(data);
        let permission = match (reads, writes) {
            (true, true) => Permission::ReadWrite,
            (true, false) => Permission::Read,
            (false, true) => Permission::Write,
            (false, false) => return None,
        };
        Some(Entry { page: leads_to.start() / self.spec.page_bytes, permission })
    }

    /// Translates the request whose page was looked up last, if it is permitted. Returns the difference of the
    /// addresses.
    pub fn translate(&mut self, tlp: &mut Tlp) -> u64 {
        let Some((page, Some(entry))) = self.next.take() else { return 0 };
        let is_read = tlp.kind == TlpKind::MRd;
        let may = if is_read { entry.permission.reads() } else { entry.permission.writes() };
        if !may {
            return 0;
        }
        let above = page.wrapping_sub(entry.page).wrapping_mul(self.spec.page_bytes);
        tlp.address = tlp.address.wrapping_sub(above);
        tlp.at = AddressType::Translated;
        if is_read {
            self.reads.insert(tlp.tag, Read { page, above });
        }
        above
    }

    /// Returns the difference between the requester's address and the host address of the read with this tag.
    #[must_use]
    pub fn above(&self, tag: u16) -> u64 {
        self.reads.get(&tag).map_or(0, |read| read.above)
    }

    /// Records that a read has completed.
    pub fn read_ends(&mut self, tag: u16) {
        self.reads.remove(&tag);
        if let Some(forgetting) = &mut self.forgetting {
            forgetting.reads.retain(|other| *other != tag);
        }
    }

    /// Receives an Invalidate Request for a range of addresses.
    pub fn invalidate(&mut self, range: AddressRange, itag: u16) {
        let page_bytes = self.spec.page_bytes;
        let is_gone = |page: u64| range.contains(page * page_bytes);
        self.lose(is_gone);
        let reads = self.reads.iter().filter(|(_, read)| is_gone(read.page)).map(|(tag, _)| *tag).collect();
        self.forgetting = Some(Invalidating { itag, has_left: false, reads });
    }

    /// Invalidates every translation, when all translations of the board change.
    pub fn invalidate_all(&mut self) {
        self.lose(|_| true);
    }

    /// Drops the translations of matching pages, and marks their outstanding requests as stale.
    fn lose(&mut self, is_gone: impl Fn(u64) -> bool) {
        let gone: Vec<u64> = self.held.keys().copied().filter(|page| is_gone(*page)).collect();
        for page in gone {
            self.held.remove(&page);
            self.cache.leave(page);
        }
        for (waits, _) in &mut self.waits {
            if matches!(waits, Waits::Answered { page, .. } if is_gone(*page)) {
                *waits = Waits::Nothing;
            }
        }
        self.questions.values_mut().filter(|question| is_gone(question.page)).for_each(|old| old.is_stale = true);
    }

    /// Returns whether an Invalidate Request waits for earlier requests to leave.
    #[must_use]
    pub fn awaits_leaving(&self) -> bool {
        self.forgetting.as_ref().is_some_and(|forgetting| !forgetting.has_left)
    }

    /// Records that every earlier request has left.
    pub fn all_left(&mut self) {
        if let Some(forgetting) = &mut self.forgetting {
            forgetting.has_left = true;
        }
    }

    /// Returns whether an Invalidate Completion may be sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.forgetting.as_ref().is_some_and(|forgetting| forgetting.has_left && forgetting.reads.is_empty())
    }

    /// Returns the Invalidate Completion, if it may be sent.
    pub fn take_done(&mut self) -> Option<Tlp> {
        let Invalidating { itag, .. } = self.is_done().then(|| self.forgetting.take())??;
        // A message without data has all byte enables set.
        Some(Tlp { requester: self.spec.requester, tag: itag, first_be: 0xF, ..Tlp::of(TlpKind::Msg) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Spec = Spec { requester: 7, entries: 2, page_bytes: 4096, channels: 2, first_tag: 3 };
    const PAGE: u64 = 4096;

    fn data(page: u64, reads: bool, writes: bool) -> [u8; 8] {
        TranslationEntry { leads_to: AddressRange::new(page * PAGE, 12), reads, writes }.to_bytes()
    }

    /// Delivers an answer with this tag; returns whether it was accepted.
    fn answer(atc: &mut Atc, tag: u16, data: [u8; 8]) -> bool {
        let comes = atc.comes(Ticks(9), Tlp { tag, ..Tlp::of(TlpKind::CplD) });
        assert_eq!(atc.answer_due(), if comes { Ticks(9) } else { Ticks::NEVER });
        assert_eq!(atc.take_answer(Ticks(8)), None);
        atc.take_answer(Ticks(9)).map(|tlp| atc.learn(Ticks(9), &tlp, data)).is_some()
    }

    /// Requests the translation of a page for channel 0, which leads a hundred pages on.
    fn learn(atc: &mut Atc, page: u64) {
        atc.ask(Ticks(1), 0, page * PAGE);
        assert!(answer(atc, 3, data(page + 100, true, true)));
        assert!(matches!(atc.find(0, page * PAGE), Lookup::Known(Some(_))));
    }

    /// Returns the address and type of a request for a page.
    fn goes(atc: &mut Atc, kind: TlpKind, page: u64) -> (u64, AddressType) {
        assert!(matches!(atc.find(0, page * PAGE), Lookup::Known(_)), "{page}");
        let mut tlp = Tlp { address: page * PAGE + 8, tag: 1, ..Tlp::of(kind) };
        let above = atc.translate(&mut tlp);
        assert_eq!(tlp.address.wrapping_add(above), page * PAGE + 8);
        (tlp.address, tlp.at)
    }

    #[test]
    fn a_channel_waits_for_its_answer_and_other_channels_continue() {
        let mut atc = Atc::new(SPEC);
        assert_eq!(atc.find(0, 5 * PAGE + 8), Lookup::Unknown);
        let question = atc.ask(Ticks(1), 0, 5 * PAGE + 8);
        assert_eq!((question.address, question.length_dw, question.tag), (5 * PAGE, 2, 3));
        assert_eq!((atc.held_until(0), atc.held_until(1)), (Ticks::NEVER, Ticks::ZERO));
        assert!(!answer(&mut atc, 4, [0; 8]), "no request has this tag");
        assert!(answer(&mut atc, 3, data(105, true, true)));
        assert_eq!((atc.held_until(0), atc.answered_at(0)), (Ticks::ZERO, Ticks(9)));
        assert_eq!(goes(&mut atc, TlpKind::MWr, 5), (105 * PAGE + 8, AddressType::Translated));
    }

    #[test]
    fn an_answer_serves_its_channel_even_after_lru_replacement() {
        let mut atc = Atc::new(SPEC);
        learn(&mut atc, 1);
        learn(&mut atc, 2);
        goes(&mut atc, TlpKind::MWr, 1);
        learn(&mut atc, 3);
        assert_eq!(atc.find(0, 2 * PAGE), Lookup::Unknown);
        assert!(matches!(atc.find(0, PAGE), Lookup::Known(Some(_))));
        // The answer for channel 1 is replaced before its request is made.
        atc.ask(Ticks(1), 1, 6 * PAGE);
        answer(&mut atc, 4, data(106, true, true));
        learn(&mut atc, 7);
        learn(&mut atc, 8);
        assert!(matches!(atc.find(1, 6 * PAGE), Lookup::Known(Some(_))));
        assert_eq!(atc.find(1, 6 * PAGE), Lookup::Unknown, "it is used once");
    }

    #[test]
    fn a_forbidden_access_is_sent_untranslated_and_no_permission_is_not_cached() {
        let mut atc = Atc::new(SPEC);
        for (reads, writes) in [(true, false), (false, true)] {
            atc.ask(Ticks(1), 0, PAGE);
            answer(&mut atc, 3, data(101, reads, writes));
            let at = |may| if may { AddressType::Translated } else { AddressType::Untranslated };
            assert_eq!(goes(&mut atc, TlpKind::MRd, 1).1, at(reads));
            assert_eq!(goes(&mut atc, TlpKind::MWr, 1).1, at(writes));
        }
        atc.ask(Ticks(1), 0, 2 * PAGE);
        answer(&mut atc, 3, [0; 8]);
        assert_eq!(goes(&mut atc, TlpKind::MRd, 2), (2 * PAGE + 8, AddressType::Untranslated));
        assert_eq!(atc.find(0, 2 * PAGE), Lookup::Unknown);
        // A failed answer is not cached either.
        atc.ask(Ticks(1), 0, 2 * PAGE);
        atc.learn(Ticks(9), &Tlp { tag: 3, ..Tlp::of(TlpKind::Cpl) }, data(9, true, true));
        assert_eq!(goes(&mut atc, TlpKind::MRd, 2), (2 * PAGE + 8, AddressType::Untranslated));
    }

    #[test]
    fn invalidated_translations_and_stale_answers_are_requested_again() {
        let mut atc = Atc::new(SPEC);
        learn(&mut atc, 1);
        atc.ask(Ticks(1), 0, 2 * PAGE);
        atc.ask(Ticks(1), 1, 6 * PAGE);
        // Pages 0 to 3.
        atc.invalidate(AddressRange::new(0, 14), 5);
        answer(&mut atc, 3, data(102, true, true));
        answer(&mut atc, 4, data(106, true, true));
        atc.all_left();
        assert_eq!([1, 2].map(|page| atc.find(0, page * PAGE)), [Lookup::Unknown; 2]);
        assert!(matches!(atc.find(1, 6 * PAGE), Lookup::Known(Some(_))));
        // An answer that has arrived and was not used is dropped too.
        atc.ask(Ticks(1), 0, 2 * PAGE);
        answer(&mut atc, 3, data(102, true, true));
        atc.invalidate(AddressRange::ALL, 6);
        assert_eq!(atc.find(0, 2 * PAGE), Lookup::Unknown);
    }

    #[test]
    fn a_request_begins_at_its_first_translation_request_even_if_the_answer_is_stale() {
        let mut atc = Atc::new(SPEC);
        for at in [1, 20] {
            atc.ask(Ticks(at), 0, 2 * PAGE);
            if at == 1 {
                atc.invalidate_all();
            }
            answer(&mut atc, 3, data(102, true, true));
            assert_eq!(atc.find(0, 2 * PAGE) == Lookup::Unknown, at == 1);
        }
        assert_eq!(atc.begun(Ticks(30)), Ticks(1));
        assert!(matches!(atc.find(0, 2 * PAGE), Lookup::Known(_)));
        assert_eq!(atc.begun(Ticks(31)), Ticks(31), "the next one hits");
    }

    #[test]
    fn the_invalidate_completion_follows_earlier_requests_and_reads_that_used_it() {
        let mut atc = Atc::new(SPEC);
        learn(&mut atc, 1);
        goes(&mut atc, TlpKind::MRd, 1);
        atc.invalidate(AddressRange::new(PAGE, 12), 5);
        assert_eq!((atc.held_until(0), atc.take_done()), (Ticks::NEVER, None));
        atc.all_left();
        assert_eq!((atc.held_until(0), atc.take_done()), (Ticks::ZERO, None));
        atc.read_ends(1);
        let done = atc.take_done().unwrap();
        assert_eq!((done.kind, done.tag, done.requester), (TlpKind::Msg, 5, 7));
        assert_eq!(atc.take_done(), None);
        // A read of another page does not delay it.
        learn(&mut atc, 2);
        goes(&mut atc, TlpKind::MRd, 2);
        atc.invalidate(AddressRange::new(PAGE, 12), 6);
        atc.all_left();
        assert!(atc.is_done());
    }
}
