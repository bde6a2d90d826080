//! Composed configuration spaces: typical devices, and spaces with each bit of each capability set in turn.

use std::fmt::Write as _;

/// A configuration space under construction.
#[derive(Clone)]
pub struct Space {
    pub bytes: Vec<u8>,
    /// Offset of the pointer to the next standard capability.
    standard_link: usize,
    /// Offset of the next standard capability.
    standard_at: usize,
    /// Offsets of the last and the next extended capability.
    extended: (Option<usize>, usize),
}

impl Space {
    /// A header of type 0 or 1 with the given IDs.
    pub fn new(kind: u8, vendor: u16, device: u16, class: u32) -> Space {
        let space = Space { bytes: vec![0; 4096], standard_link: 0x34, standard_at: 0x40, extended: (None, 0x100) };
        let space = space.put(0, 2, vendor.into()).put(2, 2, device.into()).put(9, 3, class.into());
        space.put(0x0e, 1, kind.into())
    }

    /// `width` little-endian bytes at `offset`.
    pub fn put(mut self, offset: usize, width: usize, value: u64) -> Space {
        self.bytes[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
        self
    }

    /// Offset of the next standard capability.
    pub fn next_standard(&self) -> usize {
        self.standard_at
    }

    /// Adds a standard capability with these bytes after its ID and pointer.
    pub fn standard(mut self, id: u8, body: &[u8]) -> Space {
        let at = self.standard_at;
        self.bytes[self.standard_link] = at as u8;
        self.bytes[6] |= 0x10;
        self.bytes[at] = id;
        self.bytes[at + 2..at + 2 + body.len()].copy_from_slice(body);
        self.standard_link = at + 1;
        self.standard_at = (at + 2 + body.len()).next_multiple_of(4);
        assert!(self.standard_at <= 0x100, "the standard capabilities do not fit");
        self
    }

    /// Adds an extended capability with these DWs after its header.
    pub fn extended(mut self, id: u16, version: u8, body: &[u32]) -> Space {
        let at = self.extended.1;
        if let Some(last) = self.extended.0 {
            let header = u32::from_le_bytes(self.bytes[last..last + 4].try_into().unwrap());
            self.bytes[last..last + 4].copy_from_slice(&(header | (at as u32) << 20).to_le_bytes());
        }
        let header = u32::from(id) | u32::from(version) << 16;
        for (index, dw) in std::iter::once(&header).chain(body).enumerate() {
            self.bytes[at + 4 * index..at + 4 * index + 4].copy_from_slice(&dw.to_le_bytes());
        }
        self.extended = (Some(at), at + 4 + 4 * body.len());
        self
    }
}

/// The bytes in the format of `lspci -xxxx`, for function number `index` of a generated machine.
pub fn dump(index: usize, bytes: &[u8]) -> String {
    let mut text = format!("{} composed\n", address(index));
    for (line, bytes) in bytes.chunks(16).enumerate() {
        write!(text, "{:02x}:", 16 * line).unwrap();
        for byte in bytes {
            write!(text, " {byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Address with function 0 of device 0, because lspci omits registers that are reserved in other functions.
fn address(index: usize) -> String {
    format!("{:04x}:{:02x}:00.0", index >> 8, index & 0xff)
}

/// The functions of a dump; lines that begin with # are comments.
pub fn undump(text: &str) -> Vec<Vec<u8>> {
    let mut functions: Vec<Vec<u8>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once(": ").filter(|(at, _)| usize::from_str_radix(at, 16).is_ok()) {
            Some((_, bytes)) => {
                let bytes = bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
                functions.last_mut().unwrap().extend(bytes);
            }
            None => functions.push(Vec::new()),
        }
    }
    functions
}

/// Fill pattern of the registers of a generated space.
#[derive(Clone, Copy, Debug)]
pub enum Fill {
    /// One bit of every DW.
    Walk(u32),
    /// All bits except one of every DW.
    Inverse(u32),
    /// Random bits.
    Random(u64),
}

/// `splitmix64` with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

struct Filler {
    fill: Fill,
    numbers: Numbers,
}

impl Filler {
    fn new(fill: Fill) -> Filler {
        let seed = if let Fill::Random(seed) = fill { seed } else { 0 };
        Filler { fill, numbers: Numbers(seed) }
    }

    fn dw(&mut self) -> u32 {
        match self.fill {
            Fill::Walk(bit) => 1 << bit,
            Fill::Inverse(bit) => !(1 << bit),
            // Sparse, dense and balanced bit patterns.
            Fill::Random(_) => match self.numbers.next() % 3 {
                0 => (self.numbers.next() & self.numbers.next()) as u32,
                1 => (self.numbers.next() | self.numbers.next()) as u32,
                _ => self.numbers.next() as u32,
            },
        }
    }

    fn dws(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.dw()).collect()
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        // The first two bytes of a standard capability are ID and pointer.
        let dws = self.dws(count.div_ceil(4) + 1);
        dws.iter().flat_map(|dw| dw.to_le_bytes()).skip(2).take(count).collect()
    }
}

/// Extended capabilities by ID, with the number of DWs after the header.
const EXTENDED: &[(u16, usize)] = &[
    (0x01, 17),
    (0x02, 27),
    (0x03, 2),
    (0x04, 3),
    (0x05, 15),
    (0x06, 1),
    (0x08, 1),
    (0x0a, 1),
    (0x0b, 2),
    (0x0c, 1),
    (0x0d, 1),
    (0x0e, 1),
    (0x0f, 1),
    (0x10, 15),
    (0x11, 1),
    (0x12, 11),
    (0x13, 3),
    (0x15, 12),
    (0x16, 1),
    (0x17, 2),
    (0x18, 1),
    (0x19, 18),
    (0x1a, 1),
    (0x1b, 1),
    (0x1c, 1),
    (0x1d, 15),
    (0x1e, 3),
    (0x1f, 2),
    (0x20, 1),
    (0x21, 1),
    (0x22, 1),
    (0x23, 14),
    (0x23, 14),
    (0x24, 12),
    (0x25, 2),
    (0x26, 15),
    (0x27, 33),
    (0x28, 1),
    (0x29, 1),
    (0x2a, 15),
    (0x2b, 1),
    (0x2e, 5),
    (0x2f, 3),
    (0x30, 18),
    (0x31, 11),
    (0x32, 14),
    (0x3f, 1),
];

/// A function of this port type with filled registers.
pub fn filled(port_type: u8, version: u8, fill: Fill) -> Space {
    let mut filler = Filler::new(fill);
    let is_bridge = (4..=7).contains(&port_type);
    let class = if is_bridge { 0x06_04_00 } else { 0x02_00_00 };
    let mut space = Space::new(is_bridge.into(), 0x10ee, 0x9038, class);
    let (command, rest) = (filler.dw(), filler.dw());
    space = space.put(4, 4, (command & !0x0010_0000).into()).put(8, 1, (rest & 0xff).into());
    space = space.put(0x0c, 2, (filler.dw() & 0xffff).into()).put(0x0f, 1, (filler.dw() >> 24).into());
    for offset in (0x10..0x34).step_by(4).chain([0x38]) {
        space = space.put(offset, 4, filler.dw().into());
    }
    space = space.put(0x3c, 4, filler.dw().into());
    for (id, count) in [(0x01, 6), (0x03, 6), (0x04, 2), (0x05, 22), (0x0a, 2)] {
        let body = filler.bytes(count);
        space = space.standard(id, &body);
    }
    let mut express = filler.bytes(58);
    express[0] = port_type << 4 | version;
    space = space.standard(0x10, &express);
    for (id, count) in [(0x09, 6), (0x0c, 2), (0x0d, 6), (0x11, 10), (0x12, 6), (0x13, 4), (0x15, 2)] {
        let body = filler.bytes(count);
        space = space.standard(id, &body);
    }
    let mut cxl = false;
    for &(id, count) in EXTENDED {
        let mut body = filler.dws(count);
        match id {
            // The most links that fit: 3.
            0x05 => body[0] &= !0xfc00,
            // Selective streams are not decoded.
            0x30 => body[0] &= !2,
            // A CXL DVSEC, after one of another vendor.
            0x23 if cxl => {
                body[0] = 0x03c0_0000 | ((body[0] & 0x1_0000) + 0x1_0000) | 0x1e98;
                body[1] &= 0xffff_0000;
                // lspci 3.15.0 reads beyond its tables of memory types and classes, and crashes.
                body[6] &= !0xfc;
                body[10] &= !0xfc;
            }
            0x23 => cxl = true,
            _ => {}
        }
        space = space.extended(id, (filler.dw() & 7) as u8 + 1, &body);
    }
    space
}

/// Every port type of the specification, and an undefined one.
pub const PORT_TYPES: [u8; 10] = [0, 1, 4, 5, 6, 7, 8, 9, 10, 2];

/// Spaces in which each bit of each register is the only one set, and the only one cleared in its DW, for each port type.
pub fn walking() -> Vec<Space> {
    let each = |port_type| {
        let fills = (0..32).map(Fill::Walk).chain((0..32).map(Fill::Inverse));
        fills.map(move |fill| filled(port_type, 2, fill))
    };
    PORT_TYPES.into_iter().flat_map(each).collect()
}

/// Random spaces from `seed`.
pub fn random(seed: u64, count: u64) -> Vec<Space> {
    let space = |index: u64| {
        let number = Numbers(seed ^ index.wrapping_mul(0x1000_0001)).next();
        let version = if number.is_multiple_of(7) { 1 } else { 2 };
        filled(PORT_TYPES[(number >> 8) as usize % PORT_TYPES.len()], version, Fill::Random(number))
    };
    (0..count).map(space).collect()
}
