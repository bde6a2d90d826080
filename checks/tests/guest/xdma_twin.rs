//! An emulated card with the registers of AMD's DMA for PCI Express (XDMA), in this process: QEMU reaches it by vfio-user.
//!
//! It has two channels per direction, BAR0 with the registers, 64 KiB of memory at AXI address 0, and four vectors of MSI and of
//! MSI-X, with the table in BAR0. It
//! follows the document and not our driver: a descriptor without magic number, a block of descriptors across 4 KiB, a run without bus
//! mastering or an interrupt that was not acknowledged has its effect here, or is noted. Requests to the host go to the guest's
//! memory, at the addresses that its IOMMU has mapped.
//!
//! Beside XDMA it has an engine that is started by registers, one transfer at a time, with the same memory: BAR3. BAR2 has the
//! registers of an [AXI CDMA](crate::cdma_twin), and is as short, so that the kernel can put both into one page.
//!
//! Source: AMD, PG195, "Register Space", "Descriptor Format" and "Poll Mode".

use crate::cdma_twin::Cdma;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_BAR2_REGION_INDEX, VFIO_PCI_BAR3_REGION_INDEX,
    VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSI_IRQ_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS,
    VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE, vfio_region_info,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion};

/// Channels of each direction.
const CHANNELS: usize = 2;
/// Vectors of MSI, and of MSI-X.
const VECTORS: usize = 4;
const BAR_BYTES: u64 = 64 << 10;
/// BAR2 and BAR3.
const SHORT_BAR_BYTES: u64 = 256;
/// The card's own memory.
pub const MEMORY_BYTES: u64 = 64 << 10;

/// Deviation of the card from its document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The last 8 B of each descriptor are not moved.
    LosesBytes,
    /// Each descriptor is as if it were 64 B longer.
    MovesMore,
    /// A list never ends.
    Hangs,
    /// A list begins a millisecond after its start; this is no error.
    StartsLate,
    /// No interrupt is sent.
    SendsNoInterrupt,
    /// Only 21 bits of host addresses are used.
    DropsAddressBits,
    /// Data addresses must be aligned to each other, to 64 B.
    NeedsAlignment,
    /// The magic number is never recognised.
    SeesNoMagic,
    /// Only the first descriptor of a list is done and counted.
    StopsEarly,
    /// The channels have streams.
    Streams,
}

/// The card, as tests see it.
#[derive(Clone)]
pub struct Twin(Arc<Mutex<Card>>);

/// What the card has seen since it was asked for the last time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Completed descriptors.
    pub descriptors: u64,
    /// Longest list.
    pub longest: u64,
    /// Blocks of descriptors that were fetched at once.
    pub fetches: u64,
    /// Interrupts by vector.
    pub interrupts: [u64; VECTORS],
    /// Interrupts by MSI-X, of all vectors.
    pub by_msix: u64,
    /// Starts while the channel of the other direction was busy.
    pub at_once: u64,
    /// Channels that were started, those of host to card first.
    pub started: [bool; 2 * CHANNELS],
    /// Stores to registers.
    pub stores: u64,
    /// Widths of accesses to the registers of the second engine, in bytes.
    pub second_widths: BTreeSet<usize>,
    /// Actions of the driver that PG195 does not permit.
    pub violations: Vec<String>,
}

impl Twin {
    /// Serves one emulator at `socket`.
    pub fn serve(socket: &Path) -> Twin {
        let card = Arc::new(Mutex::new(Card::new()));
        let region = |index: u32| {
            let size = match index {
                VFIO_PCI_BAR0_REGION_INDEX => BAR_BYTES,
                VFIO_PCI_BAR2_REGION_INDEX | VFIO_PCI_BAR3_REGION_INDEX => SHORT_BAR_BYTES,
                VFIO_PCI_CONFIG_REGION_INDEX => 4096,
                _ => 0,
            };
            let flags = if size == 0 { 0 } else { VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE };
            let argsz = size_of::<vfio_region_info>() as u32;
            let region_info = vfio_region_info { argsz, flags, index, size, ..Default::default() };
            ServerRegion { region_info, sparse_areas: vec![], mmap_fd: None }
        };
        let irq = |index| {
            let has_vectors = matches!(index, VFIO_PCI_MSI_IRQ_INDEX | VFIO_PCI_MSIX_IRQ_INDEX);
            let count = if has_vectors { VECTORS as u32 } else { 0 };
            IrqInfo { index, flags: VFIO_IRQ_INFO_EVENTFD, count }
        };
        let irqs = (0..VFIO_PCI_NUM_IRQS).map(irq).collect();
        let regions = (0..VFIO_PCI_NUM_REGIONS).map(region).collect();
        let server = Server::new(socket, true, irqs, regions).unwrap();
        let mut backend = Backend(Arc::clone(&card));
        // It ends with its emulator; without one, with this process.
        std::thread::spawn(move || server.run(&mut backend));
        Twin(card)
    }

    /// Makes the card deviate, or not.
    pub fn set(&self, fault: Option<Fault>) {
        locked(&self.0).fault = fault;
    }

    /// The actions of the driver since the last call; then they are forgotten.
    pub fn seen(&self) -> Seen {
        std::mem::take(&mut locked(&self.0).seen)
    }
}

fn locked(card: &Mutex<Card>) -> MutexGuard<'_, Card> {
    card.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A channel and its SGDMA registers.
#[derive(Clone, Copy, Default)]
struct Channel {
    control: u32,
    status: u32,
    completed: u32,
    write_back: [u32; 2],
    mask: u32,
    list: [u32; 2],
    adjacent: u32,
}

/// Bits of Control and Status.
const RUN: u32 = 1;
const BUSY: u32 = 1;
const STOPPED: u32 = 1 << 1;
const COMPLETED: u32 = 1 << 2;
const ALIGN_MISMATCH: u32 = 1 << 3;
const MAGIC_STOPPED: u32 = 1 << 4;
const INVALID_LENGTH: u32 = 1 << 5;
const READ_UNSUPPORTED: u32 = 1 << 9;
const WRITE_DECODE: u32 = 1 << 14;
const FETCH_UNSUPPORTED: u32 = 1 << 19;
const WRITE_BACK: u32 = 1 << 26;

/// Bits of the control field of a descriptor.
const STOP: u32 = 1;
const COMPLETE: u32 = 1 << 1;

pub struct Card {
    config: Vec<u8>,
    pub memory: Vec<u8>,
    pub cdma: Cdma,
    /// Words of the second engine's registers: source, destination, count and command, 8 B each.
    second: [u32; 8],
    /// Channels of host to card, then of card to host.
    channels: [Channel; 2 * CHANNELS],
    /// Channel Interrupt Enable Mask and requests.
    enabled: u32,
    requested: u32,
    vectors: u32,
    events: [Option<File>; VECTORS],
    is_msix: bool,
    /// Mapped host memory by address: length, offset in the file, number of the file.
    mapped: BTreeMap<u64, (u64, u64, u64)>,
    files: BTreeMap<u64, File>,
    pub fault: Option<Fault>,
    pub seen: Seen,
}

impl Card {
    fn new() -> Card {
        let mut config = vec![0; 4096];
        let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x00, &[0xee, 0x10, 0x38, 0x90]);
        // Status: a list of capabilities. Class: memory controller, other.
        put(0x06, &[0x10, 0]);
        put(0x09, &[0, 0x80, 0x05]);
        put(0x2c, &[0xee, 0x10, 0x07, 0]);
        put(0x34, &[0x40]);
        // MSI, 4 vectors, 64-bit addresses.
        put(0x40, &[0x05, 0x60, 0x84, 0]);
        // PCI Express, version 2, endpoint; 8 GT/s x8.
        put(0x60, &[0x10, 0, 0x02, 0]);
        put(0x6c, &[0x83, 0, 0, 0]);
        put(0x72, &[0x83, 0]);
        // MSI-X, 4 vectors; table and pending bits in BAR0, where PG195 has them.
        put(0x60 + 1, &[0x9c]);
        put(0x9c, &[0x11, 0, 3, 0, 0, 0x80, 0, 0, 0xe0, 0x8f, 0, 0]);
        Card {
            config,
            memory: vec![0; MEMORY_BYTES as usize],
            cdma: Cdma::default(),
            second: [0; 8],
            channels: [Channel::default(); 2 * CHANNELS],
            enabled: 0,
            requested: 0,
            vectors: 0,
            events: [const { None }; VECTORS],
            is_msix: false,
            mapped: BTreeMap::new(),
            files: BTreeMap::new(),
            fault: None,
            seen: Seen::default(),
        }
    }

    pub fn violation(&mut self, what: impl Into<String>) {
        self.seen.violations.push(what.into());
    }

    /// Places of host memory: file, offset and length of each piece; `None` if an address is not mapped.
    fn places(&self, address: u64, len: usize) -> Option<Vec<(u64, u64, usize)>> {
        let is_short = self.fault == Some(Fault::DropsAddressBits);
        let mut at = if is_short { address & 0x1f_ffff } else { address };
        let (mut left, mut places) = (len, Vec::new());
        while left > 0 {
            let (start, (size, offset, file)) = self.mapped.range(..=at).next_back()?;
            let within = at - start;
            let room = size.checked_sub(within).filter(|room| *room > 0)?;
            let now = left.min(usize::try_from(room).unwrap_or(usize::MAX));
            places.push((*file, offset + within, now));
            (at, left) = (at + now as u64, left - now);
        }
        Some(places)
    }

    pub fn is_bus_master(&self) -> bool {
        self.config[4] & 4 != 0
    }

    pub fn read_host(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut done = 0;
        for (file, offset, now) in self.places(address, len)? {
            self.files.get(&file)?.read_exact_at(&mut bytes[done..done + now], offset).ok()?;
            done += now;
        }
        Some(bytes)
    }

    /// A posted write: one to an address that is not mapped has no effect, and no error.
    pub fn write_host(&self, address: u64, bytes: &[u8]) {
        let mut done = 0;
        for (file, offset, now) in self.places(address, bytes.len()).unwrap_or_default() {
            if let Some(file) = self.files.get(&file) {
                file.write_all_at(&bytes[done..done + now], offset).unwrap();
            }
            done += now;
        }
    }

    /// Sets bits of Status whose logging is enabled.
    fn log(&mut self, nth: usize, bits: u32) {
        let channel = &mut self.channels[nth];
        channel.status |= bits & channel.control;
        let request = 1 << nth;
        let rises = channel.status & channel.mask != 0 && self.enabled & request != 0 && self.requested & request == 0;
        if rises {
            self.requested |= request;
            self.interrupt((self.vectors >> (nth * 8) & 0x1f) as usize);
        }
    }

    pub fn interrupt(&mut self, vector: usize) {
        if self.fault == Some(Fault::SendsNoInterrupt) {
            return;
        }
        match self.events.get(vector).and_then(Option::as_ref) {
            Some(mut event) => {
                event.write_all(&1_u64.to_ne_bytes()).unwrap();
                self.seen.interrupts[vector] += 1;
                self.seen.by_msix += u64::from(self.is_msix);
            }
            None => self.violation(format!("an interrupt by vector {vector}, which is not enabled")),
        }
    }

    /// Fetches and does the descriptors of a list. Returns the error bits and that of the end.
    fn list(&mut self, nth: usize) -> u32 {
        let Channel { list, adjacent, .. } = self.channels[nth];
        let (mut at, mut more) = (u64::from(list[0]) | u64::from(list[1]) << 32, u64::from(adjacent));
        let mut done = 0;
        loop {
            if !at.is_multiple_of(32) || at % 4096 + 32 * (more + 1) > 4096 {
                self.violation(format!("{} descriptors at {at:#x} are fetched across 4 KiB", more + 1));
                return FETCH_UNSUPPORTED;
            }
            let Some(block) = self.read_host(at, 32 * (more as usize + 1)) else { return FETCH_UNSUPPORTED };
            self.seen.fetches += 1;
            let mut next = 0;
            for (place, descriptor) in (0..).zip(block.chunks(32)) {
                if place > 0 && next != at + 32 * place {
                    self.violation(format!("descriptor {next:#x} is in the block of {at:#x}, and elsewhere"));
                }
                let word = |nth: usize| u32::from_le_bytes(descriptor[nth * 4..][..4].try_into().unwrap());
                let long = |nth: usize| u64::from(word(nth)) | u64::from(word(nth + 1)) << 32;
                if word(0) >> 16 != 0xad4b || self.fault == Some(Fault::SeesNoMagic) {
                    return MAGIC_STOPPED;
                }
                let error = self.transfer(nth, word(1), long(2), long(4));
                if error != 0 {
                    return error;
                }
                done += 1;
                self.channels[nth].completed += 1;
                (self.seen.descriptors, self.seen.longest) = (self.seen.descriptors + 1, self.seen.longest.max(done));
                let is_last = word(0) & STOP != 0;
                let logged = if word(0) & COMPLETE != 0 { COMPLETED } else { 0 };
                if is_last || self.fault == Some(Fault::StopsEarly) {
                    return STOPPED | logged;
                }
                (next, more) = (long(6), u64::from(word(0) >> 8 & 0x3f));
            }
            at = next;
        }
    }

    /// Moves the bytes of one descriptor; returns an error bit or 0.
    fn transfer(&mut self, nth: usize, len: u32, source: u64, destination: u64) -> u32 {
        if len == 0 || len >> 28 != 0 {
            return INVALID_LENGTH;
        }
        if self.fault == Some(Fault::NeedsAlignment) && (source ^ destination) & 63 != 0 {
            return ALIGN_MISMATCH;
        }
        let len = match self.fault {
            Some(Fault::LosesBytes) => (len as usize).saturating_sub(8),
            Some(Fault::MovesMore) => len as usize + 64,
            _ => len as usize,
        };
        let to_card = nth < CHANNELS;
        let own = if to_card { destination } else { source } as usize;
        let Some(own) = own.checked_add(len).filter(|end| *end <= self.memory.len()).map(|end| own..end) else {
            // A decode error of the AXI interconnect.
            return if to_card { WRITE_DECODE } else { READ_UNSUPPORTED };
        };
        if to_card {
            let Some(bytes) = self.read_host(source, len) else { return READ_UNSUPPORTED };
            self.memory[own].copy_from_slice(&bytes);
        } else {
            self.write_host(destination, &self.memory[own]);
        }
        0
    }

    /// Runs the list of a channel that was started.
    fn run(&mut self, nth: usize) {
        // Stopped before it began, as by a timeout.
        if !self.is_bus_master() || self.channels[nth].control & RUN == 0 {
            self.channels[nth].status &= !BUSY;
            return;
        }
        if self.fault == Some(Fault::Hangs) {
            return;
        }
        let ended = self.list(nth);
        let Channel { control, write_back, completed, .. } = self.channels[nth];
        let is_failed = ended & !(STOPPED | COMPLETED) != 0;
        if control & WRITE_BACK != 0 && (is_failed || ended & COMPLETED != 0 || self.fault == Some(Fault::StopsEarly)) {
            let word = completed & 0xff_ffff | if is_failed { 1 << 31 } else { 0 };
            self.write_host(u64::from(write_back[0]) | u64::from(write_back[1]) << 32, &word.to_le_bytes());
        }
        self.channels[nth].status &= !BUSY;
        self.log(nth, ended);
    }

    /// Stores to a register of the second engine. Bit 0 of the command starts it and is cleared at the end; bit 1 is the
    /// direction.
    fn store_second(&mut self, offset: u64, value: u32) {
        let Some(register) = self.second.get_mut(offset as usize / 4) else {
            return self.violation(format!("a store to {offset:#x} of BAR3"));
        };
        *register = value;
        if offset != 0x18 || value & 1 == 0 {
            return;
        }
        let long = |nth: usize| u64::from(self.second[nth]) | u64::from(self.second[nth + 1]) << 32;
        let (source, destination, len) = (long(0), long(2), self.second[4]);
        let nth = if value & 2 == 0 { 0 } else { CHANNELS };
        if !self.is_bus_master() || self.transfer(nth, len, source, destination) != 0 {
            self.violation(format!("the second engine moves no {len} B from {source:#x} to {destination:#x}"));
        }
        self.second[6] = 0;
    }

    /// Number of the channel, and offset in its registers, of an offset below `target`.
    fn channel(offset: u64) -> Option<(usize, u64)> {
        let (target, channel) = ((offset >> 12 & 0xf) as usize, (offset >> 8 & 0xf) as usize);
        let direction = match target {
            0 | 4 => 0,
            1 | 5 => 1,
            _ => return None,
        };
        (channel < CHANNELS).then_some((direction * CHANNELS + channel, offset & 0xff))
    }

    fn load(&mut self, offset: u64) -> u32 {
        let is_list = matches!(offset >> 12, 4 | 5);
        if let Some((nth, at)) = Card::channel(offset) {
            let stream = if self.fault == Some(Fault::Streams) { 0x8000 } else { 0 };
            let channel = &mut self.channels[nth];
            return match (is_list, at) {
                (_, 0x00) => 0x1fc0_0006 | stream | (offset as u32 >> 12) << 16 | (offset as u32 >> 8 & 0xf) << 8,
                (false, 0x04) => channel.control,
                (false, 0x40) => channel.status,
                (false, 0x44) => {
                    let found = channel.status;
                    channel.status &= BUSY;
                    self.requested &= !(1 << nth);
                    found
                }
                (false, 0x48) => channel.completed,
                (false, 0x90) => channel.mask,
                _ => 0,
            };
        }
        match offset {
            0x2000 => 0x1fc2_0006,
            0x2010 => self.enabled,
            0x2044 => self.requested,
            0x20a0 => self.vectors,
            0x3000 => 0x1fc3_0006,
            _ => 0,
        }
    }

    /// Stores to a register; returns the channel to run.
    fn store(&mut self, offset: u64, value: u32) -> Option<usize> {
        self.seen.stores += 1;
        let is_list = matches!(offset >> 12, 4 | 5);
        if let Some((nth, at)) = Card::channel(offset) {
            let channel = &mut self.channels[nth];
            match (is_list, at) {
                (false, 0x04) => {
                    let rises = value & RUN != 0 && channel.control & RUN == 0;
                    channel.control = value;
                    if rises {
                        self.seen.started[nth] = true;
                        if self.config[4] & 4 == 0 {
                            self.violation("a channel is started without bus mastering");
                            return None;
                        }
                        if channel.status & BUSY != 0 {
                            self.violation("a channel that is busy is started");
                            return None;
                        }
                        (channel.status, channel.completed) = (BUSY, 0);
                        let other = self.channels[(nth + CHANNELS) % (2 * CHANNELS)];
                        self.seen.at_once += u64::from(other.status & BUSY);
                        return Some(nth);
                    }
                }
                (false, 0x88) => channel.write_back[0] = value,
                (false, 0x8c) => channel.write_back[1] = value,
                (false, 0x90) => channel.mask = value,
                (true, 0x80) => channel.list[0] = value,
                (true, 0x84) => channel.list[1] = value,
                (true, 0x88) => channel.adjacent = value & 0x3f,
                _ => self.violation(format!("a store to {offset:#x}")),
            }
            return None;
        }
        match offset {
            0x2014 => self.enabled |= value,
            0x2018 => self.enabled &= !value,
            0x20a0 => self.vectors = value,
            _ => self.violation(format!("a store to {offset:#x}")),
        }
        None
    }
}

/// The card as the server of vfio-user sees it.
struct Backend(Arc<Mutex<Card>>);

impl ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let mut card = locked(&self.0);
        match region {
            VFIO_PCI_CONFIG_REGION_INDEX => {
                let at = offset as usize;
                let found = card.config.get(at..at + data.len()).ok_or(io::ErrorKind::InvalidInput)?;
                data.copy_from_slice(found);
            }
            VFIO_PCI_BAR0_REGION_INDEX if data.len() == 4 => {
                let found = card.load(offset);
                data.copy_from_slice(&found.to_le_bytes());
            }
            VFIO_PCI_BAR2_REGION_INDEX if data.len() == 4 => {
                data.copy_from_slice(&card.load_cdma(offset).to_le_bytes());
            }
            VFIO_PCI_BAR3_REGION_INDEX => {
                card.seen.second_widths.insert(data.len());
                let registers: Vec<u8> = card.second.iter().flat_map(|word| word.to_le_bytes()).collect();
                let at = offset as usize;
                data.copy_from_slice(registers.get(at..at + data.len()).ok_or(io::ErrorKind::InvalidInput)?);
            }
            _ => {
                card.violation(format!("a load of {} B at {offset:#x} of region {region}", data.len()));
                data.fill(0xff);
            }
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut card = locked(&self.0);
        match (region, <[u8; 4]>::try_from(data)) {
            (VFIO_PCI_CONFIG_REGION_INDEX, _) => {
                // Of all registers, only Command matters here: the emulator has the others.
                if offset == 4 {
                    card.config[4] = data[0];
                }
            }
            (VFIO_PCI_BAR0_REGION_INDEX, Ok(word)) => {
                if let Some(nth) = card.store(offset, u32::from_le_bytes(word)) {
                    let is_late = card.fault == Some(Fault::StartsLate);
                    let card = Arc::clone(&self.0);
                    // The store is posted: it does not wait for the list.
                    std::thread::spawn(move || {
                        if is_late {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        locked(&card).run(nth);
                    });
                }
            }
            (VFIO_PCI_BAR2_REGION_INDEX, Ok(word)) => {
                if card.store_cdma(offset, u32::from_le_bytes(word)) {
                    let card = Arc::clone(&self.0);
                    std::thread::spawn(move || locked(&card).run_cdma());
                }
            }
            (VFIO_PCI_BAR3_REGION_INDEX, _) => {
                card.seen.second_widths.insert(data.len());
                for (word, at) in data.as_chunks().0.iter().zip((offset..).step_by(4)) {
                    card.store_second(at, u32::from_le_bytes(*word));
                }
            }
            _ => card.violation(format!("a store of {} B at {offset:#x} of region {region}", data.len())),
        }
        Ok(())
    }

    fn dma_map(&mut self, _: DmaMapFlags, offset: u64, address: u64, size: u64, fd: Option<File>) -> io::Result<()> {
        // Memory without a file is none of the guest's RAM.
        let Some(file) = fd else { return Ok(()) };
        let mut card = locked(&self.0);
        // Each page of the guest comes with a descriptor of the same file.
        let inode = file.metadata()?.ino();
        card.files.entry(inode).or_insert(file);
        card.mapped.insert(address, (size, offset, inode));
        Ok(())
    }

    fn dma_unmap(&mut self, _: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        // One range may cover many mappings; of many, the others are not looked at.
        let last = address.saturating_add(size.saturating_sub(1));
        let mut card = locked(&self.0);
        while let Some(start) = card.mapped.range(address..=last).map(|(start, _)| *start).next() {
            card.mapped.remove(&start);
        }
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        let mut card = locked(&self.0);
        (card.channels, card.cdma) = ([Channel::default(); 2 * CHANNELS], Cdma::default());
        (card.enabled, card.requested, card.vectors) = (0, 0, 0);
        Ok(())
    }

    fn set_irqs(&mut self, index: u32, _: u32, start: u32, count: u32, fds: Vec<File>) -> io::Result<()> {
        let is_msix = index == VFIO_PCI_MSIX_IRQ_INDEX;
        if index != VFIO_PCI_MSI_IRQ_INDEX && !is_msix {
            return Ok(());
        }
        let mut card = locked(&self.0);
        if count == 0 {
            card.events = [const { None }; VECTORS];
        }
        card.is_msix = is_msix;
        let mut fds = fds.into_iter();
        for event in card.events.iter_mut().skip(start as usize).take(count as usize) {
            *event = fds.next();
        }
        Ok(())
    }
}
