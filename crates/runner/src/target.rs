//! Targets: the machines that a request can name.

use crate::error::RunError;
use lanemark_hw::linux_sysfs::Address;
use lanemark_platform::Platform;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A target that is not open yet. Parsed from text, or made from a platform built by a program.
///
/// ```
/// use lanemark_runner::Target;
/// assert_eq!("host".parse::<Target>()?, Target::Host);
/// assert_eq!("opencl:1".parse::<Target>()?, Target::OpenCl(1));
/// assert_eq!("cuda:0".parse::<Target>()?, Target::Cuda(0));
/// assert!(matches!("0000:01:00.0".parse::<Target>()?, Target::Card(_)));
/// assert_eq!("my-card.toml".parse::<Target>()?, Target::Named("my-card.toml".to_owned()));
/// assert!(matches!("nvme:/dev/ng0n1".parse::<Target>()?, Target::Nvme(_)));
/// assert!(matches!("xdma:/dev/xdma0".parse::<Target>()?, Target::Xdma(_)));
/// assert!(matches!("rtl:./card.so".parse::<Target>()?, Target::Rtl(_)));
/// assert!("sycl:first".parse::<Target>().is_err());
/// for (name, example) in [("nvme:", "nvme:/dev/ng0n1"), ("xdma:", "xdma:/dev/xdma0"), ("rtl:", "rtl:./card.so")] {
///     let error = name.parse::<Target>().unwrap_err().to_string();
///     assert_eq!(error, format!("'{name}' has no path: write it after the colon, for example {example}"));
/// }
/// # Ok::<(), lanemark_runner::RunError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// Ordinary memory of this machine.
    Host,
    /// An OpenCL device, by number.
    OpenCl(usize),
    /// A SYCL device, by number.
    Sycl(usize),
    /// A device of the CUDA driver, by number.
    Cuda(usize),
    /// A card in this machine, by its PCI address.
    Card(Address),
    /// A namespace of an NVMe drive, by the path of its character device: reads through the kernel's driver.
    Nvme(PathBuf),
    /// A card with AMD's XDMA core, by the common part of the paths of its files: transfers through the kernel's driver.
    Xdma(PathBuf),
    /// A card that is compiled from its source, by the path of its library, on a simulated host.
    Rtl(PathBuf),
    /// A simulated platform, by the name of a preset or the path of a file.
    Named(String),
    /// A simulated platform.
    Platform(Box<Platform>),
    /// A simulated platform with changed keys, which are a part of its name. So one request can compare several values of
    /// a key.
    Changed {
        /// The platform.
        of: Box<Target>,
        /// Path and value of each key, as in [`Changes::with`](crate::Changes::with).
        with: Vec<(String, String)>,
    },
}

/// Name prefix of OpenCL devices.
const OPENCL: &str = "opencl";
/// Name prefix of SYCL devices.
const SYCL: &str = "sycl";
/// Name prefix of devices of the CUDA driver.
const CUDA: &str = "cuda";
/// Prefix of the paths of namespaces.
const NVME: &str = "nvme:";
/// Prefix of the paths of cards with the driver `xdma`.
const XDMA: &str = "xdma:";

/// Prefix of the paths of compiled cards.
const RTL: &str = "rtl:";

impl Target {
    /// Whether the target is a real machine or device or a compiled card, as opposed to a simulated platform.
    #[must_use]
    pub fn is_real(&self) -> bool {
        match self {
            Target::Host
            | Target::OpenCl(_)
            | Target::Sycl(_)
            | Target::Cuda(_)
            | Target::Card(_)
            | Target::Nvme(_)
            | Target::Xdma(_)
            | Target::Rtl(_) => true,
            Target::Named(_) | Target::Platform(_) => false,
            Target::Changed { of, .. } => of.is_real(),
        }
    }

    /// Whether the target is a runtime device.
    #[must_use]
    pub fn is_runtime(&self) -> bool {
        match self {
            Target::OpenCl(_) | Target::Sycl(_) | Target::Cuda(_) => true,
            Target::Host
            | Target::Card(_)
            | Target::Nvme(_)
            | Target::Xdma(_)
            | Target::Rtl(_)
            | Target::Named(_)
            | Target::Platform(_) => false,
            Target::Changed { of, .. } => of.is_runtime(),
        }
    }
}

impl FromStr for Target {
    type Err = RunError;

    fn from_str(name: &str) -> Result<Target, RunError> {
        let number = |kind: &'static str| {
            let number = name.strip_prefix(kind)?.strip_prefix(':')?;
            Some(number.parse().map_err(|_| RunError::DeviceNumber { name: name.to_owned(), kind }))
        };
        let path = |prefix: &'static str, example: &'static str| match name.strip_prefix(prefix)? {
            "" => Some(Err(RunError::NoPath { prefix, example })),
            path => Some(Ok(PathBuf::from(path))),
        };
        if name == "host" {
            Ok(Target::Host)
        } else if let Some(number) = number(OPENCL) {
            number.map(Target::OpenCl)
        } else if let Some(number) = number(SYCL) {
            number.map(Target::Sycl)
        } else if let Some(number) = number(CUDA) {
            number.map(Target::Cuda)
        } else if let Some(path) = path(NVME, "nvme:/dev/ng0n1") {
            path.map(Target::Nvme)
        } else if let Some(path) = path(XDMA, "xdma:/dev/xdma0") {
            path.map(Target::Xdma)
        } else if let Some(path) = path(RTL, "rtl:./card.so") {
            path.map(Target::Rtl)
        } else if let Ok(address) = name.parse() {
            Ok(Target::Card(address))
        } else {
            Ok(Target::Named(name.to_owned()))
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Host => f.write_str("host"),
            Target::OpenCl(number) => write!(f, "{OPENCL}:{number}"),
            Target::Sycl(number) => write!(f, "{SYCL}:{number}"),
            Target::Cuda(number) => write!(f, "{CUDA}:{number}"),
            Target::Card(address) => address.fmt(f),
            Target::Nvme(path) => write!(f, "{NVME}{}", path.display()),
            Target::Xdma(path) => write!(f, "{XDMA}{}", path.display()),
            Target::Rtl(path) => write!(f, "{RTL}{}", path.display()),
            Target::Named(name) => f.write_str(name),
            Target::Platform(platform) => f.write_str(&platform.name),
            Target::Changed { of, with } => {
                of.fmt(f)?;
                with.iter().try_for_each(|(key, value)| write!(f, ", {key}={value}"))
            }
        }
    }
}
