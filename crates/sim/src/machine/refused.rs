//! Checks of plans: the operations that a simulated platform does not support, and why.

use super::{SimulatedMachine, span_of};
use lanemark_machine::{
    Access, BufferHandoff, Descriptors, DmaCall, HostMemory, LineSource, OnChannels, Op, Partner, Plan, Socket, Span,
    Transfer, Unsupported, Verb, Width, WriteRead,
};
use lanemark_platform::{Mailbox, PeerWay};
use lanemark_units::MemoryType;

impl SimulatedMachine {
    pub(super) fn check_access(&self, verb: Verb, access: Access, span: &Span) -> Result<(), Unsupported> {
        if span.memory_type == MemoryType::Wb {
            let because = "device memory cannot be written back: the device does not take part in coherence";
            return Err(self.unsupported("a BAR mapped WB", because));
        }
        if !self.facts.accesses(verb).contains(&access) {
            let what = format!("{} by {access}", if verb == Verb::Load { "loading" } else { "storing" });
            return Err(self.unsupported(what, format!("{} has no such instruction", self.platform.core.name)));
        }
        if access == Access::Movdir64b && (!span.at.offset.is_multiple_of(64) || !span.len.is_multiple_of(64)) {
            return Err(self.unsupported("movdir64b", "it moves whole 64 B lines only"));
        }
        let aligned = |width: Width| span.at.offset.is_multiple_of(width.bytes());
        match access {
            Access::NonTemporal(width) if !aligned(width) => {
                Err(self
                    .unsupported(access.to_string(), format!("its address must be a multiple of {} B", width.bytes())))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_op(&self, op: &Op) -> Result<(), Unsupported> {
        if let Some(span) = span_of(op)
            && let Err(error) = self.check_span(span)
        {
            return Err(self.unsupported(format!("{} B at {}", span.len, span.at), error.to_string()));
        }
        match op {
            Op::Stream(stream) => {
                if let Some(because) = stream.order.nonsense(stream.access, &stream.span) {
                    return Err(self.unsupported(format!("{} in interleaved lines", stream.access), because));
                }
                self.check_access(stream.verb, stream.access, &stream.span)
            }
            Op::Driver(call) => {
                if self.platform.driver.is_none() {
                    return Err(self.unsupported("a driver call", "its platform file has no [driver] section"));
                }
                if call.call_bytes == 0 {
                    return Err(self.unsupported("a driver call of 0 B", "it would never end"));
                }
                self.check_access(call.verb, Access::Plain(call.width), &call.span)
            }
            Op::Map(_) if self.platform.driver.is_none() => {
                Err(self.unsupported("mapping a BAR", "its platform file has no [driver] section"))
            }
            Op::Map(_) | Op::Fence(_) | Op::FlushLines(_) | Op::Pause(_) => Ok(()),
            Op::Clock(_) => {
                Err(self.unsupported("reading a clock", "simulated time is read from outside, for nothing"))
            }
            Op::Kernel(_) => Err(self.unsupported("a call of the kernel", "it simulates driver calls only")),
            Op::Launch(launch) => self.check_launch(launch),
            Op::Compute(compute) => self.check_compute(compute),
            Op::MovedByRuntime(moved) => self.check_moved(moved),
            Op::MapUnmap(_) => {
                Err(self.unsupported("lending memory to a device", "its cores do not run a program's instructions"))
            }
            Op::BufferHandoff(handover) => self.check_handover(handover),
            Op::LoadFrom(holder) if self.facts.line_sources.contains(holder) => Ok(()),
            Op::LoadFrom(holder) => {
                let key = match holder {
                    LineSource::Memory => "memory_load_ns",
                    LineSource::RemoteMemory => "remote_memory_load_ns",
                    LineSource::Core => "cache_to_cache_ns",
                    LineSource::RemoteCore => "remote_core_load_ns",
                };
                Err(self
                    .unsupported(format!("a load from {holder}"), format!("core.{key} is 0: nothing is known of it")))
            }
            Op::Copy(_) => Err(self.unsupported("a copy from memory", "its stores come from registers")),
            Op::Transfer(transfer) => self.check_transfer(transfer),
            Op::WriteRead(pairs) => self.check_pairs(pairs),
            Op::OnChannels(dealt) => self.check_dealt(dealt),
            Op::Relay(relay) => self.check_relay(relay),
            Op::Dma(call) => self.check_call(call),
            Op::Send(_) | Op::Receive(_) => {
                Err(self.unsupported("a message to another core", "its cores share no memory but the card's"))
            }
            _ => Err(self.unsupported("an operation of a newer plan", "this simulator does not know it")),
        }
    }

    pub(super) fn check_handover(&self, handover: &BufferHandoff) -> Result<(), Unsupported> {
        let refused =
            |because: &str| Err(self.unsupported(format!("sharing a buffer, {}", handover.discipline), because));
        if self.platform.coherence.is_none() {
            return refused("its platform file has no section [coherence]");
        }
        if let Some(because) = handover.nonsense() {
            return refused(because);
        }
        if !self.facts.disciplines.contains(&handover.discipline) {
            return refused("its cores flush lines otherwise (coherence.flush)");
        }
        Ok(())
    }

    pub(super) fn check_transfer(&self, transfer: &Transfer) -> Result<(), Unsupported> {
        let refused = |because: String| {
            let verb = if transfer.verb == Verb::Store { "a write" } else { "a read" };
            Err(self.unsupported(format!("{verb} by a card's DMA engine"), because))
        };
        let Some(dma) = self.facts.dma else {
            return refused("its platform file has no section [dma]".to_owned());
        };
        if transfer.card >= dma.cards {
            return refused(format!("there is no card {}: it has {}", transfer.card, dma.cards));
        }
        if transfer.bytes == 0 || transfer.count == 0 || transfer.outstanding == Some(0) {
            return refused("it moves nothing".to_owned());
        }
        let (what, len) = match transfer.partner {
            Partner::Host => ("memory that is lent", dma.mapped_bytes),
            Partner::Peer { card, .. } if card == transfer.card || card >= dma.cards => {
                return refused(format!("card {card} is no peer of card {}", transfer.card));
            }
            Partner::Peer { card, .. } if self.goes_nowhere(transfer.verb, transfer.card, card).is_some() => {
                return refused(self.goes_nowhere(transfer.verb, transfer.card, card).unwrap_or_default());
            }
            Partner::Peer { bar, .. } => {
                let region = self.platform.region_at(bar, transfer.window.offset, transfer.bytes);
                let end = region.map_or(0, |region| region.offset_bytes.value + region.size_bytes.value);
                ("the region they begin in", end)
            }
        };
        let window = &transfer.window;
        let end = window.offset.checked_add(window.len.max(transfer.bytes));
        if end.is_none_or(|end| end > len) {
            let because = format!("{} B at {:#x} reach beyond {what}, {len} B", window.len, window.offset);
            return refused(because);
        }
        Ok(())
    }

    /// Returns why a request of a card to another card is not forwarded, if it is not.
    fn goes_nowhere(&self, verb: Verb, from: u32, to: u32) -> Option<String> {
        let root = &self.platform.root_complex;
        let (what, key, is_sent_on) = match verb {
            Verb::Load => ("reads", "peer_reads", root.peer_reads.value),
            Verb::Store => ("writes", "peer_writes", root.peer_writes.value),
        };
        match self.platform.peer_way(from as usize, to as usize)? {
            PeerWay::BySwitch => None,
            PeerWay::ByRoot if is_sent_on => None,
            PeerWay::ByRoot => Some(format!(
                "what card {from} asks card {to} goes up to the root complex, which sends no {what} of peers on: it answers \
                 UR (root_complex.{key} is false); ask cards with a switch above both that does not redirect"
            )),
            PeerWay::Nowhere(port) => Some(format!(
                "what card {from} asks card {to} is redirected up, and port {port} does not send it further \
                 (port.{port}.acs_redirect is false), nor back where it came from"
            )),
        }
    }

    pub(super) fn check_pairs(&self, pairs: &WriteRead) -> Result<(), Unsupported> {
        self.check_transfer(&pairs.write)?;
        self.check_transfer(&pairs.read())?;
        if (pairs.write.verb, pairs.write.partner) != (Verb::Store, Partner::Host) {
            let because = "it is host memory that is written, and then read";
            return Err(self.unsupported("a write and a read by a card's DMA engine", because));
        }
        Ok(())
    }

    pub(super) fn check_dealt(&self, dealt: &OnChannels) -> Result<(), Unsupported> {
        self.check_transfer(&dealt.transfer)?;
        let channels = self.facts.dma.map_or(0, |dma| dma.channels);
        if (1..=channels).contains(&dealt.channels) {
            return Ok(());
        }
        let because = format!("its DMA engine has {channels} (dma.channels)");
        Err(self.unsupported(format!("{} channels of a card", dealt.channels), because))
    }

    pub(super) fn check_call(&self, call: &DmaCall) -> Result<(), Unsupported> {
        self.check_transfer(&call.transfer)?;
        let refused = |because: &str| Err(self.unsupported("a driver call for a transfer by a card", because));
        if call.transfer.partner != Partner::Host {
            return refused("the driver lends host memory, and no other card");
        }
        if call.transfer.outstanding.is_some() {
            return refused("a call is one transfer, and the next call comes when it is over");
        }
        if let Descriptors::Written(memory_type) = call.descriptors
            && !matches!(memory_type, MemoryType::Uc | MemoryType::Wc)
        {
            return refused("descriptors are written through a mapping that is UC or WC");
        }
        if self.platform.driver.is_none() {
            return refused("its platform file has no section [driver]");
        }
        let channels = self.platform.channels();
        if call.channel >= channels {
            let because = format!("its DMA engine has {channels} (dma.channels), counted from 0");
            return Err(self.unsupported(format!("a driver call on channel {} of a card", call.channel), because));
        }
        if self.platform.mailbox(call.transfer.card, call.channel).is_none() {
            return refused(Mailbox::NEEDS);
        }
        Ok(())
    }

    /// Checks that options of host memory are used with DMA transfers only.
    pub(super) fn check_memory(&self, plan: &Plan) -> Result<(), Unsupported> {
        let Plan { memory, .. } = plan;
        let is_remote = memory.socket == Socket::Remote;
        if is_remote && !self.facts.dma.is_some_and(|dma| dma.has_remote) {
            let because = "it has one socket: memory.remote_ns is 0";
            return Err(self.unsupported("memory of another socket", because));
        }
        let mut ops = plan.lanes.iter().flat_map(|lane| &lane.body).chain(&plan.before);
        let is_job = |op: &Op| matches!(op, Op::Transfer(_) | Op::WriteRead(_) | Op::OnChannels(_));
        if *memory == HostMemory::default() || ops.all(is_job) {
            return Ok(());
        }
        let because = "that can be said of transfers that devices make by themselves";
        Err(self.unsupported("memory of another socket, or that no core wrote", because))
    }
}
