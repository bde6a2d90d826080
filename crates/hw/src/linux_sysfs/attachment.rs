//! A device whose ranges may be touched: everything that is checked before the first mapping.

use super::bar::Space;
use super::{Address, Bar, CardError, Device, Kind, Range, System};
use lanemark_units::{BarOffset, format_size};

/// What a user allows besides naming ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Consent {
    /// The device is theirs, though a driver is bound to it.
    pub owns_device: bool,
    /// Memory decoding may be turned on. It stays on.
    pub enable: bool,
}

/// A named range of a BAR that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// What was named.
    pub range: Range,
    /// What stands behind it: as named, or by the BAR.
    pub kind: Kind,
    /// The BAR it lies in.
    pub bar: Bar,
}

impl Place {
    /// Where it starts.
    #[must_use]
    pub const fn start(&self) -> BarOffset {
        BarOffset { bar: self.range.bar, offset: self.range.from }
    }

    /// Whether the kind was chosen by the BAR, as the user said nothing.
    #[must_use]
    pub const fn is_kind_assumed(&self) -> bool {
        self.range.kind.is_none()
    }
}

/// A device and the ranges of it that may be touched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// The device.
    pub device: Device,
    /// The ranges, in the order they were named.
    pub places: Vec<Place>,
    /// The driver bound to it, which the user said does not matter.
    pub driver: Option<String>,
    /// Whether memory decoding was off and has been turned on.
    pub was_enabled: bool,
}

impl Attachment {
    /// Checks that the ranges are there and that the device is free, awake and answering.
    ///
    /// # Errors
    /// The first [`CardError`] of those.
    pub fn new(system: &System, address: Address, ranges: &[Range], consent: Consent) -> Result<Attachment, CardError> {
        let (device, places) = Attachment::named(system, address, ranges)?;
        let driver = check_driver(&device, consent)?;
        device.check_awake()?;
        let was_enabled = if consent.enable { device.enable()? } else { false };
        device.check_decoding()?;
        Ok(Attachment { device, places, driver, was_enabled })
    }

    /// The same without asking the device anything: what [`new`](Attachment::new) would refuse is returned beside it.
    ///
    /// # Errors
    /// [`CardError`] where the ranges are not there.
    pub fn rehearsed(
        system: &System,
        address: Address,
        ranges: &[Range],
        consent: Consent,
    ) -> Result<(Attachment, Vec<CardError>), CardError> {
        let (device, places) = Attachment::named(system, address, ranges)?;
        let mut refusals = Vec::new();
        let driver = check_driver(&device, consent).unwrap_or_else(|refusal| {
            refusals.push(refusal);
            None
        });
        refusals.extend(device.check_awake().err());
        Ok((Attachment { device, places, driver, was_enabled: false }, refusals))
    }

    fn named(system: &System, address: Address, ranges: &[Range]) -> Result<(Device, Vec<Place>), CardError> {
        let device = Device::find(system, address)?;
        let bars = device.bars()?;
        if ranges.is_empty() {
            return Err(CardError::NoRange { device: address, example: example(&bars), have: bars });
        }
        let places = ranges.iter().map(|range| place(&device, *range, &bars)).collect::<Result<Vec<_>, _>>()?;
        for (number, one) in ranges.iter().enumerate() {
            if let Some(other) = ranges[..number].iter().find(|other| other.overlaps(one)) {
                return Err(CardError::Overlap { device: address, one: *other, other: *one });
            }
        }
        Ok((device, places))
    }
}

/// The bound driver, where the user allows one.
fn check_driver(device: &Device, consent: Consent) -> Result<Option<String>, CardError> {
    match device.driver()? {
        Some(driver) if !consent.owns_device => Err(CardError::DriverBound { device: device.address(), driver }),
        driver => Ok(driver),
    }
}

fn place(device: &Device, range: Range, bars: &[Bar]) -> Result<Place, CardError> {
    let (device, number) = (device.address(), range.bar);
    let have = || bars.to_vec();
    let bar = bars.iter().find(|bar| bar.number == number);
    let bar = bar.ok_or_else(|| CardError::NoSuchBar { device, bar: number, have: have() })?;
    if bar.space == Space::Io {
        return Err(CardError::NotMemory { device, bar: number, have: have() });
    }
    if !bar.is_assigned {
        return Err(CardError::Unassigned { device, bar: number });
    }
    if range.to > bar.len {
        return Err(CardError::BeyondBar { device, range, len: bar.len });
    }
    // A prefetchable BAR promises that loads change nothing; of another one nothing is known, so it is loaded only.
    let by_bar = if bar.is_prefetchable { Kind::Storage } else { Kind::Registers { may_load: true, may_store: false } };
    Ok(Place { range, kind: range.kind.unwrap_or(by_bar), bar: bar.clone() })
}

/// A range of the BAR that most likely is memory.
fn example(bars: &[Bar]) -> String {
    let memory = || bars.iter().filter(|bar| bar.space != Space::Io && bar.is_assigned);
    let bar = memory().filter(|bar| bar.is_prefetchable).max_by_key(|bar| bar.len).or_else(|| memory().next());
    bar.map_or_else(|| "2:0..4KiB".to_owned(), |bar| format!("{}:0..{}", bar.number, format_size(bar.len.min(4096))))
}
