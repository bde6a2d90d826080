use lanemark_machine::*; use lanemark_sim::*; use lanemark_units::*;
fn main(){
    let p=lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    let mut m=SimulatedMachine::new(&p).unwrap();
    let r=m.facts().region("memory").unwrap().clone();
    let mut plan=Plan::on_one_core(vec![Op::Stream(Stream::over(Verb::Store,Access::Plain(Width::B64),Span{at:r.at,len:4<<20,memory_type:MemoryType::Wc}))],256);
    plan.timeout=Ticks::whole_ns(100_000_000_000);
    let mut s=Samples::wanted(1);
    let t0=std::time::Instant::now();
    m.run(&plan,&mut s).unwrap();
    println!("{:.2} M TLP/s {:?}", s.traffic.unwrap().write_tlps as f64/t0.elapsed().as_secs_f64()/1e6, s.taken[0]);
}
