//! Typical devices, composed register by register; `dumps/` contains them in the format of `lspci -xxxx`.

use crate::compose::Space;

/// A device and the name of its dump.
pub fn all() -> Vec<(&'static str, Space)> {
    vec![
        ("root-port", root_port()),
        ("switch-upstream", switch_port(5)),
        ("switch-downstream", switch_port(6)),
        ("nvme", nvme()),
        ("nic-sriov", nic()),
        ("gpu", gpu()),
        ("fpga", fpga()),
        ("cxl-memory", cxl()),
        ("sata-legacy", sata()),
    ]
}

/// Offset, width in bytes, value.
type Values = &'static [(usize, usize, u64)];

/// The same, counted from `base`.
fn put(space: Space, base: usize, values: Values) -> Space {
    values.iter().fold(space, |space, (offset, width, value)| space.put(base + offset, *width, *value))
}

/// A PCI Express capability of version 2 with these registers.
fn express(space: Space, values: Values) -> Space {
    let at = space.next_standard();
    put(space.standard(0x10, &[0; 58]), at, values)
}

const ERRORS: [u32; 17] = [
    0,
    0x0010_0000,
    0x0046_2030,
    0x0000_2000,
    0x0000_6000,
    0xa0,
    0x0400_0001,
    0x0100_000f,
    0xf700_0000,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
];

fn root_port() -> Space {
    let space = Space::new(1, 0x8086, 0x347a, 0x06_04_00);
    let space = put(
        space,
        0,
        &[
            (0x04, 2, 0x0547),
            (0x06, 2, 0x0010),
            (0x08, 1, 0x04),
            (0x0c, 1, 0x10),
            (0x10, 4, 0x2000_0004),
            (0x14, 4, 0x21ff),
            (0x18, 3, 0x0017_1615),
            (0x1c, 2, 0xf0f0),
            (0x20, 4, 0xaaf0_a9f0),
            (0x24, 4, 0xfff1_0001),
            (0x28, 4, 0x201f),
            (0x2c, 4, 0x205f),
            (0x3c, 4, 0x0002_01ff),
        ],
    );
    let space = express(
        space,
        &[
            (0x02, 2, 0x0142),
            (0x04, 4, 0x8001),
            (0x08, 2, 0x2136),
            (0x0a, 2, 0x0000),
            (0x0c, 4, 0x0573_bd04),
            (0x10, 2, 0x0440),
            (0x12, 2, 0x7103),
            (0x14, 4, 0x0024_7a60),
            (0x18, 2, 0x11c8),
            (0x1a, 2, 0x0140),
            (0x1c, 2, 0x0018),
            (0x1e, 2, 0x0001),
            (0x24, 4, 0x0033_97f7),
            (0x28, 2, 0x1429),
            (0x2c, 4, 0x8180_001e),
            (0x30, 2, 0x0004),
            (0x32, 2, 0x401e),
        ],
    );
    let space = space
        .standard(0x05, &[0x85, 0x01, 0x78, 0x00, 0xe0, 0xfe, 0, 0, 0, 0, 0x21, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let space = space.standard(0x01, &[0x03, 0xc8, 0x08, 0, 0, 0]);
    let space = space.standard(0x0d, &[0, 0, 0x86, 0x80, 0x00, 0x00]);
    space
        .extended(0x01, 2, &ERRORS)
        .extended(0x0d, 1, &[0x001d_001f])
        .extended(0x1d, 1, &[0x0009_14e0, 0, 0, 0x0007_0707, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .extended(
            0x19,
            1,
            &[
                0,
                0,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
            ],
        )
        .extended(0x25, 1, &[0x8000_0001, 0x8000_0001])
        .extended(0x26, 1, &[0, 0, 0xf, 0, 0, 0, 0, 0x7777_7777, 0x7777_7777, 0x7777_7777, 0x7777_7777])
        .extended(0x27, 1, &[0x0003_0001, 0x9c38_9c38, 0x9c38_9c38, 0x9c38_9c38, 0x9c38_9c38])
}

fn switch_port(port_type: u64) -> Space {
    let space = Space::new(1, 0x1000, 0xc010, 0x06_04_00);
    let space = put(
        space,
        0,
        &[
            (0x04, 2, 0x0507),
            (0x06, 2, 0x0010),
            (0x08, 1, 0xb0),
            (0x0c, 1, 0x10),
            (0x18, 3, 0x001a_1716),
            (0x1c, 2, 0x5141),
            (0x20, 4, 0xaad0_a9f0),
            (0x24, 4, 0x0001_fff1),
            (0x3c, 4, 0x0012_01ff),
        ],
    );
    let space = space.standard(0x01, &[0x03, 0xc8, 0x08, 0, 0, 0]);
    let at = space.next_standard();
    let space = express(
        space,
        &[
            (0x02, 2, 0x0002),
            (0x04, 4, 0x8022),
            (0x08, 2, 0x213f),
            (0x0a, 2, 0x0001),
            (0x0c, 4, 0x2079_bd04),
            (0x10, 2, 0x0042),
            (0x12, 2, 0x3083),
            (0x14, 4, 0x0050_5a78),
            (0x18, 2, 0x13f8),
            (0x24, 4, 0x0033_07f7),
            (0x28, 2, 0x1420),
            (0x2c, 4, 0x0180_001e),
            (0x30, 2, 0x0004),
            (0x32, 2, 0x001f),
        ],
    );
    let slot = if port_type == 6 { 0x100 } else { 0 };
    let space = space.put(at + 2, 2, 2 | port_type << 4 | slot);
    let space = space.standard(0x0d, &[0, 0, 0xd9, 0x15, 0x10, 0xc0]);
    space
        .extended(0x03, 1, &[0xc8d5_0310, 0x0015_d900])
        .extended(0x01, 1, &ERRORS)
        .extended(0x02, 1, &[0, 0, 0, 0, 0x8000_00ff, 0])
        .extended(0x0d, 1, &[0x005d_005f])
        .extended(0x12, 1, &[0x003f_803f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .extended(0x1e, 1, &[0x0028_3c1f, 0x4064_0a0f, 0x0028])
        .extended(0x18, 1, &[0x1003_1003])
}

fn nvme() -> Space {
    let space = Space::new(0, 0x144d, 0xa80a, 0x01_08_02);
    let space = put(
        space,
        0,
        &[
            (0x04, 2, 0x0406),
            (0x06, 2, 0x0010),
            (0x0c, 1, 0x10),
            (0x10, 8, 0xb030_0004),
            (0x2c, 4, 0xa801_144d),
            (0x30, 4, 0xb020_0000),
            (0x3c, 4, 0x0000_010b),
        ],
    );
    let space = space.standard(0x01, &[0x03, 0x00, 0x08, 0, 0, 0]);
    let space = space.standard(0x05, &[0x8a, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let space = express(
        space,
        &[
            (0x02, 2, 0x0002),
            (0x04, 4, 0x1190_8fc1),
            (0x08, 2, 0x2930),
            (0x0a, 2, 0x0009),
            (0x0c, 4, 0x0047_6844),
            (0x10, 2, 0x0142),
            (0x12, 2, 0x1023),
            (0x24, 4, 0x7082_081f),
            (0x28, 2, 0x0400),
            (0x2c, 4, 0x0180_001e),
            (0x30, 2, 0x0004),
            (0x32, 2, 0x001e),
        ],
    );
    let space = space.standard(0x11, &[0x81, 0x80, 0, 0x30, 0, 0, 0, 0x20, 0, 0]);
    space
        .extended(0x01, 2, &ERRORS[..12])
        .extended(0x19, 1, &[0, 0, 0x7575_7575, 0x7575_7575])
        .extended(0x26, 1, &[0, 0, 0x1f, 0, 0, 0, 0, 0x5555_5555])
        .extended(0x27, 1, &[0, 0x9c38_9c38, 0x9c38_9c38, 0x9c38_9c38, 0x9c38_9c38])
        .extended(0x18, 1, &[0x1003_1003])
        .extended(0x1e, 1, &[0x0028_320f, 0x4063_0000, 0x28])
        .extended(0x25, 1, &[0x8000_0001, 0])
}

fn nic() -> Space {
    let space = Space::new(0, 0x15b3, 0x101d, 0x02_00_00);
    let space = put(
        space,
        0,
        &[
            (0x04, 2, 0x0546),
            (0x06, 2, 0x0010),
            (0x0c, 1, 0x08),
            (0x0e, 1, 0x80),
            (0x10, 8, 0x0000_0fff_fc00_000c),
            (0x2c, 4, 0x0016_15b3),
            (0x3c, 4, 0x0000_01ff),
        ],
    );
    let space = express(
        space,
        &[
            (0x02, 2, 0x0002),
            (0x04, 4, 0x112c_8fe2),
            (0x08, 2, 0x5937),
            (0x0a, 2, 0x0009),
            (0x0c, 4, 0x0040_0104),
            (0x10, 2, 0x0048),
            (0x12, 2, 0x1083),
            (0x24, 4, 0x7003_9816),
            (0x28, 2, 0x1009),
            (0x2c, 4, 0x0180_001e),
            (0x30, 2, 0x0004),
            (0x32, 2, 0x001f),
        ],
    );
    let space = space.standard(0x03, &[0x54, 0x81, 0x82, 0x2f, 0, 0]);
    let space = space.standard(0x11, &[0x3f, 0x80, 0x00, 0x20, 0, 0, 0x00, 0x30, 0, 0]);
    let space = space.standard(0x09, &[0x18, 0, 0, 0, 0, 0]);
    let space = space.standard(0x01, &[0xc3, 0x41, 0x08, 0, 0, 0]);
    space
        .extended(0x01, 2, &ERRORS[..12])
        .extended(0x0e, 1, &[0x0000_0100])
        .extended(
            0x10,
            1,
            &[2, 0x19, 0x0008_0008, 4, 0x0001_0002, 0x101e_0000, 0x553, 1, 0xf800_000c, 0x0fff, 0, 0, 0, 0, 0],
        )
        .extended(0x19, 1, &[0, 0, 0x7474_7474, 0x7474_7474, 0x7474_7474, 0x7474_7474])
        .extended(0x0d, 1, &[0])
        .extended(0x0f, 1, &[0x8000_0060])
        .extended(0x13, 1, &[0x0100_0000, 0x2000, 0])
        .extended(0x1b, 1, &[0x0000_1400])
        .extended(0x17, 1, &[0x003f_0205, 0, 0])
        .extended(0x26, 1, &[0, 0, 0x1f, 0, 0, 0, 0, 0x4444_4444, 0x4444_4444, 0x4444_4444, 0x4444_4444])
        .extended(0x27, 1, &[0x0001_0001, 0x9c38_9c38])
}

fn gpu() -> Space {
    let space = Space::new(0, 0x1002, 0x744c, 0x03_00_00);
    let space = put(
        space,
        0,
        &[
            (0x04, 2, 0x0407),
            (0x06, 2, 0x0010),
            (0x08, 1, 0xc8),
            (0x0c, 1, 0x10),
            (0x0e, 1, 0x80),
            (0x10, 8, 0x0000_0078_0000_000c),
            (0x18, 8, 0x0000_007c_0000_000c),
            (0x20, 4, 0x0000_e001),
            (0x24, 4, 0xfc90_0000),
            (0x2c, 4, 0x0e3b_1002),
            (0x30, 4, 0xfca0_0000),
            (0x3c, 4, 0x0000_018b),
        ],
    );
    let space = space.standard(0x09, &[0x08, 0, 0x02, 0x10, 0x3b, 0x0e]);
    let space = space.standard(0x01, &[0x03, 0xf6, 0x08, 0, 0, 0]);
    let space = express(
        space,
        &[
            (0x02, 2, 0x0012),
            (0x04, 4, 0x1000_8fa1),
            (0x08, 2, 0x2930),
            (0x0c, 4, 0x0045_0d04),
            (0x10, 2, 0x0043),
            (0x12, 2, 0x1101),
            (0x24, 4, 0x7073_09e6),
            (0x28, 2, 0x1041),
            (0x2c, 4, 0x0180_001e),
            (0x30, 2, 0x0003),
            (0x32, 2, 0x001f),
        ],
    );
    let space = space.standard(0x05, &[0x81, 0x00, 0, 0, 0xe0, 0xfe, 0, 0, 0, 0, 0x22, 0x40]);
    space
        .extended(0x0b, 1, &[0x0101_0001, 0])
        .extended(0x01, 2, &ERRORS[..12])
        .extended(0x15, 1, &[0x0007_f000, 0x0000_0840, 0x0000_1ff0, 0x0000_0802])
        .extended(
            0x19,
            1,
            &[
                0,
                0,
                0x2323_2323,
                0x2323_2323,
                0x2323_2323,
                0x2323_2323,
                0x2323_2323,
                0x2323_2323,
                0x2323_2323,
                0x2323_2323,
            ],
        )
        .extended(0x0d, 1, &[0])
        .extended(0x1b, 1, &[0x0001_1006])
        .extended(0x0e, 1, &[0x0000_0100])
        .extended(0x18, 1, &[0x1001_1001])
        .extended(0x1e, 1, &[0x0023_001f, 0x4067_000a, 0x2a])
        .extended(0x25, 1, &[0x8000_0001, 0])
        .extended(0x26, 1, &[0, 0, 0, 0, 0, 0, 0, 0x9999_9999, 0x9999_9999, 0x9999_9999, 0x9999_9999])
        .extended(0x24, 1, &[0x0000_03f0, 0x0000_0320, 0x0000_0010, 0x0000_0002])
        .extended(0x1f, 1, &[0x0000_0401, 0x0000_0801])
}

fn fpga() -> Space {
    let space = Space::new(0, 0x10ee, 0x903f, 0x07_00_01);
    let space = put(
        space,
        0,
        &[
            (0x04, 2, 0x0002),
            (0x06, 2, 0x0010),
            (0x0c, 1, 0x10),
            (0x10, 8, 0x0000_0002_0800_0004),
            (0x18, 8, 0x0000_0002_0000_000c),
            (0x2c, 4, 0x0007_10ee),
            (0x3c, 4, 0x0000_010a),
        ],
    );
    let space = space.standard(0x01, &[0x03, 0x00, 0x08, 0, 0, 0]);
    let space = space.standard(0x11, &[0x1f, 0x00, 0x04, 0x80, 0, 0, 0x04, 0x90, 0, 0]);
    let space = express(
        space,
        &[
            (0x02, 2, 0x0002),
            (0x04, 4, 0x0000_8fe2),
            (0x08, 2, 0x2850),
            (0x0c, 4, 0x0000_b083),
            (0x10, 2, 0x0008),
            (0x12, 2, 0x1042),
            (0x24, 4, 0x0000_0002),
            (0x2c, 4, 0x0000_000e),
            (0x30, 2, 0x0003),
            (0x32, 2, 0x0000),
        ],
    );
    space
        .extended(0x01, 1, &ERRORS[..12])
        .extended(0x03, 1, &[0, 0])
        .extended(0x19, 1, &[0, 0x0000_0005, 0x4444_4444, 0x4444_4444, 0x4444_4444, 0x4444_4444])
        .extended(0x2a, 1, &[0x0000_0102, 0x0000_0100, 0x0000_056f, 0, 0, 0, 0, 0x5555_5555, 0x5555_5555])
        .extended(0x0b, 1, &[0x0101_0020, 0x1234_5678])
        .extended(0x04, 1, &[0, 0x0001_8019, 1])
}

fn cxl() -> Space {
    let space = Space::new(0, 0x1e98, 0x0d93, 0x05_02_10);
    let space = put(
        space,
        0,
        &[(0x04, 2, 0x0546), (0x06, 2, 0x0010), (0x10, 8, 0x0000_20a0_0000_000c), (0x2c, 4, 0x1100_1af4), (0x3c, 4, 0)],
    );
    let space = express(
        space,
        &[(0x02, 2, 0x8092), (0x04, 4, 0x4000_8022), (0x08, 2, 0x2936), (0x24, 4, 0x0003_0802), (0x28, 2, 0x1000)],
    );
    let space = space.standard(0x11, &[0x0f, 0x80, 0x00, 0, 0x01, 0, 0x00, 0x80, 0x01, 0]);
    space
        .extended(
            0x23,
            1,
            &[0x03c2_1e98, 0x0016_0000, 0x4003_0000, 0, 0x8000_0001, 0, 0, 0x1000_0003, 0, 0, 0, 0, 0, 0],
        )
        .extended(0x23, 1, &[0x0240_1e98, 0x0000_0008, 0x0000_0100, 0, 0, 0, 0, 0])
        .extended(0x2e, 2, &[0x0000_0003, 0x0000_0002, 0x8000_0000, 0, 0])
        .extended(0x2f, 1, &[0x0000_045e, 0x0000_0048, 0x0000_0014])
        .extended(0x31, 1, &[0, 0, 0x0000_00ef, 0x5555_5555, 0x5555_5555])
        .extended(0x32, 1, &[0x1234_8009, 0x5678_9abc, 0x0203_0025, 0x0005, 1000, 3, 0, 0, 0, 0, 0, 0, 0, 0])
        .extended(0x30, 1, &[0x0200_20c1, 4, 0x0504_0501, 0x0000_0002, 0, 0])
        .extended(0x03, 1, &[0x0403_0201, 0x0807_0605])
}

fn sata() -> Space {
    let space = Space::new(0, 0x8086, 0xa182, 0x01_06_01);
    let space = put(
        space,
        0,
        &[
            (0x04, 2, 0x0407),
            (0x06, 2, 0x02b0),
            (0x08, 1, 0x09),
            (0x10, 4, 0xaaf0_2000),
            (0x14, 4, 0xaaf0_6000),
            (0x18, 4, 0x0000_3071),
            (0x20, 4, 0x0000_3021),
            (0x24, 4, 0xaae8_0000),
            (0x2c, 4, 0x7270_8086),
            (0x3c, 4, 0x0000_01ff),
        ],
    );
    let space = space.standard(0x05, &[0x00, 0x00, 0x0c, 0x03, 0xe0, 0xfe, 0x41, 0x40]);
    let space = space.standard(0x01, &[0x03, 0x40, 0x08, 0, 0, 0]);
    let space = space.standard(0x12, &[0x10, 0x00, 0x48, 0, 0, 0]);
    space.standard(0x13, &[0x06, 0x03, 0x00, 0x00])
}
