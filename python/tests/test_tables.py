"""Tables are read by other libraries as they are."""

import io

import duckdb
import lanemark
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest


@pytest.fixture(scope="module")
def record():
    return lanemark.simulate("card-gen5-x16", ["dma_read_bandwidth", "dma_read_latency"], sizes=[64, 4096])


def test_pandas_polars_and_pyarrow_see_the_same_table(record):
    arrow = pyarrow.table(record)
    frame = record.to_pandas()
    assert arrow.column_names == record.table.columns == list(frame.columns) == polars.DataFrame(record).columns
    for name in record.table.columns:
        values = record.table[name]
        assert arrow[name].to_pylist() == values
        assert polars.DataFrame(record)[name].to_list() == values
        assert [None if pandas.isna(value) else value for value in frame[name]] == values
    assert frame.attrs["units"]["latency_ns_median"] == "ns"
    assert frame.attrs["units"]["delivered_rate_bytes_per_s_median"] == "B/s"


def test_duckdb_queries_a_table_and_a_record_by_their_names(record):
    table = record.table
    sizes = duckdb.sql('select size_bytes from "table" order by all')
    assert [size for (size,) in sizes.fetchall()] == sorted(table["size_bytes"])
    assert duckdb.sql("select count(*) from record").fetchall() == [(len(table),)]


def test_types_of_columns_do_not_depend_on_the_values(record):
    def types(table):
        return {field.name: field.type for field in pyarrow.table(table).schema if not field.name.startswith("varied.")}

    other = lanemark.predict("tacc-stratix4", "mmio_read_latency", memory_type="uc")
    assert types(record) == types(other)
    assert types(record)["outstanding"] == pyarrow.int64() and types(record)["bound"] == pyarrow.string()


def test_samples_have_a_row_each_and_survive_a_parquet_file(record, tmp_path):
    samples = record.samples
    assert len(samples) == sum(len(raw["round"]) for answer in record.answers for raw in answer["raw"])
    samples.to_parquet(tmp_path / "samples.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "samples.parquet").equals(pyarrow.table(samples))


def test_a_file_that_cannot_be_written_is_refused_and_keeps_what_it_had(record, tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "it"
    path.write_text("before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    writers = [record.table.to_parquet, record.table.to_csv, record.report, lanemark.Platform("card-gen5-x16").save]
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    try:
        for write in writers:
            with pytest.raises(lanemark.UsageError) as error:
                write(path)
            assert str(error.value).startswith(f"writing {path}: File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("before", [path])
    with pytest.raises(lanemark.UsageError, match="writing .*: is a directory"):
        record.table.to_csv(tmp_path)
    with pytest.raises(lanemark.UsageError, match="/no/such/folder/file: No such file or directory"):
        record.table.to_parquet("/no/such/folder/file")


def test_a_file_is_written_through_a_dangling_link(record, tmp_path):
    (tmp_path / "link.csv").symlink_to("real.csv")
    record.table.to_csv(tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "real.csv").read_text() == record.table.to_csv()


def test_an_unknown_column_or_key_is_refused_with_those_that_are_near(record):
    with pytest.raises(KeyError, match="there is no column 'latency_ns'. Did you mean latency_ns_"):
        record.table["latency_ns"]
    with pytest.raises(KeyError, match="there is no column 'zzz'; use one of question, target"):
        record.table["zzz"]
    with pytest.raises(KeyError, match="card-gen5-x16 has no value of 'link.mps'. Did you mean link.mps_bytes\\?"):
        lanemark.Platform("card-gen5-x16")["link.mps"]


def test_csv_has_the_same_values(record):
    read = pandas.read_csv(io.StringIO(record.table.to_csv()))
    assert list(read["size_bytes"]) == record.table["size_bytes"]
    assert numpy.allclose(read["formula_latency_ns"].dropna(), record.to_pandas()["formula_latency_ns"].dropna())


def test_dimensions_of_a_dataset_are_the_parameters_that_vary():
    data = lanemark.predict(
        "card-gen5-x16",
        "dma_read_bandwidth",
        sizes=[64, 4096],
        flows="host:0",
        with_={"dma": {"tags": [16, 64]}, "link.latency_ns": [100, 200, 400]},
    ).to_xarray()
    rate = data.formula_delivered_rate_bytes_per_s
    assert dict(rate.sizes) == {"dma.tags": 2, "link.latency_ns": 3, "size_bytes": 2}
    assert rate.attrs["units"] == "B/s" and data.attrs["question"] == "dma_read_bandwidth"
    assert "Gen5" in data.attrs["machine"]
    one = lanemark.predict("card-gen5-x16", "dma_read_bandwidth", sizes=64, flows="host:0", with_={"dma.tags": 16, "link.latency_ns": 400})
    value = one.table["formula_delivered_rate_bytes_per_s"][0]
    assert float(rate.sel({"dma.tags": 16, "link.latency_ns": 400, "size_bytes": 64})) == value


def test_a_dataset_of_several_questions_is_refused(record):
    with pytest.raises(ValueError, match="dma_read_bandwidth, dma_read_latency"):
        record.to_xarray()


def test_a_notebook_shows_a_picture_and_the_figures(record):
    assert "<svg" in record._repr_html_() and "size_bytes" in record._repr_html_()
    assert "Infinity" not in record._repr_html_()


def test_a_dataset_of_samples_is_refused():
    with pytest.raises(ValueError, match="to_xarray needs a table of answers"):
        lanemark.simulate("card-gen5-x16", "dma_read_latency", sizes=64).samples.to_xarray()


def test_a_notebook_shows_the_first_rows_and_counts_the_others(record):
    table = lanemark.predict("card-gen5-x16", "dma_read_latency", sizes="64..1M").table
    html = table._repr_html_()
    assert html.count("<tr>") == 11 and f"<p>{len(table) - 10} more rows</p>" in html
    # Formulas have no samples.
    assert "<th>size_bytes</th>" in html and "<th>latency_ns_median</th>" not in html
