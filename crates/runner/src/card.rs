//! A real card: opened with the access that the user allows, watched for changes, and described in the record.

use crate::cancel::Cancel;
use crate::dma_ceiling::{dma_ceiling, is_dma, payload};
use crate::error::RunError;
use crate::setup::CardAccess;
use lanemark_bench::Case;
use lanemark_hw::linux_lanemark;
use lanemark_hw::linux_nvme::{DriveNode, NvmeMachine};
use lanemark_hw::linux_sysfs::{
    Address, Attachment, CardError, CardMachine, Consent, Device, Link, Mapping, Place, State, System,
};
use lanemark_hw::linux_vfio::{DRIVER, PeerRange, VfioInterface, VfioMachine, VfioOptions};
use lanemark_hw::linux_xdma::{XdmaCard, XdmaMachine};
use lanemark_machine::{Facts, Machine};
use lanemark_method::Peer;
use lanemark_record::{Card as CardRecord, CardLink, CardMapping, CardPeer, CardRange, Ceiling, CeilingKind};
use lanemark_units::format_size;
use lanemark_wire::Mps;
use std::path::Path;

/// An open card without its machine: attachment, mappings and link states at the start.
pub(crate) struct Card {
    attachment: Attachment,
    mappings: Vec<Mapping>,
    emulated: Option<String>,
    before: State,
    /// The other card of transfers between cards.
    peer: Option<OpenPeer>,
    /// Whether the data of DMA stay in the card.
    keeps_data: bool,
    /// Largest payload of the packets of DMA; `None` if its configuration space cannot be read, and without DMA.
    mps: Option<Mps>,
}

/// The other card of transfers between cards.
struct OpenPeer {
    range: PeerRange,
    device: Device,
    before: State,
}

/// An open card with its machine.
pub(crate) struct OpenCard {
    pub(crate) machine: Box<dyn Machine>,
    pub(crate) card: Card,
    /// Sentences for the record's warnings.
    pub(crate) notes: Vec<String>,
}

/// Opens the card at `address`; `cancel` ends long measurements.
pub(crate) fn open(address: Address, access: &CardAccess, cancel: &Cancel) -> Result<OpenCard, RunError> {
    let system = access.system();
    let emulated = if access.emulated { Some("declared with --emulated".to_owned()) } else { system.emulated() };
    if let Some(attachment) = behind_vfio(address, access)? {
        let before = State::now(&attachment.device);
        let ranges = access.ranges();
        let file = access.device.as_ref();
        let flag = cancel.flag();
        let (peer, is_emulated) = (access.peer, emulated.is_some());
        let (interface, drive, interrupted) = (access.vfio, access.drive, Some(&*flag));
        let pages = access.host_pages;
        let options = VfioOptions { ranges: &ranges, file, peer, interface, pages, drive, is_emulated, interrupted };
        let machine = VfioMachine::open(&system, address, &options)?.interrupted_by(cancel.flag());
        let attachment = machine.attachment().cloned().unwrap_or(attachment);
        let mappings = machine.mappings().to_vec();
        let peer = peer.map(|range| OpenPeer::find(&system, range)).transpose()?;
        let notes = file.filter(|file| file.limits().is_some()).map(|file| {
            let by = if file.descriptors.is_some() { "descriptors and registers" } else { "registers" };
            format!(
                "{address}: a core starts each transfer of the engine '{}' by {by} and sees its end, so every time of DMA includes \
                 both: it is an upper bound, and a rate a lower bound",
                file.name
            )
        });
        let is_kept = machine.keeps_data_in_drive();
        let reads = machine.reads_a_drive().then(|| if is_kept { in_drive(address) } else {
            let of = if peer.is_some() { "DMA writes" } else { "DMA writes to host memory" };
            format!(
                "{address}: {of} are measured by Read commands: each time runs from the first store of a command until a core \
                 sees its completion, and includes the drive's access to its medium: it is an upper bound, and a rate a lower bound \
                 of the link"
            )
        });
        let writes = machine.overwrites().map(|named| {
            let of = if is_kept || peer.is_some() { "DMA reads" } else { "DMA reads of host memory" };
            // Data that stay in the drive say nothing about the link.
            let bounds = if is_kept { "" } else { ": it is an upper bound, and a rate a lower bound of the link" };
            format!(
                "{address}: {of} are measured by Write commands: each time runs from the first store of a command until a core \
                 sees its completion, and may end before the data are on the medium{bounds}; these runs overwrite at most the first \
                 {} of namespace {}",
                format_size(named.bytes),
                named.namespace
            )
        });
        let untranslated = (interface == Some(VfioInterface::NoIommu)).then(|| {
            format!(
                "{address}: opened without an IOMMU: nothing kept its DMA from other memory of this machine, and its times include no \
                 translation"
            )
        });
        let notes = untranslated.into_iter().chain(notes).chain(reads).chain(writes).collect();
        let card = Card { attachment, mappings, emulated, before, peer, mps: payload(address), keeps_data: is_kept };
        return Ok(OpenCard { machine: Box::new(machine), card, notes });
    }
    let (machine, before) = if behind_module(address, access)? {
        let machine = linux_lanemark::open(&system, address, &access.bars, emulated.is_some())?;
        let before = State::now(&machine.attachment().device);
        (machine, before)
    } else {
        let attachment = Attachment::new(&system, address, &access.bars, access.consent)?;
        let before = State::now(&attachment.device);
        (CardMachine::open(attachment, emulated.is_some())?, before)
    };
    let (attachment, mappings) = (machine.attachment().clone(), machine.mappings().to_vec());
    let card = Card { attachment, mappings, emulated, before, peer: None, mps: None, keeps_data: false };
    Ok(OpenCard { machine: Box::new(machine.interrupted_by(cancel.flag())), card, notes: Vec::new() })
}

/// Opens the namespace at `path` through the kernel's driver; `cancel` ends long measurements.
pub(crate) fn open_drive(path: &Path, access: &CardAccess, cancel: &Cancel) -> Result<OpenCard, RunError> {
    let system = access.system();
    let emulated = if access.emulated { Some("declared with --emulated".to_owned()) } else { system.emulated() };
    let node = DriveNode::find(&system, path)?;
    let attachment = with_its_driver(&system, node.function())?;
    let before = State::now(&attachment.device);
    let machine = NvmeMachine::open(&node, emulated.is_some(), cancel.flag())?;
    let remark = format!(
        "nvme:{}: DMA writes to host memory are reads of an NVMe drive through the kernel's driver, {}; every time begins with the \
         system call that submits a read and ends when a core sees its completion, and includes the driver, its interrupt and the \
         drive's access to its medium: it is an upper bound, and a rate a lower bound of the link",
        path.display(),
        machine.way()
    );
    let card = Card {
        attachment,
        mappings: Vec::new(),
        emulated,
        before,
        peer: None,
        mps: payload(node.function()),
        keeps_data: false,
    };
    Ok(OpenCard { machine: Box::new(machine), card, notes: vec![remark] })
}

/// What the times of a drive mean whose data stay in it.
fn in_drive(address: Address) -> String {
    format!(
        "{address}: reads of an NVMe drive put their data into its controller memory buffer, and its writes take them from there, so \
         in the samples no data crosses the link, only commands and completions: every time runs from the first store of a command \
         until a core sees the completion, and is no measure of link bandwidth"
    )
}

/// The attachment of a device that keeps its driver, without ranges.
pub(crate) fn with_its_driver(system: &System, address: Address) -> Result<Attachment, RunError> {
    let device = Device::find(system, address)?;
    let driver = device.driver()?;
    Ok(Attachment::of(device, driver))
}

/// Consent to access through the device file of the bound driver.
pub(crate) const BY_ITS_DRIVER: Consent = Consent { owns_device: true, enable: false };

/// Opens the card whose files begin with `path` through its driver `xdma`; `cancel` ends long measurements.
pub(crate) fn open_xdma(path: &Path, access: &CardAccess, cancel: &Cancel) -> Result<OpenCard, RunError> {
    let system = access.system();
    let emulated = if access.emulated { Some("declared with --emulated".to_owned()) } else { system.emulated() };
    let found = XdmaCard::find(&system, path)?;
    let attachment = match access.bars.as_slice() {
        [] => with_its_driver(&system, found.function())?,
        bars => Attachment::new(&system, found.function(), bars, BY_ITS_DRIVER)?,
    };
    let before = State::now(&attachment.device);
    let (memory, is_emulated) = (access.card_memory, emulated.is_some());
    let machine = XdmaMachine::open(&found, memory, attachment.clone(), is_emulated, cancel.flag())?;
    let mappings = machine.mappings().to_vec();
    let remark = format!(
        "xdma:{}: every transfer is a call of the driver, which pins the memory, maps it for the card, starts the card's engine and \
         waits for its end; every time includes the whole call: it is an upper bound, and a rate a lower bound of the engine's",
        path.display()
    );
    let remark = memory.map(|_| remark);
    let card =
        Card { attachment, mappings, emulated, before, peer: None, mps: payload(found.function()), keeps_data: false };
    Ok(OpenCard { machine: Box::new(machine), card, notes: remark.into_iter().collect() })
}

/// The attachment of a card that is bound to `vfio-pci`, without ranges.
///
/// # Errors
/// [`RunError`] if the card is absent, or if an option that needs `vfio-pci` is given and the card is not bound to it.
pub(crate) fn behind_vfio(address: Address, access: &CardAccess) -> Result<Option<Attachment>, RunError> {
    let attachment = Attachment::without_ranges(&access.system(), address, DRIVER)?;
    if attachment.is_none() && access.device.is_some() {
        return Err(RunError::DeviceNotBehindVfio(address.to_string()));
    }
    let given = access.drive.given().or(access.vfio.map(|_| "vfio")).or(access.host_pages.map(|_| "host_pages"));
    let given = given.or(access.peer.map(|_| "peer"));
    if let Some(field) = given.filter(|_| attachment.is_none()) {
        return Err(RunError::NotBehindVfio { field, device: address.to_string() });
    }
    // Named ranges of a bound card that the user owns are mapped through sysfs, if nothing asks for VFIO.
    let asks_for_vfio = access.bars.is_empty() || access.device.is_some() || access.binds_to(DRIVER);
    let asks_for_vfio = asks_for_vfio || given.is_some();
    Ok(attachment.filter(|_| asks_for_vfio || !access.consent.owns_device))
}

/// Whether the card is, or for a dry run will be, bound to our kernel module.
///
/// # Errors
/// [`RunError`] if the card is absent.
pub(crate) fn behind_module(address: Address, access: &CardAccess) -> Result<bool, RunError> {
    let driver = linux_lanemark::DRIVER;
    Ok(access.binds_to(driver) || Attachment::without_ranges(&access.system(), address, driver)?.is_some())
}

impl Card {
    /// The ceiling of a case: the payload rate of the slowest link on the path.
    pub(crate) fn ceiling(&self, case: &Case) -> Ceiling {
        let unknown = |because: String| Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because };
        if let Some(because) = &self.emulated {
            return unknown(format!("emulated: {because}"));
        }
        // A link may train to a higher rate under load than at idle: the fastest state observed counts.
        let now = State::now(&self.attachment.device).fastest_since(&self.before);
        let Some((reporter, link)) = now.slowest_link() else {
            return unknown("no link on the path to the card reports its speed".to_owned());
        };
        if is_dma(case) && self.keeps_data {
            return unknown(
                "no data of this case cross the link: they stay in the controller memory buffer".to_owned(),
            );
        }
        if is_dma(case) {
            let (reporter, link) = self.slowest_to_peer(case, &now, (reporter, link));
            return dma_ceiling(case, self.mps, link, reporter);
        }
        let bar = self.attachment.places.iter().map(|place| &place.bar).find(|bar| bar.number == case.region.bar);
        let start = bar.map_or(0, |bar| bar.start.0);
        match lanemark_model::link_ceiling(link.generation, link.lanes, start, case.verb(), case.size) {
            Some(limit) => Ceiling {
                kind: CeilingKind::Computed,
                rate_bytes_per_s: Some(limit.rate.bytes_per_s()),
                because: format!("{}; the slowest link on the path, as reported by {reporter}", limit.because),
            },
            None => unknown("the link has no serialization time".to_owned()),
        }
    }

    /// The slowest link between both cards, if a case has transfers between them; else `own`.
    fn slowest_to_peer(&self, case: &Case, now: &State, own: (Address, Link)) -> (Address, Link) {
        let has_peer = case.flows().iter().any(|flow| flow.peer != Peer::Host);
        let Some(peer) = self.peer.as_ref().filter(|_| has_peer) else { return own };
        now.slowest_link_to(&State::now(&peer.device).fastest_since(&peer.before)).unwrap_or(own)
    }

    /// Changes at the cards and at the links above them since opening, one warning each.
    pub(crate) fn changes(&self) -> Vec<String> {
        let of_peer = self.peer.iter().flat_map(|peer| State::now(&peer.device).changes_since(&peer.before));
        State::now(&self.attachment.device).changes_since(&self.before).into_iter().chain(of_peer).collect()
    }

    /// The record's description of the card.
    pub(crate) fn to_record(&self, facts: &Facts) -> CardRecord {
        let region = |place: &Place| {
            let found = facts.regions.iter().find(|region| region.at == place.start());
            found.map_or_else(String::new, |region| region.name.clone())
        };
        let range = |place: &Place| CardRange {
            region: region(place),
            bar: place.range.bar,
            offset_bytes: place.range.from,
            len_bytes: place.range.len(),
            kind: place.kind.to_string(),
            is_kind_assumed: place.is_kind_assumed(),
        };
        let Attachment { device, places, driver, was_enabled } = &self.attachment;
        let mapping = |mapping: &Mapping| CardMapping {
            region: places.get(mapping.place).map_or_else(String::new, region),
            memory_type: mapping.memory_type.name().to_owned(),
            file: mapping.file.display().to_string(),
            effective_memory_type: mapping
                .outcome
                .as_ref()
                .ok()
                .and_then(|mapped| mapped.found)
                .map(|kind| kind.name().to_owned()),
            is_used: mapping.outcome.is_ok(),
            because: match &mapping.outcome {
                Ok(mapped) => mapped.because.clone(),
                Err(because) => because.clone(),
            },
        };
        let links = self.before.links.iter().map(|(function, link)| CardLink {
            device: function.to_string(),
            generation: link.generation.number(),
            width_lanes: link.lanes.count(),
        });
        CardRecord {
            id: device.id().unwrap_or_default(),
            driver: driver.clone(),
            was_enabled: *was_enabled,
            emulated_because: self.emulated.clone(),
            ranges: places.iter().map(range).collect(),
            mappings: self.mappings.iter().map(mapping).collect(),
            links: links.collect(),
            peer: self.peer.as_ref().map(OpenPeer::to_record),
        }
    }
}

impl OpenPeer {
    fn find(system: &System, range: PeerRange) -> Result<OpenPeer, CardError> {
        let device = Device::find(system, range.device)?;
        let before = State::now(&device);
        Ok(OpenPeer { range, device, before })
    }

    fn to_record(&self) -> CardPeer {
        let PeerRange { device, range } = self.range;
        CardPeer {
            device: device.to_string(),
            id: self.device.id().unwrap_or_default(),
            bar: range.bar,
            offset_bytes: range.from,
            len_bytes: range.len(),
        }
    }
}
