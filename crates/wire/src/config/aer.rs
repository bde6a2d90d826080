//! Advanced Error Reporting (AER) and Downstream Port Containment (DPC).

use super::pcie::port_type_code;
use super::table::{Field, Layout, Region, Register, Spot, always, flag, hex, layout, number, one_of, only, register};
use super::unknown::Unknown;
use super::{CapabilityId, ConfigSpace};

const UNCORRECTABLE: &[Field] = &[
    flag("DLP", 4),
    flag("SDES", 5),
    flag("TLP", 12),
    flag("FCP", 13),
    flag("CmpltTO", 14),
    flag("CmpltAbrt", 15),
    flag("UnxCmplt", 16),
    flag("RxOF", 17),
    flag("MalfTLP", 18),
    flag("ECRC", 19),
    flag("UnsupReq", 20),
    flag("ACSViol", 21),
    flag("UncorrIntErr", 22),
    flag("BlockedTLP", 23),
    flag("AtomicOpBlocked", 24),
    flag("TLPBlockedErr", 25),
    flag("PoisonTLPBlocked", 26),
    flag("DMWrReqBlocked", 27),
    flag("IDECheck", 28),
    flag("MisIDETLP", 29),
    flag("PCRC_CHECK", 30),
    flag("TLPXlatBlocked", 31),
];

const CORRECTABLE: &[Field] = &[
    flag("RxErr", 0),
    flag("BadTLP", 6),
    flag("BadDLLP", 7),
    flag("Rollover", 8),
    flag("Timeout", 12),
    flag("AdvNonFatalErr", 13),
    flag("CorrIntErr", 14),
    flag("HeaderOF", 15),
];

fn is_root(region: &Region<'_>) -> bool {
    let pcie = region.space().pcie();
    pcie.is_ok_and(|pcie| matches!(port_type_code(&pcie.region()), Some(4 | 10)))
}

fn has_prefix_log(region: &Region<'_>) -> bool {
    let pcie = region.space().pcie();
    pcie.is_ok_and(|pcie| {
        pcie.region().flag(const { Spot::of(&super::pcie::PCI_EXPRESS, "DevCap2", "EETLPPrefix") }) == Ok(true)
    })
}

const ROOT: &[Register] = &[
    register("RootCmd", 0x2c, 4, "7.8.4.9", &[flag("CERptEn", 0), flag("NFERptEn", 1), flag("FERptEn", 2)]),
    register(
        "RootSta",
        0x30,
        4,
        "7.8.4.10",
        &[
            flag("CERcvd", 0),
            flag("MultCERcvd", 1),
            flag("UERcvd", 2),
            flag("MultUERcvd", 3),
            flag("FirstFatal", 4),
            flag("NonFatalMsg", 5),
            flag("FatalMsg", 6),
            number("ErrCorSubclass", 8, 7),
            number("IntMsgNum", 31, 27),
        ],
    ),
    register("ErrorSrc", 0x34, 4, "7.8.4.11", &[hex("ERR_COR", 15, 0), hex("ERR_FATAL/NONFATAL", 31, 16)]),
];

/// Advanced Error Reporting.
pub const ADVANCED_ERROR_REPORTING: Layout = layout(
    "Advanced Error Reporting",
    &[
        always(&[
            register("UESta", 0x04, 4, "7.8.4.2", UNCORRECTABLE),
            register("UEMsk", 0x08, 4, "7.8.4.3", UNCORRECTABLE),
            register("UESvrt", 0x0c, 4, "7.8.4.4", UNCORRECTABLE),
            register("CESta", 0x10, 4, "7.8.4.5", CORRECTABLE),
            register("CEMsk", 0x14, 4, "7.8.4.6", CORRECTABLE),
            register(
                "AERCap",
                0x18,
                4,
                "7.8.4.7",
                &[
                    hex("First Error Pointer", 4, 0),
                    flag("ECRCGenCap", 5),
                    flag("ECRCGenEn", 6),
                    flag("ECRCChkCap", 7),
                    flag("ECRCChkEn", 8),
                    flag("MultHdrRecCap", 9),
                    flag("MultHdrRecEn", 10),
                    flag("TLPPfxPres", 11),
                    flag("HdrLogCap", 12),
                    number("HdrLogSize", 17, 13),
                    flag("LoggedFlit", 18),
                    number("LoggedSize", 23, 19),
                ],
            ),
            register("HeaderLog 0", 0x1c, 4, "7.8.4.8", &[hex("HeaderLog 0", 31, 0)]),
            register("HeaderLog 1", 0x20, 4, "7.8.4.8", &[hex("HeaderLog 1", 31, 0)]),
            register("HeaderLog 2", 0x24, 4, "7.8.4.8", &[hex("HeaderLog 2", 31, 0)]),
            register("HeaderLog 3", 0x28, 4, "7.8.4.8", &[hex("HeaderLog 3", 31, 0)]),
        ]),
        only("in a root port or event collector", is_root, ROOT),
        only(
            "with end-end TLP prefixes",
            has_prefix_log,
            &[
                register("PrefixLog 0", 0x38, 4, "7.8.4.12", &[hex("PrefixLog 0", 31, 0)]),
                register("PrefixLog 1", 0x3c, 4, "7.8.4.12", &[hex("PrefixLog 1", 31, 0)]),
                register("PrefixLog 2", 0x40, 4, "7.8.4.12", &[hex("PrefixLog 2", 31, 0)]),
                register("PrefixLog 3", 0x44, 4, "7.8.4.12", &[hex("PrefixLog 3", 31, 0)]),
            ],
        ),
    ],
);

fn extended_by_root_port(region: &Region<'_>) -> bool {
    region.read(4, 2).is_some_and(|capability| capability & 0x20 != 0)
}

const PIO: &[Field] = &[
    flag("CfgUR", 0),
    flag("CfgCA", 1),
    flag("CfgCTO", 2),
    flag("IOUR", 8),
    flag("IOCA", 9),
    flag("IOCTO", 10),
    flag("MemUR", 16),
    flag("MemCA", 17),
    flag("MemCTO", 18),
];

/// Downstream Port Containment.
pub const DOWNSTREAM_PORT_CONTAINMENT: Layout = layout(
    "Downstream Port Containment",
    &[
        always(&[
            register(
                "DpcCap",
                4,
                2,
                "7.9.14.2",
                &[
                    number("IntMsgNum", 4, 0),
                    flag("RPExt", 5),
                    flag("PoisonedTLP", 6),
                    flag("SwTrigger", 7),
                    number("RP PIO Log", 11, 8),
                    flag("DL_ActiveErr", 12),
                ],
            ),
            register(
                "DpcCtl",
                6,
                2,
                "7.9.14.3",
                &[
                    one_of("Trigger", 1, 0, &[(0, "0"), (1, "1"), (2, "2")]),
                    flag("Cmpl", 2),
                    flag("INT", 3),
                    flag("ErrCor", 4),
                    flag("PoisonedTLP", 5),
                    flag("SwTrigger", 6),
                    flag("DL_ActiveErr", 7),
                    flag("SIG_SFW", 8),
                ],
            ),
            register(
                "DpcSta",
                8,
                2,
                "7.9.14.4",
                &[
                    flag("Trigger", 0),
                    hex("Reason", 2, 1),
                    flag("INT", 3),
                    flag("RPBusy", 4),
                    hex("TriggerExt", 6, 5),
                    hex("RP PIO ErrPtr", 12, 8),
                    flag("SIG_SFW", 13),
                ],
            ),
            register("Source", 0xa, 2, "7.9.14.5", &[hex("Source", 15, 0)]),
        ]),
        only(
            "with the extensions for root ports",
            extended_by_root_port,
            &[
                register("RP PIO Status", 0x0c, 4, "7.9.14.6", PIO),
                register("RP PIO Mask", 0x10, 4, "7.9.14.7", PIO),
                register("RP PIO Severity", 0x14, 4, "7.9.14.8", PIO),
                register("RP PIO SysError", 0x18, 4, "7.9.14.9", PIO),
                register("RP PIO Exception", 0x1c, 4, "7.9.14.10", PIO),
            ],
        ),
    ],
);

/// Errors whose bits are set in a status or mask register.
///
/// ```
/// use lanemark_wire::config::Errors;
/// let errors = Errors::correctable(0x41);
/// assert_eq!(errors.names().collect::<Vec<_>>(), ["RxErr", "BadTLP"]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Errors {
    /// Value of the register.
    pub raw: u32,
    fields: &'static [Field],
}

impl Errors {
    /// Bits of a correctable error status or mask register.
    #[must_use]
    pub const fn correctable(raw: u32) -> Errors {
        Errors { raw, fields: CORRECTABLE }
    }

    /// Bits of an uncorrectable error status, mask or severity register.
    #[must_use]
    pub const fn uncorrectable(raw: u32) -> Errors {
        Errors { raw, fields: UNCORRECTABLE }
    }

    /// Names of the set bits. Reserved bits have no name; see [`Errors::reserved`].
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let raw = u64::from(self.raw);
        self.fields.iter().filter(move |field| field.of(raw) != 0).map(|field| field.name)
    }

    /// The set bits without a name.
    #[must_use]
    pub fn reserved(&self) -> u32 {
        self.fields.iter().fold(self.raw, |left, field| left & !(1 << field.low))
    }
}

/// Advanced Error Reporting of a function.
#[derive(Clone, Copy, Debug)]
pub struct ErrorReporting<'a> {
    region: Region<'a>,
}

/// Every method returns [`Unknown`] if the register is absent or not visible.
#[allow(clippy::missing_errors_doc)]
impl<'a> ErrorReporting<'a> {
    /// The registers of the capability.
    #[must_use]
    pub const fn region(&self) -> Region<'a> {
        self.region
    }

    fn raw(&self, spot: Spot) -> Result<u32, Unknown> {
        self.region.register(spot).map(|raw| raw as u32)
    }

    /// Uncorrectable Error Status.
    pub fn uncorrectable_status(&self) -> Result<Errors, Unknown> {
        self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "UESta", "DLP") }).map(Errors::uncorrectable)
    }

    /// Uncorrectable Error Mask: errors that are not reported.
    pub fn uncorrectable_mask(&self) -> Result<Errors, Unknown> {
        self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "UEMsk", "DLP") }).map(Errors::uncorrectable)
    }

    /// Uncorrectable Error Severity: errors that are fatal.
    pub fn uncorrectable_severity(&self) -> Result<Errors, Unknown> {
        self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "UESvrt", "DLP") }).map(Errors::uncorrectable)
    }

    /// Correctable Error Status.
    pub fn correctable_status(&self) -> Result<Errors, Unknown> {
        self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "CESta", "RxErr") }).map(Errors::correctable)
    }

    /// Correctable Error Mask: errors that are not reported.
    pub fn correctable_mask(&self) -> Result<Errors, Unknown> {
        self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "CEMsk", "RxErr") }).map(Errors::correctable)
    }

    /// Header Log: header of the TLP of the first error, as four DWs in wire order.
    pub fn header_log(&self) -> Result<[u32; 4], Unknown> {
        Ok([
            self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "HeaderLog 0", "HeaderLog 0") })?,
            self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "HeaderLog 1", "HeaderLog 1") })?,
            self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "HeaderLog 2", "HeaderLog 2") })?,
            self.raw(const { Spot::of(&ADVANCED_ERROR_REPORTING, "HeaderLog 3", "HeaderLog 3") })?,
        ])
    }
}

#[allow(clippy::missing_errors_doc)]
impl<'a> ConfigSpace<'a> {
    /// The Advanced Error Reporting capability.
    pub fn error_reporting(&self) -> Result<ErrorReporting<'a>, Unknown> {
        let region = self.capability(CapabilityId::ADVANCED_ERROR_REPORTING)?.region();
        Ok(ErrorReporting { region })
    }

    /// Errors that trigger containment at a downstream port: 0 none, 1 fatal, 2 fatal and non-fatal.
    pub fn containment_trigger(&self) -> Result<u8, Unknown> {
        let region = self.capability(CapabilityId::DOWNSTREAM_PORT_CONTAINMENT)?.region();
        let spot = const { Spot::of(&DOWNSTREAM_PORT_CONTAINMENT, "DpcCtl", "Trigger") };
        match region.bits(spot)? {
            raw @ 0..=2 => Ok(raw as u8),
            raw => Err(region.reserved(spot, raw)),
        }
    }

    /// Whether containment is triggered at a downstream port, which disables the link below.
    pub fn contained(&self) -> Result<bool, Unknown> {
        let region = self.capability(CapabilityId::DOWNSTREAM_PORT_CONTAINMENT)?.region();
        region.flag(const { Spot::of(&DOWNSTREAM_PORT_CONTAINMENT, "DpcSta", "Trigger") })
    }
}
