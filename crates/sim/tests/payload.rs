//! TLPs longer than the `Max_Payload_Size` of a port.

use lanemark_machine::{Machine, MachineError, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::{Board, SimulatedMachine};
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;

fn with(ports: &[&str]) -> Platform {
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    let set = |platform: Platform, port: &&str| {
        platform.with_mps_bytes(port, 256, Origin::Given("a test".to_owned())).unwrap()
    };
    ports.iter().fold(rosta, set)
}

fn move_bytes(verb: Verb, partner: Partner, bytes: u64) -> Transfer {
    let offset = if matches!(partner, Partner::Peer { .. }) { 8 << 20 } else { 0 };
    let window = Window { offset, len: bytes, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None }
}

const PEER: Partner = Partner::Peer { card: 1, bar: 0 };

/// Returns the port that drops the TLPs of card 0, its limit, and their number.
fn malformed(platform: &Platform, transfer: &Transfer) -> Option<(String, u32, u64)> {
    let mut board = Board::new(platform).unwrap();
    board.start_transfer(transfer, 1, 0).unwrap();
    board.run_until(Ticks::whole_ns(1_000_000));
    assert!(board.is_idle(), "nothing hangs");
    assert_eq!(board.slots_in_use(), 0);
    assert!(board.errors().iter().all(|noticed| noticed.error == AerError::MalformedTlp));
    board.errors().first().map(|noticed| (noticed.port.clone(), noticed.mps_bytes, noticed.count))
}

#[test]
fn a_tlp_longer_than_max_payload_size_is_dropped() {
    let card = with(&["fpga0"]);
    assert_eq!(malformed(&card, &move_bytes(Verb::Store, PEER, 128)), None);
    let refused = Some(("rc47a/fpga0".to_owned(), 128, 1));
    assert_eq!(malformed(&card, &move_bytes(Verb::Store, PEER, 132)), refused);
}

#[test]
fn every_port_between_two_cards_checks_the_payload_size() {
    let ports = ["fpga0", "rc47a/fpga0", "rc47a/fpga1", "fpga1"];
    let write = move_bytes(Verb::Store, PEER, 256);
    assert_eq!(malformed(&with(&ports), &write), None);
    for left_out in 1..ports.len() {
        let others: Vec<&str> = ports.iter().filter(|port| **port != ports[left_out]).copied().collect();
        let refused = Some((ports[left_out].to_owned(), 128, 1));
        assert_eq!(malformed(&with(&others), &write), refused);
    }
    // The card itself then sends at most what its own register permits.
    assert_eq!(malformed(&with(&ports[1..]), &write), None);
}

#[test]
fn thousands_of_malformed_tlps_return_their_credits() {
    let card = with(&["fpga0"]);
    let refused = malformed(&card, &move_bytes(Verb::Store, PEER, 1 << 20));
    assert_eq!(refused, Some(("rc47a/fpga0".to_owned(), 128, 4096)));
}

#[test]
fn completions_are_limited_by_the_root_port_only() {
    let read = move_bytes(Verb::Load, Partner::Host, 4096);
    assert_eq!(malformed(&with(&["fpga0", "rc47a/fpga0"]), &read), None);
}

#[test]
fn a_malformed_tlp_at_the_root_port_is_an_error_with_requester_and_port() {
    let platform = with(&["fpga0", "rc47a/fpga0", "rc47a", "rha25/rc47a", "rha25"]);
    let write = move_bytes(Verb::Store, Partner::Host, 512);
    assert_eq!(malformed(&platform, &write), Some(("root/rha25".to_owned(), 128, 2)));
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let plan = Plan::new(write, 1);
    let mut samples = Samples::wanted(1);
    let Err(MachineError::Bus(error)) = machine.run(&plan, &mut samples) else { panic!("the run succeeded") };
    assert_eq!((error.error, error.noticed_by.as_str()), (Some(AerError::MalformedTlp), "00:01.0 (root/rha25)"));
    let what = "MWr of 256 B by fpga0 (05:00.0), is longer than Max_Payload_Size, 128 B, the first of 2";
    assert_eq!((error.what.as_str(), error.address), (what, Some(0x1000_0000)));
    assert_eq!(error.header_log, Some([0x4000_0040, 0x0500_00ff, 0x1000_0000, 0]));
    let to_do = "it supports no more: let fpga0 use a path on which every port accepts 256 B";
    assert_eq!((error.to_do.as_str(), error.arrived[0].bytes), (to_do, 0));
    // The next plan starts on an idle machine.
    let small = Plan::new(move_bytes(Verb::Store, Partner::Host, 128), 1);
    machine.run(&small, &mut samples).unwrap();
    assert_eq!(samples.confirmed.map(|bytes| bytes.confirmed_bytes), Some(128));
}
