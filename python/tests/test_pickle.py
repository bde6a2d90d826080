"""Records and platforms travel between processes."""

import pickle

import lanemark


def test_a_record_and_a_platform_are_the_same_after_a_journey():
    card = lanemark.Platform("card-gen5-x16").with_(link={"mps_bytes": 256})
    again = pickle.loads(pickle.dumps(card))
    assert again["link.mps_bytes"] == 256 and again.name == card.name
    record = lanemark.predict(card, "dma_read_latency", sizes=64)
    assert pickle.loads(pickle.dumps(record)).to_dict() == record.to_dict()


def test_a_diagnosis_names_what_only_the_slow_machine_has():
    def node(lanes):
        return lanemark.simulate(lanemark.Platform("card-gen5-x16").with_(link={"width_lanes": lanes}), "dma_read_latency", sizes=4096)

    records = {f"node{number}": node(16 if number else 1) for number in range(5)}
    fleet = lanemark.fleet(records)
    assert [outlier["machine"] for outlier in fleet.outliers] == ["node0"] and "causes unknown" in str(fleet)
