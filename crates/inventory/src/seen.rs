//! A fact, or why it is not one.

use lanemark_wire::config::Unknown;
use std::borrow::Cow;
use std::fmt;

/// A fact that was read, or the reason why it could not be. Never a default.
///
/// A fact whose answer may be "there is none" is a `Seen<Option<T>>`: a function without a driver is
/// `Known(None)`, one whose driver the source does not tell is `Unseen`.
///
/// ```
/// use lanemark_inventory::{Seen, Why};
/// let node: Seen<u32> = Seen::Known(1);
/// assert_eq!(node.known(), Some(&1));
/// let node: Seen<u32> = Seen::Unseen(Why::NotInDump);
/// assert_eq!(node.known(), None);
/// assert_eq!(node.why().unwrap().because(), "config space does not say it");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen<T> {
    /// The source says so.
    Known(T),
    /// The source does not say.
    Unseen(Why),
}

impl<T> Seen<T> {
    /// The fact, if it is one.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Seen::Known(fact) => Some(fact),
            Seen::Unseen(_) => None,
        }
    }

    /// Why it is none, if it is none.
    pub const fn why(&self) -> Option<&Why> {
        match self {
            Seen::Known(_) => None,
            Seen::Unseen(why) => Some(why),
        }
    }

    /// The fact made into another one.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Seen::Known(fact) => Seen::Known(make(fact)),
            Seen::Unseen(why) => Seen::Unseen(why),
        }
    }

    /// This, or what another place says where this does not. Where neither does, the other's reason.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Seen<T>) -> Seen<T> {
        match self {
            Seen::Known(_) => self,
            Seen::Unseen(_) => other(),
        }
    }

    /// As a reference.
    pub fn as_ref(&self) -> Seen<&T> {
        match self {
            Seen::Known(fact) => Seen::Known(fact),
            Seen::Unseen(why) => Seen::Unseen(why.clone()),
        }
    }
}

impl<T: Copy> Seen<T> {
    /// The fact by value, if it is one.
    pub fn get(&self) -> Option<T> {
        self.known().copied()
    }
}

impl<T> Seen<Option<T>> {
    /// What is there, if it is known to be there.
    pub const fn present(&self) -> Option<&T> {
        match self {
            Seen::Known(Some(fact)) => Some(fact),
            Seen::Known(None) | Seen::Unseen(_) => None,
        }
    }

    /// Whether it is known that there is none.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Seen::Known(None))
    }
}

/// Why a fact could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// The source is config space, whose bytes do not tell it.
    NotInDump,
    /// `lspci` did not print the line; its name, such as `LnkCap`.
    NotListed(&'static str),
    /// No `lspci` prints it.
    NotPrinted,
    /// `lspci` printed `<access denied>`.
    ListingDenied,
    /// There is no such file under the root; its name, or its path where the name does not tell.
    NoFile(Cow<'static, str>),
    /// The file is there and the system does not let us read it.
    Refused {
        /// Which file.
        file: Cow<'static, str>,
        /// What the system said.
        error: Box<str>,
    },
    /// The file, or the line of a listing, says something that is no such fact.
    Garbled {
        /// Which file or line.
        at: Cow<'static, str>,
        /// What it says, shortened.
        text: Box<str>,
    },
    /// Config space was read up to here only, and what is asked for lies beyond.
    BeyondConfig {
        /// Bytes that were read.
        bytes: u16,
    },
    /// The register is there and does not say it: a reserved code, mostly.
    Config(Unknown),
    /// The function is in `D3cold`: reading its config space would wake it.
    Asleep,
    /// Config space reads as all ones: the function does not answer.
    AllOnes,
    /// The function is a virtual one, and the register that says it is its physical function's.
    OfPhysicalFunction,
    /// The capability list is broken before it, or the capability is cut off.
    BrokenCapability,
    /// Nothing that the system shows says it, to nobody.
    NotShown(&'static str),
}

impl Why {
    /// The reason, as half a sentence.
    #[must_use]
    pub fn because(&self) -> String {
        match self {
            Why::NotInDump => "config space does not say it".to_owned(),
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
            Why::OfPhysicalFunction => "it is a virtual function, whose physical function holds it".to_owned(),
            Why::BrokenCapability => "the capability list is broken before it".to_owned(),
            Why::NotShown(reason) => (*reason).to_owned(),
        }
    }

    /// What would show the fact.
    #[must_use]
    pub fn enable(&self) -> String {
        match self {
            Why::NotInDump => {
                "read the machine itself, or a tar of its /sys (the guide says how); lspci -vvv -xxxx has more too"
            }
            Why::NotListed(_) => "make the listing as root with lspci -D -nn -vvv -xxxx",
            Why::NotPrinted => "run lanemark doctor there, or bring what its capture.sh makes (the guide says how)",
            Why::ListingDenied => "make the listing as root: sudo lspci -D -nn -vvv -xxxx",
            Why::NoFile(_) => "a kernel with this feature, or a tar that has the file",
            Why::Refused { .. } => "run as root",
            Why::Garbled { .. } => "look at it; a kernel or lspci that writes so is worth an issue",
            Why::BeyondConfig { bytes: ..256 } => "run as root, or make the dump with sudo lspci -xxxx",
            Why::BeyondConfig { .. } => "make the dump with sudo lspci -xxxx; or the function has no more",
            Why::Asleep => "ask again while the device is in use",
            Why::AllOnes => "see dmesg; a rescan of the bus or a power cycle may bring it back",
            Why::OfPhysicalFunction => "ask about the physical function, mostly .0 of the same device",
            Why::BrokenCapability | Why::Config(_) => "look at the raw bytes: the device or its emulation is at fault",
            Why::NotShown(_) => "nothing that Lanemark does",
        }
        .to_owned()
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.because())
    }
}

/// Something that was not seen, of the machine or of some of its functions: for a reader, not for code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unseen {
    /// What, such as `link state`.
    pub what: String,
    /// Why, as half a sentence.
    pub because: String,
    /// What would show it.
    pub enable: String,
    /// Of which functions, in order; none if it is a fact of the machine.
    pub functions: Vec<crate::Address>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_known_and_what_is_unseen_is_not_absent() {
        let absent: Seen<Option<u8>> = Seen::Known(None);
        assert!(absent.is_absent() && absent.known().is_some() && absent.present().is_none());
        let unseen: Seen<Option<u8>> = Seen::Unseen(Why::NotInDump);
        assert!(!unseen.is_absent() && unseen.known().is_none() && unseen.present().is_none());
    }

    #[test]
    fn the_second_place_is_asked_only_where_the_first_is_silent() {
        assert_eq!(Seen::Known(1).or_else(|| unreachable!()), Seen::Known(1));
        assert_eq!(Seen::Unseen(Why::NotInDump).or_else(|| Seen::Known(2)), Seen::Known(2));
        let neither: Seen<u8> = Seen::Unseen(Why::NotInDump).or_else(|| Seen::Unseen(Why::Asleep));
        assert_eq!(neither.why(), Some(&Why::Asleep));
    }
}
