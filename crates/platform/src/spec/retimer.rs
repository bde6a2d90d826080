//! Keys of a retimer.

use crate::key::Kind;
use lanemark_units::Ticks;

section! {
    /// A retimer: a repeater of the physical layer on a link, with its own clock. A link has at most two.
    Retimer ["retimer"] {
        text {
            /// Name in messages and in `--with`.
            name,
            /// Link, by the device at its lower end: a slot (`card` without slots), or a switch for its upstream link.
            link,
        }
        /// Latency of packets to the device, in addition to that of the link. The limit without SRIS is 64 ns at 16
        /// GT/s (PCI Express Base Specification 4.0, section 4.3.8).
        down_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 200.0;
        /// Latency of packets to the root, with the same limit as `down_ns`.
        up_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 200.0;
    }
}
