"""Records and platforms travel between processes."""

import copy
import pickle
from pathlib import Path

import lanemark
import pytest


def test_a_record_and_a_platform_are_the_same_after_a_journey():
    card = lanemark.Platform("card-gen5-x16").with_(link={"mps_bytes": 256})
    again = pickle.loads(pickle.dumps(card))
    assert again["link.mps_bytes"] == 256 and again.name == card.name
    record = lanemark.predict(card, "dma_read_latency", sizes=64)
    assert pickle.loads(pickle.dumps(record)).to_dict() == record.to_dict()


def again(value):
    return [pickle.loads(pickle.dumps(value)), copy.deepcopy(value)]


def test_a_table_has_the_same_columns_types_and_values_after_a_journey():
    record = lanemark.predict("card-gen5-x16", ["dma_read_latency", "dma_read_bandwidth"], sizes=[64, 4096])
    for table in (record.table, lanemark.trace("card-gen5-x16", "dma_read_latency", sizes=64).table):
        for other in again(table):
            assert other.columns == table.columns and list(other) == list(table) and other.to_csv() == table.to_csv()
            assert [[type(value) for value in other[name]] for name in table.columns] == [
                [type(value) for value in table[name]] for name in table.columns
            ]
            polars = pytest.importorskip("polars")
            # A column without any value keeps its type, too.
            assert polars.DataFrame(other).schema == polars.DataFrame(table).schema
    assert any(all(value is None for value in record.table[name]) for name in record.table.columns)
    assert [len(other) for other in again(lanemark._lanemark.Table.of([]))] == [0, 0]


def test_a_trace_is_the_same_after_a_journey(tmp_path):
    file = tmp_path / "card.toml"
    lanemark.Platform("card-gen5-x16").save(file)
    for on in (lanemark.Platform("card-gen5-x16").with_(link={"mps_bytes": 128}), file):
        trace = lanemark.trace(on, "dma_read_bandwidth", sizes=4096, iterations=2)
        # The trace is of the platform as it was.
        file.write_text("schema = 2")
        for other in again(trace):
            assert str(other) == str(trace) and other.to_perfetto() == trace.to_perfetto()
            assert list(other.table) == list(trace.table)
        lanemark.Platform("card-gen5-x16").save(file)


def test_a_fit_is_the_same_after_a_journey():
    draft = lanemark.Platform.from_toml(
        'schema = 2\nname = "mine"\nextends = "card-gen5-x16"\n[link]\nlatency_ns = { unknown = "to be measured" }\n'
    )
    columns = {"question": ["dma_read_latency"] * 3, "size_bytes": [64, 128, 256], "figure": ["900 ns", "910 ns", "920 ns"]}
    fit = lanemark.fit(draft, columns, keep_structure=True)
    for other in again(fit):
        assert (str(other), other.to_dict(), other.parameters) == (str(fit), fit.to_dict(), fit.parameters)
        assert other.platform.to_toml() == fit.platform.to_toml()


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
    listings = Path(__file__).resolve().parents[2] / "checks/tests/inventory/listings"
    usual, slow = (lanemark.doctor(listings / name) for name in ("virtual-machine-with-virtio.txt", "server-with-a-degraded-card.txt"))
    fleet = lanemark.fleet(records, {name: slow if name == "node0" else usual for name in records})
    assert "only here: " in str(fleet) and "(link_width)" in str(fleet)


def test_workers_of_a_dask_cluster_measure_and_their_records_are_compared():
    distributed = pytest.importorskip("distributed")
    options = dict(n_workers=4, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        records = client.run(lanemark.simulate, "card-gen5-x16", "dma_read_latency", sizes=64)
    fleet = lanemark.fleet(records)
    assert len(records) == 4 and fleet.outliers == [] and len(fleet.machines) == 4
