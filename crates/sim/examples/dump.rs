use lanemark_machine::*; use lanemark_sim::*; use lanemark_units::*; use lanemark_platform::*;
struct R(u64);
impl R{fn n(&mut self,m:u64)->u64{self.0=self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);(self.0>>33)%m}
fn p<T:Copy>(&mut self,a:&[T])->T{a[self.n(a.len() as u64) as usize]}}
fn main(){
  let mut r=R(42);
  for case in 0..3000{
    let name=r.p(&["card-gen5-x16","tacc-stratix4","aws-f1"]);
    let mut p=preset(name).unwrap().unwrap();
    let o=||Origin::Assumed("x".into());
    let reg=if name=="card-gen5-x16"{"memory"}else if name=="tacc-stratix4"{"sram"}else{"ddr"};
    for (k,v) in [("core.wc_buffers",r.p(&[1.,2.,6.,10.,16.])),("core.store_buffer_entries",r.p(&[1.,5.,36.,112.])),("root_complex.posted_queue_entries",r.p(&[1.,4.,32.])),
      ("link.posted_header_credits",r.p(&[1.,2.,8.,127.])),("link.posted_data_credits",r.p(&[8.,13.,64.,2047.])),("link.width_lanes",r.p(&[1.,4.,8.,16.])),("core.wc_loads_in_flight",r.p(&[1.,2.,8.])),
      ("core.streaming_load_buffers",r.p(&[0.,2.,16.])),("link.nonposted_header_credits",r.p(&[1.,2.,64.]))]{
      if r.n(2)==0 { if let Ok(q)=p.with(k,v,o()){p=q} } }
    let v=r.n(60) as f64; if r.n(2)==0{p=p.with(&format!("region.{reg}.beat_ns"),v,o()).unwrap();}
    let mut m=SimulatedMachine::new(&p).unwrap();
    let region=m.facts().region(reg).unwrap().clone();
    let mut lanes=vec![];
    let ncores=1+r.n(2);
    for core in 0..ncores{
      let mut body=vec![];
      for _ in 0..1+r.n(3){
        let verb=r.p(&[Verb::Store,Verb::Store,Verb::Load]);
        let accs=m.facts().accesses(verb).to_vec();
        let access=r.p(&accs);
        let mt=r.p(&[MemoryType::Uc,MemoryType::Wc,MemoryType::Wc,MemoryType::Wt,MemoryType::Wp]);
        let mut at=region.at; at.offset+=r.n(8)*64;
        let len=r.p(&[8u64,64,64,128,256,512,1000,4096]);
        let len=if access==Access::Movdir64b{len.next_multiple_of(64)}else{len};
        let span=Span{at,len,memory_type:mt};
        match r.n(6){0=>body.push(Op::Fence(r.p(&Fence::ALL))),1=>body.push(Op::FlushLines(span)),2 =>body.push(Op::Driver(DriverCall{verb,span,call_bytes:r.p(&[64,512]),width:Width::B8})),
          _=>{let mut s=Stream::over(verb,access,span); if r.n(4)==0{s.fence_each=Some(r.p(&Fence::ALL))} body.push(Op::Stream(s))}}
      }
      lanes.push(Lane{core:core as u32,body});
    }
    let plan=Plan{lanes,passes:1+r.n(20),warmup_passes:r.n(2),timeout:Ticks::whole_ns(10_000_000_000)};
    if std::env::args().nth(1)==Some(case.to_string()) {eprintln!("{name} {plan:?} {:?} {:?} {:?} {:?}",p.link.width_lanes.value,p.link.one_way_ns.value,p.root_complex,p.region(reg));}
    let mut s=Samples::wanted(2);
    let res=m.run(&plan,&mut s);
    println!("{case} {:?} {:?} {:?} {:?} {:?}",res.is_ok(),s.taken,s.waits,s.traffic,s.confirmed);
  }
}
