use lanemark_machine::*; use lanemark_sim::*; use lanemark_units::*;
fn one(m:&mut SimulatedMachine, reg:&str, verb:Verb, mt:MemoryType, access:Access, size:u64, passes:u64)->(f64,f64,Samples){
    let r=m.facts().region(reg).unwrap().clone();
    let mut plan=Plan::on_one_core(vec![Op::Stream(Stream::over(verb,access,Span{at:r.at,len:size,memory_type:mt}))],passes);
    plan.timeout=Ticks::whole_ns(100_000_000_000);
    let mut s=Samples::wanted(1); m.run(&plan,&mut s).unwrap();
    let b=(size*passes) as f64; (b/s.taken[0].issue.as_ns(), b/s.taken[0].delivered.as_ns(), s)
}
fn main(){
    let p=lanemark_platform::preset("aws-f1").unwrap().unwrap();
    let pubd=[(64,0.026475,0.434842,0.052006,0.257794),(128,0.029538,0.451738,0.055200,0.479473),(256,0.028037,1.372066,0.139926,1.870115),(512,0.028219,1.526626,0.174819,3.017622),(1024,0.027883,1.622178,0.188182,2.060155),(2048,0.027718,1.632887,0.006942,1.971544),(4096,0.027786,1.666118,0.006993,1.949910),(16384,0.027669,1.699400,0.006937,1.889101),(65536,0.027646,1.665334,0.006942,1.894148)];
    for (size,b,bw,c,cw) in pubd {
        let mut line=format!("{size:6}");
        for (mt,a,pv) in [(MemoryType::Uc,Access::Plain(Width::B4),b),(MemoryType::Wc,Access::Plain(Width::B4),bw),(MemoryType::Uc,Access::Memcpy,c),(MemoryType::Wc,Access::Memcpy,cw)]{
            let mut m=SimulatedMachine::new(&p).unwrap();
            let (i,_d,s)=one(&mut m,"ddr",Verb::Store,mt,a,size,100);
            line+=&format!(" | {i:.4} {pv:.4} {:+5.1}%",100.0*(i-pv)/pv);
            let c=s.confirmed.unwrap(); assert_eq!(c.claimed_bytes,c.confirmed_bytes);
        }
        println!("{line}");
    }
    let t=lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
    for (reg,mt,a,f) in [("registers",MemoryType::Uc,Access::Plain(Width::B8),1),("registers",MemoryType::Wc,Access::Plain(Width::B8),1),("sram",MemoryType::Uc,Access::Plain(Width::B8),1),("sram",MemoryType::Wc,Access::NonTemporal(Width::B16),1),("sram",MemoryType::Wt,Access::Plain(Width::B8),1)] {
        let mut m=SimulatedMachine::new(&t).unwrap();
        let r=m.facts().region(reg).unwrap().clone(); let _=f;
        for size in [8u64,64,1024] { if a==Access::NonTemporal(Width::B16)&&size<16 {continue}
        let (_,_,s)=one(&mut m,reg,Verb::Load,mt,a,size,1); println!("{} {mt} {a} {size}: {:?}",r.name,s.taken[0].issue);}
    }
    let mut m=SimulatedMachine::new(&t).unwrap();
    let (i,d,s)=one(&mut m,"sram",Verb::Store,MemoryType::Wc,Access::Plain(Width::B8),1<<20,1);
    println!("T9 {i} {d} {:?} {:?}",s.traffic,s.waits);
    for (plat,reg) in [("card-gen5-x16","memory")] {
        let p=lanemark_platform::preset(plat).unwrap().unwrap();
        let mut m=SimulatedMachine::new(&p).unwrap();
        let t0=std::time::Instant::now();
        let (i,d,s)=one(&mut m,reg,Verb::Store,MemoryType::Wc,Access::Plain(Width::B64),4<<20,64);
        let el=t0.elapsed().as_secs_f64();
        println!("{plat} {i} {d} {:?} {:?} {:.2} M TLP/s",s.traffic.unwrap().write_tlps,s.waits, s.traffic.unwrap().write_tlps as f64/el/1e6);
    }
}
