//! A write to configuration space, as `setpci` makes it, and its effect on a platform.
//!
//! Two registers affect the simulation: `Max_Payload_Size` in Device Control, and P2P Request Redirect in ACS
//! Control. A write to any other register is rejected, because it would have no effect.

use crate::function::functions;
use lanemark_platform::{Origin, Platform};
use lanemark_wire::FunctionId;
use lanemark_wire::config::isolation::ACCESS_CONTROL;
use lanemark_wire::config::pcie::PCI_EXPRESS;
use lanemark_wire::config::{CapabilityId, ConfigSpace, Reading, Spot};
use std::fmt;
use std::str::FromStr;

/// The capability from which the offset of a write counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrittenCapability {
    /// PCI Express: `CAP_EXP`.
    Express,
    /// Access control services: `ECAP_ACS`.
    AccessControl,
}

impl WrittenCapability {
    /// Returns its `setpci` name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WrittenCapability::Express => "CAP_EXP",
            WrittenCapability::AccessControl => "ECAP_ACS",
        }
    }
}

/// A write to 16 bits of a capability of a function: `04:00.0+CAP_EXP+8.w=20:e0`, `04:00.0+ECAP_ACS+6.w=4:4`.
///
/// `setpci -s 04:00.0 CAP_EXP+8.w=20:e0` is the same write on a real machine. All numbers are hexadecimal. The mask
/// behind the colon selects the bits to change; without a mask, all bits are written.
///
/// ```
/// let write: lanemark_config_space::ConfigWrite = "04:00.0+CAP_EXP+8.w=20:e0".parse()?;
/// assert_eq!((write.offset, write.value, write.mask), (8, 0x20, 0xe0));
/// assert_eq!(write.to_string(), "04:00.0+CAP_EXP+8.w=0020:00e0");
//// how wide?/ \/\/ no widthassert!("04:00.0+CAP_EXP+8=20".parse::<lanemark_config_space::ConfigWrite>().is_err());/ how wide?/ \/\/ no width/// how wide?/ \/\/ no widthhow/ how wide?/ \/\/ no widthwide?
/// # Ok::<(), lanemark_config_space::NoConfigWrite>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigWrite {
    /// The function.
    pub function: FunctionId,
    /// The capability.
    pub capability: WrittenCapability,
    /// Offset from the start of the capability.
    pub offset: u16,
    /// The value.
    pub value: u16,
    /// The bits of the register to change.
    pub mask: u16,
}

/// A text that is not a [`ConfigWrite`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is no write to a register; one looks like 04:00.0+CAP_EXP+8.w=20:e0, in hexadecimal: the function, Device \
     Control, the value, and which bits of it; ECAP_ACS+6.w is ACS Control"
)]
pub struct NoConfigWrite(pub String);

impl FromStr for ConfigWrite {
    type Err = NoConfigWrite;

    fn from_str(text: &str) -> Result<ConfigWrite, NoConfigWrite> {
        parse(text).ok_or_else(|| NoConfigWrite(text.chars().take(MOST_SHOWN).collect()))
    }
}

/// Number of characters of a wrong text that a message shows.
const MOST_SHOWN: usize = 60;

fn parse(text: &str) -> Option<ConfigWrite> {
    let (function, write) = text.split_once('+')?;
    let (register, value) = write.split_once('=')?;
    let (capability, offset) = register.split_once('+')?;
    let all = [WrittenCapability::Express, WrittenCapability::AccessControl];
    let capability = all.into_iter().find(|known| known.name() == capability)?;
    let offset = hex(offset.strip_suffix(".w")?)?;
    let (value, mask) = value.split_once(':').unwrap_or((value, "ffff"));
    Some(ConfigWrite { function: address(function)?, capability, offset, value: hex(value)?, mask: hex(mask)? })
}

/// Parses `04:00.0`, or `0000:04:00.0` with the only domain of a platform.
fn address(text: &str) -> Option<FunctionId> {
    let text = text.strip_prefix("0000:").unwrap_or(text);
    let (bus, rest) = text.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let byte = |text| hex(text).and_then(|number| u8::try_from(number).ok());
    FunctionId::new(byte(bus)?, byte(device)?, byte(function)?)
}

fn hex(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

impl fmt::Display for ConfigWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigWrite { function, capability, offset, value, mask } = self;
        write!(f, "{function}+{}+{offset:x}.w={value:04x}:{mask:04x}", capability.name())
    }
}

/// The reason why a write is rejected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{write} on {platform}: {because}")]
pub struct SetpciError {
    /// The write.
    pub write: ConfigWrite,
    /// Name of the platform.
    pub platform: String,
    /// The reason, and what the platform has.
    pub because: String,
}

const MAX_PAYLOAD: Spot = Spot::of(&PCI_EXPRESS, "DevCtl", "MaxPayload");
const REDIRECT: Spot = Spot::of(&ACCESS_CONTROL, "ACSCtl", "ReqRedir");

/// Applies writes to a platform in order: ports with another `Max_Payload_Size`, or with P2P Request Redirect.
///
/// ```
/// let rosta = lanemark_platform::preset("rosta-virtex7").unwrap().unwrap();
/// let written = lanemark_config_space::setpci(&rosta, &["05:00.0+CAP_EXP+8.w=20:e0".parse().unwrap()])?;
/// assert_eq!(written.mps_bytes_of("fpga0"), 256);
// Every port supports 128 B; the root port of this machine supports 128 B only.
/// assert!(lanemark_config_space::setpci(&rosta, &["00:01.0+CAP_EXP+8.w=20:e0".parse().unwrap()]).is_err());
/// # Ok::<(), lanemark_config_space::SetpciError>(())
/// ```
///
/// # Errors
/// [`SetpciError`] if the function does not exist, the write would change any other field, or the port does not
/// support the value.
pub fn setpci(platform: &Platform, writes: &[ConfigWrite]) -> Result<Platform, SetpciError> {
    writes.iter().try_fold(platform.clone(), |platform, write| one(&platform, *write))
}

fn one(platform: &Platform, write: ConfigWrite) -> Result<Platform, SetpciError> {
    let refused = |because: String| SetpciError { write, platform: platform.name.clone(), because };
    let functions = functions(platform).map_err(|error| refused(error.to_string()))?;
    let Some(function) = functions.iter().find(|function| function.address == write.function) else {
        let all = functions.iter().map(|function| format!("{} ({})", function.address, function.port));
        let all = all.collect::<Vec<_>>().join(", ");
        return Err(refused(format!("there is no such function; there are {all}")));
    };
    let what = |what: &str| {
        refused(format!(
            "{what}; what is simulated is Max_Payload_Size in Device Control, CAP_EXP+8.w, mask e0, and P2P Request \
             Redirect in ACS Control, ECAP_ACS+6.w, mask 4"
        ))
    };
    let space = ConfigSpace::new(&function.bytes);
    let (spot, region) = match write.capability {
        WrittenCapability::Express => (MAX_PAYLOAD, space.capability(CapabilityId::PCI_EXPRESS)),
        WrittenCapability::AccessControl => (REDIRECT, space.capability(CapabilityId::ACCESS_CONTROL)),
    };
    let region = region.map_err(|error| refused(error.to_string()))?.region();
    if write.offset != spot.register.offset {
        return Err(what(&format!("offset {:#x} is another register", write.offset)));
    }
    let now = region.register(spot).map_err(|error| refused(error.to_string()))?;
    let then = now & !u64::from(write.mask) | u64::from(write.value & write.mask);
    if spot.field.put(then, 0) != spot.field.put(now, 0) {
        return Err(what(&format!("it would change other bits, from {now:04x} to {then:04x}")));
    }
    let says = format!(
        "setpci -s {} {}+{:x}.w={:x}:{:x}",
        write.function,
        write.capability.name(),
        write.offset,
        write.value,
        write.mask
    );
    if write.capability == WrittenCapability::AccessControl {
        let changed = platform.with_acs_redirect(&function.port, spot.field.of(then) == 1, Origin::Given(says));
        return changed.map_err(|error| refused(error.to_string()));
    }
    let Reading::Quantity(bytes, _) = MAX_PAYLOAD.field.read(MAX_PAYLOAD.field.of(then)) else {
        return Err(what(&format!("code {} of Max_Payload_Size is reserved", MAX_PAYLOAD.field.of(then))));
    };
    let supported = platform.mps_supported_bytes_of(&function.port);
    if bytes > u64::from(supported) {
        return Err(refused(format!("port {} supports {supported} B and not {bytes}", function.port)));
    }
    let changed = platform.with_mps_bytes(&function.port, bytes as u32, Origin::Given(says));
    changed.map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rosta() -> Platform {
        lanemark_platform::preset("rosta-virtex7").unwrap().unwrap()
    }

    fn write(text: &str) -> ConfigWrite {
        text.parse().unwrap()
    }

    #[test]
    fn a_write_is_parsed_and_printed_and_its_mask_is_optional() {
        let all = write("0000:04:1f.7+CAP_EXP+8.w=0x2830");
        assert_eq!((all.function.to_string().as_str(), all.value, all.mask), ("04:1f.7", 0x2830, 0xffff));
        assert_eq!(write(&all.to_string()), all);
        for wrong in [
            "",
            "04:00.0",
            "04:00.0+CAP_EXP+8.w",
            "04:00.0+CAP_EXP+8.l=0",
            "04:20.0+CAP_EXP+8.w=0",
            "04:00.0+CAP_EXP+8.w=10000",
            "04:00.0+CAP_EXP+8.w=+1",
            "04:00.0+CAP_EXP+8.w=1:",
        ] {
            assert!(wrong.parse::<ConfigWrite>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_whole_register_may_be_written_if_its_other_bits_keep_their_values() {
        let rosta = rosta();
        let functions = functions(&rosta).unwrap();
        let card = functions.iter().find(|function| function.port == "fpga0").unwrap();
        let pcie = ConfigSpace::new(&card.bytes).pcie().unwrap();
        let now = pcie.region().register(MAX_PAYLOAD).unwrap() as u16;
        let of = |value: u16| {
            setpci(
                &rosta,
                &[ConfigWrite {
                    function: card.address,
                    capability: WrittenCapability::Express,
                    offset: 8,
                    value,
                    mask: 0xffff,
                }],
            )
        };
        assert_eq!(of(now | 0x20).unwrap().mps_bytes_of("fpga0"), 256);
        let error = of(now ^ 0x1000).unwrap_err();
        assert!(error.because.starts_with("it would change other bits"), "{error}");
    }

    #[test]
    fn a_written_value_is_read_back_from_configuration_space() {
        let written = setpci(&rosta(), &[write("05:00.0+CAP_EXP+8.w=20:e0")]).unwrap();
        for function in functions(&written).unwrap() {
            let meant = if function.port == "fpga0" { 256 } else { 128 };
            assert_eq!(ConfigSpace::new(&function.bytes).pcie().unwrap().max_payload(), Ok(meant), "{}", function.port);
        }
        let back = setpci(&written, &[write("05:00.0+CAP_EXP+8.w=0:e0")]).unwrap();
        assert_eq!(back.mps_bytes_of("fpga0"), 128);
    }

    #[test]
    fn acs_request_redirect_applies_to_its_switch_port_only() {
        let set = setpci(&rosta(), &[write("04:00.0+ECAP_ACS+6.w=4:4")]).unwrap();
        for function in functions(&set).unwrap() {
            let is_it = function.port == "rc47a/fpga0";
            assert_eq!(set.redirects(&function.port), is_it, "{}", function.port);
            if let Ok(control) = ConfigSpace::new(&function.bytes).access_control() {
                assert_eq!(control.request_redirect, is_it);
            }
        }
        // The write that `lanemark doctor` recommends.
        let back = setpci(&set, &[write("04:00.0+ECAP_ACS+6.w=0:c")]).unwrap();
        assert!(!back.redirects("rc47a/fpga0"));
        let because = |text| setpci(&rosta(), &[write(text)]).unwrap_err().because;
        assert!(because("04:00.0+ECAP_ACS+6.w=c:c").starts_with("it would change other bits, from 0000 to 000c"));
        assert!(because("04:00.0+ECAP_ACS+4.w=4:4").starts_with("offset 0x4 is another register"));
        assert!(because("00:01.0+ECAP_ACS+6.w=4:4").contains("only downstream ports of switches"));
        assert!(because("05:00.0+ECAP_ACS+6.w=4:4").contains("capability"), "a card has none");
    }

    #[test]
    fn a_payload_size_above_the_supported_one_is_rejected() {
        let because = |text| setpci(&rosta(), &[write(text)]).unwrap_err().because;
        assert!(setpci(&rosta(), &[write("05:00.0+CAP_EXP+8.w=20:e0")]).is_ok());
        assert_eq!(because("05:00.0+CAP_EXP+8.w=40:e0"), "port fpga0 supports 256 B and not 512");
        assert_eq!(because("00:01.0+CAP_EXP+8.w=20:e0"), "port root/rha25 supports 128 B and not 256");
        assert!(because("05:00.0+CAP_EXP+8.w=c0:e0").starts_with("code 6 of Max_Payload_Size is reserved"));
        assert!(because("05:00.0+CAP_EXP+10.w=0:3").starts_with("offset 0x10 is another register"));
        assert!(
            because("05:01.0+CAP_EXP+8.w=20:e0")
                .starts_with("there is no such function; there are 00:01.0 (root/rha25)")
        );
    }
}
