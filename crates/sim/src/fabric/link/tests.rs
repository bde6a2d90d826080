use super::*;
use crate::tlp::span;
use lanemark_wire::tlp_wire_bytes;

fn write(len: u64) -> Tlp {
    let (address, length_dw, first_be, last_be) = span(0x1_0000_0000, len);
    Tlp { address, length_dw, first_be, last_be, ..Tlp::of(TlpKind::MWr) }
}

/// Returns posted credits and one non-posted credit, for two round-robin inputs.
fn credits(header: u32, data: u32) -> Credits {
    Credits([Pool { header, data }, Pool { header: 1, data: 1 }, Pool::INFINITE])
}

fn spec(latency: Ticks, credits: Credits) -> Spec {
    let lanes = Lanes::new(8).unwrap();
    Spec {
        generation: Generation::Gen2,
        lanes,
        latency,
        latency_back: latency,
        credits,
        start_dw: 1,
        completion_start_dw: 1,
        pause: Ticks::ZERO,
        ack_latency_limit: Ticks::whole_ns(100),
        mps_bytes: 64,
        replay_tlps: Pool::INFINITE.header,
        ordering: OrderingChoice::Blocked,
        skp: None,
        tlps_per_error: 0,
        number: 0,
        inputs: 2,
        first_served: 0,
    }
}

fn link(posted_header: u32, posted_data: u32) -> Transmitter {
    Transmitter::new(spec(Ticks::whole_ns(100), credits(posted_header, posted_data)))
}

/// Returns the credits of a TLP by a DLLP that is sent immediately and takes no time.
fn back(link: &mut Transmitter, now: Ticks, cost: Cost) {
    let kind = DllpKind::update(cost.class);
    link.free(kind, now, cost.data, Cause::Device, crate::critical_path::Milestone::NONE);
    link.receive_dllp(Gone { kind, went: now, comes: now + link.spec.latency });
}

#[test]
fn a_64_byte_write_takes_22_ns_of_a_gen2_x8_link() {
    let mut link = link(8, 32);
    link.offer(0, Ticks::ZERO, write(64));
    // 64 B + 16 B header + 8 B framing = 88 B at 4 GB/s, then the latency.
    assert_eq!(link.send(Ticks::ZERO).unwrap().arrives, Ticks::whole_ns(122));
    assert_eq!(link.quiet_at(), Ticks::whole_ns(22));
}

#[test]
fn a_write_needs_a_header_credit() {
    let mut link = link(1, 32);
    link.offer(0, Ticks::ZERO, write(64));
    link.offer(0, Ticks::ZERO, write(64));
    assert_eq!(link.due(Ticks::NEVER).at, Ticks::ZERO);
    assert!(link.send(Ticks::ZERO).is_some());
    assert_eq!(link.due(Ticks::NEVER).at, Ticks::NEVER);
    assert_eq!(link.send(Ticks::whole_ns(500)), None);
    back(&mut link, Ticks::whole_ns(500), Cost::of(&write(64)));
    assert_eq!(link.due(Ticks::NEVER).at, Ticks::whole_ns(600), "the credit arrives after the link's latency");
    assert_eq!(link.quiet_at(), Ticks::whole_ns(600));
    assert_eq!(link.send(Ticks(link.due(Ticks::NEVER).at.0 - 1)), None);
    assert!(link.send(Ticks::whole_ns(600)).is_some());
}

#[test]
fn data_credits_are_counted_in_units_of_16_bytes() {
    let mut link = link(8, 4);
    link.offer(0, Ticks::ZERO, write(64));
    assert_eq!(link.due(Ticks::NEVER).at, Ticks::ZERO);
    let mut short = self::link(8, 3);
    short.offer(0, Ticks::ZERO, write(64));
    assert_eq!(short.due(Ticks::NEVER).at, Ticks::NEVER);
    assert_eq!(Cost::of(&write(1)).data, 1);
    assert_eq!(Cost::of(&write(17)).data, 2);
}

#[test]
fn a_stall_is_charged_to_the_resource_available_last() {
    let mut link = link(1, 32);
    for _ in 0..2 {
        link.offer(0, Ticks::ZERO, write(64));
    }
    assert_eq!(link.send(Ticks::ZERO).unwrap().because, None);
    back(&mut link, Ticks::ZERO, Cost::of(&write(64)));
    assert_eq!(
        link.send(link.due(Ticks::NEVER).at).unwrap().because,
        Some(Cause::Device),
        "credits arrive after the line is free"
    );
    let mut link = self::link(9, 32);
    for _ in 0..2 {
        link.offer(0, Ticks::ZERO, write(64));
    }
    link.send(Ticks::ZERO);
    assert_eq!(link.send(link.due(Ticks::NEVER).at).unwrap().because, Some(Cause::LinkBusy));
}

#[test]
fn an_earlier_ready_time_does_not_overtake_queued_tlps() {
    let mut link = link(9, 32);
    link.offer(0, Ticks::whole_ns(50), write(64));
    link.offer(0, Ticks::ZERO, write(4));
    assert_eq!(link.send(link.due(Ticks::NEVER).at).unwrap().tlp.length_dw, 16);
    assert_eq!(link.send(link.due(Ticks::NEVER).at).unwrap().tlp.length_dw, 1);
}

fn covers(left: Pool, cost: Cost) -> bool {
    left.header >= 1 && left.data >= cost.data
}

/// A reference link that adds every credit on arrival, tick by tick.
fn eager(posted: Pool, offers: &[(u64, u64)], hold: u64, latency: u64) -> Vec<(u64, Option<Cause>)> {
    let (mut left, mut busy, mut gone) = (posted, 0, Vec::new());
    let mut back: Vec<(u64, Cost)> = Vec::new();
    let mut credited = (0, false);
    for now in 0.. {
        let Some((ready, len)) = offers.get(gone.len()).copied() else { break };
        let needed = Cost::of(&write(len));
        while back.first().is_some_and(|first| first.0 <= now) {
            credited = (now, !covers(left, needed));
            left.header += 1;
            left.data += back.remove(0).1.data;
        }
        if now < ready || now < busy || !covers(left, needed) {
            continue;
        }
        let because = match credited {
            (at, true) if at > ready.max(busy) => Some(Cause::Device),
            _ if busy > ready => Some(Cause::LinkBusy),
            _ => None,
        };
        credited.1 = false;
        left.header -= 1;
        left.data -= needed.data;
        busy = now + u64::from(tlp_wire_bytes(Generation::Gen2, 4, len as u32, false)) / 4;
        back.push((busy + latency + hold + latency, needed));
        gone.push((now, because));
    }
    gone
}

#[test]
fn lazy_credits_yield_the_times_and_causes_of_eager_credits() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..300 {
        let posted = Pool { header: 1 + random(4) as u32, data: 4 + random(12) as u32 };
        let (hold, latency) = (random(60), random(40));
        let mut at = 0;
        let offers: Vec<(u64, u64)> = (0..30)
            .map(|_| {
                at += random(40);
                (at, [4, 16, 32, 64][random(4) as usize])
            })
            .collect();
        let mut lazy = Transmitter::new(spec(Ticks(latency), credits(posted.header, posted.data)));
        lazy.dw = Ticks(1);
        let mut gone = Vec::new();
        let (mut next, mut accepting) = (0, std::collections::VecDeque::new());
        while gone.len() < offers.len() {
            let offer = offers.get(next).map_or(Ticks::NEVER, |offer| Ticks(offer.0));
            let accept = accepting.front().map_or(Ticks::NEVER, |first: &(Ticks, Cost)| first.0);
            let send = lazy.due(Ticks::NEVER).at;
            if offer <= accept && offer <= send {
                lazy.offer(0, offer, write(offers[next].1));
                next += 1;
            } else if accept <= send {
                back(&mut lazy, accept, accepting.pop_front().unwrap().1);
            } else if let Some(sent) = lazy.send(send) {
                gone.push((send.0, sent.because));
                accepting.push_back((sent.arrives + Ticks(hold), Cost::of(&sent.tlp)));
            }
        }
        assert_eq!(gone, eager(posted, &offers, hold, latency));
    }
}

/// Two directions of a link under random traffic of both; returns every TLP sent, and the counters.
///
/// `has_lane` is whether TLPs in order wait in the lane, `is_eager` whether DLLPs are delivered with the next TLP.
fn both_ways(seed: u64, has_lane: bool, is_eager: bool) -> (Vec<(usize, Ticks, Sent)>, [Crossed; 2]) {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let skp = (random(2) == 0).then_some(Skp { interval: Ticks::whole_ns(900), time: Ticks::whole_ns(4) });
    let mut lines = [0, 1].map(|_| {
        let spec =
            Spec { skp, replay_tlps: 4, ..spec(Ticks::whole_ns(random(200)), credits(2 + random(4) as u32, 40)) };
        let mut line = Transmitter::new(spec);
        line.has_lane = has_lane;
        line
    });
    let mut gone = Vec::new();
    let mut accepting: [Vec<(Ticks, Cost)>; 2] = [Vec::new(), Vec::new()];
    for nth in 0..3000 {
        let now = Ticks::whole_ns(nth);
        for (number, accepting) in accepting.iter_mut().enumerate() {
            let [one, other] = &mut lines;
            let (line, back) = if number == 0 { (one, other) } else { (other, one) };
            // Phases of one input and one class, and phases of several.
            let is_mixed = nth / 400 % 2 == 1;
            if random(90) == 0 {
                let kind = if is_mixed { [TlpKind::MWr, TlpKind::CplD][random(2) as usize] } else { TlpKind::MWr };
                let tlp = Tlp { kind, relaxed: is_mixed && random(8) == 0, ..write(4 * (1 + random(16))) };
                line.offer(if is_mixed { random(2) as usize } else { 0 }, now + Ticks::whole_ns(random(3)), tlp);
            }
            while let Some(place) = accepting.iter().position(|(at, _)| *at <= now) {
                let (at, cost) = accepting.remove(place);
                let kind = DllpKind::update(cost.class);
                line.free(kind, at, cost.data, Cause::Device, Milestone::NONE);
                back.schedule_dllp(kind, at);
            }
            back.tell(now, line);
            if line.due(now).at > now {
                continue;
            }
            let mut sent = Sent::INVALID;
            if line.send_as(now, if is_eager { Some(&mut *back) } else { None }, &mut sent) {
                line.free(DllpKind::Ack, sent.arrives, 0, Cause::Replay, Milestone::NONE);
                back.schedule_dllp(DllpKind::Ack, sent.arrives);
                accepting.push((sent.arrives + Ticks::whole_ns(20), Cost::of(&sent.tlp)));
                gone.push((number, now, sent));
            }
        }
    }
    (gone, lines.map(|line| line.crossed))
}

#[test]
fn neither_the_lane_nor_early_dllps_change_a_tlp() {
    let mut all = 0;
    for seed in 0..60 {
        let meant = both_ways(seed, false, false);
        all += meant.0.len();
        for (has_lane, is_eager) in [(true, false), (false, true), (true, true)] {
            assert_eq!(both_ways(seed, has_lane, is_eager), meant, "seed {seed}: {has_lane}, {is_eager}");
        }
    }
    assert!(all > 1000, "{all}");
}

#[test]
fn at_64_gts_a_tlp_arrives_with_its_last_flit() {
    let latency = Ticks::whole_ns(100);
    let spec = Spec { generation: Generation::Gen6, lanes: Lanes::X16, ..spec(latency, Credits::INFINITE) };
    let mut link = Transmitter::new(spec);
    for _ in 0..3 {
        link.offer(0, Ticks::ZERO, write(64));
    }
    let mut arrivals = Vec::new();
    while let Some(sent) = link.send(link.due(Ticks::NEVER).at) {
        arrivals.push(sent.arrives);
    }
    // 20 DWs each: the third one ends with the 60th DW, in the second FLIT of 2 ns.
    assert_eq!(arrivals, [102, 102, 104].map(Ticks::whole_ns));
}

#[test]
fn a_corrupted_tlp_is_replayed_when_the_nak_arrives() {
    let mut link = Transmitter::new(Spec { tlps_per_error: 1, ..spec(Ticks::whole_ns(100), Credits::INFINITE) });
    link.offer(0, Ticks::ZERO, write(64));
    // Every TLP and every Nak is corrupted: the timer expires three latency limits after the last bit.
    assert_eq!(link.send(Ticks::ZERO), None);
    assert_eq!((link.due(Ticks::NEVER).at, link.take_damaged()), (Ticks::whole_ns(22 + 300), None));
    link.spec.tlps_per_error = 2;
    let mut now = link.due(Ticks::NEVER).at;
    for _ in 0..40 {
        if let Some(sent) = link.send(now) {
            assert_eq!(sent.because, Some(Cause::Replay));
            return;
        }
        if let Some(found) = link.take_damaged() {
            assert_eq!(found, now + Ticks::whole_ns(122));
            assert_eq!(link.due(Ticks::NEVER), Due { at: Ticks::NEVER, awaits_dllp: true });
            link.receive_dllp(Gone { kind: DllpKind::Nak, went: found, comes: found + Ticks::whole_ns(100) });
        }
        now = link.due(Ticks::NEVER).at;
    }
    panic!("every copy of the TLP was corrupted");
}

#[test]
fn only_the_fourth_replay_of_a_tlp_retrains_the_link() {
    let latency = Ticks::whole_ns(100);
    let mut link = Transmitter::new(Spec { tlps_per_error: 1, ..spec(latency, Credits::INFINITE) });
    link.offer(0, Ticks::ZERO, write(64));
    // The TLP and three replays, 322 ns apart: the timer expires, because every Nak is corrupted too.
    for turn in 0..4 {
        assert_eq!(link.due(Ticks::NEVER).at, Ticks::whole_ns(322 * turn));
        assert_eq!((link.send(link.due(Ticks::NEVER).at), link.take_training()), (None, None));
    }
    let fourth = link.due(Ticks::NEVER).at;
    assert_eq!((fourth, link.crossed.replays, link.crossed.rollovers), (Ticks::whole_ns(322 * 4), 4, 0));
    assert_eq!(link.send(fourth), None);
    // Two round trips, and 24 ordered sets of 16 symbols of 2 ns.
    let trained = fourth + Ticks::whole_ns(4 * 100 + 24 * 16 * 2);
    assert_eq!((link.take_training(), link.due(Ticks::NEVER).at), (Some(trained), trained));
    assert_eq!((link.crossed.replays, link.crossed.rollovers), (4, 1));
    link.spec.tlps_per_error = 0;
    assert_eq!(link.send(trained).unwrap().because, Some(Cause::Replay));
    // The other direction pauses too; one that is busy for longer is not shortened.
    let mut other = Transmitter::new(spec(latency, Credits::INFINITE));
    other.offer(0, Ticks::ZERO, write(64));
    other.pause(trained);
    other.pause(fourth);
    assert_eq!(other.due(Ticks::NEVER).at, trained);
}
