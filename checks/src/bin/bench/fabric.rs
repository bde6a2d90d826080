//! TLP-hops per second across trees of switches, from two ports to many.

use super::{ROUNDS, row};
use lanemark_machine::{Partner, Pattern, Transfer, Verb, Window};
use lanemark_platform::Platform;
use lanemark_sim::Board;
use std::fmt::Write as _;
use std::time::Instant;

const ROSTA: &str = include_str!("../../../../platforms/rosta-virtex7.toml");
/// Approximate TLPs of a run; hops are counted exactly.
const TLPS: u64 = 2_000_000;
/// Payload of a TLP in bytes: the MPS of the platform.
const MPS: u64 = 128;

/// The cards of the Virtex-7 system below other trees.
pub fn fabric() {
    let two_ports = |verb| vec![transfer(0, verb, Partner::Host, TLPS)];
    measure("fabric: 2 ports, a card writes host memory, M TLP-hops/s (target: 5)", &[], 0, &two_ports(Verb::Store));
    measure("fabric: 2 ports, a card reads host memory, M TLP-hops/s (target: 5)", &[], 0, &two_ports(Verb::Load));
    measure("fabric: 16 ports, 7 cards in a ring, M TLP-hops/s (target: 4)", &[7], 7, &ring(7));
    measure("fabric: 146 ports, 64 cards under 9 switches, M TLP-hops/s", &[8; 8], 64, &ring(64));
    measure("fabric: 192 ports, 90 cards under 6 switches, M TLP-hops/s", &[18; 5], 90, &ring(90));
}

fn transfer(card: u32, verb: Verb, partner: Partner, tlps: u64) -> Transfer {
    let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
    let window = if let Partner::Peer { .. } = partner { Window { offset: 8 << 20, ..window } } else { window };
    Transfer { card, verb, partner, bytes: 4096, count: tlps * MPS / 4096, window, outstanding: None }
}

/// Transfers from every card to the next one.
fn ring(cards: u32) -> Vec<Transfer> {
    let to = |card| Partner::Peer { card: (card + 1) % cards, bar: 0 };
    (0..cards).map(|card| transfer(card, Verb::Store, to(card), TLPS / u64::from(cards))).collect()
}

fn measure(what: &str, switches: &[u32], cards: u32, transfers: &[Transfer]) {
    let platform = match Platform::parse("bench", &with_tree(switches, cards)) {
        Ok(platform) => platform,
        Err(error) => return eprintln!("{error}"),
    };
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let Ok(mut board) = Board::new(&platform) else { return eprintln!("{what}: the board cannot be built") };
        let start = Instant::now();
        for transfer in transfers {
            if let Err(because) = board.start_transfer(transfer, 1, 0) {
                return eprintln!("{what}: {because}");
            }
        }
        while board.step() {}
        rates.push(board.hops() as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    row(what, rates);
}

/// The platform with other switches: one per number, with that many cards; several switches are below a top switch.
fn with_tree(switches: &[u32], cards: u32) -> String {
    let (before, rest) = ROSTA.split_at(ROSTA.find("[[switch]]").unwrap_or(ROSTA.len()));
    let behind = rest.find("[[bar]]").map_or("", |place| &rest[place..]);
    let mut text = before.to_owned();
    let switch = |name: &str, below: &str, text: &mut String| {
        let _ = write!(
            text,
            r#"
[[switch]]
name = "{name}"
below = "{below}"
generation = {{ value = 3, assumed = "bench" }}
width_lanes = {{ value = 8, assumed = "bench" }}
link_latency_ns = {{ value = 10, assumed = "bench" }}
latency_ns = {{ value = 150, assumed = "bench" }}
"#
        );
    };
    if switches.len() > 1 {
        switch("top", "root", &mut text);
    }
    for number in 0..switches.len() {
        switch(&format!("s{number}"), if switches.len() > 1 { "top" } else { "root" }, &mut text);
    }
    let below = switches.iter().enumerate().flat_map(|(number, cards)| (0..*cards).map(move |_| number));
    for (card, switch) in (0..cards).zip(below) {
        let _ = write!(
            text,
            r#"
[[slot]]
name = "card{card}"
below = "s{switch}"
bar_shift_bytes = {{ value = "{}MiB", assumed = "bench" }}
"#,
            16 * card
        );
    }
    // The BARs of many cards do not fit below the interrupt address range.
    (text + behind).replace("value = 0xC0000000", "value = 0x2000000000")
}
