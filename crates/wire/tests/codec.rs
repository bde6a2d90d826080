//! Properties of TLP parsing and encoding: every legal header round-trips, and no input panics.

use lanemark_wire::byte_enable::{byte_count, contiguous};
use lanemark_wire::{
    AddressType, AtomicKind, AtomicRequest, Attr, CommonFields, Completion, CompletionStatus, ConfigKind,
    ConfigRequest, FunctionId, Header, IoKind, IoRequest, MAX_TAG, MemoryKind, MemoryRequest, Message, Packet,
    ProcessingHint, Routing, TLP_KINDS, Tph,
};
use proptest::prelude::*;
use proptest::sample::select;

const MEMORY: [MemoryKind; 3] = [MemoryKind::MRd, MemoryKind::MRdLk, MemoryKind::MWr];
const CONFIGS: [ConfigKind; 4] = [ConfigKind::CfgRd0, ConfigKind::CfgWr0, ConfigKind::CfgRd1, ConfigKind::CfgWr1];
const ATOMICS: [AtomicKind; 3] = [AtomicKind::FetchAdd, AtomicKind::Swap, AtomicKind::Cas];

fn common() -> impl Strategy<Value = CommonFields> {
    (0..8_u8, any::<(bool, bool, bool, bool, bool)>()).prop_map(
        |(tc, (relaxed_ordering, no_snoop, id_based_ordering, td, ep))| CommonFields {
            tc,
            attr: Attr { relaxed_ordering, no_snoop, id_based_ordering },
            td,
            ep,
        },
    )
}

fn id() -> impl Strategy<Value = FunctionId> {
    any::<u16>().prop_map(FunctionId)
}

fn tag() -> impl Strategy<Value = u16> {
    0..=MAX_TAG
}

fn hint() -> impl Strategy<Value = Option<Tph>> {
    proptest::option::of((select(&ProcessingHint::ALL[..]), any::<u8>()).prop_map(|(ph, st)| Tph { ph, st }))
}

/// DW addresses below and above 4 GiB.
fn dw_address() -> impl Strategy<Value = u64> {
    prop_oneof![0..1_u64 << 32, any::<u64>()].prop_map(|address| address & !3)
}

/// Legal byte enables, specified independently of the crate.
fn enables(address: u64, length: u16) -> BoxedStrategy<(u8, u8)> {
    match length {
        1 => (0..16_u8).prop_map(|first| (first, 0)).boxed(),
        2 if address.is_multiple_of(8) => (1..16_u8, 1..16_u8).boxed(),
        _ => (select(&[0xf_u8, 0xe, 0xc, 8][..]), select(&[0xf_u8, 7, 3, 1][..])).boxed(),
    }
}

fn memory() -> impl Strategy<Value = Header> {
    let place = dw_address().prop_flat_map(|address| {
        let room = ((4096 - address % 4096) / 4) as u16;
        prop_oneof![Just(1), Just(2.min(room)), 1..=room, Just(room)].prop_flat_map(move |length| {
            enables(address, length).prop_map(move |(first_be, last_be)| (address, length, first_be, last_be))
        })
    });
    let at = prop_oneof![
        Just(AddressType::Untranslated),
        Just(AddressType::Translated),
        any::<bool>().prop_map(|no_write| AddressType::TranslationRequest { no_write }),
    ];
    (select(&MEMORY[..]), common(), id(), tag(), place, at, hint()).prop_map(
        |(kind, common, requester_id, tag, (address, length, first_be, last_be), at, th)| {
            let asks = matches!(at, AddressType::TranslationRequest { .. });
            let at = if asks && (kind != MemoryKind::MRd || length % 2 == 1) { AddressType::Untranslated } else { at };
            let asks = matches!(at, AddressType::TranslationRequest { .. });
            let th = if kind == MemoryKind::MRdLk || asks { None } else { th };
            let (tag, first_be, last_be) = match (kind, th) {
                (_, None) => (tag, first_be, last_be),
                (MemoryKind::MWr, _) => (0, first_be, last_be),
                _ => (tag, 0xf, if length == 1 { 0 } else { 0xf }),
            };
            Header::Memory(MemoryRequest {
                common,
                kind,
                requester_id,
                tag,
                address,
                length,
                first_be,
                last_be,
                at,
                th,
            })
        },
    )
}

fn atomic() -> impl Strategy<Value = Header> {
    (select(&ATOMICS[..]), common(), id(), tag(), dw_address(), 0..3_u8, any::<bool>(), hint()).prop_map(
        |(kind, common, requester_id, tag, address, size, translated, th)| {
            let operand_bytes = 4 << if kind == AtomicKind::Cas { size } else { size % 2 };
            let at = if translated { AddressType::Translated } else { AddressType::Untranslated };
            let address = address & !(u64::from(operand_bytes) - 1);
            Header::Atomic(AtomicRequest { common, kind, requester_id, tag, address, operand_bytes, at, th })
        },
    )
}

fn io() -> impl Strategy<Value = Header> {
    (any::<(bool, bool, bool, u32)>(), id(), tag(), 0..16_u8).prop_map(
        |((write, td, ep, address), requester_id, tag, first_be)| {
            let kind = if write { IoKind::IOWr } else { IoKind::IORd };
            Header::Io(IoRequest { kind, td, ep, requester_id, tag, address: address & !3, first_be })
        },
    )
}

fn config() -> impl Strategy<Value = Header> {
    (select(&CONFIGS[..]), any::<(bool, bool)>(), id(), tag(), id(), 0..1024_u16, 0..16_u8).prop_map(
        |(kind, (td, ep), requester_id, tag, target, register, first_be)| {
            let register = register * 4;
            Header::Config(ConfigRequest { kind, td, ep, requester_id, tag, target, register, first_be })
        },
    )
}

fn message() -> impl Strategy<Value = Header> {
    let length = prop_oneof![Just(0), 1..=1024_u16];
    (common(), select(&Routing::ALL[..]), id(), tag(), any::<(u8, [u8; 8])>(), length).prop_map(
        |(common, routing, requester_id, tag, (code, code_specific), length)| {
            Header::Message(Message { common, routing, requester_id, tag, code, code_specific, length })
        },
    )
}

fn completion() -> impl Strategy<Value = Header> {
    let with_data = (0..128_u8, 1..=4096_u16, any::<u16>()).prop_map(|(lower_address, byte_count, cut)| {
        // A read is at most 1024 DW long, with the bytes before its first one.
        let before = u16::from(lower_address & 3);
        let byte_count = byte_count.min(4096 - before);
        let whole = (before + byte_count).div_ceil(4);
        // A boundary of 64 B before the end, or the end.
        let first = 16 - u16::from(lower_address & 0x3f) / 4;
        let boundaries = whole.saturating_sub(first).div_ceil(16);
        let at = cut % (boundaries + 1);
        let length = if at == boundaries { whole } else { first + 16 * at };
        (CompletionStatus::Success, lower_address, byte_count, length)
    });
    let without = (select(&CompletionStatus::ALL[..]), 0..128_u8, 1..=4096_u16)
        .prop_map(|(status, lower_address, byte_count)| (status, lower_address, byte_count, 0));
    (common(), any::<bool>(), any::<bool>(), id(), id(), tag(), prop_oneof![with_data, without]).prop_map(
        |(common, locked, bcm, completer_id, requester_id, tag, (status, lower_address, byte_count, length))| {
            let locked = locked && (length > 0 || status != CompletionStatus::Success);
            Header::Completion(Completion {
                common,
                locked,
                completer_id,
                status,
                bcm,
                byte_count,
                requester_id,
                tag,
                lower_address,
                length,
            })
        },
    )
}

fn legal() -> impl Strategy<Value = Header> {
    prop_oneof![4 => memory(), 1 => atomic(), 1 => io(), 1 => config(), 1 => message(), 4 => completion()]
}

/// Random bytes with a first byte of a known kind of TLP.
fn nearly_a_tlp() -> impl Strategy<Value = Vec<u8>> {
    let first: Vec<u8> = TLP_KINDS
        .iter()
        .flat_map(|row| [row.fmt_3dw, row.fmt_4dw].map(|fmt| fmt.map(|fmt| fmt << 5 | row.type_bits)))
        .flatten()
        .collect();
    (select(first), proptest::collection::vec(prop_oneof![2 => Just(0_u8), 1 => any::<u8>()], 0..40)).prop_map(
        |(first, mut rest)| {
            rest.insert(0, first);
            rest
        },
    )
}

/// The values of all accessors of a view.
fn show<T: AsRef<[u8]>>(packet: &Packet<T>) -> impl PartialEq + std::fmt::Debug + use<T> {
    let header = (packet.header_bytes(), packet.fmt(), packet.type_bits(), packet.kind(), packet.tc(), packet.attr());
    let bits = (packet.ln(), packet.th(), packet.td(), packet.ep(), packet.at(), packet.length_field());
    let ids = (packet.requester_id(), packet.completer_id(), packet.tag(), packet.first_be(), packet.last_be());
    let place = (packet.address(), packet.address_low_bits(), packet.target(), packet.register(), packet.code());
    let end = (packet.status(), packet.bcm(), packet.byte_count(), packet.lower_address(), packet.length());
    let data = (packet.data_bytes(), packet.data().len(), packet.ecrc(), packet.prefixes().len());
    (header, bits, ids, place, end, data)
}

/// Checks that an accepted header encodes to the same bytes, and that the view agrees with it.
fn judge(bytes: &[u8]) {
    let view = Packet::new(bytes);
    if let Ok(packet) = &view {
        assert_eq!(show(packet), show(&Packet::new(packet.into_inner()).unwrap()));
    }
    let _ = Header::parse_whole(bytes);
    let Ok((header, used)) = Header::parse(bytes) else { return };
    let mut again = [0xee; 16];
    assert_eq!(header.emit(&mut again), Ok(used));
    assert_eq!(again[..used], bytes[..used]);
    assert_eq!(again[used..], [0xee; 16][used..], "emit wrote past its end");

    let packet = view.unwrap();
    assert_eq!(packet.kind(), Some(header.kind()));
    assert_eq!(packet.header_bytes(), used);
    assert_eq!(packet.requester_id(), header.requester_id());
    assert_eq!(packet.data_bytes(), header.data_bytes() as usize);
    assert_eq!(packet.td(), header.td());
    match header {
        Header::Memory(request) => {
            assert_eq!((packet.address(), packet.length()), (request.address, request.length));
            if request.th.is_none() {
                assert_eq!((packet.first_be(), packet.last_be()), (request.first_be, request.last_be));
                assert_eq!(packet.tag(), request.tag);
            }
        }
        Header::Completion(cpl) => {
            assert_eq!((packet.byte_count(), packet.lower_address()), (cpl.byte_count, cpl.lower_address));
            assert_eq!((packet.completer_id(), packet.tag()), (cpl.completer_id, cpl.tag));
            assert_eq!((packet.status(), packet.bcm()), (cpl.status.code(), cpl.bcm));
        }
        Header::Config(request) => {
            assert_eq!((packet.target(), packet.register()), (request.target, request.register));
        }
        Header::Atomic(request) => assert_eq!(packet.address(), request.address),
        Header::Io(request) => assert_eq!(packet.address(), u64::from(request.address)),
        Header::Message(message) => assert_eq!(packet.code(), message.code),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn every_legal_header_round_trips(header in legal()) {
        let mut bytes = [0; 16];
        let used = header.emit(&mut bytes).unwrap();
        prop_assert_eq!(Header::parse(&bytes[..used]), Ok((header, used)));
        prop_assert_eq!(used, usize::from(header.header_dw()) * 4);
        judge(&bytes[..used]);
    }

    /// A legal header with one flipped bit is refused or is another legal header.
    #[test]
    fn a_flipped_bit_is_refused_or_round_trips(header in legal(), bit in 0..128_usize) {
        let mut bytes = [0; 16];
        let used = header.emit(&mut bytes).unwrap();
        bytes[bit / 8] ^= 1 << (bit % 8);
        judge(&bytes[..used]);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        judge(&bytes);
    }

    #[test]
    fn random_bytes_after_a_valid_first_byte_never_panic(bytes in nearly_a_tlp()) {
        judge(&bytes);
    }

    /// `emit` returns a result for arbitrary field values.
    #[test]
    fn emit_never_panics(
        numbers in any::<(u16, u64, u16, u8, u8, u8, u16, u8)>(), kind in 0..3_usize, room in 0..17_usize
    ) {
        let (tag, address, length, first_be, last_be, tc, byte_count, lower_address) = numbers;
        let common = CommonFields { tc, ..CommonFields::default() };
        let (memory, atomic) = (MEMORY[kind], ATOMICS[kind]);
        let none = FunctionId(0);
        let request = MemoryRequest::read(none, tag, address, u32::from(length));
        let headers = [
            Header::Memory(request),
            Header::Memory(MemoryRequest { common, kind: memory, address, length, first_be, last_be, ..request }),
            Header::Atomic(AtomicRequest::new(atomic, none, tag, address, length)),
            Header::Completion(Completion::data(none, none, tag, lower_address, byte_count, length)),
        ];
        for header in headers {
            let mut bytes = [0; 16];
            let emitted = header.emit(&mut bytes[..room]);
            let costs = (header.credits(), header.wire_bytes(lanemark_wire::Generation::Gen5));
            if let Ok(used) = emitted {
                prop_assert_eq!(Header::parse(&bytes), Ok((header, used)));
                prop_assert!(costs.0.header == 1 && costs.1 >= 20);
            }
        }
    }

    #[test]
    fn a_request_for_bytes_enables_exactly_those_bytes(address in any::<u64>(), bytes in 1..=4096_u32) {
        let request = MemoryRequest::read(FunctionId(0), 0, address, bytes);
        prop_assert_eq!(request.span(), Some((address, bytes)));
        let (first_be, last_be, length) = contiguous(address, bytes);
        prop_assert_eq!(u32::from(byte_count(first_be, last_be, length)), bytes);
    }
}
