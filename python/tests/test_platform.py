"""Platforms from names, files, texts and documents."""

import lanemark
import pytest
from lanemark import Platform


def test_a_document_of_a_platform_is_the_platform_again():
    card = Platform("card-gen5-x16").with_(link={"mps_bytes": 256})
    again = Platform.from_dict(card.to_dict())
    assert again["link.mps_bytes"] == 256
    ask = dict(questions="dma_write_bandwidth", sizes=4096)
    assert lanemark.predict(again, **ask).table["formula_delivered_rate_bytes_per_s"] == (
        lanemark.predict(card, **ask).table["formula_delivered_rate_bytes_per_s"]
    )


def test_a_problem_of_a_file_has_its_file_line_and_key(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('schema = 2\nname = "mine"\nextends = "card-gen5-x16"\n[link]\nsource = "x"\nwidth_lanes = 5\n')
    with pytest.raises(lanemark.PlatformError) as error:
        Platform(path)
    (problem,) = error.value.problems
    assert (problem.file, problem.line, problem.key) == (str(path), 6, "link.width_lanes")
    assert isinstance(error.value, ValueError) and str(path) in str(error.value)


def test_an_unknown_number_is_refused_until_it_is_fitted():
    draft = Platform.from_toml(
        'schema = 2\nname = "mine"\nextends = "card-gen5-x16"\n[link]\nlatency_ns = { unknown = "to be measured" }\n'
    )
    assert draft.unknown == ["link.latency_ns"]
    with pytest.raises(lanemark.PlatformError, match="link.latency_ns"):
        lanemark.predict(draft, "dma_read_latency")
    truth = Platform("card-gen5-x16").with_(link={"latency_ns": 250})
    sizes = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
    measured = lanemark.simulate(truth, "dma_read_latency", sizes=sizes)
    fit = lanemark.fit(draft, measured, keep_structure=True)
    assert fit.parameters["link.latency_ns"] == pytest.approx(250, rel=0.01)
    assert fit.platform.unknown == [] and fit.held_out["median_percent"] < 1
    assert "link.latency_ns" in str(fit)


def test_columns_are_a_table_of_figures():
    draft = Platform.from_toml(
        'schema = 2\nname = "mine"\nextends = "card-gen5-x16"\n[link]\nlatency_ns = { unknown = "to be measured" }\n'
    )
    truth = Platform("card-gen5-x16").with_(link={"latency_ns": 250})
    sizes = [64, 128, 256, 512, 1024, 2048]
    latencies = lanemark.predict(truth, "dma_read_latency", sizes=sizes).table["formula_latency_ns"]
    figures = [f"{latency} ns" for latency in latencies]
    columns = {"question": ["dma_read_latency"] * 6, "size_bytes": sizes, "figure": figures}
    fit = lanemark.fit(draft, columns, keep_structure=True)
    assert fit.parameters["link.latency_ns"] == pytest.approx(250, rel=0.01)
    with pytest.raises(lanemark.UsageError, match="different lengths: 1, 6"):
        lanemark.fit(draft, {**columns, "figure": ["1 ns"]})


def test_a_changed_platform_has_no_file():
    with pytest.raises(ValueError, match="write the values"):
        Platform("card-gen5-x16").with_(link={"mps_bytes": 256}).to_toml()
    assert "schema = 2" in Platform("card-gen5-x16").to_toml()


def test_a_missing_key_is_a_key_error():
    card = Platform("card-gen5-x16")
    with pytest.raises(KeyError):
        card["link.no_such"]
    assert card.get("link.no_such", 7) == 7


def test_numbers_of_numpy_are_values():
    import numpy

    assert Platform("card-gen5-x16").with_(link={"mps_bytes": numpy.int64(256)})["link.mps_bytes"] == 256


def test_a_number_that_the_data_leave_unknown_is_no_parameter():
    draft = Platform.from_toml(
        'schema = 2\nname = "mine"\nextends = "card-gen5-x16"\n[link]\nlatency_ns = { unknown = "to be measured" }\n'
    )
    # No latency is so short: the best value is at the bound.
    impossible = {"question": ["dma_read_latency"] * 3, "size_bytes": [64, 128, 256], "figure": ["1 ns"] * 3}
    fit = lanemark.fit(draft, impossible, keep_structure=True)
    assert fit.platform.unknown == ["link.latency_ns"] and fit.parameters == {}


def test_a_platform_in_a_space_is_refused_with_what_to_do(tmp_path):
    space = {"schema": 1, "platforms": [Platform("card-gen5-x16")], "question": [{"name": "dma_read_latency"}]}
    with pytest.raises(lanemark.UsageError, match="^platforms: a Platform is not allowed here: save it"):
        lanemark.sweep(space, tmp_path / "log.jsonl")
