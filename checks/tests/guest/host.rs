//! Does the program run on another kernel and processor, with nothing of this machine but its libraries?

use crate::shared;

#[test]
fn the_program_asks_the_guests_own_memory() {
    let mut guest = shared();
    let ask = "lanemark bench --on host --question mmio_read_latency --sizes 64 --record host.json >/dev/null \
               && cat host.json";
    let record: serde_json::Value = serde_json::from_str(&guest.expect(ask)).unwrap();
    assert_eq!(record["targets"][0]["name"], "host");
    assert!(record["answers"].as_array().is_some_and(|answers| !answers.is_empty()), "{record}");
}
