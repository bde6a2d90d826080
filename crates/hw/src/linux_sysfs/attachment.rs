//! Attaching to a device: all checks before the first mapping.

use super::bar::Space;
use super::{Address, Bar, CardError, Device, Kind, Range, System};
use lanemark_units::{BarOffset, format_size};

/// Permissions of the user beyond the named ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Consent {
    /// Whether the device may be used although a driver is bound to it.
    pub owns_device: bool,
    /// Whether memory decoding may be enabled; it stays enabled.
    pub enable: bool,
}

/// Named range within an existing BAR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Range as named.
    pub range: Range,
    /// Kind of the range: as named, or derived from the BAR.
    pub kind: Kind,
    /// BAR that contains the range.
    pub bar: Bar,
}

impl Place {
    /// Start of the range.
    #[must_use]
    pub const fn start(&self) -> BarOffset {
        BarOffset { bar: self.range.bar, offset: self.range.from }
    }

    /// Whether the kind was derived from the BAR because the user named none.
    #[must_use]
    pub const fn is_kind_assumed(&self) -> bool {
        self.range.kind.is_none()
    }
}

/// Device and the ranges of it that may be accessed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// Device.
    pub device: Device,
    /// Ranges, in the order in which they were named.
    pub places: Vec<Place>,
    /// Driver bound to the device, with the user's consent.
    pub driver: Option<String>,
    /// Whether memory decoding was off and has been enabled.
    pub was_enabled: bool,
}

impl Attachment {
    /// Attaches to a device, after checking that the ranges exist and that the device is free, in D0 and responding.
    ///
    /// # Errors
    /// [`CardError`] of the first failed check.
    pub fn new(system: &System, address: Address, ranges: &[Range], consent: Consent) -> Result<Attachment, CardError> {
        let (device, places) = Attachment::named(system, address, ranges)?;
        let driver = check_driver(&device, consent)?;
        // A device of another process is not changed either.
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        let _lock = super::opened::locked(&device)?;
        device.check_awake()?;
        let was_enabled = if consent.enable { device.enable()? } else { false };
        device.check_decoding()?;
        Ok(Attachment { device, places, driver, was_enabled })
    }

    /// A device with its driver, whose BARs are not accessed.
    #[must_use]
    pub const fn of(device: Device, driver: Option<String>) -> Attachment {
        Attachment { device, places: Vec::new(), driver, was_enabled: false }
    }

    /// Attaches to a device whose BARs are not accessed; `None` unless it is bound to `driver`.
    ///
    /// # Errors
    /// [`CardError`] if there is no such device.
    pub fn without_ranges(system: &System, address: Address, driver: &str) -> Result<Option<Attachment>, CardError> {
        let device = Device::find(system, address)?;
        let bound = device.driver()?.filter(|bound| bound == driver);
        Ok(bound.map(|bound| Attachment::of(device, Some(bound))))
    }

    /// Attaches without accessing the device; also returns the errors that [`new`](Attachment::new) would return.
    ///
    /// # Errors
    /// [`CardError`] if a range does not exist.
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

    /// A range of a device, in one of its memory BARs.
    ///
    /// # Errors
    /// [`CardError`] if there is no such range.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn place(device: &Device, range: Range) -> Result<Place, CardError> {
        place(device, range, &device.bars()?)
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

/// Bound driver, if the user consents to one.
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
    // Loads from a prefetchable BAR have no side effects. Nothing is known about other BARs, so they are only loaded.
    let by_bar = if bar.is_prefetchable { Kind::Storage } else { Kind::Registers { may_load: true, may_store: false } };
    Ok(Place { range, kind: range.kind.unwrap_or(by_bar), bar: bar.clone() })
}

/// Example of a range, in the BAR that is most likely memory.
fn example(bars: &[Bar]) -> String {
    let memory = || bars.iter().filter(|bar| bar.space != Space::Io && bar.is_assigned);
    let bar = memory().filter(|bar| bar.is_prefetchable).max_by_key(|bar| bar.len).or_else(|| memory().next());
    bar.map_or_else(|| "2:0..4KiB".to_owned(), |bar| format!("{}:0..{}", bar.number, format_size(bar.len.min(4096))))
}
