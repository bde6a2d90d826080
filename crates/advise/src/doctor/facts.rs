//! Conversion of inventory facts for a diagnosis.

use super::tags::tags;
use lanemark_inventory::{Inventory, Region, Seen};
use lanemark_record::diagnosis::{Bar, Capability, Fact, Field, Function, Machine};
use lanemark_wire::config::{Capability as Found, ConfigSpace, FieldValue, LinkSpeed, PortType};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Converts a fact, or the reason why it was not seen.
pub(super) fn fact<T: Clone>(seen: &Seen<T>) -> Fact<T> {
    match seen {
        Seen::Known(value) => Fact::Seen { value: value.clone() },
        Seen::Unseen(why) => Fact::Unseen { unseen: why.because() },
    }
}

fn fact_of<T, U>(seen: &Seen<T>, of: impl FnOnce(&T) -> U) -> Fact<U> {
    match seen {
        Seen::Known(value) => Fact::Seen { value: of(value) },
        Seen::Unseen(why) => Fact::Unseen { unseen: why.because() },
    }
}

/// Converts the processor side of the machine.
pub(crate) fn machine(inventory: &Inventory) -> Machine {
    let processors = &inventory.processors;
    Machine {
        processor: fact(&processors.model),
        sockets: fact(&processors.sockets),
        numa_nodes: fact_of(&processors.nodes, |nodes| nodes.len() as u32),
        kernel: fact(&inventory.kernel.release),
        governors: fact_of(&processors.governors, |governors| {
            let names: BTreeSet<String> = governors.iter().map(|governor| governor.name.clone()).collect();
            names.into_iter().collect()
        }),
        aspm_policy: fact(&inventory.kernel.aspm_policy),
        iommu_units: fact(&inventory.iommu.units),
    }
}

/// Converts one function, with its capability fields if `fields` is set.
pub(crate) fn function(function: &lanemark_inventory::Function, fields: bool) -> Function {
    let express = function.pcie();
    // Without the capability there is no payload size either; the reason is the capability's.
    let of_express = match &function.express {
        Seen::Unseen(why) => why.because(),
        Seen::Known(_) => "it has no PCI Express capability".to_owned(),
    };
    let no_u32 = || Fact::<u32>::Unseen { unseen: of_express.clone() };
    let no_u16 = || Fact::<u16>::Unseen { unseen: of_express.clone() };
    Function {
        address: function.address.to_string(),
        parent: fact_of(&function.parent, |parent| parent.map(|parent| parent.to_string())),
        vendor_id: fact(&function.vendor),
        device_id: fact(&function.device),
        class_code: fact_of(&function.class, |class| class.0),
        class: fact_of(&function.class, ToString::to_string),
        name: fact(&function.name),
        driver: fact(&function.driver),
        numa_node: fact(&function.numa_node),
        iommu_group: fact(&function.iommu_group),
        power_state: fact(&function.power_state),
        config_bytes: fact_of(&function.config, |bytes| bytes.len() as u32),
        port: match (&function.express, express) {
            (_, Some(express)) => fact_of(&express.kind, |kind| Some(port(*kind).to_owned())),
            (Seen::Unseen(why), None) => Fact::Unseen { unseen: why.because() },
            (Seen::Known(_), None) => Fact::Seen { value: None },
        },
        mps_bytes: express.map_or_else(no_u32, |express| fact_of(&express.mps, |mps| mps.bytes())),
        mps_supported_bytes: express.map_or_else(no_u32, |express| fact_of(&express.mps_supported, |mps| mps.bytes())),
        mrrs_bytes: express.map_or_else(no_u32, |express| fact_of(&express.mrrs, |mrrs| mrrs.bytes())),
        tags: express.map_or_else(no_u16, |express| {
            let generation = function.link().and_then(|link| link.speed.get()).map_or(0, LinkSpeed::code);
            match tags(express, generation) {
                Some(tags) => Fact::Seen { value: tags.tags() },
                None => Fact::Unseen { unseen: "Device Control was not seen".to_owned() },
            }
        }),
        bars: fact_of(&function.regions, |regions| regions.iter().filter_map(bar).collect()),
        capabilities: match function.config.known() {
            Some(bytes) if fields => capabilities(bytes),
            _ => Vec::new(),
        },
    }
}

/// Name of a port type.
fn port(kind: PortType) -> &'static str {
    match kind {
        PortType::Endpoint => "endpoint",
        PortType::LegacyEndpoint => "legacy endpoint",
        PortType::RootPort => "root port",
        PortType::UpstreamPort => "upstream port",
        PortType::DownstreamPort => "downstream port",
        PortType::PciBridge => "bridge to PCI",
        PortType::ReverseBridge => "bridge from PCI",
        PortType::IntegratedEndpoint => "integrated endpoint",
        PortType::EventCollector => "event collector",
    }
}

fn bar(region: &Region) -> Option<Bar> {
    Some(Bar {
        index: region.bar()?,
        address_bytes: fact_of(&region.base, |base| base.map(|base| base.0)),
        size_bytes: fact(&region.bytes),
        prefetchable: region.prefetchable,
    })
}

/// Lists the header and every reachable capability, field by field.
fn capabilities(bytes: &[u8]) -> Vec<Capability> {
    let space = ConfigSpace::new(bytes);
    let header = Capability {
        name: "header".to_owned(),
        offset: 0,
        fields: space.header().fields().map(field).collect(),
        raw: None,
    };
    std::iter::once(header).chain(space.capabilities().map(|found| capability(&found))).collect()
}

fn capability(found: &Found<'_>) -> Capability {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    Capability {
        name: found.id().to_string(),
        offset: found.offset(),
        fields: found.region().fields().map(field).collect(),
        raw: (!found.is_known()).then(|| hex(found.bytes())),
    }
}

fn field(found: FieldValue) -> Field {
    let register = match found.instance {
        Some((number, what)) => format!("{} ({what} {number})", found.register),
        None => found.register.to_owned(),
    };
    Field { register, field: found.field.to_owned(), raw: found.raw, means: found.reading.to_string() }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, known};
    use crate::doctor::{DiagnosisRequest, diagnose};
    use lanemark_record::diagnosis::Fact;

    #[test]
    fn fields_are_listed_on_request_only() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(sample::config(|_| ()));
        let card = |fields| {
            diagnose(&machine, &DiagnosisRequest { fields, ..DiagnosisRequest::default() }).functions[CARD].clone()
        };
        assert_eq!(card(false).capabilities, []);
        let listed = card(true).capabilities;
        assert_eq!((listed[0].name.as_str(), listed[1].offset), ("header", 0x40));
        assert!(listed[1].fields.iter().any(|field| field.register == "DevCtl" && field.field == "MaxPayload"));
    }

    #[test]
    fn an_unseen_fact_keeps_its_reason() {
        let diagnosis = diagnose(&sample::healthy(), &DiagnosisRequest::default());
        assert_eq!(
            diagnosis.functions[CARD].driver,
            Fact::Unseen { unseen: lanemark_inventory::Why::NotInDump.because() }
        );
        assert_eq!(diagnosis.functions[CARD].tags, Fact::Seen { value: 256 });
    }
}
