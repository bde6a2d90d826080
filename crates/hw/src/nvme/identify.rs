//! The data of Identify.

use lanemark_units::format_size;
use std::fmt;

/// Properties of a controller. Source: NVM Express Base Specification 2.0, figure "Identify Controller Data Structure".
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ControllerData {
    /// Model number: bytes 63:24, without trailing spaces.
    pub(crate) model: String,
    /// Firmware revision: bytes 71:64.
    pub(crate) firmware: String,
    /// Largest transfer in bytes; `None` without a limit. MDTS, byte 77, in pages of the smallest size.
    pub(crate) most_bytes: Option<u64>,
    /// Whether commands of the NVM command set may have SGLs: SGLS, bits 1:0 of bytes 539:536. Some controllers need multiples
    /// of 4 B, as all plans have.
    pub(crate) has_sgl: bool,
}

impl ControllerData {
    pub(crate) fn of(data: &[u8], least_page: u64) -> ControllerData {
        let text = |from: usize, to: usize| {
            let bytes = data.get(from..to).unwrap_or(&[]);
            // Other characters are not permitted, and would change the terminal.
            let printed = bytes.iter().map(|byte| if matches!(byte, 0x20..=0x7e) { char::from(*byte) } else { ' ' });
            printed.collect::<String>().trim().to_owned()
        };
        let limit = data.get(77).copied().unwrap_or(0);
        let most_bytes = (limit > 0).then(|| {
            1u64.checked_shl(limit.into()).and_then(|pages| pages.checked_mul(least_page)).unwrap_or(u64::MAX)
        });
        let has_sgl = data.get(536).is_some_and(|bits| matches!(bits & 3, 1 | 2));
        ControllerData { model: text(24, 64), firmware: text(64, 72), most_bytes, has_sgl }
    }
}

/// A namespace and its format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    /// Namespace identifier.
    pub(crate) id: u32,
    /// Size in logical blocks.
    pub(crate) blocks: u64,
    /// Bytes of a logical block.
    pub(crate) block_bytes: u64,
    /// Bytes of metadata per block.
    pub(crate) metadata_bytes: u16,
}

impl Namespace {
    /// Source: NVM Command Set Specification 1.0, figures "Identify Namespace Data Structure" (NSZE bytes 7:0, FLBAS byte 26,
    /// LBAF0 from byte 128 on) and "LBA Format Data Structure" (MS bits 15:0, LBADS bits 23:16).
    fn of(id: u32, data: &[u8]) -> Option<Namespace> {
        let blocks = u64::from_le_bytes(data.get(..8)?.try_into().ok()?);
        let chosen = *data.get(26)?;
        let format = usize::from(chosen & 0xf | chosen >> 1 & 0x30);
        let format = u32::from_le_bytes(data.get(128 + 4 * format..132 + 4 * format)?.try_into().ok()?);
        let shift = format >> 16 & 0xff;
        // The standard permits 512 B and more; no drive has blocks above a page of 64 KiB.
        let block_bytes = (9..=16).contains(&shift).then(|| 1 << shift)?;
        Some(Namespace { id, blocks, block_bytes, metadata_bytes: format as u16 })
    }

    /// A namespace that this code can read.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(crate) fn readable(id: u32, data: &[u8]) -> Result<Namespace, &'static str> {
        let namespace = Namespace::of(id, data).ok_or("its format is invalid")?;
        if namespace.metadata_bytes > 0 { Err("its logical blocks have metadata") } else { Ok(namespace) }
    }

    /// Size in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes)
    }
}

impl fmt::Display for ControllerData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVMe drive {}, firmware {}", self.model, self.firmware)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, block) = (format_size(self.bytes()), format_size(self.block_bytes));
        write!(f, "namespace {} of {size} in logical blocks of {block}", self.id)
    }
}

/// Identifiers of active namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Active {
    ids: [u32; Active::SHOWN],
    count: usize,
    /// Whether there may be more than a list can have.
    has_more: bool,
}

impl Active {
    /// Number of identifiers that a message lists.
    const SHOWN: usize = 8;

    /// The namespaces of a list of Identify: they ascend, and 0 ends the list. Source: NVM Express Base Specification 2.0, figure
    /// "Active Namespace ID List".
    pub(super) fn of(data: &[u8]) -> Active {
        let mut ids = [0; Active::SHOWN];
        let listed = listed(data);
        let count = listed.len();
        ids.iter_mut().zip(listed).for_each(|(to, id)| *to = id);
        Active { ids, count, has_more: count * 4 == data.len() }
    }

    /// The first one; `None` without any.
    pub(super) fn first(&self) -> Option<u32> {
        self.ids.first().copied().filter(|id| *id > 0)
    }
}

impl fmt::Display for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.ids.iter().take(self.count).map(u32::to_string).collect();
        let more = match self.count.saturating_sub(ids.len()) {
            0 => String::new(),
            _ if self.has_more => " and more".to_owned(),
            more => format!(" and {more} more"),
        };
        if ids.is_empty() { f.write_str("none") } else { write!(f, "{}{more}", ids.join(", ")) }
    }
}

/// The identifiers of a list of active namespaces.
pub(super) fn listed(data: &[u8]) -> impl ExactSizeIterator<Item = u32> + use<> {
    let ids = data.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id));
    ids.take_while(|id| *id > 0).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_transfer_is_in_pages_and_0_is_none() {
        let mut data = vec![b' '; 4096];
        data[24..28].copy_from_slice(b"QEMU");
        data[28] = 0x1b;
        data[77] = 7;
        let found = ControllerData::of(&data, 4096);
        assert_eq!((found.model.as_str(), found.most_bytes), ("QEMU", Some(512 << 10)));
        data[77] = 0;
        assert_eq!(ControllerData::of(&data, 4096).most_bytes, None);
    }

    #[test]
    fn sgls_are_supported_with_and_without_an_alignment() {
        let of = |bits: u8| {
            let mut data = vec![0; 4096];
            data[536] = bits;
            ControllerData::of(&data, 4096).has_sgl
        };
        // 3 is reserved, and other bits are other properties.
        assert_eq!([0, 1, 2, 3, 0xfc].map(of), [false, true, true, false, false]);
    }

    #[test]
    fn the_chosen_format_gives_the_block_size_and_one_below_512_b_is_none() {
        let mut data = vec![0; 4096];
        data[..8].copy_from_slice(&2048_u64.to_le_bytes());
        data[26] = 0x21;
        let format = |data: &mut Vec<u8>, n: usize, word: u32| {
            data[128 + 4 * n..132 + 4 * n].copy_from_slice(&word.to_le_bytes());
        };
        format(&mut data, 17, 12 << 16 | 8);
        let wanted = Namespace { id: 3, blocks: 2048, block_bytes: 4096, metadata_bytes: 8 };
        assert_eq!(Namespace::of(3, &data), Some(wanted));
        format(&mut data, 17, 9 << 16);
        assert_eq!(Namespace::of(3, &data).map(|namespace| namespace.bytes()), Some(1 << 20));
        format(&mut data, 17, 8 << 16);
        assert_eq!(Namespace::of(3, &data), None);
    }

    #[test]
    fn the_active_namespaces_are_those_before_the_first_0() {
        let of = |ids: &[u32]| {
            let mut data = ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<_>>();
            data.resize(4096, 0);
            Active::of(&data)
        };
        assert_eq!((of(&[]).first(), of(&[]).to_string()), (None, "none".to_owned()));
        assert_eq!((of(&[3, 7, 0, 9]).first(), of(&[3, 7, 0, 9]).to_string()), (Some(3), "3, 7".to_owned()));
        let many: Vec<u32> = (1..=1024).collect();
        assert_eq!(of(&many[..10]).to_string(), "1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
        assert!(of(&many).to_string().ends_with("8 and more"));
    }
}
