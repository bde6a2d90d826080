//! The program runs on another kernel and processor, with only this machine's libraries.

use crate::shared;

pub fn bench_of_the_guests_memory_is_marked_as_emulated() {
    let mut guest = shared();
    let ask = "lanemark bench --on host --question mmio_read_latency,mmio_write_bandwidth --sizes 64 --access 8,memcpy \
               --record host.json >/dev/null && cat host.json";
    let record: serde_json::Value = serde_json::from_str(&guest.expect(ask)).unwrap();
    let target = &record["targets"][0];
    assert_eq!((&target["name"], &target["kind"]), (&"host".into(), &"emulated".into()));
    let answers = record["answers"].as_array().unwrap();
    assert!(!answers.is_empty(), "{record}");
    for answer in answers {
        assert_eq!(answer["ceiling"]["kind"], "unknown", "{answer}");
    }
}
