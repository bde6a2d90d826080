//! The user interface of AMD's 7-series block: whole TLPs on streams of 64 or 128 bits.
//!
//! The design checks completions against its reads, counts their timeouts, and may not send requests without Bus Master Enable;
//! the block counts credits and sends the MSI. Source of all ports and fields, from memory and not checked against its text:
//! PG054, "7 Series FPGAs Integrated Block for PCI Express". Names of ports are those of the design behind the block in AMD's
//! example. `rtl/README.md` lists what is fixed and what is left out.

use crate::axi::{Axi, Collector};
use crate::interface::{Block, Interface, PortRow, from_design, to_design};
use crate::pins::{Pin, Pins};
use crate::raw::{MOST_DEPARTURES, RawBlock, Received, TIMER_SLACK_CLOCKS};
use lanemark_dut::{Inputs, Outputs};

pub(crate) const INTERFACE: Interface = Interface {
    name: "series7",
    about: "AMD 7-series hard block: streams rx and tx",
    clock: "user_clk",
    mark: "m_axis_rx_tdata",
    ports: PORTS,
    attach: |pins| Ok(Box::new(Series7::new(pins)?)),
};

const PORTS: &[PortRow] = &[
    to_design("user_reset"),
    to_design("user_lnk_up").optional(),
    to_design("m_axis_rx_tvalid"),
    to_design("m_axis_rx_tdata"),
    to_design("m_axis_rx_tkeep").optional(),
    to_design("m_axis_rx_tlast").optional(),
    to_design("m_axis_rx_tuser"),
    from_design("m_axis_rx_tready"),
    from_design("rx_np_ok").optional(),
    from_design("rx_np_req").optional(),
    from_design("s_axis_tx_tvalid"),
    from_design("s_axis_tx_tdata").with("s_axis_tx_tvalid"),
    from_design("s_axis_tx_tkeep").with("s_axis_tx_tvalid"),
    from_design("s_axis_tx_tlast").with("s_axis_tx_tvalid"),
    from_design("s_axis_tx_tuser").with("s_axis_tx_tvalid").optional(),
    to_design("s_axis_tx_tready"),
    to_design("tx_buf_av").optional(),
    to_design("tx_err_drop").optional(),
    to_design("tx_cfg_req").optional(),
    from_design("tx_cfg_gnt").optional(),
    from_design("fc_sel").optional(),
    to_design("fc_ph").optional(),
    to_design("fc_pd").optional(),
    to_design("fc_nph").optional(),
    to_design("fc_npd").optional(),
    to_design("fc_cplh").optional(),
    to_design("fc_cpld").optional(),
    to_design("cfg_bus_number").optional(),
    to_design("cfg_device_number").optional(),
    to_design("cfg_function_number").optional(),
    to_design("cfg_command").optional(),
    to_design("cfg_dcommand").optional(),
    from_design("cfg_interrupt").optional(),
    from_design("cfg_interrupt_di").optional().with("cfg_interrupt"),
    from_design("cfg_interrupt_assert").optional().with("cfg_interrupt"),
    to_design("cfg_interrupt_rdy").optional(),
    to_design("cfg_interrupt_msienable").optional(),
    to_design("cfg_interrupt_mmenable").optional(),
];

/// Bits of `s_axis_tx_tuser`.
const ECRC_GENERATED: u32 = 0;
const POISONED: u32 = 1;
const STREAMED: u32 = 2;
const DISCONTINUED: u32 = 3;
/// Bits of `m_axis_rx_tuser`; the place of a start or an end is a byte of the beat.
const RX_POISONED: u32 = 1;
const RX_BAR_HIT: u32 = 2;
const RX_START: u32 = 10;
const RX_END: u32 = 17;
/// DWs after which a TLP may begin in a beat of 128 bits.
const STRADDLED: usize = 2;
/// Kinds of credits that `fc_sel` selects of the host.
const AVAILABLE: u64 = 4;
const LIMIT: u64 = 5;
const CONSUMED: u64 = 6;

/// A beat to the design, offered until it is taken.
#[derive(Clone, Debug, Default)]
struct Beat {
    dws: Vec<u32>,
    is_last: bool,
    /// DWs at which a TLP starts and ends.
    start: Option<usize>,
    end: Option<usize>,
    bar: Option<u8>,
    is_poisoned: bool,
}

/// The ports besides those of the streams.
#[derive(Debug)]
struct Ports {
    reset: Pin,
    link_up: Pin,
    non_posted_ok: Pin,
    buffers: Pin,
    select: Pin,
    credits: [Pin; 6],
    bus_number: Pin,
    command: Pin,
    device_command: Pin,
    interrupt: Pin,
    interrupt_ready: Pin,
    msi_enable: Pin,
}

/// The block.
#[derive(Debug)]
struct Series7 {
    ports: Ports,
    raw: RawBlock,
    rx: Axi,
    tx: Collector,
    /// The TLP of which some beats have been offered.
    current: Option<Received>,
    beat: Option<Beat>,
    /// `fc_sel` and `rx_np_ok` of the last clock.
    selected: u64,
    takes_non_posted: bool,
    /// Whether `cfg_interrupt_rdy` is 1 in this clock.
    accepts_interrupt: bool,
    wants_interrupt: bool,
}

impl Series7 {
    fn new(pins: &Pins) -> Result<Series7, String> {
        let (rx, tx) = (Axi::find(pins, "m_axis_rx"), Axi::find(pins, "s_axis_tx"));
        let bits = rx.data.bits();
        for axi in [rx, tx] {
            let (name, own, keep) = (axi.name, axi.data.bits(), axi.keep.bits());
            if own != bits || !matches!(bits, 64 | 128) {
                return Err(format!("{name}_tdata has {own} bits; both streams have the same width, 64 or 128 bits"));
            }
            // A design with 128 bits need not have that of rx.
            if keep != bits / 8 && !(keep == 0 && name == rx.name && bits == 128) {
                return Err(format!("{name}_tkeep has {keep} bits; it has one for each byte, {}", bits / 8));
            }
        }
        if bits == 64 && rx.last.bits() == 0 {
            return Err("no port m_axis_rx_tlast, which streams of 64 bits need".to_owned());
        }
        let pin = |name: &str| pins.find(name);
        Ok(Series7 {
            ports: Ports {
                reset: pin("user_reset"),
                link_up: pin("user_lnk_up"),
                non_posted_ok: pin("rx_np_ok"),
                buffers: pin("tx_buf_av"),
                select: pin("fc_sel"),
                credits: ["fc_ph", "fc_pd", "fc_nph", "fc_npd", "fc_cplh", "fc_cpld"].map(pin),
                bus_number: pin("cfg_bus_number"),
                command: pin("cfg_command"),
                device_command: pin("cfg_dcommand"),
                interrupt: pin("cfg_interrupt"),
                interrupt_ready: pin("cfg_interrupt_rdy"),
                msi_enable: pin("cfg_interrupt_msienable"),
            },
            raw: RawBlock::default(),
            rx,
            tx: Collector::new(tx, DISCONTINUED),
            current: None,
            beat: None,
            selected: 0,
            takes_non_posted: true,
            accepts_interrupt: false,
            wants_interrupt: false,
        })
    }

    /// The next beat to the design. In a beat of 128 bits, a TLP may begin after the end of another.
    fn next_beat(&mut self) -> Option<Beat> {
        let width = self.rx.data.dws();
        let mut tlp = self.current.take().or_else(|| self.raw.receive(self.takes_non_posted))?;
        let mut beat = Beat { bar: tlp.bar, is_poisoned: tlp.is_poisoned, ..Beat::default() };
        beat.start = (tlp.next == 0).then_some(0);
        beat.dws.extend_from_slice(tlp.take(width));
        if !tlp.has_ended() {
            self.current = Some(tlp);
            return Some(beat);
        }
        beat.end = Some(beat.dws.len() - 1);
        beat.is_last = true;
        if width == 4
            && beat.dws.len() <= STRADDLED
            && let Some(mut next) = self.raw.receive(self.takes_non_posted)
        {
            beat.dws.resize(STRADDLED, 0);
            beat.dws.extend_from_slice(next.take(width - STRADDLED));
            (beat.start, beat.is_last, beat.bar) = (Some(STRADDLED), false, next.bar);
            self.current = Some(next);
        }
        Some(beat)
    }

    fn offer(&mut self, pins: &mut Pins) {
        // An offered beat stays; the next one may come later, also inside a TLP.
        if self.beat.is_none() && !self.raw.pauses.next() {
            self.beat = self.next_beat();
        }
        let Some(beat) = &self.beat else { return self.rx.offer(pins, &[], false) };
        // Streams of 128 bits have their ends in tuser: tlast and tkeep say nothing there.
        let is_wide = self.rx.data.dws() == 4;
        self.rx.offer(pins, &beat.dws, beat.is_last && !is_wide);
        if is_wide {
            pins.set(self.rx.keep, 0xFFFF);
        }
        let user = self.rx.user;
        pins.set_field(user, RX_POISONED, 1, u32::from(beat.is_poisoned));
        pins.set_field(user, RX_BAR_HIT, 8, beat.bar.map_or(0, |bar| 1 << bar));
        if is_wide {
            for (low, place) in [(RX_START, beat.start.map(|dw| 4 * dw)), (RX_END, beat.end.map(|dw| 4 * dw + 3))] {
                if let Some(byte) = place {
                    pins.set_field(user, low, 5, 1 << 4 | byte as u32);
                }
            }
        }
    }

    /// The selected kind of credits.
    fn credits(&self, inputs: &Inputs) -> [u64; 6] {
        let used = self.raw.used();
        let pairs = [
            (u32::from(inputs.posted_headers), used.posted_headers, 0xFF),
            (u32::from(inputs.posted_data), used.posted_data, 0xFFF),
            (u32::from(inputs.non_posted_headers), used.non_posted_headers, 0xFF),
            // The requests of the design are reads, which need no data credits; completions have infinite ones.
            (0, 0, 0xFFF),
            (0, 0, 0xFF),
            (0, 0, 0xFFF),
        ];
        pairs.map(|(limit, used, mask)| {
            let value = match self.selected {
                AVAILABLE => limit.wrapping_sub(used),
                LIMIT => limit,
                CONSUMED => used,
                _ => 0,
            };
            u64::from(value & mask)
        })
    }
}

impl Block for Series7 {
    fn beat_bytes(&self) -> usize {
        self.rx.data.dws() * 4
    }

    fn drive(&mut self, inputs: &Inputs, pins: &mut Pins) {
        if inputs.reset != 0 {
            self.raw.reset();
            self.tx.clear();
            (self.current, self.beat) = (None, None);
            (self.selected, self.takes_non_posted, self.wants_interrupt) = (0, true, false);
        }
        self.raw.choose(inputs);
        self.offer(pins);
        // A packet that has begun is taken to its end.
        let is_ready = !self.raw.pauses.next() && (self.raw.has_buffer() || self.tx.is_inside());
        pins.set(self.tx.axi.ready, is_ready.into());
        // Between a request and its acceptance is at least a clock. Without Bus Master Enable, or without MSI, it waits.
        let may_interrupt = inputs.msi_enable != 0 && inputs.bus_master != 0 && self.raw.has_buffer();
        self.accepts_interrupt = self.wants_interrupt && may_interrupt && !self.raw.pauses.next();
        self.wants_interrupt &= !self.accepts_interrupt;
        let credits = self.credits(inputs);
        let ports = &self.ports;
        pins.set(ports.reset, inputs.reset.into());
        pins.set(ports.link_up, u64::from(inputs.reset == 0));
        pins.set(ports.buffers, (MOST_DEPARTURES - self.raw.departures().min(MOST_DEPARTURES)) as u64);
        for (pin, value) in ports.credits.iter().zip(credits) {
            pins.set(*pin, value);
        }
        // Device and function number are 0.
        pins.set(ports.bus_number, u64::from(inputs.requester_id >> 8));
        // Memory Space Enable and Bus Master Enable.
        pins.set(ports.command, 2 | u64::from(inputs.bus_master) << 2);
        // Max_Payload_Size, Extended Tag Field Enable and Max_Read_Request_Size.
        let size = |bytes: u16| u64::from((bytes >> 7).trailing_zeros());
        let extended_tags = u64::from(inputs.tags > 32);
        pins.set(ports.device_command, size(inputs.mps) << 5 | extended_tags << 8 | size(inputs.mrrs) << 12);
        pins.set(ports.interrupt_ready, self.accepts_interrupt.into());
        pins.set(ports.msi_enable, inputs.msi_enable.into());
    }

    fn sample(&mut self, inputs: &Inputs, pins: &Pins, outputs: &mut Outputs) -> Result<(), String> {
        self.raw.exchange(inputs, self.beat_bytes(), outputs);
        if inputs.reset != 0 {
            return Ok(());
        }
        if self.rx.is_taken(pins) {
            self.beat = None;
        }
        let may_pause = self.tx.user(STREAMED, 1) == 0;
        if let Some(packet) = self.tx.take(pins, may_pause)? {
            if self.tx.user(ECRC_GENERATED, 1) != 0 {
                return Err("s_axis_tx: tuser[0] (ECRC generation) is 1; the model does not support it".to_owned());
            }
            if !packet.is_discontinued {
                self.raw.depart(&packet.dws, packet.flags >> POISONED & 1 != 0);
            }
        }
        self.selected = pins.get(self.ports.select);
        self.takes_non_posted = self.ports.non_posted_ok.bits() == 0 || pins.is_set(self.ports.non_posted_ok);
        if self.accepts_interrupt {
            if !pins.is_set(self.ports.interrupt) {
                return Err("cfg_interrupt falls before cfg_interrupt_rdy".to_owned());
            }
            self.raw.interrupt(inputs, 0);
        } else {
            if self.wants_interrupt && !pins.is_set(self.ports.interrupt) {
                return Err("cfg_interrupt falls before cfg_interrupt_rdy".to_owned());
            }
            self.wants_interrupt = pins.is_set(self.ports.interrupt);
        }
        Ok(())
    }

    fn has_function_level_reset(&self) -> bool {
        false
    }

    fn timer_slack_clocks(&self) -> u32 {
        TIMER_SLACK_CLOCKS
    }
}
