//! A diagnosis for tests.

use lanemark_record::diagnosis::{
    Diagnosis, End, Fact, Finding, Fix, Function, Gain, Link, LinkRate, Machine, Severity, Unit, Unseen,
};

fn seen<T>(value: T) -> Fact<T> {
    Fact::Seen { value }
}

fn unseen<T>() -> Fact<T> {
    Fact::Unseen { unseen: "a test".to_owned() }
}

fn function(address: &str, parent: Option<&str>, class: &str) -> Function {
    Function {
        address: address.to_owned(),
        parent: seen(parent.map(str::to_owned)),
        vendor_id: unseen(),
        device_id: unseen(),
        class_code: unseen(),
        class: seen(class.to_owned()),
        name: unseen(),
        driver: seen(None),
        numa_node: unseen(),
        iommu_group: unseen(),
        power_state: unseen(),
        config_bytes: unseen(),
        port: seen(None),
        mps_bytes: seen(256),
        mps_supported_bytes: seen(256),
        mrrs_bytes: seen(512),
        tags: unseen(),
        bars: unseen(),
        capabilities: vec![],
    }
}

/// A root port with a card whose link trained at half speed and width, and another function.
pub(crate) fn sample() -> Diagnosis {
    let machine = Machine {
        processor: seen("A Processor".to_owned()),
        sockets: seen(1),
        numa_nodes: unseen(),
        kernel: unseen(),
        governors: unseen(),
        aspm_policy: unseen(),
        iommu_units: seen(vec![]),
    };
    let mut diagnosis = Diagnosis::new("this machine".to_owned(), machine);
    let mut card = function("0000:01:00.0", Some("0000:00:01.0"), "3D controller");
    card.name = seen("Someone's Accelerator".to_owned());
    card.driver = seen(Some("accel".to_owned()));
    card.port = seen(Some("endpoint".to_owned()));
    let mut port = function("0000:00:01.0", None, "PCI bridge");
    port.port = seen(Some("root port".to_owned()));
    diagnosis.functions = vec![port, card, function("0000:00:1f.0", None, "ISA bridge")];
    let most = LinkRate { generation: 4, width_lanes: 16 };
    diagnosis.links = vec![Link {
        upper: Some("0000:00:01.0".to_owned()),
        lower: "0000:01:00.0".to_owned(),
        trained: seen(LinkRate { generation: 3, width_lanes: 8 }),
        upper_can: seen(most),
        lower_can: seen(most),
        both_can: seen(most),
        ceiling_bytes_per_s: seen(7.2e9),
        aspm: seen("none".to_owned()),
        state: "Gen3 x8 of Gen4 x16".to_owned(),
    }];
    let (now, then, unit) = (7.2e9, 14.4e9, Unit::BytesPerS);
    let (quantity, assumes) = ("DMA ceiling".to_owned(), "writes of 256 B".to_owned());
    diagnosis.findings = vec![
        Finding {
            check: "link_speed".to_owned(),
            severity: Severity::Costly,
            functions: vec!["0000:01:00.0".to_owned()],
            end: Some(End::Both),
            reason: "the link runs at Gen3 although both ends support Gen4".to_owned(),
            gain: Gain::Computed { quantity, now, then, unit, assumes },
            fix: Fix {
                command: Some("setpci -s 0000:00:01.0 CAP_EXP+30.w=4:f".to_owned()),
                words: "trains again".to_owned(),
            },
        },
        Finding {
            check: "governor".to_owned(),
            severity: Severity::Hint,
            functions: vec![],
            end: None,
            reason: "the governor is powersave".to_owned(),
            gain: Gain::Unknown { because: "it was not measured".to_owned() },
            fix: Fix { command: None, words: "ask a colleague".to_owned() },
        },
    ];
    let blind = |what: &str, because: &str, enable: &str, functions: &[&str]| Unseen {
        what: what.to_owned(),
        because: because.to_owned(),
        enable: enable.to_owned(),
        functions: functions.iter().map(|address| (*address).to_owned()).collect(),
    };
    diagnosis.unseen = vec![
        blind("link state", "no root", "run as root", &["0000:00:01.0", "0000:00:1f.0"]),
        blind("MTRRs", "there is no file", "another kernel", &[]),
    ];
    diagnosis
}
