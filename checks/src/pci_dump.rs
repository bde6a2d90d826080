//! Dumps of configuration spaces in the format of `lspci -D -xxxx`, for generated machines of any size.

use std::fmt::Write;

/// Configuration space of a generated function.
pub struct MadeUp {
    /// Domain, bus, device, function.
    pub address: (u32, u8, u8, u8),
    /// The 4 KiB of configuration space.
    pub bytes: Vec<u8>,
}

/// Functions of a generated machine: domains with 24 root ports, each with an endpoint of eight functions.
///
/// Settings vary: every fifth Gen4 x16 link is trained at Gen3 x8, some have ASPM enabled, some virtual functions.
#[must_use]
pub fn functions(count: usize) -> Vec<MadeUp> {
    let below_port = |domain, port: u8| {
        let bus = port + 1;
        let root = MadeUp { address: (domain, 0, port + 1, 0), bytes: root_port(bus) };
        let functions = (0..8).map(move |function| MadeUp {
            address: (domain, bus, 0, function),
            bytes: endpoint(u64::from(bus) << 36 | u64::from(function) << 33, usize::from(port + function)),
        });
        std::iter::once(root).chain(functions)
    };
    (0..)
        .flat_map(|domain| (0..24).map(move |port| (domain, port)))
        .flat_map(|(domain, port)| below_port(domain, port))
        .take(count)
        .collect()
}

/// The functions in the format of `lspci -D -xxxx`.
#[must_use]
pub fn text(functions: &[MadeUp]) -> String {
    let mut text = String::new();
    for MadeUp { address: (domain, bus, device, function), bytes } in functions {
        let class = if bytes[0x0e] & 0x7f == 1 { "PCI bridge" } else { "Processing accelerators" };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{domain:04x}:{bus:02x}:{device:02x}.{function} {class}: Device 1234:5678");
        for (row, bytes) in bytes.chunks(16).enumerate() {
            let _ = write!(text, "{:02x}:", row * 16);
            for byte in bytes {
                let _ = write!(text, " {byte:02x}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

struct Space(Vec<u8>);

impl Space {
    fn put(&mut self, at: usize, value: u64, bytes: usize) {
        self.0[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    fn new(class: u64, header_type: u64) -> Space {
        let mut space = Space(vec![0; 4096]);
        space.put(0x00, 0x5678_1234, 4);
        space.put(0x04, 0x0010_0406, 4);
        space.put(0x09, class, 3);
        space.put(0x0e, header_type, 1);
        space.put(0x34, 0x40, 1);
        space
    }

    /// PCI Express at 0x40, advanced error reporting at 0x100, access control at 0x148. `variant` 0 has no problems.
    fn express(&mut self, kind: u64, variant: usize) {
        let (speed, width) = if variant % 5 == 4 { (3, 8) } else { (4, 16) };
        let aspm = variant as u64 % 4;
        let tag_bits = if variant.is_multiple_of(3) { 0x100 } else { 0 };
        self.put(0x40, 0x0002_0010 | kind << 20, 4);
        self.put(0x44, 0x8022, 4); // MPS 512, extended tags
        self.put(0x48, 0x2820 | tag_bits | (variant as u64 & 1) << 4, 2); // MPS 256, MRRS 512
        self.put(0x4c, 0x0010_0d04, 4); // Gen4 x16, ASPM L0s L1, reports an active link
        self.put(0x50, 0x0040 | aspm, 2);
        self.put(0x52, 1 << 13 | 1 << 12 | width << 4 | speed, 2);
        self.put(0x64, 0x0003_0800, 4); // LTR, 10-bit tags
        self.put(0x68, 0x0400 | (variant as u64 & 2) << 11, 2);
        self.put(0x6c, 0x1e, 4);
        self.put(0x70, 0x0004, 2);
        self.put(0x100, 0x1481_0001, 4);
        self.put(0x104, 0x0010_0000, 4); // unsupported request
        self.put(0x110, 0x0000_2000 | 1 << 6, 4); // advisory, bad TLP
        self.put(0x148, 0x0001_000d, 4);
        self.put(0x14c, 0x001d_005f, 4);
    }

    /// Virtual functions at 0x160, resizable BAR at 0x1b0, L1 substates at 0x1c0.
    fn more(&mut self, variant: usize) {
        self.put(0x148, 0x1601_000d, 4);
        self.put(0x160, 0x1b01_0010, 4);
        self.put(0x168, variant as u64 & 1, 2);
        self.put(0x16c, 0x0008_0008, 4);
        self.put(0x170, 4, 2);
        self.put(0x174, 0x0001_0008, 4);
        self.put(0x184, 0xc, 4);
        self.put(0x1b0, 0x1c01_0015, 4);
        self.put(0x1b4, 0x0003_f000, 4); // 256 MiB to 8 GiB
        self.put(0x1b8, 0x0000_0820, 4); // one, BAR 0, 256 MiB
        self.put(0x1c0, 0x0001_001e, 4);
        self.put(0x1c4, 0x1f, 4);
        self.put(0x1c8, 0xa, 4);
    }
}

fn root_port(bus: u8) -> Vec<u8> {
    let mut space = Space::new(0x06_04_00, 1);
    let bus = u64::from(bus);
    space.put(0x18, bus << 16 | bus << 8, 3);
    space.put(0x1c, 0xf0, 2); // no I/O window
    space.put(0x20, 0xfff0, 4); // no memory window below 4 GiB
    space.put(0x24, 0x0001_0001 | 0xfff0 << 16, 4);
    space.put(0x28, bus << 4, 4);
    space.put(0x2c, bus << 4 | 0xf, 4);
    space.express(4, 0);
    space.0
}

fn endpoint(base: u64, variant: usize) -> Vec<u8> {
    let mut space = Space::new(0x12_00_00, 0x80);
    space.put(0x10, base | 0xc, 8);
    space.put(0x2c, 0x0001_1234, 4);
    space.express(0, variant);
    if !variant.is_multiple_of(2) {
        space.more(variant / 2);
    }
    space.0
}
