//! Options of an NVMe drive whose queues this program owns.

use std::fmt;
use std::str::FromStr;

/// Options of an NVMe drive behind VFIO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveOptions {
    /// Place of the I/O submission queue.
    pub queues: QueuePlace,
}

impl DriveOptions {
    /// The name of the first option that is not the default, as the field of a request; `None` if all are.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let DriveOptions { queues } = *self;
        (queues != QueuePlace::default()).then_some("nvme_queues")
    }
}

/// Place of the I/O submission queue of a drive, and so who moves a command to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueuePlace {
    /// Host memory: the drive fetches each command.
    #[default]
    Host,
    /// The controller memory buffer of the drive: a core writes each command to the drive.
    Cmb,
}

impl QueuePlace {
    /// All places, in the order shown to users.
    pub const ALL: [QueuePlace; 2] = [QueuePlace::Host, QueuePlace::Cmb];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            QueuePlace::Host => "host",
            QueuePlace::Cmb => "cmb",
        }
    }
}

/// Error for a text that is no value of an option.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not {what}: use one of {known}")]
pub struct NotADriveOption {
    /// Text.
    pub text: String,
    /// What was expected.
    pub what: &'static str,
    /// The names.
    pub known: String,
}

/// Implements `Display` and `FromStr` by names.
macro_rules! by_name {
    ($type:ty, $what:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = NotADriveOption;

            fn from_str(text: &str) -> Result<$type, NotADriveOption> {
                let known = || <$type>::ALL.map(<$type>::name).join(", ");
                let found = <$type>::ALL.into_iter().find(|one| one.name() == text);
                found.ok_or_else(|| NotADriveOption { text: text.to_owned(), what: $what, known: known() })
            }
        }
    };
}

by_name!(QueuePlace, "a place of queues");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_parsed_from_its_name_and_another_text_is_refused_with_all_names() {
        for place in QueuePlace::ALL {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        let error = "CMB".parse::<QueuePlace>().unwrap_err().to_string();
        assert_eq!(error, "'CMB' is not a place of queues: use one of host, cmb");
    }

    #[test]
    fn only_options_other_than_the_default_are_given() {
        assert_eq!(DriveOptions::default().given(), None);
        assert_eq!(DriveOptions { queues: QueuePlace::Cmb }.given(), Some("nvme_queues"));
    }
}
