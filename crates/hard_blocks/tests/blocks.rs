//! Blocks at their ports, clock by clock.

use lanemark_dut::{Inputs, Outputs};
use lanemark_hard_blocks::{Attached, Pin, Port, attach};

/// A design without logic: the test sets its outputs.
struct Pads {
    attached: Attached,
    inputs: Inputs,
}

impl Pads {
    /// Ports by name, width and direction.
    fn new(inputs: &[(&str, u32)], outputs: &[(&str, u32)]) -> Pads {
        let port =
            |is_input: bool| move |(name, bits): &(&str, u32)| Port { name: (*name).to_owned(), bits: *bits, is_input };
        let ports = inputs.iter().map(port(true)).chain(outputs.iter().map(port(false)));
        let mut pads = Pads { attached: attach(ports.collect()).unwrap(), inputs: Inputs::default() };
        pads.inputs = Inputs { bus_master: 1, msi_enable: 1, tx_ready: 1, requester_id: 0x0100, ..pads.inputs };
        pads.inputs.posted_headers = 32;
        pads.inputs.posted_data = 256;
        pads.inputs.non_posted_headers = 32;
        pads
    }

    fn pin(&self, name: &str) -> Pin {
        self.attached.pins.find(name)
    }

    fn get(&self, name: &str) -> u64 {
        self.attached.pins.get(self.pin(name))
    }

    fn set(&mut self, name: &str, value: u64) {
        let pin = self.pin(name);
        self.attached.pins.set(pin, value);
    }

    fn dws(&self, name: &str) -> Vec<u32> {
        self.attached.pins.dws(self.pin(name)).to_vec()
    }

    /// A clock: `design` looks at its inputs and sets its outputs.
    fn clock(&mut self, design: impl FnOnce(&mut Pads)) -> Result<Outputs, String> {
        let Attached { block, pins, .. } = &mut self.attached;
        block.drive(&self.inputs, pins);
        design(self);
        let mut outputs = Outputs::default();
        let Attached { block, pins, .. } = &mut self.attached;
        block.sample(&self.inputs, pins, &mut outputs)?;
        Ok(outputs)
    }

    /// Gives TLPs of so many DWs from the link; the first byte of each DW has the number of its TLP.
    fn arrive(&mut self, tlps: &[Vec<u32>]) {
        let beat = self.attached.block.beat_bytes();
        for tlp in tlps {
            let bytes: Vec<u8> = tlp.iter().flat_map(|dw| dw.to_be_bytes()).collect();
            for (at, chunk) in bytes.chunks(beat).enumerate() {
                self.inputs.rx_data[..chunk.len()].copy_from_slice(chunk);
                self.inputs.rx_bytes = chunk.len() as u8;
                self.inputs.rx_last = u8::from((at + 1) * beat >= bytes.len());
                assert_eq!(self.clock(|_| ()).unwrap().rx_ready, 1);
            }
        }
        self.inputs.rx_bytes = 0;
    }
}

/// A write of DWs to BAR 0.
fn write(data: &[u32]) -> Vec<u32> {
    let mut dws =
        vec![0x4000_0000 | data.len() as u32, 0x0000_000F | if data.len() > 1 { 0xF0 } else { 0 }, 0xE000_0000];
    dws.extend(data);
    dws
}

/// A read of a DW of BAR 0.
fn read(tag: u32) -> Vec<u32> {
    vec![1, tag << 8 | 15, 0xE000_0010]
}

/// Ports by name and width in bits.
type Ports = &'static [(&'static str, u32)];

const SERIES7: (Ports, Ports) = (
    &[
        ("user_clk", 1),
        ("user_reset", 1),
        ("m_axis_rx_tvalid", 1),
        ("m_axis_rx_tdata", 128),
        ("m_axis_rx_tkeep", 16),
        ("m_axis_rx_tlast", 1),
        ("m_axis_rx_tuser", 22),
        ("s_axis_tx_tready", 1),
        ("cfg_interrupt_rdy", 1),
        ("cfg_command", 16),
        ("cfg_dcommand", 16),
        ("fc_nph", 8),
    ],
    &[
        ("m_axis_rx_tready", 1),
        ("rx_np_ok", 1),
        ("s_axis_tx_tvalid", 1),
        ("s_axis_tx_tdata", 128),
        ("s_axis_tx_tkeep", 16),
        ("s_axis_tx_tlast", 1),
        ("s_axis_tx_tuser", 4),
        ("cfg_interrupt", 1),
        ("fc_sel", 3),
    ],
);

fn series7() -> Pads {
    let mut pads = Pads::new(SERIES7.0, SERIES7.1);
    pads.set("rx_np_ok", 1);
    pads
}

/// The next beat of the 7-series block within 20 clocks: its DWs, and `tuser`. The block may pause before it.
fn taken(pads: &mut Pads) -> Option<(Vec<u32>, u64)> {
    let mut beat = None;
    pads.set("m_axis_rx_tready", 1);
    for _ in 0..20 {
        pads.clock(|pads| {
            let is_offered = pads.get("m_axis_rx_tvalid") != 0;
            beat = is_offered.then(|| (pads.dws("m_axis_rx_tdata"), pads.get("m_axis_rx_tuser")));
        })
        .unwrap();
        if beat.is_some() {
            break;
        }
    }
    pads.set("m_axis_rx_tready", 0);
    beat
}

/// `tuser` of the 7-series block: BAR 0, and the bytes at which a TLP starts and ends.
fn user(start: Option<u64>, end: Option<u64>) -> u64 {
    1 << 2 | start.map_or(0, |byte| (16 | byte) << 10) | end.map_or(0, |byte| (16 | byte) << 17)
}

#[test]
fn a_tlp_starts_in_the_beat_in_which_another_ends() {
    let mut pads = series7();
    let (first, second, third) = (write(&[0xA3, 0xA4]), write(&[0xB3]), read(7));
    pads.arrive(&[first.clone(), second.clone(), third.clone()]);
    let beats: Vec<(Vec<u32>, u64)> = std::iter::from_fn(|| taken(&mut pads)).collect();
    assert_eq!(
        beats,
        [
            (first[..4].to_vec(), user(Some(0), None)),
            (vec![first[4], 0, second[0], second[1]], user(Some(8), Some(3))),
            (vec![second[2], second[3], third[0], third[1]], user(Some(8), Some(7))),
            (vec![third[2], 0, 0, 0], user(None, Some(3))),
        ]
    );
}

#[test]
fn an_offered_beat_stays_when_another_tlp_arrives() {
    let mut pads = series7();
    pads.arrive(&[write(&[0xA3, 0xA4])]);
    assert!(taken(&mut pads).is_some());
    // The last DW is offered alone; a TLP that comes later does not join it.
    while pads.get("m_axis_rx_tvalid") == 0 || pads.dws("m_axis_rx_tdata")[0] != 0xA4 {
        pads.clock(|_| ()).unwrap();
    }
    pads.arrive(&[write(&[0xB3])]);
    assert_eq!(taken(&mut pads).unwrap(), (vec![0xA4, 0, 0, 0], user(None, Some(3))));
    assert_eq!(taken(&mut pads).unwrap().1, user(Some(0), Some(15)));
}

#[test]
fn other_tlps_pass_non_posted_requests_while_rx_np_ok_is_0() {
    let mut pads = series7();
    pads.set("rx_np_ok", 0);
    pads.clock(|_| ()).unwrap();
    pads.arrive(&[read(1), write(&[5])]);
    assert_eq!(taken(&mut pads).unwrap().0, write(&[5]));
    assert_eq!(taken(&mut pads), None);
    pads.set("rx_np_ok", 1);
    pads.clock(|_| ()).unwrap();
    assert_eq!(taken(&mut pads).unwrap().0[..3], read(1));
}

/// Gives a TLP of up to 4 DWs to the 7-series block, and returns when it is taken.
fn send(pads: &mut Pads, tlp: &[u32]) -> Result<(), String> {
    for (at, dw) in tlp.iter().enumerate() {
        let pin = pads.pin("s_axis_tx_tdata");
        pads.attached.pins.dws_mut(pin)[at] = *dw;
    }
    pads.set("s_axis_tx_tkeep", (1 << (4 * tlp.len())) - 1);
    pads.set("s_axis_tx_tlast", 1);
    pads.set("s_axis_tx_tvalid", 1);
    let mut is_taken = false;
    while !is_taken {
        pads.clock(|pads| is_taken = pads.get("s_axis_tx_tready") != 0)?;
    }
    pads.set("s_axis_tx_tvalid", 0);
    Ok(())
}

/// A DW of a beat to the link.
fn dw(outputs: &Outputs, at: usize) -> u32 {
    u32::from_be_bytes(*outputs.tx_data[4 * at..].first_chunk().unwrap())
}

/// The next beats on the link, within 20 clocks.
fn beats(pads: &mut Pads) -> Vec<Outputs> {
    let clocks = (0..20).map(|_| pads.clock(|_| ()).unwrap());
    clocks.filter(|outputs| outputs.tx_bytes > 0).collect()
}

/// First DWs of the next TLPs on the link, within 20 clocks.
fn on_link(pads: &mut Pads) -> Vec<u32> {
    beats(pads).iter().map(|outputs| dw(outputs, 0)).collect()
}

#[test]
fn writes_pass_reads_without_credits_and_nothing_passes_a_write() {
    let mut pads = series7();
    // A limit of 0 with 0 used is no credit for one more.
    pads.inputs.non_posted_headers = 0;
    send(&mut pads, &read(1)).unwrap();
    send(&mut pads, &write(&[1])).unwrap();
    assert_eq!(on_link(&mut pads), [write(&[1])[0]]);
    pads.inputs.posted_headers = 1;
    send(&mut pads, &write(&[2])).unwrap();
    send(&mut pads, &[0x4A00_0001, 4, 0, 9]).unwrap();
    assert!(on_link(&mut pads).is_empty(), "a completion does not pass a write");
    pads.inputs.posted_headers = 2;
    assert_eq!(on_link(&mut pads), [write(&[2])[0], 0x4A00_0001]);
    pads.inputs.non_posted_headers = 1;
    assert_eq!(on_link(&mut pads), [1]);
}

#[test]
fn an_interrupt_follows_the_writes_before_it_and_is_asked_for_until_it_is_taken() {
    let mut pads = series7();
    pads.inputs.msi_address = 0xFEE0_0000;
    send(&mut pads, &write(&[1])).unwrap();
    pads.set("cfg_interrupt", 1);
    let mut is_taken = false;
    let mut sent = Vec::new();
    while !is_taken {
        let outputs = pads.clock(|pads| is_taken = pads.get("cfg_interrupt_rdy") != 0).unwrap();
        sent.extend((outputs.tx_bytes > 0).then(|| dw(&outputs, 2)));
    }
    pads.set("cfg_interrupt", 0);
    sent.extend(beats(&mut pads).iter().map(|outputs| dw(outputs, 2)));
    assert_eq!(sent, [0xE000_0000, 0xFEE0_0000], "addresses of the write and of the MSI");

    pads.set("cfg_interrupt", 1);
    pads.inputs.bus_master = 0;
    for _ in 0..20 {
        pads.clock(|pads| assert_eq!(pads.get("cfg_interrupt_rdy"), 0, "it waits for Bus Master Enable")).unwrap();
    }
    pads.set("cfg_interrupt", 0);
    assert_eq!(pads.clock(|_| ()).unwrap_err(), "cfg_interrupt falls before cfg_interrupt_rdy");
}

#[test]
fn the_settings_of_the_host_are_on_the_ports() {
    let mut pads = series7();
    pads.inputs = Inputs { mps: 512, mrrs: 4096, tags: 256, bus_master: 0, ..pads.inputs };
    pads.set("fc_sel", 4);
    send(&mut pads, &read(1)).unwrap();
    pads.clock(|_| ()).unwrap();
    pads.clock(|pads| {
        assert_eq!((pads.get("cfg_command"), pads.get("cfg_dcommand")), (2, 2 << 5 | 1 << 8 | 5 << 12));
        assert_eq!(pads.get("fc_nph"), 31, "credits that are available");
    })
    .unwrap();
}

#[test]
fn what_a_block_does_not_accept_is_said() {
    let refused = |change: &dyn Fn(&mut Pads)| {
        let mut pads = series7();
        pads.set("s_axis_tx_tkeep", 0xFFFF);
        pads.set("s_axis_tx_tvalid", 1);
        change(&mut pads);
        (0..8).find_map(|_| pads.clock(|_| ()).err()).unwrap_or_default()
    };
    assert_eq!(
        refused(&|pads| pads.set("s_axis_tx_tkeep", 0xFF0F)),
        "s_axis_tx: tkeep has a gap, or is not all ones before tlast"
    );
    let streamed = refused(&|pads| {
        pads.set("s_axis_tx_tuser", 4);
        while pads.clock(|_| ()).is_ok() && pads.get("s_axis_tx_tready") == 0 {}
        pads.set("s_axis_tx_tvalid", 0);
    });
    assert_eq!(streamed, "s_axis_tx: tvalid is 0 inside a packet");
    let digest = refused(&|pads| {
        pads.set("s_axis_tx_tuser", 1);
        pads.set("s_axis_tx_tlast", 1);
    });
    assert_eq!(digest, "s_axis_tx: tuser[0] (ECRC generation) is 1; the model does not support it");
}

#[test]
fn a_wide_stream_has_the_first_dw_in_its_lowest_bits() {
    let mut pads = Pads::new(
        &[
            ("clk", 1),
            ("rst", 1),
            ("rx_data", 64),
            ("rx_keep", 2),
            ("rx_valid", 1),
            ("rx_last", 1),
            ("tx_ready", 1),
            ("leds", 3),
        ],
        &[("rx_ready", 1), ("tx_data", 64), ("tx_keep", 2), ("tx_valid", 1), ("tx_last", 1)],
    );
    assert_eq!(pads.attached.described(), "plain stream of TLPs, 64 bits");
    assert_eq!(pads.attached.undriven(), ["leds"]);
    pads.inputs.rx_data[..8].copy_from_slice(&[0x00, 0, 0, 1, 0x12, 0x34, 0x56, 0x78]);
    pads.inputs.rx_bytes = 8;
    let sent = pads
        .clock(|pads| {
            assert_eq!(pads.dws("rx_data"), [1, 0x1234_5678]);
            assert_eq!((pads.get("rx_keep"), pads.get("rx_valid"), pads.get("rx_last")), (3, 1, 0));
            pads.set("tx_data", 0xDDDD_DDDD_4A00_0001);
            pads.set("tx_keep", 1);
            pads.set("tx_valid", 1);
            pads.set("tx_last", 1);
        })
        .unwrap();
    assert_eq!((sent.beat(), sent.tx_last, sent.rx_ready), (&[0x4A, 0, 0, 1][..], 1, 0));
    let gap = pads.clock(|pads| pads.set("tx_keep", 2)).unwrap_err();
    assert!(gap.starts_with("tx_keep is 0b10"), "{gap}");
}
