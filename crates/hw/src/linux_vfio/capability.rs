//! Chains of capabilities in the answers of VFIO.

/// A number of 4 B in an answer.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A number of 8 B in an answer.
pub(super) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Identity and offset of each capability of the chain that begins at `start`; 0 ends it.
pub(super) fn chain(bytes: &[u8], start: u32) -> Vec<(u32, usize)> {
    let mut found = Vec::new();
    let mut at = start as usize;
    // Each capability is behind the one before it, so that a damaged chain ends.
    while at > 0 {
        let (Some(id), Some(next)) = (word(bytes, at).map(|word| word & 0xffff), word(bytes, at + 4)) else { break };
        found.push((id, at));
        if next as usize <= at {
            break;
        }
        at = next as usize;
    }
    found
}
