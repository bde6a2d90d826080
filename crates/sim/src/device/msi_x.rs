//! MSI-X of a card: the message of each vector, and the pending bits.
//!
//! The table is in a register region that cores read and write; this is the card's decoded copy. The message of a
//! masked vector is pending: its bit is set, and it is sent when the vector is unmasked.
//!
//! Source: PCI Express Base Specification 6.0, sections 6.1.4 and 7.7.2.

use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_engine::Memory;
use lanemark_platform::VectorTable;
use std::ops::Range;

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Message Address.
    pub address: u64,
    /// Message Data.
    pub data: u32,
    /// The Mask bit.
    pub is_masked: bool,
}

/// State of MSI-X.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsiX {
    table: VectorTable,
    vectors: Vec<Vector>,
    /// Pending bits, in QWs.
    pending: Vec<u64>,
}

impl MsiX {
    /// Creates the table as an operating system sets it: each vector writes its number to `address`.
    #[must_use]
    pub fn new(table: VectorTable, address: u64) -> MsiX {
        let vectors = (0..table.vectors).map(|number| Vector { address, data: number, is_masked: false });
        let words = VectorTable::pending_bytes(table.vectors) / 8;
        MsiX { table, vectors: vectors.collect(), pending: vec![0; words as usize] }
    }

    /// Returns the bus addresses of the table.
    #[must_use]
    pub fn table(&self) -> Range<u64> {
        self.table.table..self.table.table + self.vectors.len() as u64 * VectorTable::ENTRY_BYTES
    }

    /// Returns the bus address of the table.
    #[must_use]
    pub fn table_at(&self) -> u64 {
        self.table.table
    }

    /// Returns whether a TLP overlaps the table.
    #[must_use]
    pub fn is_touched(&self, tlp: &Tlp) -> bool {
        let Range { start, end } = self.table();
        tlp.address < end && start < tlp.address + u64::from(tlp.length_dw) * 4
    }

    /// Writes the table to the memory of its region, at `offset`.
    pub fn write_to(&self, memory: &mut Memory, offset: u64) {
        for (vector, number) in self.vectors.iter().zip(0..) {
            let mut entry = [0; VectorTable::ENTRY_BYTES as usize];
            entry[..8].copy_from_slice(&vector.address.to_le_bytes());
            entry[8..12].copy_from_slice(&vector.data.to_le_bytes());
            entry[12] = u8::from(vector.is_masked);
            memory.write(offset + number * VectorTable::ENTRY_BYTES, &entry);
        }
    }

    /// Decodes the table from the memory of its region.
    pub fn read_from(&mut self, memory: &mut Memory, offset: u64) {
        for (vector, number) in self.vectors.iter_mut().zip(0..) {
            let mut dws = [0; 4];
            for (dw, place) in dws.iter_mut().zip(0..) {
                let mut bytes = [0; 4];
                memory.read(offset + number * VectorTable::ENTRY_BYTES + 4 * place, &mut bytes);
                *dw = u32::from_le_bytes(bytes);
            }
            // The lowest two address bits are reserved.
            let address = u64::from(dws[1]) << 32 | u64::from(dws[0] & !3);
            *vector = Vector { address, data: dws[2], is_masked: dws[3] & 1 == 1 };
        }
    }

    /// Returns the vector of a channel; channels share vectors if there are fewer.
    #[must_use]
    pub fn vector_of(&self, channel: usize) -> usize {
        channel % self.vectors.len().max(1)
    }

    /// Returns whether a vector is masked or does not exist.
    #[must_use]
    pub fn is_masked(&self, number: usize) -> bool {
        self.vectors.get(number).is_none_or(|vector| vector.is_masked)
    }

    /// Returns the message of a vector and clears its pending bit. If the vector is masked, sets the bit and returns
    /// `None`.
    pub fn send(&mut self, number: usize) -> Option<Vector> {
        let vector = self.vectors.get(number).copied()?;
        let (word, bit) = (self.pending.get_mut(number / 64)?, 1 << (number % 64));
        *word = if vector.is_masked { *word | bit } else { *word & !bit };
        Some(vector).filter(|vector| !vector.is_masked)
    }

    /// Returns the QW with the pending bit of a vector, and its bus address.
    #[must_use]
    pub fn pending_word(&self, number: usize) -> (u64, u64) {
        let word = number / 64;
        (self.table.pending + 8 * word as u64, self.pending.get(word).copied().unwrap_or(0))
    }

    /// Visits the state that changes without cores, which alone write the table.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let MsiX { table: _, vectors: _, pending } = self;
        for word in pending {
            view.state(*word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlp::TlpKind;

    fn msi_x() -> MsiX {
        MsiX::new(VectorTable { table: 0x1000, pending: 0x2000, vectors: 65 }, 0xFEE0_0000)
    }

    #[test]
    fn a_table_written_to_memory_is_decoded_from_it() {
        let (mut written, mut memory) = (msi_x(), Memory::default());
        written.vectors[64] = Vector { address: 0x1_2345_6788, data: 0x4021, is_masked: true };
        written.write_to(&mut memory, 256);
        let mut read = msi_x();
        read.read_from(&mut memory, 256);
        assert_eq!(read, written);
    }

    #[test]
    fn a_masked_vector_is_pending_until_it_is_sent() {
        let mut msi_x = msi_x();
        assert_eq!(msi_x.send(64).map(|vector| (vector.address, vector.data)), Some((0xFEE0_0000, 64)));
        msi_x.vectors[64].is_masked = true;
        assert_eq!((msi_x.send(64), msi_x.pending_word(64)), (None, (0x2008, 1)));
        assert_eq!(msi_x.pending_word(63), (0x2000, 0));
        msi_x.vectors[64].is_masked = false;
        assert!(msi_x.send(64).is_some());
        assert_eq!(msi_x.pending_word(64), (0x2008, 0));
        assert_eq!(msi_x.send(65), None, "there is no such vector");
    }

    #[test]
    fn a_store_touches_the_table_from_its_first_byte_to_its_last() {
        let msi_x = msi_x();
        let store = |address| Tlp { address, length_dw: 1, ..Tlp::of(TlpKind::MWr) };
        let touched = [0xFFC, 0x1000, 0x1000 + 65 * 16 - 4, 0x1000 + 65 * 16].map(|at| msi_x.is_touched(&store(at)));
        assert_eq!(touched, [false, true, true, false]);
    }
}
