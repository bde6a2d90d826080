//! The translations that a device keeps itself: its Address Translation Cache.
//!
//! ```text
//!  a channel's next request --known------------------------> translated, to the link
//!                            \--not--> asked of the IOMMU --> kept, and the request that waited goes
//! ```
//!
//! Ports: [`Atc::find`] says where the page of a channel's next request leads, and [`Atc::translate`] makes that request a translated one.
//! Where it is not known, [`Atc::ask`] makes the question, and [`Atc::comes`] and [`Atc::take_answer`] take what the IOMMU says; until then
//! the channel [waits](Atc::held_until). [`Atc::invalidate`] takes an Invalidate Request, and [`Atc::take_done`] says when its completion
//! may go.
//!
//! A channel has one question under way at the most, and a tag for it that no read has. So nobody waits for an answer who is waited for
//! by reads: neither those that hold all other tags, nor completions that a full queue holds up.
//!
//! One place is as good as another, and the translation used longest ago makes room. A page of which the device may do nothing, or
//! not this, is not kept out: the request goes untranslated, so that the IOMMU refuses and records it as those of others.
//!
//! What was told to be forgotten is used by no request that is made then. Its completion goes behind every write that was made before, and
//! when every read that used it has come. An answer that was on its way meanwhile may be of before, and is asked for again.
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

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its number as a requester.
    pub requester: u16,
    /// Translations that it keeps.
    pub entries: usize,
    /// Bytes of a page, a power of two.
    pub page_bytes: u64,
    /// Channels that ask it.
    pub channels: usize,
    /// The tag of the first channel's questions; each other channel has the next.
    pub first_tag: u16,
}

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Where it leads; `None` if the IOMMU said nowhere.
    Known(Option<Entry>),
    /// Nothing: it has to be asked for.
    Unknown,
}

/// What a channel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    ForAnswer,
    /// For no more: this was answered, and is for its next request though it may have left the cache.
    Answered {
        page: u64,
        entry: Option<Entry>,
    },
}

/// A question under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Question {
    channel: usize,
    page: u64,
    asked: Ticks,
    /// Whether the page was told to be forgotten since.
    is_stale: bool,
}

/// A read under way that names where its page leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    page: u64,
    /// By how much the address of its requester lies above that of the host.
    above: u64,
}

/// An Invalidate Request that was taken and not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Invalidating {
    itag: u16,
    /// Whether every request that was made before has left.
    has_left: bool,
    /// Tags of the reads that have to come.
    reads: Vec<u16>,
}

/// How often it was asked, and how often it had to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests whose page was looked up.
    pub lookups: u64,
    /// Questions to the IOMMU.
    pub questions: u64,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atc {
    spec: Spec,
    cache: Iotlb,
    /// What it holds, by page.
    held: BTreeMap<u64, Entry>,
    /// What each channel waits for, and when its last answer came.
    waits: Vec<(Waits, Ticks)>,
    /// Since when each channel asks for its next request, if it had to.
    asking: Vec<Option<Ticks>>,
    /// By tag.
    questions: BTreeMap<u16, Question>,
    /// Answers on their way in, by the time their last beat is taken.
    coming: Wire<Tlp>,
    reads: BTreeMap<u16, Read>,
    /// The page of the request that is made next, and where it leads.
    next: Option<(u64, Option<Entry>)>,
    /// When somebody first asked for it, if anybody had to.
    begun: Option<Ticks>,
    forgetting: Option<Invalidating>,
    /// Since it was built.
    pub counted: Counted,
}

impl Atc {
    /// Knows no translation.
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

    /// Until when a channel makes no request because of it.
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

    /// When the last answer for a channel came.
    #[must_use]
    pub fn answered_at(&self, channel: usize) -> Ticks {
        self.waits[channel].1
    }

    /// Whether any channel waits for an answer.
    #[must_use]
    pub fn awaits_answers(&self) -> bool {
        !self.questions.is_empty()
    }

    /// The next request of a channel is for no page that is translated.
    pub fn skip(&mut self) {
        (self.next, self.begun) = (None, None);
    }

    /// When the request that is made next was first asked for; `now` if its page was known.
    #[must_use]
    pub fn begun(&self, now: Ticks) -> Ticks {
        self.begun.unwrap_or(now)
    }

    /// Where the page of a channel's next request leads.
    pub fn find(&mut self, channel: usize, address: u64) -> Found {
        let page = address / self.spec.page_bytes;
        let waited = std::mem::replace(&mut self.waits[channel].0, Waits::Nothing);
        let entry = match waited {
            Waits::Answered { page: other, entry } if other == page => entry,
            _ if self.cache.find(page) => self.held.get(&page).copied(),
            _ => return Found::Unknown,
        };
        self.counted.lookups += 1;
        self.next = Some((page, entry));
        self.begun = self.asking[channel].take();
        Found::Known(entry)
    }

    /// The question where the page of an address leads.
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

    /// When the question of this tag was asked, if it is under way.
    #[must_use]
    pub fn asked_at(&self, tag: u16) -> Option<Ticks> {
        self.questions.get(&tag).map(|question| question.asked)
    }

    /// A completion is there at `at`; says whether it is taken, for it answers a question that is under way.
    pub fn comes(&mut self, at: Ticks, tlp: Tlp) -> bool {
        let is_answer = self.questions.contains_key(&tlp.tag);
        if is_answer {
            self.coming.send(at, tlp);
        }
        is_answer
    }

    /// When the next answer is there.
    #[inline]
    #[must_use]
    pub fn answer_due(&self) -> Ticks {
        self.coming.due()
    }

    /// The next answer, if it is there.
    pub fn take_answer(&mut self, now: Ticks) -> Option<Tlp> {
        self.coming.take(now)
    }

    /// The IOMMU has answered, or somebody has said that it will not: the channel goes on.
    pub fn learn(&mut self, now: Ticks, tlp: &Tlp, data: [u8; 8]) {
        let Some(Question { channel, page, is_stale, .. }) = self.questions.remove(&tlp.tag) else { return };
        let is_good = tlp.kind == TlpKind::CplD && tlp.flaw == Flaw::None;
        let entry = if is_good { self.entry_of(data) } else { None };
        let waits = if is_stale { Waits::Nothing } else { Waits::Answered { page, entry } };
        self.waits[channel] = (waits, now);
        if let Some(entry) = entry.filter(|_| !is_stale) {
            // Another channel may have asked for the same.
            if !self.cache.find(page)
                && let Some(left) = self.cache.enter(page)
            {
                self.held.remove(&left);
            }
            self.held.insert(page, entry);
        }
    }

    /// What data of a completion mean; `None` where nothing may be done.
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

    /// The request whose page was looked up last goes where that leads, if it may; says by how much it was above that.
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

    /// By how much the address that the read of this tag was made for lies above that of its completions.
    #[must_use]
    pub fn above(&self, tag: u16) -> u64 {
        self.reads.get(&tag).map_or(0, |read| read.above)
    }

    /// All of a read has come.
    pub fn read_ends(&mut self, tag: u16) {
        self.reads.remove(&tag);
        if let Some(forgetting) = &mut self.forgetting {
            forgetting.reads.retain(|other| *other != tag);
        }
    }

    /// An Invalidate Request: none of these addresses leads anywhere that is known.
    pub fn invalidate(&mut self, range: AddressRange, itag: u16) {
        let page_bytes = self.spec.page_bytes;
        let is_gone = |page: u64| range.contains(page * page_bytes);
        self.lose(is_gone);
        let reads = self.reads.iter().filter(|(_, read)| is_gone(read.page)).map(|(tag, _)| *tag).collect();
        self.forgetting = Some(Invalidating { itag, has_left: false, reads });
    }

    /// Somebody else has all of its translations now: none is known.
    pub fn invalidate_all(&mut self) {
        self.lose(|_| true);
    }

    /// Where such pages lead is not known, nor what is on its way about them.
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

    /// Whether it waits for requests to leave.
    #[must_use]
    pub fn awaits_leaving(&self) -> bool {
        self.forgetting.as_ref().is_some_and(|forgetting| !forgetting.has_left)
    }

    /// Every request that was made before has left.
    pub fn all_left(&mut self) {
        if let Some(forgetting) = &mut self.forgetting {
            forgetting.has_left = true;
        }
    }

    /// Whether an Invalidate Completion may go.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.forgetting.as_ref().is_some_and(|forgetting| forgetting.has_left && forgetting.reads.is_empty())
    }

    /// The Invalidate Completion, if it may go.
    pub fn take_done(&mut self) -> Option<Tlp> {
        let Invalidating { itag, .. } = self.is_done().then(|| self.forgetting.take())??;
        // Of no DW no byte is left out.
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

    /// The answer to a question of this tag comes, and is taken; whether it was one.
    fn answer(atc: &mut Atc, tag: u16, data: [u8; 8]) -> bool {
        let comes = atc.comes(Ticks(9), Tlp { tag, ..Tlp::of(TlpKind::CplD) });
        assert_eq!(atc.answer_due(), if comes { Ticks(9) } else { Ticks::NEVER });
        assert_eq!(atc.take_answer(Ticks(8)), None);
        atc.take_answer(Ticks(9)).map(|tlp| atc.learn(Ticks(9), &tlp, data)).is_some()
    }

    /// Channel 0 asks for a page, and is answered that it leads a hundred pages on.
    fn learn(atc: &mut Atc, page: u64) {
        atc.ask(Ticks(1), 0, page * PAGE);
        assert!(answer(atc, 3, data(page + 100, true, true)));
        assert!(matches!(atc.find(0, page * PAGE), Found::Known(Some(_))));
    }

    /// Where a request for this page goes.
    fn goes(atc: &mut Atc, kind: TlpKind, page: u64) -> (u64, AddressType) {
        assert!(matches!(atc.find(0, page * PAGE), Found::Known(_)), "{page}");
        let mut tlp = Tlp { address: page * PAGE + 8, tag: 1, ..Tlp::of(kind) };
        let above = atc.translate(&mut tlp);
        assert_eq!(tlp.address.wrapping_add(above), page * PAGE + 8);
        (tlp.address, tlp.at)
    }

    #[test]
    fn a_channel_waits_for_its_answer_and_others_do_not() {
        let mut atc = Atc::new(SPEC);
        assert_eq!(atc.find(0, 5 * PAGE + 8), Found::Unknown);
        let question = atc.ask(Ticks(1), 0, 5 * PAGE + 8);
        assert_eq!((question.address, question.length_dw, question.tag), (5 * PAGE, 2, 3));
        assert_eq!((atc.held_until(0), atc.held_until(1)), (Ticks::NEVER, Ticks::ZERO));
        assert!(!answer(&mut atc, 4, [0; 8]), "nothing was asked with that");
        assert!(answer(&mut atc, 3, data(105, true, true)));
        assert_eq!((atc.held_until(0), atc.answered_at(0)), (Ticks::ZERO, Ticks(9)));
        assert_eq!(goes(&mut atc, TlpKind::MWr, 5), (105 * PAGE + 8, AddressType::Translated));
    }

    #[test]
    fn the_translation_used_longest_ago_leaves_and_an_answer_serves_its_channel_though_it_has_left() {
        let mut atc = Atc::new(SPEC);
        learn(&mut atc, 1);
        learn(&mut atc, 2);
        goes(&mut atc, TlpKind::MWr, 1);
        learn(&mut atc, 3);
        assert_eq!(atc.find(0, 2 * PAGE), Found::Unknown);
        assert!(matches!(atc.find(0, PAGE), Found::Known(Some(_))));
        // What channel 1 asked for leaves before its request is made.
        atc.ask(Ticks(1), 1, 6 * PAGE);
        answer(&mut atc, 4, data(106, true, true));
        learn(&mut atc, 7);
        learn(&mut atc, 8);
        assert!(matches!(atc.find(1, 6 * PAGE), Found::Known(Some(_))));
        assert_eq!(atc.find(1, 6 * PAGE), Found::Unknown, "and once only");
    }

    #[test]
    fn what_may_not_be_done_goes_untranslated_and_that_nothing_may_is_not_kept() {
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
        assert_eq!(atc.find(0, 2 * PAGE), Found::Unknown);
        // Nor is that somebody refused to say.
        atc.ask(Ticks(1), 0, 2 * PAGE);
        atc.learn(Ticks(9), &Tlp { tag: 3, ..Tlp::of(TlpKind::Cpl) }, data(9, true, true));
        assert_eq!(goes(&mut atc, TlpKind::MRd, 2), (2 * PAGE + 8, AddressType::Untranslated));
    }

    #[test]
    fn what_is_forgotten_is_asked_for_again_and_so_is_an_answer_that_was_on_its_way() {
        let mut atc = Atc::new(SPEC);
        learn(&mut atc, 1);
        atc.ask(Ticks(1), 0, 2 * PAGE);
        atc.ask(Ticks(1), 1, 6 * PAGE);
        // Pages 0 to 3.
        atc.invalidate(AddressRange::new(0, 14), 5);
        answer(&mut atc, 3, data(102, true, true));
        answer(&mut atc, 4, data(106, true, true));
        atc.all_left();
        assert_eq!([1, 2].map(|page| atc.find(0, page * PAGE)), [Found::Unknown; 2]);
        assert!(matches!(atc.find(1, 6 * PAGE), Found::Known(Some(_))));
        // An answer that has come and was not used is forgotten too.
        atc.ask(Ticks(1), 0, 2 * PAGE);
        answer(&mut atc, 3, data(102, true, true));
        atc.invalidate(AddressRange::ALL, 6);
        assert_eq!(atc.find(0, 2 * PAGE), Found::Unknown);
    }

    #[test]
    fn a_request_begins_when_its_page_is_first_asked_for_though_the_answer_is_dropped() {
        let mut atc = Atc::new(SPEC);
        for at in [1, 20] {
            atc.ask(Ticks(at), 0, 2 * PAGE);
            if at == 1 {
                atc.invalidate_all();
            }
            answer(&mut atc, 3, data(102, true, true));
            assert_eq!(atc.find(0, 2 * PAGE) == Found::Unknown, at == 1);
        }
        assert_eq!(atc.begun(Ticks(30)), Ticks(1));
        assert!(matches!(atc.find(0, 2 * PAGE), Found::Known(_)));
        assert_eq!(atc.begun(Ticks(31)), Ticks(31), "the next one waits for nobody");
    }

    #[test]
    fn the_completion_goes_when_all_has_left_and_every_read_that_used_it_has_come() {
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
        // A read of another page is not waited for.
        learn(&mut atc, 2);
        goes(&mut atc, TlpKind::MRd, 2);
        atc.invalidate(AddressRange::new(PAGE, 12), 6);
        atc.all_left();
        assert!(atc.is_done());
    }
}
