//! Random platforms with a DMA engine, and random transfers, reproducible from a seed.

#![allow(dead_code)] // Each test binary uses a part of it.

pub mod behind_iommu;

use lanemark_machine::{OnChannels, Partner, Pattern, Relay, Transfer, Verb, Window, WriteRead};
use lanemark_platform::{Origin, PRESETS, Platform, preset};
use lanemark_wire::{Generation, Lanes, dw_ticks};

/// A linear congruential generator with a given seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A number between `least` and `most`, log-uniform.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        let share = self.below(1_000_000) as f64 / 1e6;
        (least.ln() + share * (most.ln() - least.ln())).exp()
    }
}

/// A preset with a DMA engine, in which about half of the numbers are random.
pub fn platform(random: &mut Random) -> Platform {
    let mut platform = preset(random.pick(&["card-gen5-x16", "rosta-virtex7"])).unwrap().unwrap();
    // No formula predicts which packets meet an ordered set.
    platform.link.skp.value = false;
    // Queues and engine chunks have a separate test.
    platform.fifos = None;
    let numbers: [(&str, f64, f64); 11] = [
        ("link.latency_ns", 20.0, 500.0),
        ("endpoint.ingress_ns", 5.0, 300.0),
        ("endpoint.egress_ns", 5.0, 300.0),
        ("memory.read_ns", 50.0, 1000.0),
        ("memory.write_ns", 10.0, 500.0),
        ("memory.read_request_ns", 0.5, 50.0),
        ("memory.write_tlp_ns", 0.5, 50.0),
        ("dma.beat_ns", 0.5, 10.0),
        ("dma.read_request_ns", 0.5, 100.0),
        ("dma.write_request_ns", 0.5, 100.0),
        ("dma.descriptor_ns", 1.0, 1000.0),
    ];
    let choices: [(&str, &[f64]); 11] = [
        ("link.generation", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ("link.width_lanes", &[1.0, 2.0, 4.0, 8.0, 16.0]),
        ("link.mps_bytes", &[128.0, 256.0, 512.0]),
        ("link.mrrs_bytes", &[128.0, 256.0, 512.0, 1024.0, 4096.0]),
        ("link.tlp_alignment_bytes", &[4.0, 8.0, 16.0]),
        ("memory.completion_bytes", &[64.0, 128.0, 256.0, 4096.0]),
        ("dma.read_bytes", &[64.0, 128.0, 512.0, 4096.0]),
        ("dma.write_bytes", &[32.0, 64.0, 128.0, 4096.0]),
        ("dma.beat_bytes", &[8.0, 16.0, 32.0, 64.0]),
        ("root_complex.posted_header_credits", &[4.0, 8.0, 16.0, 32.0, 127.0]),
        ("root_complex.nonposted_header_credits", &[4.0, 8.0, 16.0, 32.0, 127.0]),
    ];
    randomise(&mut platform, random, &numbers, &choices);
    if random.below(2) == 0 {
        set(&mut platform, "dma.tags", random.between(1.0, 256.0).round());
    }
    // This key takes no random number, which would change all following ones.
    if let Some(memory) = &mut platform.memory {
        memory.odd_end_completion.value = platform.link.latency_ns.value.0.is_multiple_of(3);
    }
    platform
}

/// The platform with an engine whose requests may end at boundaries of less than a page. These take no random number.
pub fn within_boundaries(mut platform: Platform) -> Platform {
    if let Some(dma) = &mut platform.dma {
        let boundary = |from: u64| [4096, 4096, 512, 128, 64][(from % 5) as usize];
        dma.read_boundary_bytes.value = boundary(dma.read_request_ns.value.0);
        dma.write_boundary_bytes.value = boundary(dma.write_request_ns.value.0);
    }
    platform
}

/// As [`platform`], also with random engine chunks and segments, and a random user clock of cards with queues.
pub fn platform_with_ways(random: &mut Random) -> Platform {
    let mut platform = platform(random);
    let text = PRESETS.iter().find(|preset| preset.name == platform.name).unwrap().text;
    // The defaults of these sections take no time.
    let with_ways = Platform::parse("ways", &format!("{text}\n[dma_read]\n[dma_write]\n")).unwrap();
    let Platform { dma_read, dma_write, fifos, .. } = with_ways;
    platform = Platform { dma_read, dma_write, fifos, ..platform };
    let numbers: [(&str, f64, f64); 6] = [
        ("dma_read.chunk_ns", 0.5, 50.0),
        ("dma_write.chunk_ns", 0.5, 50.0),
        ("dma_read.segment_ns", 10.0, 5000.0),
        ("dma_write.segment_ns", 10.0, 5000.0),
        ("dma_read.many_lines_ns", 1.0, 200.0),
        ("dma_write.many_lines_ns", 1.0, 200.0),
    ];
    let choices: [(&str, &[f64]); 5] = [
        ("dma_read.chunk_bytes", &[8.0, 64.0, 128.0, 512.0]),
        ("dma_write.chunk_bytes", &[8.0, 64.0, 128.0, 512.0]),
        ("dma_read.segment_bytes", &[64.0, 100.0, 1024.0, 65536.0]),
        ("dma_write.segment_bytes", &[64.0, 100.0, 1024.0, 65536.0]),
        ("fifos.beat_ns", &[0.5, 4.0, 20.0, 40.0, 100.0]),
    ];
    randomise(&mut platform, random, &numbers, &choices);
    platform
}

/// As [`platform`], also with random costs of driver calls.
pub fn platform_with_driver(random: &mut Random) -> Platform {
    let mut platform = platform(random);
    let numbers: [(&str, f64, f64); 7] = [
        ("dma.start_ns", 1.0, 1000.0),
        ("root_complex.core_round_trip_ns", 20.0, 400.0),
        ("driver.call_ns", 50.0, 1000.0),
        ("driver.pin_page_ns", 10.0, 500.0),
        ("driver.build_descriptor_ns", 1.0, 500.0),
        ("driver.interrupt_ns", 20.0, 5000.0),
        ("driver.wake_ns", 100.0, 5000.0),
    ];
    let choices: [(&str, &[f64]); 3] = [
        ("dma.descriptor_entry_bytes", &[8.0, 16.0, 32.0, 64.0]),
        ("dma.prefetch_descriptors", &[1.0, 2.0, 4.0, 16.0, 64.0]),
        ("driver.copy_bytes", &[4.0, 8.0, 16.0]),
    ];
    randomise(&mut platform, random, &numbers, &choices);
    platform
}

/// As [`platform_with_driver`], also with a random root complex and cache; half of the cards interrupt by MSI-X.
pub fn platform_with_root_complex(random: &mut Random) -> Platform {
    let mut platform = platform_with_driver(random);
    // With partial lines, memory and root complex often take nearly the same time, and no bound leads clearly.
    if random.below(4) != 0 {
        set(&mut platform, "memory.partial_line_ns", 0.0);
    }
    let choices: [(&str, &[f64]); 1] = [("memory.cache_bytes", &[1024.0, 4096.0, 65536.0, 1_048_576.0])];
    randomise(&mut platform, random, &[("root_complex.request_ns", 0.5, 100.0)], &choices);
    let read_ns = platform.memory.as_ref().unwrap().read_ns.value.as_ns();
    randomise(&mut platform, random, &[("memory.cached_read_ns", 50.0, read_ns.max(50.5))], &[]);
    if random.below(2) == 0 {
        let text = PRESETS.iter().find(|preset| preset.name == platform.name).unwrap().text;
        let number = |(key, value): (&str, u32)| format!("{key} = {{ value = {value}, assumed = \"random\" }}\n");
        let keys = [("vectors", 4), ("bar", 0), ("table_offset_bytes", 256), ("pending_offset_bytes", 512)].map(number);
        platform.msi_x = Platform::parse("vectors", &format!("{text}\n[msi_x]\n{}", keys.concat())).unwrap().msi_x;
    }
    platform
}

/// Sets about half of these keys to random values.
fn randomise(platform: &mut Platform, random: &mut Random, numbers: &[(&str, f64, f64)], choices: &[(&str, &[f64])]) {
    for (key, least, most) in numbers {
        if random.below(2) == 0 {
            set(platform, key, random.between(*least, *most));
        }
    }
    for (key, from) in choices {
        if random.below(2) == 0 {
            set(platform, key, random.pick(from));
        }
    }
}

/// Sets a key, unless the value is invalid in this platform.
pub fn set(platform: &mut Platform, key: &str, value: f64) {
    if let Ok(changed) = platform.with(key, value, Origin::Assumed("random".to_owned())) {
        *platform = changed;
    }
}

/// A random transfer, and its class in tables.
pub fn transfer(random: &mut Random, cards: u32) -> (Transfer, &'static str) {
    let card = random.below(u64::from(cards)) as u32;
    let bytes = random.pick(&[1, 8, 63, 64, 65, 128, 256, 500, 512, 1024, 4096, 16384]);
    let count = random.pick(&[1, 7, 32, 100]);
    let window = Window { offset: random.pick(&[0, 0, 0, 4, 64, 100]), len: 1 << 20, pattern: Pattern::Sequential };
    let host = Transfer { card, verb: Verb::Store, partner: Partner::Host, bytes, count, window, outstanding: None };
    match random.below(if cards > 1 { 4 } else { 3 }) {
        0 => (host, "writes to host memory"),
        1 => (Transfer { verb: Verb::Load, ..host }, "reads of host memory"),
        2 => (Transfer { verb: Verb::Load, outstanding: Some(1), ..host }, "reads one at a time"),
        _ => {
            let other = (card + 1 + random.below(u64::from(cards) - 1) as u32) % cards;
            // The window of the preset with several cards.
            let window = Window { offset: (8 << 20) + window.offset, ..window };
            (Transfer { window, partner: Partner::Peer { card: other, bar: 0 }, ..host }, "writes to a peer")
        }
    }
}

/// A platform with several cards.
pub fn platform_with_peers(random: &mut Random) -> Platform {
    loop {
        let picked = platform(random);
        if picked.cards() > 1 {
            break picked;
        }
    }
}

/// The platform with half of the cards below another root port, or with ports that redirect requests, and a random root
/// complex between them.
pub fn by_the_root(mut platform: Platform, random: &mut Random) -> Platform {
    if random.below(2) == 0 {
        "root".clone_into(&mut platform.switches[2].below);
    } else {
        // One root port, and every downstream port redirects upstream requests.
        let ports = platform.port_names().into_iter().filter(|port| port.starts_with('r') && port.contains('/'));
        for port in ports.filter(|port| !port.starts_with("root")).collect::<Vec<_>>() {
            platform = platform.with_acs_redirect(&port, true, Origin::Assumed("random".to_owned())).unwrap();
        }
    }
    set(&mut platform, "root_complex.peer_forward_ns", random.between(1.0, 1000.0));
    let choices: [(&str, &[f64]); 2] = [
        ("root_complex.peer_read_bytes", &[0.0, 64.0, 64.0, 128.0, 256.0]),
        ("root_complex.peer_tags", &[1.0, 4.0, 16.0, 256.0]),
    ];
    randomise(&mut platform, random, &[], &choices);
    platform.root_complex.peer_in_order.value = random.below(2) == 0;
    platform
}

/// Time of a DLLP on the links of the cards.
pub fn dllp_ns(platform: &Platform) -> f64 {
    let generation = Generation::from_number(platform.link.generation.value as u8).unwrap();
    let lanes = Lanes::new(platform.link.width_lanes.value as u8).unwrap();
    (dw_ticks(generation, lanes) * u64::from(generation.rate().dllp_bytes / 4)).as_ns()
}

/// A read of another card's storage, with all or one outstanding.
pub fn read_of_peer(random: &mut Random, platform: &Platform) -> Transfer {
    let (mut picked, _) = transfer(random, 1);
    let card = random.below(u64::from(platform.cards())) as u32;
    let other = (card + 1 + random.below(u64::from(platform.cards()) - 1) as u32) % platform.cards();
    picked.window.offset += 8 << 20;
    let outstanding = random.pick(&[None, None, Some(1)]);
    Transfer { card, verb: Verb::Load, partner: Partner::Peer { card: other, bar: 0 }, outstanding, ..picked }
}

/// Writes to host memory, each followed by a read of the same bytes, one at a time.
pub fn pairs(random: &mut Random, cards: u32) -> WriteRead {
    let (picked, _) = transfer(random, cards);
    let window = Window { offset: random.pick(&[0, 4, 64, 4000]), ..picked.window };
    let (verb, partner, count) = (Verb::Store, Partner::Host, random.pick(&[1, 7]));
    WriteRead {
        write: Transfer { verb, partner, window, count, outstanding: Some(1), ..picked },
        read: window,
        is_mixed: false,
    }
}

/// The platform with few credits and replay buffer entries on some links, so that these may be the limit.
pub fn with_few_credits(mut platform: Platform, random: &mut Random) -> Platform {
    let mut receivers = vec!["link".to_owned(), "root_complex".to_owned()];
    receivers.extend(platform.switches.iter().map(|switch| format!("switch.{}", switch.name)));
    for receiver in receivers {
        for key in ["posted_header_credits", "nonposted_header_credits"] {
            if random.below(3) == 0 {
                let credits = random.pick(&[1.0, 1.0, 2.0, 3.0, 4.0, 8.0, 16.0]);
                set(&mut platform, &format!("{receiver}.{key}"), credits);
            }
        }
        if random.below(4) == 0 {
            let credits = random.pick(&[8.0, 16.0, 32.0, 64.0, 256.0]);
            set(&mut platform, &format!("{receiver}.posted_data_credits"), credits);
        }
    }
    if random.below(3) == 0 {
        set(&mut platform, "link.replay_tlps", random.pick(&[1.0, 1.0, 2.0, 3.0, 4.0, 8.0, 32.0]));
    }
    if random.below(4) == 0 {
        set(&mut platform, "root_complex.peer_tags", 4096.0);
    }
    platform
}

/// A transfer dealt to channels of its card's engine.
pub fn on_channels(random: &mut Random, platform: &mut Platform) -> OnChannels {
    // Nobody fetches, and so many channels need their tags.
    set(platform, "dma.prefetch_descriptors", 1.0);
    set(platform, "dma.channels", 16.0);
    let (transfer, _) = transfer(random, platform.cards());
    OnChannels { transfer: Transfer { outstanding: None, ..transfer }, channels: random.pick(&[2, 3, 4, 8, 16]) }
}

/// Cards with queues of several sizes, and what some of them hand on.
pub fn relay(random: &mut Random) -> (Platform, Relay) {
    let mut platform = loop {
        let picked = platform_with_ways(random);
        if picked.cards() > 1 {
            break picked;
        }
    };
    for queue in ["rx", "tx", "ep_rx", "ep_tx"] {
        if random.below(2) == 0 {
            set(&mut platform, &format!("fifos.{queue}_bytes"), random.pick(&[4096.0, 16384.0, 65536.0]));
        }
    }
    set(&mut platform, "dma.channels", 2.0);
    let cards = random.pick(&[1, 1, 2, 3, 8]);
    let first = random.below(u64::from(platform.cards() - cards + 1)) as u32;
    let window = |offset| Window { offset, len: 1 << 20, pattern: Pattern::Sequential };
    let region = platform.fifos.as_ref().and_then(|fifos| platform.region(&fifos.ep_rx)).unwrap();
    let at_peers = Window { len: region.size_bytes.value.min(1 << 20), ..window(region.offset_bytes.value) };
    let bytes = random.pick(&[64, 128, 500, 1024, 4096, 16384]);
    let relay = Relay {
        cards: (first..first + cards).collect(),
        bar: region.bar.value as u8,
        at_peers,
        bytes,
        count: random.pick(&[1, 7, 32, 100]),
        from: window(0),
        to: window(1 << 21),
        is_stored: random.below(3) == 0 && bytes <= 4096,
    };
    (platform, relay)
}
