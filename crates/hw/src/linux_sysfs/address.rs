//! PCI address of a function: `0000:01:00.0`.

use lanemark_wire::FunctionId;
use std::fmt;
use std::str::FromStr;

/// PCI function of this machine, in the notation of `lspci -D` and sysfs.
///
/// ```
/// use lanemark_hw::linux_sysfs::Address;
/// let short: Address = "01:00.0".parse().unwrap();
/// assert_eq!(short.to_string(), "0000:01:00.0");
/// assert!("card.toml".parse::<Address>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// PCI domain (segment); 0 on most machines, wider than 16 bits for some virtual host bridges.
    pub domain: u32,
    /// Bus, device and function.
    pub function: FunctionId,
}

/// Error for a text that is not a PCI address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a PCI address: use the form of lspci -D, for example 0000:01:00.0")]
pub struct NotAnAddress(pub String);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{}", self.domain, self.function)
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        let address = || {
            let (rest, function) = text.split_once('.')?;
            let mut parts = rest.rsplit(':');
            let (device, bus) = (hex(parts.next()?, 2..=2)?, hex(parts.next()?, 2..=2)?);
            let domain = parts.next().map_or(Some(0), |domain| hex(domain, 4..=8))?;
            let function = FunctionId::new(bus as u8, device as u8, hex(function, 1..=1)? as u8)?;
            parts.next().is_none().then_some(Address { domain, function })
        };
        address().ok_or_else(|| NotAnAddress(text.to_owned()))
    }
}

/// Parses exactly `digits` hexadecimal digits.
fn hex(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let is_hex = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_its_domain() {
        for (text, shown) in
            [("01:00.0", "0000:01:00.0"), ("0000:3b:1f.7", "0000:3b:1f.7"), ("10000:e1:00.0", "10000:e1:00.0")]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn malformed_addresses_are_rejected() {
        for text in [
            "",
            "host",
            "01:00",
            "1:00.0",
            "01:0.0",
            "01:20.0",
            "01:00.8",
            "01:00.00",
            "000:01:00.0",
            "0:0000:01:00.0",
            "+1:00.0",
            "01:00.0 ",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
