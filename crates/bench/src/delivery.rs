//! Answers of machines that cannot observe delivery.

use lanemark_machine::Delivery;
use lanemark_record::{Answer, KnownBy, Quantity};

/// Sets how `answer` detects the end of its samples, and removes figures that are unknown.
pub(crate) fn tell(answer: &mut Answer, delivery: Delivery) {
    let (known_by, read_round_trip_ns) = match delivery {
        Delivery::Seen => return,
        Delivery::ReadBack { round_trip } => (KnownBy::ReadBack, Some(round_trip.as_ns())),
        Delivery::Unknown => (KnownBy::Nothing, None),
    };
    answer.delivery = Some(lanemark_record::Delivery { known_by, read_round_trip_ns });
    if known_by == KnownBy::Nothing {
        answer.delivered_rate_bytes_per_s = None;
        if answer.quantity == Quantity::OneWayLatency {
            answer.latency_ns = None;
        }
    }
}
