//! Reads that a Python program sends from cards, from their requests to their last completions.

use lanemark_sim::{FIRST_INJECTED_TAG, Fetched};
use std::collections::BTreeMap;

/// Largest number of outstanding read requests on a board.
const MOST: u16 = u16::MAX - FIRST_INJECTED_TAG;

/// A page: no request crosses its end.
const PAGE_BYTES: u64 = 4096;

/// A read request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub address: u64,
    pub length: u64,
    /// Its tag on the board.
    pub tag: u16,
}

/// A read that is completed.
#[derive(Debug, PartialEq)]
pub struct Done {
    /// Time of its last bytes.
    pub at_ns: f64,
    pub card: usize,
    /// The caller's tag.
    pub tag: u64,
    /// Its bytes; `None` if a part was refused.
    pub data: Option<Vec<u8>>,
}

/// A read with outstanding requests.
#[derive(Debug)]
struct Read {
    address: u64,
    /// The caller's tag.
    tag: u64,
    card: usize,
    data: Vec<u8>,
    is_refused: bool,
    /// Number of outstanding requests.
    requests: usize,
}

/// Reads of cards.
#[derive(Debug)]
pub struct CardReads {
    mrrs_bytes: u64,
    /// By number.
    reads: BTreeMap<u64, Read>,
    next: u64,
    /// Outstanding requests by their tag: the number of the read, and the bytes that are missing.
    requests: BTreeMap<u16, (u64, u64)>,
    free_tags: Vec<u16>,
    done: Vec<Done>,
}

impl CardReads {
    /// No reads yet, in requests of at most `mrrs_bytes`.
    pub fn new(mrrs_bytes: u32) -> CardReads {
        CardReads {
            mrrs_bytes: u64::from(mrrs_bytes),
            reads: BTreeMap::new(),
            next: 0,
            requests: BTreeMap::new(),
            free_tags: (0..MOST).rev().collect(),
            done: Vec::new(),
        }
    }

    /// Begins a read: its requests, split at multiples of `Max_Read_Request_Size` and of a page. `None` if it has no bytes,
    /// or if too few tags are free.
    pub fn begin(&mut self, card: usize, address: u64, length: usize, tag: u64) -> Option<Vec<Request>> {
        let boundary = self.mrrs_bytes.min(PAGE_BYTES);
        let end = address.checked_add(length as u64)?;
        let count = if length == 0 { 0 } else { (end - 1) / boundary - address / boundary + 1 };
        if count == 0 || count > self.free_tags.len() as u64 {
            return None;
        }
        let (number, mut requests, mut at) = (self.next, Vec::new(), address);
        while at < end {
            let Some(tag) = self.free_tags.pop() else { break };
            let length = (boundary - at % boundary).min(end - at);
            self.requests.insert(tag, (number, length));
            requests.push(Request { address: at, length, tag });
            at += length;
        }
        let data = vec![0; length];
        self.reads.insert(number, Read { address, tag, card, data, is_refused: false, requests: requests.len() });
        self.next += 1;
        Some(requests)
    }

    /// Takes a completion.
    pub fn take(&mut self, fetched: Fetched) {
        let tag = fetched.tag.wrapping_sub(FIRST_INJECTED_TAG);
        let Some((number, left)) = self.requests.get_mut(&tag) else { return };
        let number = *number;
        let Some(read) = self.reads.get_mut(&number) else { return };
        *left = match &fetched.data {
            Some(data) => left.saturating_sub(data.len() as u64),
            None => 0,
        };
        let is_last = *left == 0;
        match &fetched.data {
            Some(data) => {
                let offset = usize::try_from(fetched.address.wrapping_sub(read.address)).unwrap_or(usize::MAX);
                let place = read.data.get_mut(offset..offset.saturating_add(data.len()));
                if let Some(place) = place {
                    place.copy_from_slice(data);
                }
            }
            None => read.is_refused = true,
        }
        if !is_last {
            return;
        }
        self.requests.remove(&tag);
        self.free_tags.push(tag);
        read.requests -= 1;
        if read.requests == 0
            && let Some(Read { tag, card, data, is_refused, .. }) = self.reads.remove(&number)
        {
            let data = (!is_refused).then_some(data);
            self.done.push(Done { at_ns: fetched.at.as_ns(), card, tag, data });
        }
    }

    /// The reads that were completed since the last call, in order of time.
    pub fn take_done(&mut self) -> Vec<Done> {
        let mut done = std::mem::take(&mut self.done);
        done.sort_by(|one, other| one.at_ns.total_cmp(&other.at_ns));
        done
    }
}
