//! Four ways to share a buffer with a device, on bytes: nothing (a coherent machine sees to it), flushes and purges, accesses
//! past the caches, and a bounce buffer. With all of its steps each is right on every board; with any one of them left out
//! there are cases in which somebody sees older bytes, and these are exactly the cases that are said here.
//!
//! It is what the question `coherence_cost` asks the price of, and H2 of the HP 9000 J/K class: without coherence software
//! flushes before what goes out and purges before what comes in, and after it, too, where processors prefetch.

use lanemark_coherent::{CoherentBoard, Spec, TransactionKind};
use lanemark_dma::{Buffer, Domain, Hints, Invalidation, MapRequest, Mapping, Permission, Ranges, Space, Turn};
use lanemark_units::{HostVirt, Ticks};

const LINE: usize = 32;
const CACHE_BYTES: u64 = 8 << 10;
/// Some lines, and before them one that is the processor's own.
const BUFFER: HostVirt = HostVirt(0x2_5020);
const BEFORE: HostVirt = HostVirt(0x2_5000);
const LEN: usize = 5 * LINE;
/// A program's own buffer, which no device sees.
const OWN: HostVirt = HostVirt(0x4_0400);
/// The processor whose turn it is, and another one.
const CPU: usize = 1;
const OTHER: usize = 0;
/// So often the buffer goes over: what a turn leaves behind is the next one's beginning.
const ROUNDS: u8 = 2;

type Bytes = [u8; LEN];

/// Bytes that no two lines have, and no two writings.
fn written(nth: u8) -> Bytes {
    std::array::from_fn(|place| nth * 40 + (place / LINE * 8 + place % 8) as u8)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Nothing is done.
    Coherent,
    /// The library is told whose turn it is.
    Flushed,
    /// The processor goes past the caches.
    Uncached,
    /// It uses a buffer of its own, and copies past the caches.
    Bounced,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// The machine's: caches look at what devices do.
    Coherence,
    /// `sync` for the device's turn: a flush of what goes out, a purge of what comes in.
    ForDevice,
    /// `sync` for the processor's turn: a purge of what was prefetched.
    ForCpu,
    /// Before a buffer is used past the caches, what they have of it is flushed.
    Emptied,
    /// Accesses go past the caches.
    PastCaches,
    /// What is in the program's own buffer is copied to the one the device reads.
    CopyOut,
    /// What the device wrote is copied to the program's own.
    CopyIn,
}

/// What the processor had of the buffer's lines when it was lent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    Nothing,
    Clean,
    Dirty,
}

/// What else happens while it is the device's turn: outbound before the device reads, inbound where it says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meanwhile {
    Nothing,
    /// The processor uses so much else that no line of the buffer stays; inbound when the device has written.
    CrowdsOut,
    /// The processor reads the line before the buffer, which is its own; inbound before the device writes.
    ReadsBeside,
    /// Another processor reads the buffer.
    OtherReads,
}

const OUT: [Meanwhile; 4] = [Meanwhile::Nothing, Meanwhile::CrowdsOut, Meanwhile::ReadsBeside, Meanwhile::OtherReads];
/// Nobody may read a buffer before the device has written it.
const IN: [Meanwhile; 3] = [Meanwhile::Nothing, Meanwhile::CrowdsOut, Meanwhile::ReadsBeside];

#[derive(Clone, Copy, Debug)]
struct Case {
    coherent: bool,
    prefetches: bool,
    held: Held,
    meanwhile: Meanwhile,
}

fn cases(meanwhile: &'static [Meanwhile]) -> impl Iterator<Item = Case> {
    let boards = [(true, false), (true, true), (false, false), (false, true)];
    boards.into_iter().flat_map(move |(coherent, prefetches)| {
        [Held::Nothing, Held::Clean, Held::Dirty].into_iter().flat_map(move |held| {
            meanwhile.iter().map(move |meanwhile| Case { coherent, prefetches, held, meanwhile: *meanwhile })
        })
    })
}

/// Whose bytes each line is: those of this round, or older ones, by how they were written; a line that nobody wrote like
/// that is an error.
fn is_right(seen: &Bytes, round: u8) -> bool {
    let known: Vec<Bytes> = (0..=FIRST_ROUND + round).map(written).collect();
    for (line, place) in seen.chunks(LINE).zip((0..).step_by(LINE)) {
        assert!(
            known.iter().any(|bytes| bytes[place..place + LINE] == *line),
            "nobody has written {line:?} at {place}"
        );
    }
    *seen == written(FIRST_ROUND + round)
}

/// What memory holds at first.
const OLD: u8 = 0;
/// What the processor had changed before the buffer was lent.
const SCRIBBLE: u8 = 1;
/// What a program's own buffer holds at first.
const OWN_OLD: u8 = 2;
/// What is written in the first round.
const FIRST_ROUND: u8 = 3;

/// A board, whoever lends, and the buffer lent.
struct Machine {
    domain: Domain<Ranges, CoherentBoard>,
    mapping: Mapping,
    way: Way,
    left_out: Option<Step>,
    case: Case,
}

impl Machine {
    fn new(case: Case, way: Way, left_out: Option<Step>) -> Machine {
        let mut spec = Spec::not_coherent(case.prefetches);
        spec.adapter.coherent = case.coherent;
        // So that boards are built soon.
        (spec.adapter.tlb.chain_bits, spec.adapter.tlb.block_bits) = (4, 6);
        spec.processor.cache.size_bytes = CACHE_BYTES;
        let mut board = CoherentBoard::new(spec).unwrap();
        for (at, bytes) in [(BUFFER, written(OLD)), (OWN, written(OWN_OLD))] {
            board.store_uncached(OTHER, at, &bytes).unwrap();
        }
        let ranges = Ranges::new(Space::of_device(22).unwrap()).unwrap().over_entries(16).unwrap();
        let mut domain = Domain::new("machine", ranges, board, Invalidation::Strict).unwrap();
        let lend = MapRequest::new(domain.attach("device 0").unwrap(), Permission::ReadWrite)
            .hints(Hints::NO_PREFETCH | Hints::ANY_ALIGNMENT);
        let mapping = domain.map(&mut Buffer::new(BUFFER, LEN as u64), lend, Ticks::ZERO).unwrap();
        let mut machine = Machine { domain, mapping, way, left_out, case };
        match case.held {
            Held::Nothing => {}
            Held::Clean => machine.board().load(CPU, BUFFER, &mut [0; LEN]).map(drop).unwrap(),
            Held::Dirty => machine.board().store(CPU, BUFFER, &written(SCRIBBLE)).map(drop).unwrap(),
        }
        if machine.takes(Step::Emptied) && matches!(way, Way::Uncached | Way::Bounced) {
            machine.board().flush(CPU, BUFFER, LEN).unwrap();
        }
        machine
    }

    fn board(&mut self) -> &mut CoherentBoard {
        self.domain.backend_mut()
    }

    fn takes(&self, step: Step) -> bool {
        self.left_out != Some(step)
    }

    fn sync(&mut self, step: Step, permission: Permission, turn: Turn) {
        if self.way == Way::Flushed && self.takes(step) {
            self.domain.sync(Buffer::new(BUFFER, LEN as u64), permission, turn).unwrap();
        }
    }

    fn goes_past(&self) -> bool {
        matches!(self.way, Way::Uncached | Way::Bounced) && self.takes(Step::PastCaches)
    }

    /// The processor writes what the device sees.
    fn write(&mut self, bytes: &Bytes) {
        if self.goes_past() {
            self.board().store_uncached(CPU, BUFFER, bytes).unwrap();
        } else {
            self.board().store(CPU, BUFFER, bytes).unwrap();
        }
    }

    /// The processor reads what the device sees.
    fn read(&mut self) -> Bytes {
        let mut seen = [0; LEN];
        if self.goes_past() {
            self.board().load_uncached(CPU, BUFFER, &mut seen).unwrap();
        } else {
            self.board().load(CPU, BUFFER, &mut seen).unwrap();
        }
        seen
    }

    fn own(&mut self) -> Bytes {
        let mut seen = [0; LEN];
        self.board().load(CPU, OWN, &mut seen).unwrap();
        seen
    }

    fn meanwhile(&mut self) {
        let board = self.domain.backend_mut();
        match self.case.meanwhile {
            Meanwhile::Nothing => {}
            // Other lines with the same places in the cache.
            Meanwhile::CrowdsOut => {
                board.load(CPU, HostVirt(BUFFER.0 + 2 * CACHE_BYTES), &mut [0; LEN]).map(drop).unwrap();
            }
            Meanwhile::ReadsBeside => board.load(CPU, BEFORE, &mut [0; LINE]).map(drop).unwrap(),
            Meanwhile::OtherReads => board.load(OTHER, BUFFER, &mut [0; LEN]).map(drop).unwrap(),
        }
        // What is fetched unasked comes, too.
        let later = board.now() + Ticks::whole_ns(100_000);
        board.run_until(later);
    }

    /// The processor writes, then the device reads, some times: does the device see it?
    fn outward(&mut self) -> bool {
        (0..ROUNDS).all(|round| {
            let bytes = written(FIRST_ROUND + round);
            if self.way == Way::Bounced {
                self.board().store(CPU, OWN, &bytes).unwrap();
                if self.takes(Step::CopyOut) {
                    let own = self.own();
                    self.write(&own);
                }
            } else {
                self.write(&bytes);
            }
            self.sync(Step::ForDevice, Permission::Read, Turn::Device);
            self.meanwhile();
            let (mut seen, at) = ([0; LEN], self.mapping.iova());
            self.board().device_read(0, at, &mut seen).unwrap();
            self.sync(Step::ForCpu, Permission::Read, Turn::Cpu);
            is_right(&seen, round)
        })
    }

    /// The device writes, then the processor reads, some times: does the processor see it, and does memory have it?
    fn inward(&mut self) -> bool {
        (0..ROUNDS).all(|round| {
            self.sync(Step::ForDevice, Permission::Write, Turn::Device);
            let crowds_out = self.case.meanwhile == Meanwhile::CrowdsOut;
            if !crowds_out {
                self.meanwhile();
            }
            let at = self.mapping.iova();
            self.board().device_write(0, at, &written(FIRST_ROUND + round)).unwrap();
            if crowds_out {
                self.meanwhile();
            }
            self.sync(Step::ForCpu, Permission::Write, Turn::Cpu);
            if self.way != Way::Bounced {
                return is_right(&self.read(), round);
            }
            if self.takes(Step::CopyIn) {
                let there = self.read();
                self.board().store(CPU, OWN, &there).unwrap();
            }
            is_right(&self.own(), round)
        })
    }
}

/// Of a way that leaves one step out: in each case somebody sees older bytes if, and only if, that is said.
fn outward_without(way: Way, step: Step, is_stale: impl Fn(Case) -> bool) {
    let mut stale = 0;
    for case in cases(&OUT) {
        let sees = Machine::new(case, way, Some(step)).outward();
        assert_eq!(!sees, is_stale(case), "{way:?} without {step:?}: {case:?}");
        stale += u32::from(!sees);
    }
    assert!(stale > 0, "{way:?} without {step:?} is never seen");
}

fn inward_without(way: Way, step: Step, is_stale: impl Fn(Case) -> bool) {
    let mut stale = 0;
    for case in cases(&IN) {
        let sees = Machine::new(case, way, Some(step)).inward();
        assert_eq!(!sees, is_stale(case), "{way:?} without {step:?}: {case:?}");
        stale += u32::from(!sees);
    }
    assert!(stale > 0, "{way:?} without {step:?} is never seen");
}

#[test]
fn with_every_step_of_its_way_both_sides_see_the_same_bytes_on_every_board() {
    for way in [Way::Coherent, Way::Flushed, Way::Uncached, Way::Bounced] {
        let has_all = |case: &Case| way != Way::Coherent || case.coherent;
        for case in cases(&OUT).filter(has_all) {
            assert!(Machine::new(case, way, None).outward(), "{way:?}: {case:?}");
        }
        for case in cases(&IN).filter(has_all) {
            assert!(Machine::new(case, way, None).inward(), "{way:?}: {case:?}");
        }
    }
}

// Nothing is done.

#[test]
fn without_coherence_a_device_reads_what_was_there_before_unless_the_lines_left_the_cache() {
    outward_without(Way::Coherent, Step::Coherence, |case| {
        !case.coherent && matches!(case.meanwhile, Meanwhile::Nothing | Meanwhile::ReadsBeside)
    });
}

#[test]
fn without_coherence_a_processor_reads_what_it_had_and_what_it_had_changed_is_written_over_what_the_device_wrote() {
    inward_without(Way::Coherent, Step::Coherence, |case| {
        !case.coherent && (case.held == Held::Dirty || case.meanwhile != Meanwhile::CrowdsOut)
    });
}

// Flushes and purges.

#[test]
fn what_goes_out_is_flushed_or_the_device_reads_what_was_there_before() {
    outward_without(Way::Flushed, Step::ForDevice, |case| {
        !case.coherent && matches!(case.meanwhile, Meanwhile::Nothing | Meanwhile::ReadsBeside)
    });
}

#[test]
fn what_comes_in_is_purged_before_even_if_it_is_purged_after_too() {
    inward_without(Way::Flushed, Step::ForDevice, |case| {
        let is_crowded_out = case.meanwhile == Meanwhile::CrowdsOut;
        // A purge after it helps against what is clean, and comes too late for what was changed and written back.
        let purged_after = (case.held == Held::Dirty) && is_crowded_out;
        let never_purged = (case.held == Held::Dirty) || !is_crowded_out;
        !case.coherent && if case.prefetches { purged_after } else { never_purged }
    });
}

#[test]
fn what_comes_in_is_purged_after_too_where_processors_prefetch_what_lies_beside_what_they_read() {
    inward_without(Way::Flushed, Step::ForCpu, |case| {
        !case.coherent && case.prefetches && case.meanwhile == Meanwhile::ReadsBeside
    });
}

#[test]
fn what_went_out_needs_nothing_after_it() {
    for case in cases(&OUT) {
        assert!(Machine::new(case, Way::Flushed, Some(Step::ForCpu)).outward(), "{case:?}");
    }
}

#[test]
fn a_coherent_machine_flushes_and_purges_nothing_and_another_each_line_that_is_due() {
    let cared = |coherent, prefetches| {
        let case = Case { coherent, prefetches, held: Held::Dirty, meanwhile: Meanwhile::Nothing };
        let count = |machine: &Machine| {
            [TransactionKind::Flush, TransactionKind::Purge].map(|kind| machine.domain.backend().bus().count(kind))
        };
        let mut machine = Machine::new(case, Way::Flushed, None);
        let first = count(&machine);
        assert!(machine.outward());
        let out = count(&machine);
        assert!(machine.inward());
        let both = count(&machine);
        let more = |now: [u64; 2], then: [u64; 2]| [now[0] - then[0], now[1] - then[1]];
        [more(out, first), more(both, out)]
    };
    let lines = u64::from(ROUNDS) * (LEN / LINE) as u64;
    assert_eq!([cared(true, false), cared(true, true)], [[[0, 0]; 2]; 2]);
    assert_eq!(cared(false, false), [[lines, 0], [0, lines]]);
    assert_eq!(cared(false, true), [[lines, 0], [0, 2 * lines]]);
}

#[test]
fn what_shares_a_line_with_the_buffer_is_kept_by_the_library_and_lost_by_a_purge_of_its_lines() {
    for by_library in [true, false] {
        let case = Case { coherent: false, prefetches: false, held: Held::Nothing, meanwhile: Meanwhile::Nothing };
        let mut machine = Machine::new(case, Way::Flushed, None);
        // From the middle of the first line to the middle of the last one.
        let (inner, len) = (HostVirt(BUFFER.0 + 16), LEN - LINE);
        machine.board().store(CPU, BUFFER, &written(SCRIBBLE)).unwrap();
        if by_library {
            machine.domain.sync(Buffer::new(inner, len as u64), Permission::Write, Turn::Device).unwrap();
        } else {
            machine.board().purge(CPU, inner, len).unwrap();
        }
        let seen = machine.read();
        let ends = [&seen[..16], &seen[LEN - 16..]].concat();
        let of = |nth| [&written(nth)[..16], &written(nth)[LEN - 16..]].concat();
        assert_eq!(ends, of(if by_library { SCRIBBLE } else { OLD }), "by the library: {by_library}");
    }
}

// Past the caches.

#[test]
fn what_is_written_into_caches_a_device_does_not_read_and_what_goes_past_them_it_does() {
    for way in [Way::Uncached, Way::Bounced] {
        outward_without(way, Step::PastCaches, |case| {
            !case.coherent && matches!(case.meanwhile, Meanwhile::Nothing | Meanwhile::ReadsBeside)
        });
    }
}

#[test]
fn what_a_processor_has_read_into_its_cache_it_reads_again_when_the_device_has_written() {
    for way in [Way::Uncached, Way::Bounced] {
        inward_without(way, Step::PastCaches, |case| !case.coherent && case.meanwhile != Meanwhile::CrowdsOut);
    }
}

#[test]
fn what_caches_have_changed_of_a_buffer_is_written_over_what_went_past_them_and_given_to_a_device_that_asks_them() {
    for way in [Way::Uncached, Way::Bounced] {
        outward_without(way, Step::Emptied, |case| {
            let leaves = matches!(case.meanwhile, Meanwhile::CrowdsOut | Meanwhile::OtherReads);
            case.held == Held::Dirty && (case.coherent || leaves)
        });
        // A coherent machine takes a line from the caches when a device writes it.
        inward_without(way, Step::Emptied, |case| {
            !case.coherent && case.held == Held::Dirty && case.meanwhile == Meanwhile::CrowdsOut
        });
    }
}

// A bounce buffer.

#[test]
fn a_bounce_buffer_that_is_not_copied_is_stale_on_every_board() {
    outward_without(Way::Bounced, Step::CopyOut, |_| true);
    inward_without(Way::Bounced, Step::CopyIn, |_| true);
}
