//! TLP-hops per second across trees of switches, from two ports to many, and the instructions of a hop.

use super::{ROUNDS, instructions, row};
use lanemark_machine::{Partner, Pattern, Transfer, Verb, Window};
use lanemark_platform::Platform;
use lanemark_sim::Board;
use lanemark_units::Ticks;
use std::error::Error;
use std::fmt::Write as _;
use std::time::Instant;

const ROSTA: &str = include_str!("../../../../platforms/rosta-virtex7.toml");
/// Approximate TLPs of a run; hops are counted exactly.
const TLPS: u64 = 2_000_000;
/// Payload of a TLP in bytes: the MPS of the platform.
const MPS: u64 = 128;
const TRANSFER_BYTES: u64 = 4096;

/// First argument of the process whose instructions are counted; the name of a traffic and a number of transfers of
/// each card follow.
pub const ONCE: &str = "fabric-once";

/// Transfers of each card under valgrind, of 32 TLPs each.
const FEW: u64 = 100;

/// DMA on one tree of switches.
struct Traffic {
    name: &'static str,
    what: &'static str,
    /// Number of cards below each switch; empty for one card below a root port.
    switches: &'static [u32],
    verb: Verb,
}

const TRAFFIC: [Traffic; 5] = {
    const fn ring(name: &'static str, what: &'static str, switches: &'static [u32]) -> Traffic {
        Traffic { name, what, switches, verb: Verb::Store }
    }
    [
        ring("write", "2 ports, a card writes host memory, M TLP-hops/s (target: 5)", &[]),
        Traffic {
            name: "read",
            what: "2 ports, a card reads host memory, M TLP-hops/s (target: 5)",
            switches: &[],
            verb: Verb::Load,
        },
        ring("ring", "16 ports, 7 cards in a ring, M TLP-hops/s (target: 4)", &[7]),
        ring("ring of 64", "146 ports, 64 cards under 9 switches, M TLP-hops/s", &[8; 8]),
        ring("ring of 90", "192 ports, 90 cards under 6 switches, M TLP-hops/s", &[18; 5]),
    ]
};

impl Traffic {
    fn cards(&self) -> u32 {
        self.switches.iter().sum::<u32>().max(1)
    }

    /// The transfers of all cards, `count` each: of a single card with host memory, of others to the next card.
    fn transfers(&self, count: u64) -> impl Iterator<Item = Transfer> {
        let cards = self.cards();
        let partner = move |card| match cards {
            1 => Partner::Host,
            _ => Partner::Peer { card: (card + 1) % cards, bar: 0 },
        };
        (0..cards).map(move |card| transfer(card, self.verb, partner(card), count))
    }

    /// Simulates `count` transfers of each card.
    fn simulate(&self, count: u64) -> Result<Board, Box<dyn Error>> {
        let below = if self.switches.is_empty() { 0 } else { self.cards() };
        let platform = Platform::parse("bench", &with_tree(self.switches, below))?;
        let mut board = Board::new(&platform)?;
        self.transfers(count).try_for_each(|transfer| board.start_transfer(&transfer, 1, 0))?;
        board.run_while(Ticks::NEVER, |_| true);
        Ok(board)
    }
}

/// The cards of the Virtex-7 system below other trees.
pub fn fabric() {
    for traffic in &TRAFFIC {
        let count = TLPS / u64::from(traffic.cards()) * MPS / TRANSFER_BYTES;
        let round = || -> Result<f64, Box<dyn Error>> {
            let start = Instant::now();
            let board = traffic.simulate(count)?;
            Ok(board.hops() as f64 / start.elapsed().as_secs_f64() / 1e6)
        };
        match (0..ROUNDS).map(|_| round()).collect() {
            Ok(rates) => row(&format!("fabric: {}", traffic.what), rates),
            Err(error) => {
                eprintln!("{}: {error}", traffic.what);
                continue;
            }
        }
        // Of the many cards, valgrind would count the construction of the board for minutes.
        if traffic.cards() > 7 {
            continue;
        }
        match per_hop(traffic) {
            Some(instructions) => row("  instructions per TLP-hop (target: 1200)", vec![instructions]),
            None => println!("  {}", instructions::NOT_COUNTED),
        }
    }
}

/// Instructions per hop: the same two lengths under valgrind and without it.
fn per_hop(traffic: &Traffic) -> Option<f64> {
    let hops = |count| Some(traffic.simulate(count).ok()?.hops());
    let of_one = (hops(3 * FEW)? - hops(FEW)?) as f64 / (2 * FEW) as f64;
    Some(instructions::of(&[ONCE, traffic.name], FEW)? / of_one)
}

/// Simulates `count` transfers of each card, in a separate process.
///
/// # Errors
/// If the traffic is unknown or cannot be simulated.
pub fn once(name: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let traffic = TRAFFIC.iter().find(|traffic| traffic.name == name);
    traffic.ok_or_else(|| format!("unknown traffic: {name}"))?.simulate(count)?;
    Ok(())
}

fn transfer(card: u32, verb: Verb, partner: Partner, count: u64) -> Transfer {
    let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
    let window = if let Partner::Peer { .. } = partner { Window { offset: 8 << 20, ..window } } else { window };
    Transfer { card, verb, partner, bytes: TRANSFER_BYTES, count, window, outstanding: None }
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
