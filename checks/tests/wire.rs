//! The wire format agrees with the costs of the simulated link. Every memory request that crosses it is encoded, decoded and
//! compared: header, byte enables, bytes on the wire, credits.

use lanemark_machine::{Access, Facts, Fence, Lane, Machine, Span, Step, Stream, Verb, Width};
use lanemark_platform::preset;
use lanemark_sim::{Board, SimulatedMachine, Tlp, TlpKind};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use lanemark_wire::{Credits, FunctionId, Generation, Header, MemoryRequest, tlp_wire_bytes};

/// The request in the wire format.
fn header(tlp: &Tlp) -> MemoryRequest {
    let bytes = u32::from(tlp.length_dw) * 4;
    let requester = FunctionId(tlp.requester);
    let whole = match tlp.kind {
        TlpKind::MWr => MemoryRequest::write(requester, tlp.address, bytes),
        _ => MemoryRequest::read(requester, tlp.tag & 0x3FF, tlp.address, bytes),
    };
    MemoryRequest { first_be: tlp.first_be, last_be: tlp.last_be, ..whole }
}

fn check(tlp: &Tlp, generation: Generation) {
    let meant = Header::Memory(header(tlp));
    let mut bytes = [0; 16];
    let written = meant.emit(&mut bytes).unwrap_or_else(|error| panic!("{tlp:?}: {error}"));
    let (read, length) = Header::parse(&bytes[..written]).unwrap_or_else(|error| panic!("{tlp:?}: {error}"));
    assert_eq!((read, length), (meant, written));
    assert_eq!(read.header_dw(), tlp.header_dw(), "{tlp:?}");
    let on_wire = tlp_wire_bytes(generation, tlp.header_dw(), tlp.payload_bytes(), false);
    assert_eq!(read.wire_bytes(generation), on_wire, "{tlp:?}");
    let data = if tlp.kind == TlpKind::MWr { tlp.payload_bytes().div_ceil(16) as u16 } else { 0 };
    assert_eq!(read.credits(), Credits { header: 1, data }, "{tlp:?}");
}

/// Streams of every access and memory type at odd offsets and lengths.
fn bodies(facts: &Facts, at: BarOffset) -> Vec<Step> {
    let mut ops = Vec::new();
    for (verb, accesses) in [(Verb::Store, &facts.stores), (Verb::Load, &facts.loads)] {
        for &access in accesses {
            for memory_type in [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp] {
                for (offset, len) in [(0, 64), (0, 7), (1, 1), (3, 70), (5, 200), (62, 4), (4090, 12)] {
                    let whole = access.width().map_or(1, Width::bytes);
                    let aligned = matches!(access, Access::NonTemporal(_) | Access::Movdir64b | Access::Movdiri(_));
                    if aligned && (offset % whole != 0 || len % whole != 0) {
                        continue;
                    }
                    let span = Span { at: BarOffset { offset: at.offset + offset, ..at }, len, memory_type };
                    ops.push(Step::Stream(Stream::over(verb, access, span)));
                    ops.push(Step::Fence(Fence::Mfence));
                }
            }
        }
    }
    ops
}

#[test]
fn requests_on_a_link_are_legal_tlps_of_the_charged_size_and_credits() {
    let mut checked = 0;
    for name in ["card-gen5-x16", "tacc-stratix4", "aws-f1"] {
        let platform = preset(name).unwrap().unwrap();
        let machine = SimulatedMachine::new(&platform).unwrap();
        let storage = machine.facts().storage().unwrap().at;
        let mut board = Board::new(&platform).unwrap();
        board.record_crossings();
        board.start(&Lane { core: 0, task: bodies(machine.facts(), storage).into() }, 1, 0);
        board.run_until(Ticks::whole_ns(1_000_000_000));
        assert!(board.core(0).is_done(), "{name}: the plan has not finished");
        let generation = Generation::from_number(platform.link.generation.value as u8).unwrap();
        for crossing in board.crossings() {
            check(&crossing.tlp, generation);
            checked += 1;
        }
    }
    assert!(checked > 5000, "only {checked} requests crossed");
}
