//! Properties of transfer splitting: every byte occurs exactly once, and no limit is exceeded.

use lanemark_wire::byte_enable::{contiguous, ranges};
use lanemark_wire::split::{completions, reads, requests, writes};
use lanemark_wire::{Chunk, Completion, FunctionId, Header, MemoryRequest, Mps, Mrrs, Rcb};
use proptest::prelude::*;
use proptest::sample::select;

/// Checks that chunks are contiguous, legal TLPs within `most`, and as long as possible.
fn judge(
    chunks: impl Iterator<Item = Chunk>,
    address: u64,
    bytes: u64,
    most: u32,
    request: impl Fn(Chunk) -> MemoryRequest,
) {
    let mut next = address;
    let end = address + bytes;
    for chunk in chunks {
        assert_eq!(chunk.address, next);
        assert!(chunk.bytes > 0);
        next += u64::from(chunk.bytes);
        let header = request(chunk);
        assert!(Header::Memory(header).emit(&mut [0; 16]).is_ok());
        assert!(u32::from(header.length) * 4 <= most);
        let longer = Chunk { bytes: chunk.bytes + 1, ..chunk };
        let too_long = contiguous(longer.address, longer.bytes).2;
        let refused = Header::Memory(request(longer)).emit(&mut [0; 16]).is_err();
        assert!(next == end || u32::from(too_long) * 4 > most || refused, "split too early");
    }
    assert_eq!(next, end);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn writes_cover_every_byte_once(
        address in 0..1_u64 << 40, bytes in 0..20_000_u64, mps in select(&Mps::ALL[..])
    ) {
        judge(writes(address, bytes, mps), address, bytes, mps.bytes(), |chunk| {
            MemoryRequest::write(FunctionId(0), chunk.address, chunk.bytes)
        });
    }

    #[test]
    fn requests_within_a_boundary_end_there_and_nowhere_earlier(
        address in 0..1_u64 << 40, bytes in 0..20_000_u64, boundary in select(&[64, 128, 512, 4096][..])
    ) {
        let mut next = address;
        for chunk in requests(address, bytes, 4096).within(boundary) {
            assert_eq!(chunk.address, next);
            next += u64::from(chunk.bytes);
            let (first, last) = (chunk.address / u64::from(boundary), (next - 1) / u64::from(boundary));
            assert_eq!(first, last, "across the boundary");
            assert!(next == address + bytes || next.is_multiple_of(u64::from(boundary)) || chunk.bytes > 4092);
        }
        assert_eq!(next, address + bytes);
    }

    #[test]
    fn reads_cover_every_byte_once(
        address in 0..1_u64 << 40, bytes in 0..20_000_u64, mrrs in select(&Mrrs::ALL[..])
    ) {
        judge(reads(address, bytes, mrrs), address, bytes, mrrs.bytes(), |chunk| {
            MemoryRequest::read(FunctionId(0), 0, chunk.address, chunk.bytes)
        });
    }

    #[test]
    fn completions_cover_every_byte_once(
        address in 0..4096_u64, asked in 0..=4096_u32, mps in select(&Mps::ALL[..]),
        rcb in select(&[Rcb::B64, Rcb::B128][..]), every in any::<bool>()
    ) {
        let bytes = asked.min(4096 - address as u32);
        let parts = completions(address, bytes, rcb, mps);
        let parts = if every { parts.at_every_rcb() } else { parts };
        let (mut next, end) = (address, address + u64::from(bytes));
        let mut count = 0;
        for part in parts {
            count += 1;
            prop_assert_eq!(part.address, next);
            prop_assert_eq!(u64::from(part.byte_count), (end - next).max(1));
            let within_dw = u16::from(part.lower_address & 3);
            prop_assert_eq!(part.length, (within_dw + part.bytes).div_ceil(4).max(1));
            prop_assert!(u32::from(part.length) * 4 <= mps.bytes());
            next += u64::from(part.bytes);
            prop_assert!(next == end || next % u64::from(rcb.bytes()) == 0);
            if every && part.bytes > 0 {
                prop_assert_eq!(part.address / u64::from(rcb.bytes()), (next - 1) / u64::from(rcb.bytes()));
            } else if next < end {
                let longer = (next + u64::from(rcb.bytes())).min(end) - (part.address & !3);
                prop_assert!(longer > u64::from(mps.bytes()), "split too early");
            }
            let id = FunctionId(0);
            let cpl = Completion::data(id, id, 0, part.lower_address, part.byte_count, part.bytes);
            prop_assert_eq!(cpl.length, part.length);
            prop_assert!(Header::Completion(cpl).emit(&mut [0; 12]).is_ok());
        }
        prop_assert_eq!(next, end);
        prop_assert!(count >= 1);
    }

    #[test]
    fn ranges_cover_every_set_bit_once(dense in any::<u64>(), holes in any::<u64>(), sparse in any::<bool>()) {
        let mask = if sparse { dense & holes } else { dense | holes };
        let (mut seen, mut free_from) = (0_u64, 0);
        for range in ranges(mask) {
            prop_assert!(range.start < range.end && range.end <= 64);
            prop_assert!(range.start >= free_from, "two runs touch");
            free_from = range.end + 1;
            for bit in range {
                seen |= 1 << bit;
            }
        }
        prop_assert_eq!(seen, mask);
    }
}
