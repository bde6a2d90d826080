//! PCI addresses of functions.

use lanemark_wire::FunctionId;
use std::fmt;
use std::str::FromStr;

/// Domain, bus, device and function: `0000:3b:00.0`.
///
/// The domain (a PCI segment group) has 16 bits; Linux numbers synthetic domains from `0x10000` on, so five and more
/// digits occur.
///
/// ```
/// use lanemark_inventory::Address;
/// let address: Address = "3b:00.0".parse().unwrap();
/// assert_eq!(address.to_string(), "0000:3b:00.0");
/// assert_eq!("10000:e1:00.0".parse::<Address>().unwrap().domain, 0x10000);
/// assert!("3b:20.0".parse::<Address>().is_err()); // the highest device number is 1f
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// The domain (segment group).
    pub domain: u32,
    /// Bus, device and function number.
    pub function: FunctionId,
}

impl Address {
    /// The function `bus:device.function` of `domain`; `None` if `device` is above 31 or `function` above 7.
    #[must_use]
    pub const fn new(domain: u32, bus: u8, device: u8, function: u8) -> Option<Address> {
        match FunctionId::new(bus, device, function) {
            Some(function) => Some(Address { domain, function }),
            None => None,
        }
    }

    /// The bus number.
    #[must_use]
    pub const fn bus(self) -> u8 {
        self.function.bus()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{}", self.domain, self.function)
    }
}

/// A text that is not a PCI address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is not a PCI address; write it as 0000:3b:00.0 or 3b:00.0, in hexadecimal, device up to 1f, function up to 7"
)]
pub struct NoAddress(pub String);

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Address, NoAddress> {
        parse(text).ok_or_else(|| NoAddress(crate::shortened::shortened(text)))
    }
}

/// As [`str::parse`], without the cost of a message: it is called for every line of a listing.
pub(crate) fn parse(text: &str) -> Option<Address> {
    let (rest, function) = text.rsplit_once('.')?;
    let (rest, device) = rest.rsplit_once(':')?;
    let (domain, bus) = match rest.rsplit_once(':') {
        Some((domain, bus)) => (digits(domain, 4, 8)?, bus),
        None => (0, rest),
    };
    let [bus, device, function] = [digits(bus, 2, 2)?, digits(device, 2, 2)?, digits(function, 1, 1)?];
    Address::new(domain, bus as u8, device as u8, function as u8)
}

/// A hexadecimal number of `least` to `most` digits.
fn digits(text: &str, least: usize, most: usize) -> Option<u32> {
    let only_digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if only_digits && (least..=most).contains(&text.len()) { u32::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_printed_and_parsed_back() {
        for text in ["0000:00:00.0", "ffff:ff:1f.7", "10000:e1:00.0", "ffffffff:01:02.3"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("00:1d.0".parse(), Ok(Address::new(0, 0, 0x1d, 0).unwrap()));
    }

    #[test]
    fn a_digit_too_many_or_too_few_is_refused() {
        for text in [
            "",
            "0",
            "00:00",
            "0:00.0",
            "00:0.0",
            "00:00.",
            "000:00:00.0",
            "000000000:00:00.0",
            "00:00.00",
            "00:20.0",
            "00:00.8",
            "100:00.0",
            "00:+1.0",
            " 00:00.0",
            "00:00.0 ",
            "0000:00:00:00.0",
        ] {
            assert_eq!(text.parse::<Address>(), Err(NoAddress(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn addresses_sort_by_domain_before_bus() {
        let of = |text: &str| text.parse::<Address>().unwrap();
        assert!(of("0000:ff:1f.7") < of("0001:00:00.0") && of("0000:00:1f.7") < of("0000:01:00.0"));
    }
}
