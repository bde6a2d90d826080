"""Records and platforms travel between processes."""

import pickle

import lanemark
import pytest


def test_a_record_and_a_platform_are_the_same_after_a_journey():
    card = lanemark.Platform("card-gen5-x16").with_(link={"mps_bytes": 256})
    again = pickle.loads(pickle.dumps(card))
    assert again["link.mps_bytes"] == 256 and again.name == card.name
    record = lanemark.predict(card, "dma_read_latency", sizes=64)
    assert pickle.loads(pickle.dumps(record)).to_dict() == record.to_dict()


@pytest.mark.parametrize("name", [*lanemark.platforms().platforms, "xeon-spr+gpu-h100"])
def test_every_platform_and_its_document_make_it_again(name):
    platform = lanemark.Platform(name)
    for again in (pickle.loads(pickle.dumps(platform)), lanemark.Platform.from_dict(platform.to_dict())):
        assert again["link.mps_bytes"] == platform["link.mps_bytes"] and again.unknown == platform.unknown


def test_every_exception_is_the_same_after_a_journey():
    with pytest.raises(lanemark.PlatformError) as error:
        lanemark.Platform("card-gen5-x16").with_(link={"width_lanes": 3})
    again = pickle.loads(pickle.dumps(error.value))
    assert again.problems == error.value.problems and str(again) == str(error.value)
    for kind in (lanemark.UsageError, lanemark.AbsentError, lanemark.FailedError, lanemark.Interrupted):
        assert str(pickle.loads(pickle.dumps(kind("why")))) == "why"


def test_a_diagnosis_names_what_only_the_slow_machine_has():
    def node(lanes):
        return lanemark.simulate(lanemark.Platform("card-gen5-x16").with_(link={"width_lanes": lanes}), "dma_read_latency", sizes=4096)

    records = {f"node{number}": node(16 if number else 1) for number in range(5)}
    fleet = lanemark.fleet(records)
    assert [outlier["machine"] for outlier in fleet.outliers] == ["node0"] and "causes unknown" in str(fleet)
