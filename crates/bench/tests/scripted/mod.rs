//! A machine that replays given samples.

use lanemark_machine::{
    Access, Disturbance, Facts, Machine, MachineError, Plan, Region, RegionKind, Sample, Samples, TimeBase,
    Unsupported, Width,
};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// Length in nanoseconds and disturbance of the `n`-th sample.
pub type Script = Box<dyn FnMut(&Plan, usize) -> (f64, Option<Disturbance>)>;

/// A machine that replays a script.
pub struct Scripted {
    facts: Facts,
    script: Script,
    /// Number of replayed samples.
    pub played: usize,
    /// Bytes of the span of each run, in order.
    pub runs: Vec<u64>,
    /// The run that ends with an interrupt.
    pub interrupted_at_run: Option<usize>,
    /// The unsupported size.
    pub refused_bytes: Option<u64>,
}

impl Scripted {
    /// A scripted machine in real time.
    pub fn new(script: impl FnMut(&Plan, usize) -> (f64, Option<Disturbance>) + 'static) -> Scripted {
        let facts = Facts {
            name: "scripted".to_owned(),
            summary: "plays samples".to_owned(),
            time_base: TimeBase::Real,
            cores: 1,
            regions: vec![Region {
                name: "memory".to_owned(),
                at: BarOffset { bar: 0, offset: 0 },
                len: 64 << 20,
                kind: RegionKind::Storage,
            }],
            memory_types: vec![MemoryType::Wb],
            stores: vec![Access::Plain(Width::B8)],
            loads: vec![Access::Plain(Width::B8)],
            memcpy: "none".to_owned(),
            dma: None,
            driver_width: Some(Width::B8),
            tables: vec![],
            disciplines: vec![],
            line_sources: vec![],
            runtime: None,
        };
        let script = Box::new(script);
        Scripted { facts, script, played: 0, runs: Vec::new(), interrupted_at_run: None, refused_bytes: None }
    }
}

impl Machine for Scripted {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, _: &Plan) -> Result<(), Unsupported> {
        Ok(())
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        samples.clear();
        let machine = self.facts.name.clone();
        if self.interrupted_at_run == Some(self.runs.len()) {
            return Err(MachineError::Interrupted { machine });
        }
        let bytes = plan.bytes_per_sample() / plan.passes;
        self.runs.push(bytes);
        if self.refused_bytes == Some(bytes) {
            return Err(Unsupported { what: format!("{bytes} B"), machine, because: "a test".to_owned() }.into());
        }
        while samples.wants_more() {
            let (ns, disturbance) = (self.script)(plan, self.played);
            let time = Ticks((ns * Ticks::PER_NS as f64) as u64);
            samples.keep(Sample { issue: time, delivered: time }, disturbance);
            self.played += 1;
        }
        Ok(())
    }
}
