//! Failures on the bus as errors: which port detected what, the bytes that arrived, and the fix.

use super::SimulatedMachine;
use super::flows::BytesBefore;
use crate::failures::{CutOff, Withheld};
use crate::header::{Parties, header_of, tag};
use crate::host::pins::RefusedPage;
use crate::noticed::Noticed;
use crate::requester::{FIRST_CARD, OUTSIDE, ROOT_COMPLEX};
use crate::tlp::{AddressType, Tlp, TlpKind};
use lanemark_config_space::{ConfigSpaceError, LoggedError, SimulatedFunction, functions};
use lanemark_machine::{Arrived, BusError, MachineError, Plan};
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;
use lanemark_wire::{FlowClass, FunctionId, Header};

impl SimulatedMachine {
    /// Returns an error if a port has detected a failure: new requests stop, outstanding ones complete, and links are
    /// reset.
    pub(super) fn failure(&mut self, plan: &Plan, passes: u64, before: &BytesBefore) -> Result<(), MachineError> {
        let is_kept = self.board.withheld().next().is_some();
        let unpinned = self.board.take_pins();
        if unpinned.is_none() && !self.board.has_failed() && !is_kept && !self.board.awaits_timeouts() {
            return Ok(());
        }
        self.board.halt();
        let arrived = before.arrived(plan, passes, &self.board);
        let error = match unpinned {
            Some((page, at)) => self.says_of_unpinned(page, at, arrived),
            None => self.says(arrived),
        };
        // The error reports these faults, so their records are freed.
        while self.board.take_translation_fault().is_some() {}
        self.log();
        self.keep_trace();
        self.board.reset(&self.platform).map_err(|error| self.unsupported("a reset", error.because))?;
        Err(MachineError::Bus(Box::new(error)))
    }

    /// Returns the configuration space of every function as software would read it now: with the errors, also
    /// corrected ones, that its port has detected since construction.
    ///
    /// ```
    /// use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
    /// use lanemark_wire::config::ConfigSpace;
    /// let preset = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    /// let platform = preset.with_fault("poisoned@card:3".parse().unwrap()).unwrap();
    /// let mut machine = lanemark_sim::SimulatedMachine::new(&platform).unwrap();
    /// let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
    /// let (verb, partner) = (Verb::Load, Partner::Host);
    /// let read = Transfer { card: 0, verb, partner, bytes: 4096, count: 1, window, outstanding: None };
    /// assert!(machine.run(&Plan::new(read, 1), &mut Samples::wanted(1)).is_err());
    /// let functions = machine.functions().unwrap();
    /// let card = functions.iter().find(|function| function.port == "card").unwrap();
    /// let errors = ConfigSpace::new(&card.bytes).error_reporting().unwrap().uncorrectable_status().unwrap();
    /// assert_eq!(errors.names().collect::<Vec<_>>(), ["TLP"]); // Poisoned TLP Received
    /// ```
    ///
    /// # Errors
    /// [`ConfigSpaceError`], as [`functions`].
    pub fn functions(&self) -> Result<Vec<SimulatedFunction>, ConfigSpaceError> {
        let mut functions = functions(&self.platform)?;
        let mut logged = self.logged.clone();
        self.log_corrected(&mut logged);
        for function in &mut functions {
            function.show(&logged);
        }
        Ok(functions)
    }

    /// Keeps the detected errors, which a reset of the board clears.
    fn log(&mut self) {
        let functions = functions(&self.platform).unwrap_or_default();
        let mut logged = std::mem::take(&mut self.logged);
        let mut errors: Vec<&Noticed> = self.board.errors().iter().collect();
        errors.sort_by_key(|noticed| noticed.at);
        for noticed in errors {
            let header_log = noticed.error.row().logs_header.then(|| self.header_log(noticed, &functions));
            LoggedError { port: noticed.port.clone(), error: noticed.error, header_log }.log(&mut logged);
        }
        self.log_corrected(&mut logged);
        self.logged = logged;
    }

    fn log_corrected(&self, logged: &mut Vec<LoggedError>) {
        for (port, error, _) in self.board.corrected() {
            LoggedError { port: port.to_owned(), error, header_log: None }.log(logged);
        }
    }

    fn says_of_unpinned(&self, page: RefusedPage, at: Ticks, arrived: Vec<Arrived>) -> BusError {
        let RefusedPage { card, at: address, nth, pages } = page;
        let card = self.platform.card_name(card as usize).unwrap_or("a card");
        let before = match nth - 1 {
            0 => "no page was pinned before it".to_owned(),
            1 => "the one before it was unpinned again".to_owned(),
            before => format!("the {before} before it were unpinned again"),
        };
        BusError {
            machine: self.facts.name.clone(),
            noticed_by: format!("the driver of {card}"),
            error: None,
            header_log: None,
            address: Some(address),
            what: format!("page {nth} of a buffer of {pages} cannot be pinned; {before}, and {card} received no doorbell"),
            at,
            arrived,
            followed_by: Vec::new(),
            to_do: "use memory that can be pinned: no mapping of a device or of a DAX file, within RLIMIT_MEMLOCK; then retry the call".to_owned(),
            ends_plan_only: true,
        }
    }

    fn says(&self, arrived: Vec<Arrived>) -> BusError {
        let functions = functions(&self.platform).unwrap_or_default();
        let machine = self.facts.name.clone();
        let mut errors: Vec<&Noticed> = self.board.errors().iter().collect();
        errors.sort_by_key(|noticed| noticed.at);
        let withheld = self.board.withheld().next();
        let error = |noticed_by, what, at, to_do| BusError {
            machine,
            noticed_by,
            error: None,
            header_log: None,
            address: None,
            what,
            at,
            arrived,
            followed_by: Vec::new(),
            to_do,
            ends_plan_only: false,
        };
        let place = |port: &str| named(&functions, port);
        // An earlier error of a port ended the run.
        let reported_at = errors.first().map_or(Ticks::NEVER, |first| first.at);
        if let Some(held) = withheld.filter(|held| held.since <= reported_at) {
            let (what, to_do) = self.says_of_withheld(&held, &functions);
            let followed_by = errors.iter().map(|other| (other.error, place(&other.port))).collect();
            let about = error(place(&held.sender), what, held.since, to_do);
            return BusError { address: Some(held.first.address), followed_by, ..about };
        }
        // A link-down error is reported once; later TLPs find the link down.
        let is_news = errors.iter().any(|noticed| noticed.error == AerError::SurpriseDown);
        if let Some(cut) = self.board.cut_off_tlps().filter(|cut| !is_news && cut.at <= reported_at) {
            let (what, to_do) = self.says_of_cut_off(cut, &functions);
            let followed_by = errors.iter().map(|other| (other.error, place(&other.port))).collect();
            let about = error(place(&cut.port), what, cut.at, to_do);
            return BusError { address: Some(cut.first.address), followed_by, ..about };
        }
        if let Some(first) = errors.first() {
            let (what, to_do) = (self.says_of(first, &functions), self.to_do(first));
            let followed_by = errors[1..].iter().map(|other| (other.error, place(&other.port))).collect();
            let about = error(place(&first.port), what, first.at, to_do);
            return BusError {
                error: Some(first.error),
                header_log: first.error.row().logs_header.then(|| self.header_log(first, &functions)),
                address: (first.error != AerError::SurpriseDown).then_some(first.tlp.address),
                followed_by,
                ..about
            };
        }
        // Unreachable: every failure is one of the above.
        error("a port".to_owned(), "unknown".to_owned(), self.board.now(), "report it".to_owned())
    }

    /// Describes the TLP of an error.
    fn says_of(&self, noticed: &Noticed, functions: &[SimulatedFunction]) -> String {
        let Noticed { error, tlp, mps_bytes, count, .. } = noticed;
        let about = self.about(tlp, functions);
        let so_often = if *count > 1 { format!(", the first of {count}") } else { String::new() };
        match error {
            AerError::MalformedTlp => format!("{about}, is longer than Max_Payload_Size, {mps_bytes} B{so_often}"),
            AerError::PoisonedTlp => format!("{about}, was poisoned (EP), and its data were dropped{so_often}"),
            AerError::Ecrc => format!("{about}, had a wrong ECRC and was dropped{so_often}"),
            AerError::CompletionTimeout => {
                let span = if tlp.requester < FIRST_CARD || tlp.requester == ROOT_COMPLEX {
                    self.platform.root_complex.completion_timeout_ns.value
                } else {
                    self.platform.endpoint.completion_timeout_ns.value
                };
                format!("{about}, got no completion within {span}{so_often}")
            }
            AerError::SurpriseDown => match self.board.cut_off_tlps() {
                Some(cut) => format!(
                    "the link to {} went down; lost with it: {} TLPs, the first {about}, at address {:#x}",
                    cut.below, cut.tlps, tlp.address
                ),
                None => "the link below went down".to_owned(),
            },
            AerError::CompleterAbort => format!("{about}, was aborted by its completer{so_often}"),
            AerError::UnsupportedRequest => match self.board.translation_fault(tlp.requester, tlp.address) {
                Some(fault) => format!("{about}, was refused by the IOMMU: {}{so_often}", fault.reason),
                None => format!("{about}, is not supported by its completer{so_often}"),
            },
            _ => format!("{about}{so_often}"),
        }
    }

    fn to_do(&self, noticed: &Noticed) -> String {
        let Noticed { error, port, tlp, .. } = noticed;
        let who = self.who(tlp.requester);
        match error {
            AerError::MalformedTlp => {
                let bytes = tlp.payload_bytes();
                let supports = self.platform.mps_supported_bytes_of(port) >= bytes;
                let first = if supports { "set it higher there too, or" } else { "it supports no more:" };
                format!("{first} let {who} use a path on which every port accepts {bytes} B")
            }
            AerError::PoisonedTlp => "retry the transfer; if the error repeats, test the memory that holds these bytes".to_owned(),
            AerError::Ecrc => "retry the transfer; if the error repeats, check the switches on the path, because links have their own CRC".to_owned(),
            AerError::CompletionTimeout => {
                "reset the completer that did not answer; if it is only slow, raise completion_timeout_ns (Completion Timeout in Device Control 2 of real requesters)".to_owned()
            }
            AerError::SurpriseDown => "check slot, cable and power; then remove the device and rescan the bus".to_owned(),
            AerError::CompleterAbort => "read the status of the completer: it supports the request, but could not complete it".to_owned(),
            AerError::UnsupportedRequest if tlp.requester == ROOT_COMPLEX => {
                "check what is behind that BAR of the card, and whether Memory Space Enable is set".to_owned()
            }
            AerError::UnsupportedRequest if tlp.requester >= FIRST_CARD && tlp.requester != OUTSIDE => {
                format!("map that address, or let {who} use a mapped address")
            }
            AerError::UnsupportedRequest => "check whether Memory Space Enable is set, and what is behind that BAR".to_owned(),
            _ => "check the port".to_owned(),
        }
    }

    fn says_of_withheld(&self, held: &Withheld, functions: &[SimulatedFunction]) -> (String, String) {
        let Withheld { port, first, tlps, waiting, .. } = held;
        let classes = [FlowClass::Posted, FlowClass::NonPosted, FlowClass::Completion];
        let kinds = classes.iter().zip(tlps).filter(|(_, tlps)| **tlps > 0);
        let kinds = kinds.map(|(class, tlps)| match class {
            FlowClass::Posted => format!("{tlps} posted"),
            FlowClass::NonPosted => format!("{tlps} non-posted"),
            FlowClass::Completion => format!("{tlps} completions"),
        });
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let what = format!(
            "{} has returned no credits since then: {kinds} stay in its receive buffer and {waiting} TLPs wait for it, the \
             first {}",
            named(functions, port),
            self.about(first, functions)
        );
        let to_do =
            format!("reset {port}: its FIFO is full and is not drained; posted writes have no completion timeout");
        (what, to_do)
    }

    fn says_of_cut_off(&self, cut: &CutOff, functions: &[SimulatedFunction]) -> (String, String) {
        let what = format!(
            "{} is gone: its link is down since {}, {} TLPs were lost, the first {}",
            named(functions, &cut.below),
            cut.since,
            cut.tlps,
            self.about(&cut.first, functions)
        );
        (what, "loads return all ones; remove the device and rescan the bus when it is back".to_owned())
    }

    /// Describes a TLP and its requester.
    fn about(&self, tlp: &Tlp, functions: &[SimulatedFunction]) -> String {
        let (who, id) = (self.who(tlp.requester), self.id(tlp.requester, functions));
        let bytes = tlp.enabled_bytes();
        match tlp.kind {
            TlpKind::MWr => format!("MWr of {bytes} B by {who} ({id})"),
            TlpKind::MRd if tlp.at == AddressType::TranslationRequest => {
                format!("MRd for a translation by {who} ({id}), tag {}", tag(tlp))
            }
            TlpKind::MRd => format!("MRd of {bytes} B by {who} ({id}), tag {}", tag(tlp)),
            TlpKind::CplD => format!("CplD of {bytes} B for {who} ({id}), tag {}", tag(tlp)),
            TlpKind::Cpl => format!("Cpl for {who} ({id}), tag {}", tag(tlp)),
            TlpKind::MsgD => format!("Invalidate Request to {who} ({id})"),
            TlpKind::Msg => format!("Invalidate Completion of {who} ({id})"),
        }
    }

    fn who(&self, requester: u16) -> String {
        match requester.checked_sub(FIRST_CARD) {
            _ if requester == OUTSIDE => "somebody outside".to_owned(),
            _ if requester == ROOT_COMPLEX => "the root complex, for a read of a peer".to_owned(),
            Some(card) => self.platform.card_name(usize::from(card)).unwrap_or("a card").to_owned(),
            None => format!("core {requester}"),
        }
    }

    fn id(&self, requester: u16, functions: &[SimulatedFunction]) -> FunctionId {
        if requester == ROOT_COMPLEX {
            return FunctionId(self.platform.root_complex.peer_requester_id.value as u16);
        }
        let card = requester.checked_sub(FIRST_CARD).and_then(|card| self.platform.card_name(usize::from(card)));
        let found = card.and_then(|name| functions.iter().find(|function| function.port == name));
        found.map_or(FunctionId(if requester < FIRST_CARD { requester } else { 0 }), |function| function.address)
    }

    /// Returns the completer of an address.
    fn completer(address: u64, functions: &[SimulatedFunction]) -> FunctionId {
        let holds = |function: &&SimulatedFunction| {
            function.bars.iter().any(|bar| address.wrapping_sub(bar.address) < bar.size_bytes)
        };
        functions.iter().find(holds).map(|function| function.address).unwrap_or_default()
    }

    fn header(&self, noticed: &Noticed, functions: &[SimulatedFunction]) -> Header {
        let requester = self.id(noticed.tlp.requester, functions);
        let completer = SimulatedMachine::completer(noticed.tlp.address, functions);
        header_of(&noticed.tlp, Parties { requester, completer }, noticed.left_bytes)
    }

    /// Returns the first four DWs of the TLP in wire order.
    fn header_log(&self, noticed: &Noticed, functions: &[SimulatedFunction]) -> [u32; 4] {
        let mut bytes = [0; Header::MAX_BYTES];
        let used = self.header(noticed, functions).emit(&mut bytes).unwrap_or(0);
        std::array::from_fn(|dw| {
            let bytes = bytes.get(4 * dw..4 * dw + 4).filter(|_| 4 * dw < used).unwrap_or(&[0; 4]);
            bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
        })
    }
}

/// Formats a port as `BUS:DEVICE.FUNCTION (NAME)`.
fn named(functions: &[SimulatedFunction], port: &str) -> String {
    let function = functions.iter().find(|function| function.port == port);
    function.map_or_else(|| port.to_owned(), |function| format!("{} ({port})", function.address))
}
