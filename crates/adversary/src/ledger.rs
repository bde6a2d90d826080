//! Credits that the partner advertises, and those that the device uses.

use fastrand::Rng;
use lanemark_dut::Inputs;
use lanemark_wire::{Credits, FlowClass};

/// When used credits are returned.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Scheme {
    #[default]
    AtOnce,
    OneByOne,
    Withheld,
}

/// Data credits of the longest TLP, of 512 B.
const MOST_DATA: u64 = 32;

/// Names of the three, for messages.
const NAMES: [&str; 3] = ["posted header", "posted data", "non-posted header"];

/// Posted headers, posted data and non-posted headers.
type Three = [u64; 3];

/// Credits of both classes of requests. Completions have infinite credits.
#[derive(Debug)]
pub(crate) struct Ledger {
    window: Three,
    used: Three,
    returned: Three,
    next_return: u64,
    /// Limits when the current TLP was first offered.
    at_start: Three,
}

impl Ledger {
    /// Windows of a root complex with few or many buffers; data for one TLP of 512 B at least.
    pub fn new(is_scarce: bool) -> Ledger {
        let window = if is_scarce { [1, MOST_DATA, 1] } else { [32, 256, 32] };
        Ledger { window, used: [0; 3], returned: [0; 3], next_return: 0, at_start: window }
    }

    fn limits(&self) -> Three {
        std::array::from_fn(|place| self.window[place] + self.returned[place])
    }

    /// Returns credits as the scheme wants, and shows the limits to the device.
    pub fn clock(&mut self, clock: u64, scheme: Scheme, random: &mut Rng, inputs: &mut Inputs) {
        if self.used != self.returned {
            match scheme {
                Scheme::AtOnce => self.returned = self.used,
                Scheme::OneByOne if clock >= self.next_return => {
                    for (returned, used) in self.returned.iter_mut().zip(self.used) {
                        *returned += u64::from(*returned < used);
                    }
                    self.next_return = clock + random.u64(1..4);
                }
                Scheme::Withheld if self.next_return <= clock => {
                    // A second look after a while: the first one starts it.
                    if self.next_return != 0 && clock - self.next_return < 2 {
                        self.returned = self.used;
                        self.next_return = 0;
                    } else {
                        self.next_return = clock + random.u64(100..800);
                    }
                }
                Scheme::OneByOne | Scheme::Withheld => {}
            }
        }
        let [headers, data, non_posted] = self.limits();
        inputs.posted_headers = headers as u8;
        inputs.posted_data = data as u16 & 0xfff;
        inputs.non_posted_headers = non_posted as u8;
    }

    /// Keeps the limits that hold when a TLP starts.
    pub fn starts(&mut self) {
        self.at_start = self.limits();
    }

    /// Uses the credits of a TLP; returns what exceeds its limit.
    pub fn uses(&mut self, class: FlowClass, credits: Credits) -> Option<String> {
        let (places, needed): (&[usize], [u64; 2]) = match class {
            FlowClass::Posted => (&[0, 1], [u64::from(credits.header), u64::from(credits.data)]),
            FlowClass::NonPosted => (&[2], [u64::from(credits.header), 0]),
            FlowClass::Completion => return None,
        };
        let mut exceeded = None;
        for (place, needed) in places.iter().zip(needed) {
            self.used[*place] += needed;
            if self.used[*place] > self.at_start[*place] {
                exceeded = Some(format!(
                    "{} credits: {} used, {} advertised",
                    NAMES[*place], self.used[*place], self.at_start[*place]
                ));
            }
        }
        exceeded
    }

    /// Whether a TLP of some class may have to wait for credits.
    pub fn is_exhausted(&self) -> bool {
        let left: Three = std::array::from_fn(|place| self.limits()[place].saturating_sub(self.used[place]));
        left[0] == 0 || left[1] < MOST_DATA || left[2] == 0
    }

    /// Whether every used credit is returned.
    pub fn is_settled(&self) -> bool {
        self.used == self.returned
    }
}
