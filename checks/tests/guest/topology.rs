//! Is the guest what the other tests take it for? If not, they are not to be believed.

use crate::shared;

#[test]
fn devices_stand_where_the_other_tests_look_for_them() {
    let mut guest = shared();
    println!("{}", guest.expect("uname -a; cat /proc/cpuinfo; dmesg | tail -20; for d in /sys/bus/pci/devices/*; do echo $d $(cat $d/vendor $d/device $d/class $d/current_link_speed $d/current_link_width $d/max_link_speed $d/max_link_width); ls $d; cat $d/resource; done; mount; lsmod"));
    println!("{:?}", guest.run("echo hi; echo err >&2; exit 3"));
    println!("{:?}", guest.run("lanemark platforms; time lanemark bench --on host --question mmio_read_latency --sizes 64"));
}
