//! Options of an NVMe drive whose queues this program owns.

use lanemark_units::{format_size, parse_size};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Options of an NVMe drive behind VFIO; `None` if not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveOptions {
    /// Place of the I/O submission queue.
    pub queues: Option<QueuePlace>,
    /// Description of the memory of a command.
    pub data: Option<DataPointers>,
    /// Place of the data of commands.
    pub data_place: Option<DataPlace>,
    /// Completion method of plans that do not name one, such as those of `dma_write_bandwidth`.
    pub completions: Option<CompletionBy>,
    /// The namespace whose blocks are read: its NSID. Without it, the first active one.
    pub namespace: Option<u32>,
    /// The part of the medium whose contents may be lost. Nothing is written to the medium without it.
    pub destructive: Option<Destructive>,
}

/// Valid namespace identifiers: 0 is none, and all ones is the broadcast value. Source: NVM Express Base Specification 2.0, 3.2.1.2.
const NSIDS: RangeInclusive<u32> = 1..=u32::MAX - 1;

/// Bytes at the start of a namespace whose contents may be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destructive {
    /// Namespace identifier (NSID).
    pub namespace: u32,
    /// Number of bytes, from the first block on.
    pub bytes: u64,
}

impl Destructive {
    /// Number of bytes if none is given: the usual window of host memory.
    pub const USUAL_BYTES: u64 = 4 << 20;
}

impl fmt::Display for Destructive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, format_size(self.bytes))
    }
}

/// Error for a text that names no part of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' names no part of a namespace: use its NSID, as 1, or the NSID and the number of bytes that may be lost, as 1:64MiB"
)]
pub struct NotDestructive(pub String);

impl FromStr for Destructive {
    type Err = NotDestructive;

    fn from_str(text: &str) -> Result<Destructive, NotDestructive> {
        let (namespace, bytes) = text.split_once(':').map_or((text, None), |(nsid, bytes)| (nsid, Some(bytes)));
        let not = || NotDestructive(text.to_owned());
        let bytes = bytes.map_or(Ok(Destructive::USUAL_BYTES), |bytes| parse_size(bytes).map_err(|_| not()))?;
        let namespace = namespace.parse().ok().filter(|nsid| NSIDS.contains(nsid) && bytes > 0);
        namespace.map(|namespace| Destructive { namespace, bytes }).ok_or_else(not)
    }
}

impl DriveOptions {
    /// The name of the first option that is given, as the field of a request.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let DriveOptions { queues, data, data_place, completions, namespace, destructive } = *self;
        let given = [
            (queues.is_some(), "nvme_queues"),
            (data.is_some(), "nvme_data"),
            (data_place.is_some(), "nvme_data_place"),
            (completions.is_some(), "nvme_completions"),
            (namespace.is_some(), "namespace"),
            (destructive.is_some(), "destructive"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, field)| field)
    }

    /// Why two options contradict each other: only the namespace in use can be overwritten.
    #[must_use]
    pub fn contradiction(&self) -> Option<String> {
        let (used, named) = (self.namespace?, self.destructive?.namespace);
        (used != named).then(|| {
            format!("--destructive {named} and --namespace {used}: only the namespace in use can be overwritten: name one NSID in both")
        })
    }

    /// Place of the I/O submission queue: the given one, or host memory.
    #[must_use]
    pub fn queues(&self) -> QueuePlace {
        self.queues.unwrap_or_default()
    }

    /// Description of the host memory of a command: the given one, or PRP entries.
    #[must_use]
    pub fn data(&self) -> DataPointers {
        self.data.unwrap_or_default()
    }

    /// Place of the data of commands: the given one, or host memory.
    #[must_use]
    pub fn data_place(&self) -> DataPlace {
        self.data_place.unwrap_or_default()
    }

    /// Whether an option asks for the controller memory buffer.
    #[must_use]
    pub fn uses_cmb(&self) -> bool {
        self.queues() == QueuePlace::Cmb || self.data_place() == DataPlace::Cmb
    }

    /// Completion method of plans that do not name one: the given one, or polling.
    #[must_use]
    pub fn completions(&self) -> CompletionBy {
        self.completions.unwrap_or_default()
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

/// Place of the data of commands, and so whether they cross the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataPlace {
    /// Host memory: the drive writes it and reads it by DMA.
    #[default]
    Host,
    /// The controller memory buffer of the drive: no data crosses the link in samples.
    Cmb,
}

impl DataPlace {
    /// All places, in the order shown to users.
    pub const ALL: [DataPlace; 2] = [DataPlace::Host, DataPlace::Cmb];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DataPlace::Host => "host",
            DataPlace::Cmb => "cmb",
        }
    }
}

/// Description of the memory of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataPointers {
    /// PRP entries; for more than two pages, most of them are in a list that the drive fetches.
    #[default]
    Prp,
    /// One SGL descriptor within the command: nothing else is fetched.
    Sgl,
    /// An SGL descriptor for each page, in segments that the drive fetches, as for scattered memory.
    SglList,
}

impl DataPointers {
    /// All descriptions, in the order shown to users.
    pub const ALL: [DataPointers; 3] = [DataPointers::Prp, DataPointers::Sgl, DataPointers::SglList];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DataPointers::Prp => "prp",
            DataPointers::Sgl => "sgl",
            DataPointers::SglList => "sgl-list",
        }
    }

    /// In words, for summaries.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            DataPointers::Prp => "data by PRP entries",
            DataPointers::Sgl => "data by one SGL descriptor",
            DataPointers::SglList => "data by an SGL descriptor for each page",
        }
    }
}

/// Completion method of the commands of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CompletionBy {
    /// A core polls the completion queue.
    #[default]
    Polling,
    /// A core sleeps until an interrupt of the drive: MSI-X, or MSI if it has no MSI-X.
    Interrupt,
}

impl CompletionBy {
    /// Both, in the order shown to users.
    pub const ALL: [CompletionBy; 2] = [CompletionBy::Polling, CompletionBy::Interrupt];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CompletionBy::Polling => "polling",
            CompletionBy::Interrupt => "interrupt",
        }
    }
}

/// Error for a text that is no value of an option.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not {what}: use one of {known}")]
pub struct NotADriveOption {
    /// The refused text.
    pub text: String,
    /// Description of a valid value, such as "a place of the submission queue".
    pub what: &'static str,
    /// The valid values, separated by commas.
    pub known: String,
}

/// Implements `Display` and `FromStr` by names.
macro_rules! by_name {
    ($type:ty, $what:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::drive_options::NotADriveOption;

            fn from_str(text: &str) -> Result<$type, Self::Err> {
                let known = || <$type>::ALL.map(<$type>::name).join(", ");
                let found = <$type>::ALL.into_iter().find(|one| one.name() == text);
                found.ok_or_else(|| $crate::drive_options::NotADriveOption {
                    text: text.to_owned(),
                    what: $what,
                    known: known(),
                })
            }
        }
    };
}

pub(crate) use by_name;

by_name!(QueuePlace, "a place of the submission queue");
by_name!(DataPlace, "a place of the data");
by_name!(DataPointers, "a kind of data pointer");
by_name!(CompletionBy, "a completion method");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_parsed_from_its_name_and_another_text_is_refused_with_all_names() {
        for place in QueuePlace::ALL {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for place in DataPlace::ALL {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for data in DataPointers::ALL {
            assert_eq!(data.to_string().parse(), Ok(data));
        }
        for by in CompletionBy::ALL {
            assert_eq!(by.to_string().parse(), Ok(by));
        }
        let error = "CMB".parse::<QueuePlace>().unwrap_err().to_string();
        assert_eq!(error, "'CMB' is not a place of the submission queue: use one of host, cmb");
    }

    #[test]
    fn a_namespace_and_the_bytes_that_may_be_lost_are_named() {
        let of = |text: &str| text.parse::<Destructive>().map(|found| (found.namespace, found.bytes));
        assert_eq!((of("1"), of("3:64MiB")), (Ok((1, 4 << 20)), Ok((3, 64 << 20))));
        assert_eq!(of("4294967294").map(|found| found.0), Ok(u32::MAX - 1));
        for text in ["", "0", "4294967295", "-1", "1:", "1:0", "1:much", "x:4KiB", "1:4KiB:"] {
            assert_eq!(of(text), Err(NotDestructive(text.to_owned())));
        }
        assert_eq!("2:1MiB".parse::<Destructive>().unwrap().to_string(), "2:1MiB");
    }

    #[test]
    fn an_option_with_its_default_is_given_too() {
        let none = DriveOptions::default();
        assert_eq!((none.given(), none.queues(), none.data()), (None, QueuePlace::Host, DataPointers::Prp));
        assert_eq!(none.completions(), CompletionBy::Polling);
        assert_eq!(DriveOptions { queues: Some(QueuePlace::Host), ..none }.given(), Some("nvme_queues"));
        assert_eq!(DriveOptions { data: Some(DataPointers::Prp), ..none }.given(), Some("nvme_data"));
        assert_eq!(DriveOptions { data_place: Some(DataPlace::Host), ..none }.given(), Some("nvme_data_place"));
        let uses_cmb = |queues, data_place| DriveOptions { queues, data_place, ..none }.uses_cmb();
        assert!(!uses_cmb(None, None) && uses_cmb(Some(QueuePlace::Cmb), None) && uses_cmb(None, Some(DataPlace::Cmb)));
        assert_eq!(DriveOptions { completions: Some(CompletionBy::Polling), ..none }.given(), Some("nvme_completions"));
        let destructive = "1".parse().ok();
        assert_eq!(DriveOptions { destructive, ..none }.given(), Some("destructive"));
        assert_eq!(DriveOptions { namespace: Some(1), ..none }.given(), Some("namespace"));
    }

    #[test]
    fn the_namespace_that_may_be_overwritten_is_the_one_in_use() {
        let of = |namespace, destructive: &str| {
            let destructive = destructive.parse().ok();
            DriveOptions { namespace, destructive, ..DriveOptions::default() }.contradiction()
        };
        assert_eq!((of(None, "2"), of(Some(2), "2:1MiB"), of(Some(2), "")), (None, None, None));
        assert!(of(Some(1), "2").unwrap().starts_with("--destructive 2 and --namespace 1: "));
    }
}
