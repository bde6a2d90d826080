//! Facts that were read, or the reason why they were not.

use lanemark_wire::config::Unknown;
use std::borrow::Cow;
use std::fmt;

/// A fact that was read, or the reason why it could not be read. Never a default.
///
/// A fact that may be absent is a `Seen<Option<T>>`: a function without a driver is `Known(None)`; one whose driver
/// is not in the source is `Unseen`.
///
/// ```
/// use lanemark_inventory::{Seen, Why};
/// let node: Seen<u32> = Seen::Known(1);
/// assert_eq!(node.known(), Some(&1));
/// let node: Seen<u32> = Seen::Unseen(Why::NotInDump);
/// assert_eq!(node.known(), None);
/// assert_eq!(node.why().unwrap().because(), "config space does not contain it");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen<T> {
    /// The source provides the fact.
    Known(T),
    /// The source does not provide it.
    Unseen(Why),
}

impl<T> Seen<T> {
    /// The fact, if it is known.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Seen::Known(fact) => Some(fact),
            Seen::Unseen(_) => None,
        }
    }

    /// The reason, if it is unseen.
    pub const fn why(&self) -> Option<&Why> {
        match self {
            Seen::Known(_) => None,
            Seen::Unseen(why) => Some(why),
        }
    }

    /// Converts a known fact.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Seen::Known(fact) => Seen::Known(make(fact)),
            Seen::Unseen(why) => Seen::Unseen(why),
        }
    }

    /// This fact if it is known, else `other`, including its reason.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Seen<T>) -> Seen<T> {
        match self {
            Seen::Known(_) => self,
            Seen::Unseen(_) => other(),
        }
    }

    /// Borrows the fact.
    pub fn as_ref(&self) -> Seen<&T> {
        match self {
            Seen::Known(fact) => Seen::Known(fact),
            Seen::Unseen(why) => Seen::Unseen(why.clone()),
        }
    }
}

impl<T: Copy> Seen<T> {
    /// A copy of the fact, if it is known.
    pub fn get(&self) -> Option<T> {
        self.known().copied()
    }
}

impl<T> Seen<Option<T>> {
    /// The value, if it is known to be present.
    pub const fn present(&self) -> Option<&T> {
        match self {
            Seen::Known(Some(fact)) => Some(fact),
            Seen::Known(None) | Seen::Unseen(_) => None,
        }
    }

    /// Whether it is known to be absent.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Seen::Known(None))
    }
}

/// Reasons why a fact could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// The source is configuration space, which does not contain the fact.
    NotInDump,
    /// The listing lacks this line, such as `LnkCap`.
    NotListed(&'static str),
    /// `lspci` never prints it.
    NotPrinted,
    /// `lspci` printed `<access denied>`.
    ListingDenied,
    /// The file does not exist under the root: its name, or its path if the name is ambiguous.
    NoFile(Cow<'static, str>),
    /// The file exists, but the operating system refused to read it.
    Refused {
        /// The file.
        file: Cow<'static, str>,
        /// Error of the operating system.
        error: Box<str>,
    },
    /// The file, or the line of a listing, has unexpected contents.
    Garbled {
        /// The file or line.
        at: Cow<'static, str>,
        /// The contents, shortened.
        text: Box<str>,
    },
    /// The fact lies beyond the part of configuration space that was read.
    BeyondConfig {
        /// Number of bytes read.
        bytes: u16,
    },
    /// The register exists but does not determine the fact, for example by a reserved value.
    Config(Unknown),
    /// The function is in `D3cold`; reading its configuration space would wake it.
    Asleep,
    /// Configuration space reads as all ones: the function does not answer.
    AllOnes,
    /// The function is a virtual function, and the register is implemented by its physical function.
    OfPhysicalFunction,
    /// The capability list is broken before the capability, or the capability is truncated.
    BrokenCapability,
    /// The operating system does not expose it.
    NotShown(&'static str),
}

impl Why {
    /// The reason as a clause.
    #[must_use]
    pub fn because(&self) -> String {
        match self {
            Why::NotInDump => "config space does not contain it".to_owned(),
            Why::NotListed(line) => format!("the listing has no line {line}"),
            Why::NotPrinted => "lspci does not print it".to_owned(),
            Why::ListingDenied => "lspci was denied access to the capabilities".to_owned(),
            Why::NoFile(file) => format!("there is no {file}"),
            Why::Refused { file, error } => format!("{file} cannot be read: {error}"),
            Why::Garbled { at, text } => format!("{at} says '{text}'"),
            Why::BeyondConfig { bytes } => format!("only {bytes} B of config space could be read"),
            Why::Config(unknown) => unknown.to_string(),
            Why::Asleep => "the function is in D3cold, and reading its config space would wake it".to_owned(),
            Why::AllOnes => "config space reads as all ones: the function does not answer".to_owned(),
            Why::OfPhysicalFunction => "it is a virtual function; its physical function has this register".to_owned(),
            Why::BrokenCapability => "the capability list is broken before it".to_owned(),
            Why::NotShown(reason) => (*reason).to_owned(),
        }
    }

    /// The action that would make the fact visible.
    #[must_use]
    pub fn enable(&self) -> String {
        match self {
            Why::NotInDump => {
                "read the machine itself, or a tar of its /sys (see the guide); lspci -vvv -xxxx shows more too"
            }
            Why::NotListed(_) => "create the listing as root with lspci -D -nn -vvv -xxxx",
            Why::NotPrinted => {
                "run lanemark doctor on that machine, or read the output of its capture.sh (see the guide)"
            }
            Why::ListingDenied => "create the listing as root: sudo lspci -D -nn -vvv -xxxx",
            Why::NoFile(_) => "use a kernel with this feature, or a tar that contains the file",
            Why::Refused { .. } => "run as root",
            Why::Garbled { .. } => "check the file; if a kernel or lspci writes this, please report it as an issue",
            Why::BeyondConfig { bytes: ..256 } => "run as root, or create the dump with sudo lspci -xxxx",
            Why::BeyondConfig { .. } => "create the dump with sudo lspci -xxxx, unless the function has no more",
            Why::Asleep => "run again while the device is in use",
            Why::AllOnes => "see dmesg; a rescan of the bus or a power cycle may restore it",
            Why::OfPhysicalFunction => "look at the physical function, usually .0 of the same device",
            Why::BrokenCapability | Why::Config(_) => "look at the raw bytes: the device or its emulation is faulty",
            Why::NotShown(_) => "not available through Lanemark",
        }
        .to_owned()
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.because())
    }
}

/// An unseen fact of the machine or of some functions, as text for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unseen {
    /// The fact, such as `link state`.
    pub what: String,
    /// The reason, as a clause.
    pub because: String,
    /// The action that would make it visible.
    pub enable: String,
    /// The functions concerned, in order; empty for a fact of the machine.
    pub functions: Vec<crate::Address>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_fact_is_known_and_an_unseen_fact_is_not_absent() {
        let absent: Seen<Option<u8>> = Seen::Known(None);
        assert!(absent.is_absent() && absent.known().is_some() && absent.present().is_none());
        let unseen: Seen<Option<u8>> = Seen::Unseen(Why::NotInDump);
        assert!(!unseen.is_absent() && unseen.known().is_none() && unseen.present().is_none());
    }

    #[test]
    fn the_second_source_is_used_only_if_the_first_has_no_fact() {
        assert_eq!(Seen::Known(1).or_else(|| unreachable!()), Seen::Known(1));
        assert_eq!(Seen::Unseen(Why::NotInDump).or_else(|| Seen::Known(2)), Seen::Known(2));
        let neither: Seen<u8> = Seen::Unseen(Why::NotInDump).or_else(|| Seen::Unseen(Why::Asleep));
        assert_eq!(neither.why(), Some(&Why::Asleep));
    }
}
