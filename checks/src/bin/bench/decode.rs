//! Decoding TLPs: ours reads the bytes in place; rtlp-lib takes ownership of them.

use super::{ROUNDS, row};
use lanemark_wire::{Completion, FunctionId, Header, MemoryRequest, Packet, TlpKind};
use rtlp_lib::{TlpMode, TlpPacket, TlpType, new_cmpl_req, new_mem_req};
use std::hint::black_box;
use std::time::Instant;

/// Number of different TLPs; they fit the L1 cache.
const TLPS: usize = 1 << 8;
/// Number of times each is decoded per round.
const TURNS: usize = 1 << 12;

/// Writes, reads and completions with data in turn.
pub fn decode() {
    let tlps = tlps();
    let ends: Vec<&[u8]> = tlps.iter().map(Vec::as_slice).collect();
    if [ours(&ends), view(&ends)] != [Some(theirs(&ends)); 2] {
        return eprintln!("decode: the decoders disagree about the same TLPs");
    }
    let (mut checked, mut viewed, mut baseline, mut ratios) =
        (Vec::new(), Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        let rates = [rate(TURNS, || ours(black_box(&ends))), rate(TURNS, || view(black_box(&ends)))];
        let theirs = rate(TURNS / 16, || Some(theirs(black_box(&ends))));
        checked.push(rates[0] / 1e6);
        viewed.push(rates[1] / 1e6);
        baseline.push(theirs / 1e6);
        ratios.iter_mut().zip(rates).for_each(|(ratios, rate)| ratios.push(rate / theirs));
    }
    let [checked_ratios, viewed_ratios] = ratios;
    row("decode: Header::parse_whole, every rule checked, M TLPs/s", checked);
    row("decode: Packet, a view, M TLPs/s", viewed);
    row("  baseline: rtlp-lib 0.5.1, M TLPs/s", baseline);
    row("  parse_whole over the baseline, times (target: 20)", checked_ratios);
    row("  view over the baseline, times (target: 20)", viewed_ratios);
}

fn rate(turns: usize, decode: impl Fn() -> Option<u64>) -> f64 {
    let start = Instant::now();
    for _ in 0..turns {
        black_box(decode());
    }
    (turns * TLPS) as f64 / start.elapsed().as_secs_f64()
}

/// Checksum of the fields that pair requests with completions and of the first byte of data.
fn ours(tlps: &[&[u8]]) -> Option<u64> {
    let mut sum = 0_u64;
    for tlp in tlps {
        let (header, data) = Header::parse_whole(tlp).ok()?;
        let fields = match header {
            Header::Memory(request) => u64::from(request.requester_id.0) + u64::from(request.tag) + request.address,
            Header::Completion(completion) => {
                u64::from(completion.requester_id.0) + u64::from(completion.tag) + u64::from(completion.byte_count)
            }
            _ => return None,
        };
        sum = sum.wrapping_add(fields).wrapping_add(data.first().copied().map_or(0, u64::from));
    }
    Some(sum)
}

/// The same checksum by a view of the bytes, without checks.
fn view(tlps: &[&[u8]]) -> Option<u64> {
    let mut sum = 0_u64;
    for tlp in tlps {
        let packet = Packet::new(tlp).ok()?;
        let last = if packet.kind()? == TlpKind::CplD { u64::from(packet.byte_count()) } else { packet.address() };
        let fields = u64::from(packet.requester_id().0) + u64::from(packet.tag()) + last;
        sum = sum.wrapping_add(fields).wrapping_add(packet.data().first().copied().map_or(0, u64::from));
    }
    Some(sum)
}

/// The same checksum by rtlp-lib, which needs owned bytes.
fn theirs(tlps: &[&[u8]]) -> u64 {
    let mut sum = 0_u64;
    for tlp in tlps {
        let Ok(packet) = TlpPacket::new(tlp.to_vec(), TlpMode::NonFlit) else { continue };
        let (Ok(kind), Ok(format)) = (packet.tlp_type(), packet.tlp_format()) else { continue };
        let (fields, header_bytes) = if kind == TlpType::CplData {
            let Ok(completion) = new_cmpl_req(packet.data()) else { continue };
            let fields =
                u64::from(completion.req_id()) + u64::from(completion.tag()) + u64::from(completion.byte_cnt());
            (fields, 12)
        } else {
            let Ok(request) = new_mem_req(packet.data(), &format) else { continue };
            (u64::from(request.req_id()) + u64::from(request.tag()) + request.address(), 16)
        };
        let data = tlp.get(header_bytes).copied().map_or(0, u64::from);
        sum = sum.wrapping_add(fields).wrapping_add(data);
    }
    sum
}

fn tlps() -> Vec<Vec<u8>> {
    let requester = FunctionId(0x0100);
    let tlp = |number: usize| {
        let (address, tag) = (0x1_0000_0000 + 128 * number as u64, (number % 256) as u16);
        let (header, bytes) = match number % 3 {
            0 => (Header::Memory(MemoryRequest::write(requester, address, 128)), 128),
            1 => (Header::Memory(MemoryRequest::read(requester, tag, address, 128)), 0),
            _ => (Header::Completion(Completion::data(FunctionId(0), requester, tag, 0, 64, 64)), 64),
        };
        let mut buffer = [0; Header::MAX_BYTES];
        let header_bytes = header.emit(&mut buffer).unwrap_or(0);
        let mut tlp = buffer[..header_bytes].to_vec();
        tlp.resize(header_bytes + bytes, number as u8);
        tlp
    };
    (0..TLPS).map(tlp).collect()
}
