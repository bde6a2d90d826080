//! Illegal completions: changes of the legal ones of one read.

use crate::situation::Situation;
use crate::stream::Outgoing;
use fastrand::Rng;
use std::collections::VecDeque;

/// Bytes of the header of a completion.
const HEADER: usize = 12;

/// A completion, and the illegal ones that are sent with it.
#[derive(Debug)]
pub(crate) struct Piece {
    tlps: Vec<Outgoing>,
}

impl Piece {
    pub fn legal(tlp: Vec<u8>, frees: Option<u16>) -> Piece {
        Piece { tlps: vec![Outgoing { tlp, frees, ..Outgoing::default() }] }
    }

    pub fn bytes(&self) -> usize {
        self.tlps.iter().map(|outgoing| outgoing.tlp.len()).sum()
    }

    pub fn into_outgoing(self) -> Vec<Outgoing> {
        self.tlps
    }
}

fn byte_count(tlp: &[u8]) -> u16 {
    u16::from_be_bytes([tlp[6] & 0xf, tlp[7]])
}

fn set_byte_count(tlp: &mut [u8], count: u16) {
    tlp[6] = tlp[6] & 0xf0 | (count >> 8) as u8 & 0xf;
    tlp[7] = count as u8;
}

fn set_length(tlp: &mut [u8], dw: usize) {
    tlp[2] = tlp[2] & !3 | (dw >> 8) as u8 & 3;
    tlp[3] = dw as u8;
}

fn set_tag(tlp: &mut [u8], tag: u16) {
    tlp[1] = tlp[1] & !0x88 | ((tag >> 9 & 1) as u8) << 7 | ((tag >> 8 & 1) as u8) << 3;
    tlp[10] = tag as u8;
}

/// The tag of a completion.
fn tag(tlp: &[u8]) -> u16 {
    u16::from(tlp[10]) | u16::from(tlp[1] >> 3 & 1) << 8 | u16::from(tlp[1] >> 7) << 9
}

fn garbage(tlp: &mut [u8], random: &mut Rng) {
    for byte in &mut tlp[HEADER..] {
        *byte = random.u8(..);
    }
}

/// Changes the completions of one read as the situation says. `idle` is a tag without a request.
pub(crate) fn apply(situation: Situation, pieces: &mut VecDeque<Piece>, idle: Option<u16>, random: &mut Rng) {
    let place = match situation {
        Situation::ExcessData => pieces.len() - 1,
        _ => random.usize(0..pieces.len()),
    };
    let legal = pieces[place].tlps[0].clone();
    let changed = &mut pieces[place].tlps;
    let data_dw = (legal.tlp.len() - HEADER) / 4;
    let mark = |outgoing: &mut Outgoing| outgoing.twist = Some(situation);
    match situation {
        Situation::WrongByteCount => {
            let count = byte_count(&legal.tlp);
            let wrong = loop {
                let wrong = match random.u8(0..3) {
                    0 => count.wrapping_add(random.u16(1..64)),
                    1 => count.wrapping_sub(random.u16(1..64)),
                    _ => (data_dw as u16 * 4).wrapping_add(random.u16(0..4)),
                } & 0xfff;
                if wrong != count {
                    break wrong;
                }
            };
            set_byte_count(&mut changed[0].tlp, wrong);
            garbage(&mut changed[0].tlp, random);
            mark(&mut changed[0]);
        }
        Situation::WrongLowerAddress => {
            changed[0].tlp[11] ^= 4 << random.u8(0..5);
            garbage(&mut changed[0].tlp, random);
            mark(&mut changed[0]);
        }
        Situation::ExcessData => {
            let more = random.usize(1..9);
            garbage(&mut changed[0].tlp, random);
            changed[0].tlp.extend((0..more * 4).map(|_| random.u8(..)));
            set_length(&mut changed[0].tlp, data_dw + more);
            mark(&mut changed[0]);
        }
        Situation::MalformedLength => {
            let tlp = &mut changed[0].tlp;
            garbage(tlp, random);
            match random.u8(0..4) {
                0 if data_dw > 1 => set_length(tlp, data_dw - 1),
                1 if data_dw > 1 => tlp.truncate(HEADER + random.usize(1..data_dw) * 4),
                2 => set_length(tlp, data_dw + 1),
                _ => tlp.extend((0..random.usize(1..5) * 4).map(|_| random.u8(..))),
            }
            mark(&mut changed[0]);
        }
        Situation::PoisonedCompletion => {
            changed[0].tlp[2] |= 0x40;
            garbage(&mut changed[0].tlp, random);
            mark(&mut changed[0]);
        }
        Situation::UnexpectedTag => {
            let Some(idle) = idle else { return };
            let mut stray = Outgoing { hazard: Some(idle), frees: None, ..legal };
            set_tag(&mut stray.tlp, idle);
            garbage(&mut stray.tlp, random);
            mark(&mut stray);
            changed.insert(0, stray);
        }
        Situation::WrongRequester => {
            let mut stray = Outgoing { frees: None, ..legal };
            // Another function of the same device, or another device.
            stray.tlp[if random.bool() { 9 } else { 8 }] ^= 1 << random.u8(0..3);
            garbage(&mut stray.tlp, random);
            mark(&mut stray);
            changed.insert(0, stray);
        }
        Situation::DuplicateCompletion => {
            let mut again = Outgoing { hazard: legal.frees, frees: None, ..legal };
            garbage(&mut again.tlp, random);
            mark(&mut again);
            changed.push(again);
        }
        Situation::UnsupportedRequest
        | Situation::CompleterAbort
        | Situation::ReservedStatus
        | Situation::SuccessWithoutData => {
            let status = match situation {
                Situation::UnsupportedRequest => 1,
                Situation::CompleterAbort => 4,
                Situation::ReservedStatus => 7,
                _ => 0,
            };
            changed[0].tlp.truncate(HEADER);
            changed[0].tlp[0] = 0x0a;
            set_length(&mut changed[0].tlp, 0);
            changed[0].tlp[6] = changed[0].tlp[6] & 0x0f | status << 5;
            changed[0].frees = Some(tag(&legal.tlp));
            mark(&mut changed[0]);
            pieces.truncate(place + 1);
        }
        Situation::LateCompletion => {
            for piece in pieces {
                garbage(&mut piece.tlps[0].tlp, random);
                mark(&mut piece.tlps[0]);
                piece.tlps[0].hazard = Some(tag(&legal.tlp));
                piece.tlps[0].frees = None;
            }
        }
        _ => {}
    }
}
