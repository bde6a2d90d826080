//! The state of a DMA engine, and the facts about its jobs that steady-state detection needs.

use super::{Channel, DmaEngine, EngineBusy, Interconnect, Job, Read, Received};
use crate::steady::{Leg, Survey};
use lanemark_machine::{Samples, Transfer, Verb, Window};

impl DmaEngine {
    /// Visits the state, after every item that may carry its tags.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let DmaEngine {
            place: _,
            only: _,
            tag: _,
            answered: _,
            data: _,
            received: _,
            spec,
            channels,
            served,
            next: _,
            status_due,
            path,
            read_path,
            shared_part,
            reads,
            free_tags,
            tag_at,
            tag_because,
            arriving,
            data_until,
            taken_at,
            stored_until,
            stored: _,
            ending,
            queues,
            msi_x,
            // With ATS, no steady state is skipped.
            atc: _,
            sink: _,
            // No read is injected during a plan.
            fetched: _,
            received_at,
            received_bytes,
            latencies,
            refused,
            waits,
            busy,
        } = self;
        let EngineBusy { requests, sent, sent_reads, shared_part: shared_busy, received } = busy;
        let all = requests.iter_mut().chain([sent, sent_reads, shared_busy, received]);
        all.for_each(|busy| busy.visit(view));
        let owner = spec.requester;
        let begun: Vec<[u64; 2]> = channels.iter_mut().map(|channel| channel.visit(view, owner)).collect();
        view.count(*served);
        // Always taken in the same event.
        view.flag(status_due.is_some());
        path.visit(view);
        read_path.visit(view);
        shared_part.visit(view);
        view.time(tag_at);
        view.count(tag_because.index());
        arriving.visit(view, Survey::tlp);
        // Neither the tag of a read nor the order of free tags affects later events: tags differ by nothing else.
        let mut outstanding: Vec<usize> = (0..reads.len()).filter(|tag| reads[*tag].left > 0).collect();
        outstanding.sort_unstable_by_key(|tag| (reads[*tag].asked, reads[*tag].transfer, reads[*tag].end));
        view.count(outstanding.len());
        for tag in outstanding {
            let Read { left, unreceived, least, channel, transfer, asked, end } = &mut reads[tag];
            let [before, now] = begun[*channel];
            let name = view.tag(owner, tag as u16);
            let data = [u64::from(*left), u64::from(*unreceived), least.0];
            for value in [name, *channel as u64, before.wrapping_sub(*transfer)].into_iter().chain(data) {
                view.state(value);
            }
            // The issue time is used on abandonment only, where no steady state is skipped.
            view.mark(asked);
            let was = *transfer;
            *transfer += now - before;
            if let Some(job) = &channels[*channel].job {
                let within = end.wrapping_sub(job.start_of(was, Verb::Load));
                view.state(within);
                *end = job.start_of(*transfer, Verb::Load).wrapping_add(within);
            }
        }
        view.count(free_tags.len());
        view.time(data_until);
        // If it does not advance, no completion arrives and it is not read.
        view.time(taken_at);
        view.time(stored_until);
        ending.visit(view, |view, Received { channel, number, milestone: _ }| {
            let [before, now] = begun[*channel];
            view.count(*channel);
            view.state(before.wrapping_sub(*number));
            *number += now - before;
        });
        if let Some(queues) = queues {
            queues.visit(view);
        }
        if let Some(msi_x) = msi_x {
            msi_x.visit(view);
        }
        view.mark(received_at);
        view.counter(received_bytes);
        view.log(latencies, Samples::MOST_LATENCIES);
        view.state(refused.unwrap_or(u64::MAX));
        for span in waits {
            view.counter(&mut span.0);
        }
        // The next request follows from the visited state.
        self.due();
    }

    /// Returns the directions of its jobs: writes, reads or both.
    pub(crate) fn legs(&self) -> impl Iterator<Item = Leg> {
        let jobs = self.channels.iter().filter_map(|channel| Some((channel, channel.job.as_ref()?)));
        jobs.flat_map(move |(channel, job)| {
            let first = self.leg(channel, job, job.transfer.verb, &job.transfer.window);
            let second = job.read.map(|window| self.leg(channel, job, Verb::Load, &window));
            std::iter::once(first).chain(second)
        })
    }

    fn leg(&self, channel: &Channel, job: &Job, verb: Verb, window: &Window) -> Leg {
        let Transfer { bytes, count, .. } = job.transfer;
        let (transfers, next) = job.share();
        Leg {
            owner: self.spec.requester,
            verb,
            base: job.base,
            window: *window,
            bytes,
            count,
            first_pass: job.first_pass,
            transfers,
            is_over: channel.is_done(),
            next,
            open: channel.open.len() as u64,
            unasked: job.unasked(verb),
            are_free: self.spec.relaxed || self.spec.id_based,
            by_tag: self.reads.iter().map(|read| read.transfer).collect(),
            step: None,
        }
    }

    /// Returns whether only the first channel has a job.
    pub(crate) fn has_one_job(&self) -> bool {
        self.channels.iter().skip(1).all(Channel::is_done)
    }

    /// Returns whether its queues are joined.
    pub(crate) fn is_joined(&self) -> bool {
        self.queues.as_ref().is_some_and(Interconnect::is_joined)
    }

    /// Returns the moduli of addresses on which its timing depends.
    pub(crate) fn address_moduli(&self) -> [u64; 3] {
        [self.spec.descriptor_bytes, self.spec.read.address_modulus(), self.spec.write.address_modulus()]
    }

    /// Returns the least naturally aligned block size for which the block number does not affect timing.
    pub(crate) fn least_block_bytes(&self) -> u64 {
        self.spec.read.least_block_bytes().max(self.spec.write.least_block_bytes())
    }

    /// Returns the number of transfers begun by the job of the first channel.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.channels.first().and_then(|channel| channel.job.as_ref()).map_or(0, |job| job.next)
    }
}
